# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The protocols of the papers, from design to verdict, on an arm without real-time clock."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ur_energy_model.codec import plain
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.experiment.design import Design
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers import (
    protocol,
    s0_tables,
    s2,
    s3,
    s4_load_check,
    s4_measured_run,
    s4_own_robot,
)
from ur_energy_model.papers import s1 as friction_campaign
from ur_energy_model.papers.pictures import Picture, r2_of_chart
from ur_energy_model.papers.protocol import OtherArms, Outcome, ProtocolRun
from ur_energy_model.papers.published import paper
from ur_energy_model.papers.s2_models import Ecbot
from ur_energy_model.papers.s4 import PAYLOAD, identify_known_payload
from ur_energy_model.papers.stages import SimulatedCell, run_protocol
from ur_energy_model.report.chart import Chart, LineChart
from ur_energy_model.simulation.arm_options import ArmOptions, default_version
from ur_energy_model.simulation.joint_controller import LinearDrive
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.typing import Array

# its controller has the lowest rate, which makes these tests fast
ROBOT = load_robot("ur5")


@dataclass
class UndrawnRun(ProtocolRun):
    """A run that notes its pictures but does not draw them, and designs a trajectory once."""

    made: dict[str, Design] = field(default_factory=dict)
    charts: dict[str, Chart] = field(default_factory=dict)

    def design(self, name: str, *given: Any, **named: Any) -> Design:
        if name not in self.made:
            self.made[name] = super().design(name, *given, **named)
        return self.made[name]

    def picture(self, chart: Chart, place: str) -> None:
        self.charts[chart.key] = chart
        self.pictures.append(Picture(chart.key, f"{place}: ", r2_of_chart(chart)))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UndrawnRun:
    """A quick run with the included trajectory, once: the search is tested elsewhere."""
    monkeypatch.setattr(
        protocol, "load_trajectory", lambda file: load_trajectory(file).repeated(1)
    )
    options = ArmOptions(controller_version=(3, 15, 8))
    cell = SimulatedCell(ROBOT, 4, options)
    another = OtherArms(options, lambda changed: SimulatedCell(ROBOT, 4, changed).run)
    of_run: dict[str, Any] = {"simulated": True, "quick": True, "another": another}
    return UndrawnRun(ROBOT, tmp_path, cell.run, cell.mount, lambda *_: None, **of_run)


def on_arm(session: UndrawnRun, name: str) -> None:
    """Run on an arm of the paper, which has rows to agree with."""
    session.robot = robot = load_robot(name)
    options = ArmOptions(controller_version=default_version(robot))
    session.run = SimulatedCell(robot, 4, options).run


MEASURED = ("actual_current", "actual_robot_current")
COUNTED = {"base_parameters", "lost", "inertial"}
"""Numbers of parameters, which belong to the arm and not to a measurement."""


def shuffled(bag: Path, other: Path) -> Path:
    """A recording with what was measured in another order."""
    recorded = concatenate(list(iterate_bag(bag)))
    order = np.random.default_rng(0).permutation(len(recorded))
    columns = {
        field: values[order] if field in MEASURED else values
        for field, values in recorded.columns.items()
    }
    with BagWriter(other, recorded.info, tuple(columns)) as writer:
        writer.write(replace(recorded, columns=columns))
    return other


def check_evidence(name: str, session: UndrawnRun, outcome: Outcome) -> None:
    """Every row that agrees fails with measurements in another order, or they are refused.

    Recovered rows agree, too.
    """
    folder = session.folder / "shuffled"
    folder.mkdir()
    replay: Any = lambda plan, bag: shuffled(session.folder / bag.name, bag)  # noqa: E731
    with suppress(UrEnergyError):
        check_fails(
            outcome, run_protocol(name, replace(session, folder=folder, run=replay))
        )


def check_fails(outcome: Outcome, broken: Outcome) -> None:
    """No row agrees or is recovered in both, but for the numbers of parameters."""
    agreed, blind = (
        {
            row.figure
            for row in each.rows
            if row.agrees
            and row.verdict.startswith(("agrees", "recovered"))
            and row.key not in COUNTED
        }
        for each in (outcome, broken)
    )
    assert agreed
    assert not agreed & blind


def check_files(outcome: Outcome, folder: Path, models: set[str], bags: set[str]) -> None:
    """All files are in the folder, and the verdict equals the outcome."""
    content = json.loads((folder / "verdict.json").read_text())
    assert content == json.loads(json.dumps(plain(outcome.as_dict())))
    assert {path.name for path in folder.glob("model*.yaml")} == models
    assert {path.parent.name for path in folder.glob("*/metadata.yaml")} == bags


def check_places(outcome: Outcome, session: ProtocolRun) -> None:
    """Every table and figure has its row or picture, every row how it was found."""
    wanted = {item.place for item in paper(outcome.protocol).items if not item.reason}
    assert wanted <= {row.place for row in outcome.rows} | {
        picture.caption.partition(": ")[0] for picture in session.pictures
    }
    assert all(row.how for row in outcome.rows if row.here is not None)


