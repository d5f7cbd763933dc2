# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One run of a protocol: robot, output, recorded motions, pictures and outcome.

A protocol finds the numbers of a paper on an arm, each as a `ResultRow`; the rows and
pictures of a run are its `Outcome`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design import Design, design_trajectory
from ur_energy_model.experiment.design_problem import (
    DesignProblem,
    DesignRequest,
    limits_of,
)
from ur_energy_model.experiment.execution import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.limits import (
    PeriodicMotion,
    RepeatedMotion,
    SafetyLimits,
    check,
)
from ur_energy_model.files import config_file, write_text
from ur_energy_model.model.arm_shape import with_shape
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.genetic import genetic_search
from ur_energy_model.papers.pictures import Picture, draw_picture
from ur_energy_model.papers.published import Paper, ResultRow, cell
from ur_energy_model.report.chart import Chart
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.trajectory.fourier import (
    FourierTrajectory,
    load_trajectory,
    save_trajectory,
)
from ur_energy_model.typing import Progress

_IN_VERDICT = (
    "key",
    "figure",
    "published",
    "here",
    "place",
    "differs",
    "tolerance",
    "within",
    "because",
    "given",
    "shown",
    "verdict",
)
"""Attributes of a row in verdict.json."""


@dataclass(frozen=True)
class Outcome:
    """Result of a protocol on one arm.

    Attributes:
        protocol: "s0" to "s4".
        source: authors, journal and DOI of the paper.
        robot: name of the arm.
        simulated: whether the arm is simulated.
        rows: published values with the values found on the arm.
        warnings: warnings for the user, one sentence each.
        pictures: pictures in the output folder.
    """

    protocol: str
    source: str
    robot: str
    simulated: bool
    rows: Sequence[ResultRow]
    warnings: Sequence[str] = ()
    pictures: Sequence[Picture] = ()

    def as_dict(self) -> dict[str, Any]:
        """Content of verdict.json."""
        figures = []
        for row in self.rows:
            figure = {name: getattr(row, name) for name in _IN_VERDICT}
            figure["definition"] = row.how
            figures.append(figure)
        return {
            "protocol": self.protocol,
            "source": self.source,
            "robot": self.robot,
            "simulated": self.simulated,
            "warnings": self.warnings,
            "figures": figures,
            "pictures": [vars(picture) for picture in self.pictures],
        }

    def markdown(self) -> str:
        """The result as a Markdown page."""
        arm = f"{self.robot} (simulated)" if self.simulated else self.robot
        lines = [
            f"# Protocol {self.protocol} on {arm}",
            "",
            f"Published figures: {self.source}",
            "",
            "| figure | published | here |",
            "|---|---|---|",
        ]
        lines += [
            f"| {row.figure} | {cell(row.published)} | {cell(row.here)} |"
            for row in self.rows
        ]
        lines.append("")
        lines += [f"- {warning}" for warning in self.warnings]
        return "\n".join(lines).rstrip() + "\n"


Run = Callable[[ExecutionPlan, Path], ExecutionResult]
"""Executes a plan on an arm and records it to a new bag."""
Mount = Callable[[float], None]
"""Mounts a payload of a mass [kg]; 0 takes the payload off."""
VERDICT = "verdict.json"  # outcome in the output folder
PICTURES = "pictures"  # folder of the pictures in the output folder
_QUICK_STARTS = 2  # descents of each process in the design of a quick run
_QUICK_SECONDS = 120.0  # time limit of this design, for a busy machine [s]
_SLOWER = 0.3  # part by which each further trajectory of a quick run has a longer period
_ATTEMPTS = 100  # seeds that are tried for a motion that passes every check
_SEED_STEP = 1000  # step from the seed of one attempt to the next seed


@dataclass(frozen=True)
class OtherArms:
    """Makes further simulated arms for a run.

    Attributes:
        options: options of the arm of the run.
        make: makes a new arm with other options, and returns the function that runs plans
            on it.
    """

    options: ArmOptions
    make: Callable[[ArmOptions], Run]


def included_trajectory(robot: RobotDescription) -> FourierTrajectory | None:
    """The exciting trajectory that the package includes for an arm.

    Returns:
        None for an arm of the user, and for arms without one.
    """
    path = config_file("excitation", f"{robot.name}.yaml")
    if robot.own_file or not path.is_file():
        return None
    return load_trajectory(path)


