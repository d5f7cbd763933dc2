# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocols by name, and the stages of `ur_energy protocol all`.

A stage is one protocol on one simulated arm of its own. The arm runs faster than real
time, without network and clock. Protocol s0 is Clochiatti et al., Robotica 2024; s1
Raviola et al., RAAD 2021; s2 Heredia et al., EcBot; s3 Battistini, Samori, Subini, slides;
s4 Machines 2024, 12(9), 595.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.execution import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.limits import PeriodicMotion
from ur_energy_model.model.arm_shape import with_shape
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.papers import s0, s1, s2, s3, s4
from ur_energy_model.papers.protocol import OtherArms, Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, paper
from ur_energy_model.simulation.arm_commands import Follow, MoveJ
from ur_energy_model.simulation.arm_options import ArmOptions, default_version
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import home_position
from ur_energy_model.typing import Progress

PROTOCOLS: dict[str, Callable[[ProtocolRun, Paper], Outcome]] = {
    "s0": s0.run,
    "s1": s1.run,
    "s2": s2.run,
    "s3": s3.run,
    "s4": s4.run,
}
"""Functions that run a protocol, by name of the protocol."""


def run_protocol(name: str, session: ProtocolRun) -> Outcome:
    """Run a protocol.

    Args:
        name: name in `PROTOCOLS`.
        session: the arm, the output folder, and how motions are run.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    published = replace(paper(name), simulated=session.simulated)
    return PROTOCOLS[name](session, published)


# A simulated arm that runs and records plans faster than real time, without network and
# clock.

SETTLING = 1.0  # rest that is recorded after a motion [s]
_PIECE = 10.0  # arm time that is computed and written together [s]
_PAYLOAD_CENTRE = (0.0, 0.0, 0.05)  # centre of a mounted payload, flange frame [m]
_NO_PAYLOAD = Payload(0.0, np.zeros(3))


class SimulatedCell:
    """Runs plans on one simulated arm, which keeps its temperature from plan to plan.

    Args:
        robot: type of the arm.
        seed: seed of the individual arm and its noise.
        options: options of the simulation.
        progress: called with NaN and a text with the arm time so far.
    """

    def __init__(
        self,
        robot: RobotDescription,
        seed: int,
        options: ArmOptions,
        progress: Progress | None = None,
    ) -> None:
        self._robot = robot
        self._progress = progress
        hold = Hold(home_position(robot))
        self.arm = SimulatedArm(robot, motion=hold, seed=seed, options=options)

    def run(self, plan: ExecutionPlan, bag: Path) -> ExecutionResult:
        """Move to the start, warm up and record, as `execute` does on a controller.

        Args:
            plan: motion and warm-up.
            bag: path of the new recording.

        Returns:
            Result with the joint temperatures before and after, and the following error.

        Raises:
            MotionRefusedError: the arm stopped, such as one that is too weak for its links.
        """
        motion = plan.trajectory
        self._approach(motion)
        self._require_moving()
        if plan.warm_up > 0:
            repetitions = max(1, round(plan.warm_up / motion.period))
            self._follow(motion.repeated(repetitions), "warming up")
            self._approach(motion)
        before = np.array(self.arm.outputs["joint_temperatures"])
        samples, error = self._record(motion, bag)
        self._require_moving()
        after = np.array(self.arm.outputs["joint_temperatures"])
        return ExecutionResult(
            completed=True,
            reason="",
            bag=bag,
            status=RecorderStatus(samples=samples),
            following_error=error,
            temperatures=np.stack([before, after]),
        )

    def _require_moving(self) -> None:
        """Refuse a run in which the arm stopped."""
        reason = self.arm.stop_reason
        if reason is None:
            return
        hint = ""
        if not np.isfinite(self._robot.max_torque).all():
            hint = "; the robot file has no limits.torque, and the assumed ones may be too low"
        raise MotionRefusedError(
            f"the simulated {self._robot.name} stopped: {reason}{hint}"
        )

    def mount(self, mass: float) -> None:
        """Mount a payload without informing the controller.

        Args:
            mass: mass of the payload [kg]; 0 takes the payload off.
        """
        payload = Payload(mass, np.array(_PAYLOAD_CENTRE)) if mass else _NO_PAYLOAD
        self.arm.carry(payload)

    def _approach(self, motion: PeriodicMotion) -> None:
        """Move the arm to the start of a motion."""
        self.arm.command(MoveJ(motion.start))
        while self.arm.busy:
            self.arm.tick()

    def _follow(self, motion: PeriodicMotion, text: str) -> None:
        """Run a motion without a recording.

        Args:
            motion: motion to run.
            text: purpose, for the progress.
        """
        self.arm.command(Follow(motion))
        piece = round(_PIECE * self.arm.rate)  # cycles of the controller
        left = round(motion.duration * self.arm.rate)
        while left > 0:
            for _ in range(min(piece, left)):
                self.arm.tick()
            left -= piece
            self._report(text)

    def _record(self, motion: PeriodicMotion, bag: Path) -> tuple[int, float]:
        """Run a motion into a bag.

        Args:
            motion: motion to run.
            bag: path of the new recording.

        Returns:
            Number of samples, and largest following error of a joint [rad].
        """
        self.arm.command(Follow(motion))
        left = motion.duration + SETTLING
        samples = 0
        error = 0.0
        writer: BagWriter | None = None
        while left > 0.5 / self.arm.rate:
            part = record_arm(self.arm, min(_PIECE, left))
            left -= _PIECE
            if writer is None:
                names = self._robot.joint_names
                writer = BagWriter(bag, part.info, tuple(part.columns), joint_names=names)
            writer.write(part)
            samples += len(part)
            error = max(error, float(np.abs(part["target_q"] - part["actual_q"]).max()))
            self._report(f"recording {bag.name}")
        if writer is not None:
            writer.close()
        return samples, error

    def _report(self, text: str) -> None:
        if self._progress is not None:
            self._progress(float("nan"), f"{text}, {self.arm.time:.0f} s of arm time")


@dataclass(frozen=True)
class Stage:
    """One protocol on one simulated arm with these options.

    Attributes:
        name: name of the stage and of its folder.
        protocol: "s0" to "s4".
        robot: name of the arm.
        campaign: whether s1 has a cold and a warm run.
        paper_settings: whether trajectories are designed with the limits and the genetic
            algorithm of the paper.
        options: options of the simulated arm.
        geometry: file with the capsules of the arm; None for the usual ones.
    """

    name: str
    protocol: str
    robot: str
    campaign: bool = False
    paper_settings: bool = False
    options: ArmOptions = field(default_factory=ArmOptions)
    geometry: Path | None = None

    def run(
        self,
        folder: Path,
        *,
        seed: int,
        quick: bool,
        progress: Progress,
        draw: bool = True,
    ) -> Outcome:
        """Run the protocol into a new or empty folder, which then contains verdict.json.

        Args:
            folder: output folder.
            seed: seed of the arm, its noise and all searches.
            quick: whether motions and searches are short.
            progress: called with a fraction and a text.
            draw: whether pictures are drawn.

        Raises:
            UrEnergyError: a motion or an identification is not possible.
        """
        robot = with_shape(load_robot(self.robot), self.geometry)
        folder.mkdir(parents=True, exist_ok=True)
        options = replace(self.options, controller_version=default_version(robot))

        def cell_with(options: ArmOptions) -> SimulatedCell:
            return SimulatedCell(robot, seed, options, progress)

        # Made on first use: not every protocol needs the arm.
        cell = cache(lambda: cell_with(options))
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
            draw=draw,
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
"""All stages of `ur_energy protocol all`, the longest first. The arm of s1 begins cold, in a room
of 22.7 degC as in the paper."""


def stage_for(
    protocol: str,
    robot: str | None,
    *,
    campaign: bool = False,
    paper_settings: bool = False,
    geometry: Path | None = None,
) -> Stage:
    """The stage of a protocol that is run alone.

    Args:
        protocol: "s0" to "s4".
        robot: name or file of the arm; None for the arm of the paper.
        campaign: whether s1 has a cold and a warm run.
        paper_settings: whether trajectories are designed with the limits and the genetic
            algorithm of the paper.
        geometry: file with the capsules of the arm; None for the usual ones.
    """
    usual = next(stage for stage in STAGES if stage.protocol == protocol)
    options = usual.options
    if protocol == "s1" and not campaign:  # only the campaign begins with a cold arm
        options = ArmOptions()
    return replace(
        usual,
        robot=robot or usual.robot,
        campaign=campaign,
        paper_settings=paper_settings,
        options=options,
        geometry=geometry,
    )