def check_r2(session: UndrawnRun, key: str, least: float) -> None:
    """Every model beside a measurement has its R2, as computed from the curves drawn."""
    (picture,) = (each for each in session.pictures if each.file == key)
    chart = cast("LineChart", session.charts[key])
    assert picture.r2
    for panel in chart.panels:
        (measured,) = (line.y for line in panel.lines if line.role == "measured")
        for label, by_panel in picture.r2.items():
            (model,) = (line.y for line in panel.lines if line.label == label)
            counted = np.isfinite(measured) & np.isfinite(model)
            error = np.mean((model - measured)[counted] ** 2)
            r2 = 1 - error / np.var(measured[counted])
            assert by_panel[panel.title] == pytest.approx(r2, rel=1e-9)
            assert r2 > least


def here(outcome: Outcome, figure: str) -> np.ndarray:
    """What was found for a figure of this name."""
    (row,) = (row for row in outcome.rows if row.figure == figure)
    return np.asarray(row.here, dtype=float)


@pytest.mark.truth
def test_s0_has_the_papers_definition_beside_ours(session: UndrawnRun) -> None:
    on_arm(session, "ur5e")
    outcome = run_protocol("s0", session)
    check_places(outcome, session)
    assert here(outcome, "torque, R2 by joint, A").min() > 0.999
    for test in "AB":
        check_r2(session, f"s0_torque_{test}", 0.999)
        check_r2(session, f"s0_current_{test}", 0.8)
    # Noise that the filter takes out stays in the paper's errors.
    ours = here(outcome, "current, RMS error by joint, ours, A [A]")
    unfiltered = here(outcome, "current, RMS error by joint, our law, A [A]")
    assert (unfiltered > 1.3 * ours).all()
    ours, measured = here(outcome, "energy at the supply, B: ours, measured [J]")
    assert ours == pytest.approx(measured, rel=0.03)
    constants = here(outcome, "k_t by joint [N m/A]")
    np.testing.assert_allclose(
        constants, here(outcome, "k_t by joint [N m/A], ours"), rtol=0.2
    )
    whole = here(
        outcome, "mechanical, electrical energy [J] and efficiency of the arm, A"
    )
    parts = here(outcome, "electrical energy by joint [J], A")
    assert whole[1:] == pytest.approx([parts.sum(), whole[0] / whole[1]])
    model = load_model(session.folder / "model.yaml")
    own = session.folder / "trajectory_a"
    bags = {"A": shuffled(own, session.folder / "shuffled")}  # which `identify` refuses
    rows, _ = s0_tables.recorded_rows(paper("s0"), model, bags, simulated=True)
    check_fails(outcome, replace(outcome, rows=rows))


@pytest.mark.truth
def test_s2_predicts_power_from_the_motion_alone(
    session: UndrawnRun, tmp_path: Path
) -> None:
    on_arm(session, "ur3e")
    outcome = run_protocol("s2", session)
    check_places(outcome, session)
    motion = here(outcome, "RMSE of power [W], testing")
    current = here(outcome, "RMSE of power from measured current [W], testing")
    assert current < motion < 5.0
    assert here(outcome, "r2 of power, testing") > 0.9
    check_r2(session, "s2_power", 0.9)
    bags = [
        shuffled(session.folder / part, tmp_path / part[:-3])
        for part in ("training", "testing")
    ]
    ecbot = Ecbot(session.robot, bags[:1])
    rows = [
        row
        for part, bag in zip(("train", "test"), bags, strict=True)
        for row in s2.error_rows(paper("s2"), "ur3e", part, ecbot.test([bag]), ecbot)
    ]
    check_fails(outcome, replace(outcome, rows=rows))