@dataclass
class ProtocolRun:
    """One run of a protocol.

    Attributes:
        robot: the arm.
        folder: output folder.
        run: executes a plan and records it to a bag.
        mount: mounts a payload of a mass [kg] on the flange, or asks the user to do so;
            None where nobody can.
        progress: called with a fraction and a text.
        seed: seed of all random choices.
        design_seconds: time limit of a design [s].
        simulated: whether the arm is simulated.
        paper_settings: design with the limits and the genetic algorithm of the paper.
        quick: shorter motions and searches, for a first look.
        draw: whether pictures are drawn.
        campaign: s1 only: also the warm-up and the warm run.
        another: makes further simulated arms; None on a robot.
        warnings: warnings for the user, collected during the run.
        pictures: pictures in the output folder, collected during the run.
    """

    robot: RobotDescription
    folder: Path
    run: Run
    mount: Mount | None
    progress: Progress
    seed: int = 0
    design_seconds: float = 25.0
    simulated: bool = False
    paper_settings: bool = False
    quick: bool = False
    draw: bool = True
    campaign: bool = False
    another: OtherArms | None = None
    warnings: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the shape of the arm once, with a warning where parts of it are a guess."""
        self.robot = with_shape(self.robot)
        if self.robot.shape is not None:
            for remark in self.robot.shape.remarks:
                if remark not in self.warnings:  # of a copy of the run
                    self.warnings.append(remark)

    @property
    def limits(self) -> SafetyLimits:
        """Limits of every motion: an upright arm on a table."""
        return limits_of(DesignRequest(self.robot))

    def design(
        self,
        name: str,
        seed: int,
        request: DesignRequest | None = None,
        *,
        population: int = 300,
        binary: bool = False,
    ) -> Design:
        """Design an exciting trajectory and save it in the output folder.

        With the settings of the paper the search is the genetic one, else gradient
        descents. A quick run takes the trajectory that the package includes instead,
        unless a request is given; for an arm without one, a short search designs one.

        Args:
            name: name of the trajectory file, without suffix.
            seed: seed of the search.
            request: requirements on the trajectory; None for the usual ones.
            population: individuals of the genetic search.
            binary: whether the genetic search codes in bits.

        Raises:
            MotionRefusedError: no trajectory passed the checks.
        """
        wanted = replace(request or DesignRequest(self.robot), seed=seed)
        included = included_trajectory(self.robot)
        if self.quick and request is None and included is not None:
            design = self._included(wanted, included)
        elif self.paper_settings:
            design = genetic_search(
                wanted, population=population, binary=binary, progress=self.progress
            )
        else:
            design = design_trajectory(
                wanted,
                time_limit=_QUICK_SECONDS if self.quick else self.design_seconds,
                starts=_QUICK_STARTS if self.quick else None,
                progress=self.progress,
            )
        save_trajectory(self.folder / f"{name}.yaml", design.trajectory)
        return design

    def _included(self, request: DesignRequest, included: FourierTrajectory) -> Design:
        """The trajectory that the package includes, slower for every further seed.

        Args:
            request: seed and limits of the trajectory.
            included: the trajectory of the package.

        Raises:
            MotionRefusedError: the trajectory does not pass the checks.
        """
        slowdown = 1 + _SLOWER * (request.seed - self.seed)
        trajectory = replace(included, period=slowdown * included.period)
        problem = DesignProblem(request)
        verdict = check(trajectory, problem.limits)
        if not verdict.passed:
            raise MotionRefusedError(
                f"the trajectory of {self.robot.name}: {verdict.problems[0]}"
            )
        condition = problem.condition_number(trajectory)
        return Design(
            trajectory,
            condition,
            "condition",
            condition,
            verdict,
            seconds=0.0,
            starts=0,
        )

    def complete_torque_constants(self, model: EnergyModel) -> RobotDescription:
        """The arm of the run with identified torque constants where its robot file has none.

        Args:
            model: model that was identified in this run.
        """
        published = self.robot.torque_constant
        is_known = np.isfinite(published)
        if not is_known.all():
            identified = np.array([joint.torque_constant for joint in model.joints])
            constants = np.where(is_known, published, identified)
            self.robot = replace(self.robot, torque_constant=constants)
            self.warnings.append(
                f"the robot file of {self.robot.name} has no torque constants: currents "
                "are turned into torques with the identified ones"
            )
        return self.robot

    def record(self, name: str, motion: PeriodicMotion, *, warm_up: float = 0.0) -> Path:
        """Run and record a motion.

        Args:
            name: name of the bag in the output folder.
            motion: motion to run; the arm first moves to its start.
            warm_up: time for which the motion is repeated before the recording [s].

        Returns:
            Path of the bag.

        Raises:
            UrEnergyError: the motion cannot be run.
        """
        bag = self.folder / name
        self.run(ExecutionPlan(motion, self.limits, warm_up=warm_up), bag)
        return bag

    def picture(self, chart: Chart, place: str) -> None:
        """Draw a chart for a figure of the paper into the folder of pictures.

        Where it shows measured beside modelled values, R2 is added (`draw_picture`).

        Args:
            chart: chart to draw; nothing happens where pictures are not drawn.
            place: the figure, such as "Fig. 3".
        """
        if self.draw:
            self.pictures.append(draw_picture(chart, self.folder / PICTURES, place))

    def first_safe(
        self, candidates: Callable[[int], RepeatedMotion], seed: int
    ) -> RepeatedMotion:
        """The first of 100 seeded motions that passes every check.

        Args:
            candidates: makes a motion from a seed.
            seed: seed of the first candidate; further seeds follow in steps of 1000.

        Raises:
            MotionRefusedError: no candidate passes.
        """
        limits = self.limits
        for attempt in range(_ATTEMPTS):
            motion = candidates(seed + _SEED_STEP * attempt)
            if check(motion, limits).passed:
                return motion
        raise MotionRefusedError(f"no test motion of {self.robot.name} passes the checks")

    def finish(self, paper: Paper, rows: Sequence[ResultRow]) -> Outcome:
        """Write the outcome as verdict.md and verdict.json, and return the outcome.

        Args:
            paper: the paper of the protocol.
            rows: rows of the paper with the values found on the arm.
        """
        outcome = Outcome(
            protocol=paper.key,
            source=paper.source,
            robot=self.robot.name,
            simulated=self.simulated,
            rows=rows,
            warnings=self.warnings,
            pictures=self.pictures,
        )
        write_text(self.folder / "verdict.md", outcome.markdown())
        text = json.dumps(plain(outcome.as_dict()), indent=2, allow_nan=False)
        write_text(self.folder / VERDICT, text + "\n")
        return outcome
