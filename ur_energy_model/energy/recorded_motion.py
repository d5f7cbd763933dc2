# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The motion of a recording: its moves from rest to rest, and the tool of the arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import refuse
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.cycles import TRIGGER_FIELD
from ur_energy_model.energy.matched_model import check_robot
from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.energy.powers import STANDSTILL_SPEED
from ur_energy_model.energy.program import LINE
from ur_energy_model.energy.telemetry_checks import check_batch
from ur_energy_model.errors import RecordingError
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BACKDRIVE
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import Telemetry, concatenate, equal_runs
from ur_energy_model.telemetry.usable_samples import freedrive_samples
from ur_energy_model.trajectory.kinematics import matrix_of, pose_vector
from ur_energy_model.trajectory.plan_check import CUTOFF
from ur_energy_model.typing import Array, Mask

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

LONGEST = 900.0  # longest part of a recording that is read [s]; bounds memory and time
FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd",
    "joint_temperatures", "joint_mode", "robot_mode", "safety_mode",
    *TRIGGER_FIELD.values(), *PAYLOAD,
    "actual_robot_voltage", "actual_robot_current", "actual_TCP_pose", LINE,
    "speed_scaling", "target_speed_fraction",
)  # fmt: skip


@dataclass(frozen=True)
class RecordedMotion:
    """Motion of a recording, k samples of n joints.

    Attributes:
        telemetry: all fields that were read.
        q: targets, or smoothed measurements [k, n], rad.
        qd: velocities of `q` [k, n], rad/s.
        qdd: accelerations of `q` [k, n], rad/s^2; None where target accelerations were not
            recorded beside target positions.
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

    @cached_property
    def period(self) -> float:
        """Typical time between samples [s]."""
        return float(np.median(np.diff(self.time)))


def read_motion(
    path: str | Path, robot: RobotDescription, longest: float = LONGEST
) -> RecordedMotion:
    """Read the motion of a bag.

    Args:
        path: path of the bag.
        robot: type of the arm, n joints.
        longest: time from the begin of the bag after which the rest is not read [s].

    Raises:
        RecordingError: unusable values, or the arm was moved by hand (freedrive).
        WrongRobotError: it was recorded on another robot.
        ContradictionError: its samples show another robot.
        MissingFieldError: neither target nor measured positions are recorded.
    """
    telemetry, cut = _read(Path(path), robot, longest)
    check = RecordingCheck()
    check.observe(telemetry)
    refuse(path, check.contradictions(robot))
    columns = telemetry.columns
    shows_freedrive = "target_qd" in columns and "target_qdd" in columns
    by_hand = np.any(columns.get("robot_mode", np.zeros(0)) == BACKDRIVE)
    if by_hand or (shows_freedrive and freedrive_samples(telemetry).any()):
        problem = "contains freedrive: the arm was moved by hand, which is no motion of a program"
        raise RecordingError(path, problem, "record the program running on its own")
    if "target_q" in columns and "target_qd" in columns:
        return RecordedMotion(
            telemetry,
            q=columns["target_q"],
            qd=columns["target_qd"],
            qdd=columns.get("target_qdd"),
            measured=False,
            cut=cut,
        )
    telemetry.require("actual_q", purpose="the motion of a cycle")
    smooth = _smoothed(telemetry.time, telemetry["actual_q"])
    return RecordedMotion(
        telemetry,
        q=np.asarray(smooth(telemetry.time)),
        qd=np.asarray(smooth(telemetry.time, 1)),
        qdd=np.asarray(smooth(telemetry.time, 2)),
        measured=True,
        cut=cut,
    )


def _smoothed(time: Array, measured: Array) -> CubicSpline:
    """Measured positions [k, n], rad, at times [k], s, as a smooth function of time.

    They are low-passed at the cut-off that planned trajectories have, too.
    """
    from scipy.interpolate import CubicSpline  # slow to import

    step = float(np.median(np.diff(time)))
    count = max(round((time[-1] - time[0]) / step), 1) + 1
    grid = np.linspace(time[0], time[-1], count)
    even = np.stack([np.interp(grid, time, column) for column in measured.T], axis=1)
    return CubicSpline(grid, low_pass(even, step, CUTOFF, padding=1.5, padtype="even"))


def _read(path: Path, robot: RobotDescription, longest: float) -> tuple[Telemetry, bool]:
    """The first `longest` seconds of a bag, and whether there is more."""
    parts: list[Telemetry] = []
    for batch in checked_clock(iterate_bag(path, FIELDS), path):
        if not parts:
            check_robot(path, batch.info, robot)
        names = ("target_q", "target_qd") if "target_q" in batch else ("actual_q",)
        check_batch(path, batch, names, robot.dof)
        begin = parts[0].time[0] if parts else batch.time[0]
        inside = batch.time - begin <= longest
        if not inside.all():
            return concatenate([*parts, batch.select(inside)]).distinct(), True
        parts.append(batch)
    return concatenate(parts).distinct(), False


STILL_TARGET = 1e-3
"""Target speed below which a joint stands still [rad/s]; streamed targets tremble by less."""
NEARLY_STILL = 0.03
"""Speed with which a recording may begin or end so that its first or last move is complete
[rad/s]."""
SETTLING = 0.1  # time for which a move may begin and end more slowly than that [s]
SHORTEST_MOVE = 0.02
"""Distance below which a motion is no move, as while a joint settles [rad]."""
TURN = 0.05
"""Change of direction at which a slow instant counts as a stop between two moves [rad]."""
LONGEST_GAP = 0.1  # gap in a move from which on the move is not complete [s]


class MoveSpan(NamedTuple):
    """Samples at rest before and after a move; consecutive moves without a dwell share one."""

    first: int
    last: int

    def line(self, motion: RecordedMotion) -> int:
        """Line of the program that the move is on; 0 where it was not recorded."""
        lines = motion.telemetry.columns.get(LINE)
        if lines is None:
            return 0
        line = lines[(self.first + self.last + 1) // 2]
        return int(line) if np.isfinite(line) and line >= 1 else 0

    def lines(self, motion: RecordedMotion) -> set[int]:
        """All lines of the program that a blend or spline is on; empty where not recorded."""
        lines = motion.telemetry.columns.get(LINE, np.zeros(0))
        inside = lines[self.first + 1 : self.last]
        inside = inside[np.isfinite(inside) & (inside >= 1)]
        return {int(line) for line in np.unique(inside)}


def find_moves(motion: RecordedMotion) -> list[MoveSpan]:
    """Complete moves of a recording, in order; partial ones at its ends are left out.

    A move ends where all joints stand still, also if only for an instant between two
    samples. Blended moves, which do not stop, are one move.
    """
    speed = np.abs(motion.qd).max(axis=1)
    gaps = motion.telemetry.gaps
    moving = speed > (STANDSTILL_SPEED if motion.measured else STILL_TARGET)
    moving[_instant_stops(motion)] = False
    moving[[0, -1]] &= speed[[0, -1]] > NEARLY_STILL
    for gap in gaps:
        # An arm that is elsewhere after a gap has moved in it.
        beside = slice(max(gap.index - 1, 0), gap.index + 1)
        moving[beside] |= _moves(motion.q[beside])
    inside = [
        (rows.start - 1, rows.stop)
        for rows in equal_runs(moving)
        if moving[rows.start] and rows.start > 0 and rows.stop < len(moving)
    ]
    broken = [gap.index for gap in gaps if gap.seconds > LONGEST_GAP]
    found = []
    earliest = 0
    for k, (first, last) in enumerate(inside):
        is_last = k + 1 == len(inside)
        latest = len(speed) - 1 if is_last else inside[k + 1][0]
        move = _with_slow_ends(motion, MoveSpan(first, last), speed, earliest, latest)
        earliest = move.last
        is_broken = any(move.first < index <= move.last for index in broken)
        if _moves(motion.q[move.first : move.last + 1]) and not is_broken:
            found.append(move)
    return found


def _with_slow_ends(
    motion: RecordedMotion, move: MoveSpan, speed: Array, earliest: int, latest: int
) -> MoveSpan:
    """A move with its slow beginning and end, so that each move starts where one ended.

    `speed` is the speed of the fastest joint [k], rad/s. The move stays between the samples
    `earliest` and `latest`.
    """
    most = round(SETTLING / motion.period)
    first, last = move
    lowest = max(first - most, earliest)
    highest = min(last + most, latest)
    while first > lowest and 0.0 < speed[first] <= speed[first + 1]:
        first -= 1
    while last < highest and 0.0 < speed[last] <= speed[last - 1]:
        last += 1
    return MoveSpan(first, last)


def _moves(q: Array) -> bool:
    """Whether positions [samples, n], rad, move."""
    return bool(np.ptp(q, axis=0).max() > SHORTEST_MOVE)


def _instant_stops(motion: RecordedMotion) -> Mask:
    """Samples nearest to an instant of rest that lies between two samples [k].

    The speed falls to less than one sample's change of speed, and the arm leaves in
    another direction than it came in.
    """
    speed = np.linalg.norm(motion.qd, axis=1)
    inner = speed[1:-1]
    slowest = np.flatnonzero((inner <= speed[:-2]) & (inner < speed[2:]) & (inner > 0.0))
    at = slowest + 1
    before = np.maximum(at - 2, 0)
    after = np.minimum(at + 2, len(speed) - 1)
    # Change of speed from one sample to the next, two samples away from the slowest.
    change = np.minimum(speed[before] - speed[at], speed[after] - speed[at]) / 2
    along = (motion.qd[before] * motion.qd[after]).sum(axis=1)
    turned = along < np.cos(TURN) * np.maximum(speed[before] * speed[after], 1e-12)
    stops = np.zeros(len(speed), dtype=bool)
    stops[at] = (change > 0.0) & (speed[at] <= 1.5 * change) & turned
    return stops


def recorded_tool(telemetry: Telemetry, robot: RobotDescription) -> Array | None:
    """Pose of the tool centre point in the flange frame [6], m and rad; None where unknown.

    It is taken from the sample at which the arm is slowest, with the nominal kinematics:
    an arm's own calibration makes it wrong by a millimetre or two, which does not change
    what is straight.
    """
    needed = ("actual_q", "actual_qd", "actual_TCP_pose")
    if any(name not in telemetry for name in needed):
        return None
    at = int(np.argmin(np.abs(telemetry["actual_qd"]).max(axis=1)))
    pose = telemetry["actual_TCP_pose"][at]
    if not np.isfinite(pose).all():
        return None
    flange = ArmDynamics(robot).flange_pose(telemetry["actual_q"][at : at + 1])[0]
    return pose_vector(np.linalg.inv(flange) @ matrix_of(pose))


def scaling_of(motion: RecordedMotion) -> float:
    """Speed slider times limiter while the arm moved; 1 where it was not recorded."""
    scaling = np.ones(len(motion.time))
    for name in ("speed_scaling", "target_speed_fraction"):
        scaling = scaling * motion.telemetry.columns.get(name, 1.0)
    moving = np.abs(motion.qd).max(axis=1) > STILL_TARGET
    found = float(np.nanmedian(scaling[moving])) if moving.any() else 1.0
    return found if 0.01 < found <= 1.0 else 1.0