@pytest.mark.truth
def test_s1_finds_base_parameters(
    session: UndrawnRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(friction_campaign, "_QUICK_WARM_UP", 100.0)
    session.campaign = True
    outcome = run_protocol("s1", session)
    bags = {"excitation", "validation_run", "excitation_warm"}
    check_files(outcome, session.folder, {"model.yaml"}, bags)
    assert here(outcome, "parameters: base parameters") == 52
    assert here(outcome, "parameters: not identifiable") == 9
    assert here(outcome, "condition number, designed") < 150  # in the order of the paper
    cold = here(outcome, "joint temperatures, cold [degC]")
    assert np.all(here(outcome, "joint temperatures, warm [degC]") > cold + 0.2)
    assert (
        np.median(
            here(outcome, "change of viscous friction by joint, warm over cold [%]")
        )
        < 0
    )
    assert (
        np.abs(here(outcome, "change of 36 inertial base parameters, warm against cold"))
        < 0.1
    )
    places = {picture.caption.partition(": ")[0] for picture in session.pictures}
    assert places == {"Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4"}
    check_r2(session, "s1_elbow_torque", 0.9)
    check_evidence("s1", session, outcome)


def check_trajectories_of_s4(session: UndrawnRun) -> None:
    """Eq. 18 to 21 written out; Figs. 4, 5 and 16 have a trajectory each."""
    low, high = np.transpose(paper("s4")["angles"])  # in the paper's count [deg]
    time = np.linspace(0.0, 10.0, 501)
    angles = []
    for name in ("excitation", "simulation", "general"):
        found = load_trajectory(session.folder / f"{name}.yaml")
        angle = np.tile(found.q0, (len(time), 1))
        speed = np.zeros_like(angle)
        for order, a, b in zip(range(1, 6), found.a.T, found.b.T, strict=True):
            phase = 2 * np.pi * 0.1 * order * time[:, None]
            angle += a * np.sin(phase) - b * np.cos(phase)
            speed += 0.2 * np.pi * order * (a * np.cos(phase) + b * np.sin(phase))
        angle = (
            np.degrees(angle) + (low + high) / 2
        )  # zero of the robot file is the middle
        np.testing.assert_allclose(angle[[0, -1]], 0.0, atol=1e-6)
        np.testing.assert_allclose(speed[[0, -1]], 0.0, atol=1e-9)
        assert (low <= angle).all()
        assert (angle <= high).all()
        angles.append(angle)
    first, second, third = angles
    apart = [
        np.abs(a - b).max() for a, b in ((first, second), (first, third), (second, third))
    ]
    assert min(apart) > 5.0


@pytest.mark.truth
def test_s4_on_the_robot_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # it has no arm to run on
    robot = load_robot("qin2024")
    nothing = cast("Any", None)
    of_run: dict[str, Any] = {"simulated": True, "paper_settings": True, "quick": True}
    session = UndrawnRun(robot, tmp_path, nothing, nothing, lambda *_: None, **of_run)
    outcome = run_protocol("s4", session)
    assert here(outcome, "base parameters") == 48
    assert here(outcome, "of these inertial") == 36
    assert here(outcome, "largest difference of true and recovered") < 2.0
    assert here(outcome, "estimated over applied") == pytest.approx(1.0, abs=0.04)
    assert np.min(here(outcome, "torque R2 by joint, self verification")) > 0.98
    assert np.min(here(outcome, "torque R2 by joint, general verification")) > 0.8
    check_trajectories_of_s4(session)
    check_r2(session, "s4_self_torque", 0.98)
    check_r2(session, "s4_general_torque", 0.8)
    exact = s4_measured_run.simulate

    def wrong(*args: Any, **named: Any) -> s4_measured_run.MeasuredRun:
        run = exact(*args, **named)
        return replace(run, torque=1.3 * run.torque)

    monkeypatch.setattr(s4_own_robot, "simulate", wrong)
    monkeypatch.setattr(s4_load_check, "simulate", wrong)
    check_fails(outcome, run_protocol("s4", session))


def test_s3_agrees_with_the_drive_of_the_slides_only(
    session: UndrawnRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with a heavier rotor and a spring to the ground, nor with another gravity."""

    class Sprung(LinearDrive):
        @property
        def state_space(self) -> tuple[Array, Array]:
            matrix, torque = super().state_space
            matrix[3, 2] -= 100.0
            return matrix, torque

    published = paper("s3")
    true = [*s3.drive_rows(session, published), s3.gravity_row(published, ROBOT)]
    drive = s3.published_drive(published)
    gravity = ArmDynamics.gravity_regressor
    heavier = Sprung(**(vars(drive) | {"rotor_inertia": 1.1 * drive.rotor_inertia}))
    monkeypatch.setattr(s3, "published_drive", lambda _: heavier)
    monkeypatch.setattr(ArmDynamics, "gravity_regressor", lambda *of: 0.99 * gravity(*of))
    wrong = [*s3.drive_rows(session, published), s3.gravity_row(published, ROBOT)]
    check_fails(*(Outcome("s3", "", "ur5", True, rows) for rows in (true, wrong)))


@pytest.mark.truth
def test_s4_identifies_a_payload(session: UndrawnRun) -> None:
    """Without a mount that part is skipped."""
    outcome = run_protocol("s4", session)
    bags = {"excitation_unloaded", "general_unloaded", "excitation_loaded"}
    check_files(outcome, session.folder, {"model.yaml"}, bags)
    assert here(outcome, "payload found [kg]") == pytest.approx(PAYLOAD, rel=0.05)
    assert outcome.warnings == []
    check_evidence("s4", session, outcome)
    session.mount = None
    model: Any = None  # not used
    first = session.made["excitation"].trajectory
    assert (
        identify_known_payload(session, paper("s4"), first, model, session.folder) == []
    )
    assert any("somebody has to mount it" in warning for warning in session.warnings)
