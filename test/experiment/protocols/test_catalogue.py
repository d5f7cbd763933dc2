"""The protocols of the papers, from design to verdict, on an arm without real-time clock."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from ur_energy_model.experiment.design.design import Design
from ur_energy_model.experiment.design.problem import DesignProblem, DesignRequest
from ur_energy_model.experiment.execution.execution_plan import ExecutionPlan
from ur_energy_model.experiment.limits import check
from ur_energy_model.experiment.protocols.catalogue import PROTOCOLS, run_protocol
from ur_energy_model.experiment.protocols.known_payload import PAYLOAD, identify_known_payload
from ur_energy_model.experiment.protocols.outcome import Outcome
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.plain import plain
from ur_energy_model.resources import config_file
from ur_energy_model.simulation.arm.arm_options import ArmOptions
from ur_energy_model.simulation.arm.commands import Follow, MoveJ
from ur_energy_model.simulation.arm.simulated_arm import SimulatedArm
from ur_energy_model.simulation.arm_recording import record_arm
from ur_energy_model.trajectory.fourier import FourierTrajectory, load_trajectory
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.planner import home_position

ROBOT = load_robot("ur5")
"""Its controller has the lowest rate, which makes these tests fast."""


class FastArm:
    """A simulated arm that runs and records plans as fast as it can be computed."""

    def __init__(self) -> None:
        home = Hold(home_position(ROBOT))
        self.arm = SimulatedArm(
            ROBOT, motion=home, seed=4, options=ArmOptions(controller_version=(3, 15, 8))
        )

    def run(self, plan: ExecutionPlan, bag: Path) -> None:
        """As `ur_energy excite --execute` does, on the simulation's own clock."""
        arm = self.arm
        arm.command(MoveJ(plan.trajectory.start))
        while arm.busy:
            arm.tick()
        arm.command(Follow(plan.trajectory))
        write_bag(bag, record_arm(arm, plan.trajectory.duration + 1.0))

    def mount(self, mass: float) -> None:
        """Mount a payload without informing the controller."""
        self.arm.carry(Payload(mass, np.array([0.0, 0.0, 0.05])))


@dataclass
class QuickRun(ProtocolRun):
    """A run with ready designs: the search is tested elsewhere."""

    designs: list[FourierTrajectory] = field(default_factory=list)

    def design(self, name: str, seed: int) -> Design:
        problem = DesignProblem(DesignRequest(ROBOT))
        trajectory = self.designs.pop(0)
        verdict = check(trajectory, problem.limits)
        assert verdict.passed, verdict.problems
        condition = problem.condition_number(trajectory)
        return Design(trajectory, condition, "condition", condition, verdict, 0.0, 1)


@pytest.fixture
def arm() -> FastArm:
    return FastArm()


@pytest.fixture
def session(arm: FastArm, tmp_path: Path) -> QuickRun:
    shipped = load_trajectory(config_file("excitation", "ur5.yaml")).repeated(1)
    designs = [shipped, replace(shipped, period=1.3 * shipped.period)]
    return QuickRun(
        ROBOT,
        tmp_path,
        arm.run,  # type: ignore[arg-type]
        arm.mount,
        lambda fraction, text: None,
        simulated=True,
        designs=designs,
    )


def figures(outcome: Outcome, start: str) -> Any:
    """Value found here, by the start of a row's name."""
    (row,) = (row for row in outcome.rows if row.figure.startswith(start))
    return row.here


def check_files(outcome: Outcome, folder: Path, models: set[str], bags: set[str]) -> None:
    """All files are in the folder, and the verdict equals the outcome."""
    content = json.loads((folder / "verdict.json").read_text())
    assert content == json.loads(json.dumps(plain(outcome.as_dict())))
    table = (folder / "verdict.md").read_text()
    assert all(row.figure in table for row in outcome.rows)
    assert {path.name for path in folder.glob("model*.yaml")} == models
    assert {path.parent.name for path in folder.glob("*/metadata.yaml")} == bags


def test_s1_finds_base_parameters(session: QuickRun) -> None:
    outcome = run_protocol("s1", session)
    check_files(outcome, session.folder, {"model.yaml"}, {"excitation", "validation_run"})
    assert figures(outcome, "base parameters") == 52
    assert figures(outcome, "condition number, designed") < 60


def test_s4_identifies_a_payload(session: QuickRun) -> None:
    outcome = run_protocol("s4", session)
    bags = {"excitation_unloaded", "general_unloaded", "excitation_loaded"}
    check_files(outcome, session.folder, {"model.yaml"}, bags)
    assert figures(outcome, "payload found") == pytest.approx(PAYLOAD, rel=0.05)
    assert outcome.warnings == []


def test_without_a_mount_the_payload_part_is_skipped(session: QuickRun) -> None:
    session.mount = None
    model: Any = None  # not used
    assert identify_known_payload(session, {}, session.designs[0], model, session.folder) == []
    assert any("somebody has to mount it" in warning for warning in session.warnings)


def test_every_protocol_is_run_here() -> None:
    assert set(PROTOCOLS) == {"s0", "s1", "s2", "s4"}
