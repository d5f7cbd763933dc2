"""A simulated arm that runs and records plans faster than real time, without network and clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ur_energy_model.experiment.execution.execution_plan import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.arm.arm_options import ArmOptions
from ur_energy_model.simulation.arm.commands import Follow, MoveJ
from ur_energy_model.simulation.arm.simulated_arm import SimulatedArm
from ur_energy_model.simulation.arm_recording import record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.recording.options_and_status import RecorderStatus
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.planner import home_position
from ur_energy_model.typing import Progress

SETTLING = 1.0
"""Rest that is recorded after a motion [s]."""
_PIECE = 10.0
"""Arm time that is computed and written together [s]."""
_PAYLOAD_CENTRE = (0.0, 0.0, 0.05)
"""Of a mounted payload, flange frame [m]."""


class SimulatedCell:
    """Runs plans on one simulated arm; what it did before, such as warming up, stays with the arm.

    Args:
        robot: the arm, six joints.
        seed: selects the individual arm and its noise.
        options: of the arm.
        progress: called with NaN and the arm time so far.
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
        self.arm = SimulatedArm(
            robot, motion=Hold(home_position(robot)), seed=seed, options=options
        )

    def run(self, plan: ExecutionPlan, bag: Path) -> ExecutionResult:
        """Move to the start, warm up and record, as `execute` does on a controller."""
        motion = plan.trajectory
        self._approach(motion)
        if plan.warm_up > 0:
            repetitions = max(1, round(plan.warm_up / motion.period))
            self._follow(motion.repeated(repetitions), "warming up")
            self._approach(motion)
        before = np.array(self.arm.outputs["joint_temperatures"])
        samples, error = self._record(motion, bag)
        after = np.array(self.arm.outputs["joint_temperatures"])
        status = RecorderStatus(samples=samples)
        return ExecutionResult(True, "", bag, status, error, np.stack([before, after]))

    def mount(self, mass: float) -> None:
        """Mount a payload [kg] without informing the controller; 0 takes it off."""
        self.arm.carry(Payload(mass, np.array(_PAYLOAD_CENTRE if mass else (0.0, 0.0, 0.0))))

    def _approach(self, motion: PeriodicMotion) -> None:
        self.arm.command(MoveJ(motion.start))
        while self.arm.busy:
            self.arm.tick()

    def _follow(self, motion: PeriodicMotion, text: str) -> None:
        """Run a motion without recording it."""
        self.arm.command(Follow(motion))
        ticks = round(_PIECE * self.arm.rate)
        left = round(motion.duration * self.arm.rate)
        while left > 0:
            for _ in range(min(ticks, left)):
                self.arm.tick()
            left -= ticks
            self._report(text)

    def _record(self, motion: PeriodicMotion, bag: Path) -> tuple[int, float]:
        """Run a motion into a bag; returns samples and largest following error [rad]."""
        self.arm.command(Follow(motion))
        left, samples, error = motion.duration + SETTLING, 0, 0.0
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
