"""The runs that `ur_energy protocol all` is made of, each on a simulated arm of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from ur_energy_model.experiment.protocols.catalogue import run_protocol
from ur_energy_model.experiment.protocols.outcome import Outcome
from ur_energy_model.experiment.protocols.protocol_run import OtherArms, ProtocolRun
from ur_energy_model.experiment.protocols.simulated_cell import SimulatedCell
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm.arm_options import ArmOptions, default_version
from ur_energy_model.typing import Progress


@dataclass(frozen=True)
class Stage:
    """One protocol on one arm.

    Attributes:
        name: of its folder.
        protocol: "s0" to "s4".
        robot: name of the arm.
        campaign: with cold and warm runs (s1).
        paper_settings: trajectories with the limits and the genetic algorithm of the paper.
        options: of the simulated arm.
    """

    name: str
    protocol: str
    robot: str
    campaign: bool = False
    paper_settings: bool = False
    options: ArmOptions = field(default_factory=ArmOptions)

    def run(self, folder: Path, *, seed: int, quick: bool, progress: Progress) -> Outcome:
        """Run the protocol into a new or empty folder, which then contains verdict.json.

        Raises:
            UrEnergyError: it cannot be run.
        """
        folder.mkdir(parents=True, exist_ok=True)
        robot = load_robot(self.robot)
        options = replace(self.options, controller_version=default_version(robot))

        def cell_with(options: ArmOptions) -> SimulatedCell:
            return SimulatedCell(robot, seed, options, progress)

        cell = cache(lambda: cell_with(options))  # not every protocol needs the arm
        session = ProtocolRun(
            robot=robot,
            folder=folder,
            run=lambda plan, bag: cell().run(plan, bag),
            mount=lambda mass: cell().mount(mass),
            progress=progress,
            seed=seed,
            simulated=True,
            paper_settings=self.paper_settings,
            quick=quick,
            campaign=self.campaign,
            another=OtherArms(options, lambda options: cell_with(options).run),
        )
        return run_protocol(self.protocol, session)


STAGES = (
    Stage(
        "s1",
        "s1",
        "ur5",
        campaign=True,
        paper_settings=True,
        options=ArmOptions(warmth=0.0, ambient=22.7),
    ),
    Stage("s4", "s4", "qin2024", paper_settings=True),
    Stage("s4_payload", "s4", "ur5e", paper_settings=True),
    Stage("s2_ur3e", "s2", "ur3e"),
    Stage("s2_ur10e", "s2", "ur10e"),
    Stage("s2_gen3", "s2", "gen3"),
    Stage("s2_fr3", "s2", "fr3"),
    Stage("s0", "s0", "ur5e"),
    Stage("s3", "s3", "ur5"),
)
"""All runs, the longest first."""


def stage_for(
    protocol: str, robot: str | None, *, campaign: bool = False, paper_settings: bool = False
) -> Stage:
    """The stage of a protocol run alone.

    Args:
        protocol: "s0" to "s4".
        robot: name or file of the arm, None for the paper's.
        campaign: with cold and warm runs (s1).
        paper_settings: trajectories with the limits and the genetic algorithm of the paper.
    """
    usual = next(stage for stage in STAGES if stage.protocol == protocol)
    options = usual.options if campaign or protocol != "s1" else ArmOptions()
    return replace(
        usual,
        robot=robot or usual.robot,
        campaign=campaign,
        paper_settings=paper_settings,
        options=options,
    )
