"""The motion of a recording, as a cycle is found in it and optimized from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from ur_energy_model.energy.live.cycles import TRIGGER_FIELD
from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.energy.recording_checks import check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.regression.usable_samples import freedrive_samples
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock_check import checked_clock
from ur_energy_model.telemetry.modes import BACKDRIVE
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.smoothing import CUTOFF
from ur_energy_model.typing import Array

LONGEST = 900.0
"""Longest part of a recording that is read [s]; bounds memory and time."""
FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "actual_q", "actual_qd", "joint_temperatures",
    "joint_mode", "robot_mode", "safety_mode", *TRIGGER_FIELD.values(), *PAYLOAD,
    "actual_robot_voltage", "actual_robot_current", "actual_TCP_pose", "script_control_line",
    "speed_scaling", "target_speed_fraction",
)  # fmt: skip


@dataclass(frozen=True)
class RecordedMotion:
    """Motion of a recording, k samples of n joints.

    Attributes:
        telemetry: all fields that were read.
        q, qd: [k, n], rad, rad/s: the targets, or smoothed measurements.
        qdd: accelerations [k, n], rad/s^2; None where the targets' were not recorded.
        measured: whether q and qd are smoothed measurements.
        cut: whether the recording is longer than what was read.
    """

    telemetry: Telemetry
    q: Array
    qd: Array
    qdd: Array | None
    measured: bool
    cut: bool

    @property
    def time(self) -> Array:
        """Controller time [k], s."""
        return self.telemetry.time

    @property
    def period(self) -> float:
        """Typical time between samples [s]."""
        return float(np.median(np.diff(self.time)))


def read_motion(path: str | Path, robot: RobotDescription) -> RecordedMotion:
    """Read the motion of a bag.

    Raises:
        RecordingError: unusable values, or the arm was moved by hand (freedrive).
        WrongRobotError: it was recorded on another robot.
        MissingFieldError: neither target nor measured positions are recorded.
    """
    telemetry, cut = _read(Path(path), robot)
    if _moved_by_hand(telemetry):
        raise RecordingError(
            path,
            "contains freedrive: the arm was moved by hand, which is no motion of a program",
            "record the program running on its own",
        )
    columns = telemetry.columns
    if "target_q" in columns and "target_qd" in columns:
        return RecordedMotion(
            telemetry,
            columns["target_q"],
            columns["target_qd"],
            columns.get("target_qdd"),
            measured=False,
            cut=cut,
        )
    return _smoothed(telemetry, cut)


def _moved_by_hand(telemetry: Telemetry) -> bool:
    if "robot_mode" in telemetry and (telemetry["robot_mode"] == BACKDRIVE).any():
        return True
    known = "target_qd" in telemetry and "target_qdd" in telemetry
    return known and bool(freedrive_samples(telemetry).any())


def _read(path: Path, robot: RobotDescription) -> tuple[Telemetry, bool]:
    start: float | None = None
    parts: list[Telemetry] = []
    cut = False
    for batch in checked_clock(iterate_bag(path, FIELDS), path):
        if not len(batch):
            continue
        if start is None:
            start = float(batch.time[0])
            check_robot(path, batch.info, robot)
        names = ("target_q", "target_qd") if "target_q" in batch else ("actual_q",)
        check_batch(path, batch, names, robot.dof)
        inside = batch.time - start <= LONGEST
        cut = not inside.all()
        parts.append(batch.select(inside) if cut else batch)
        if cut:
            break
    if not parts:
        raise RecordingError(path, "holds no samples", "record again")
    return concatenate(parts).distinct(), cut


def _smoothed(telemetry: Telemetry, cut: bool) -> RecordedMotion:
    """Measured positions, low-passed at the cut-off that planned trajectories have too."""
    telemetry.require("actual_q", purpose="the motion of a cycle")
    time, q = telemetry.time, telemetry["actual_q"]
    step = float(np.median(np.diff(time)))
    grid = np.linspace(time[0], time[-1], max(round((time[-1] - time[0]) / step), 1) + 1)
    even = np.stack([np.interp(grid, time, column) for column in q.T], axis=1)
    smooth = CubicSpline(grid, low_pass(even, step, CUTOFF, padding=1.5, padtype="even"))
    q, qd, qdd = (np.asarray(smooth(time, order)) for order in range(3))
    return RecordedMotion(telemetry, q, qd, qdd, measured=True, cut=cut)
