"""The motion of a recording, as a cycle is found in it and optimized from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from ur_energy_model.energy.cycles import (
    MOST,
    OUTPUTS,
    SAME_POINT,
    TRIGGER_FIELD,
    CycleDetector,
    Repetition,
)
from ur_energy_model.energy.powers import STANDSTILL_SPEED
from ur_energy_model.energy.telemetry_checks import PAYLOAD, check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BACKDRIVE, PLAYING
from ur_energy_model.simulation.kinematics import matrix_of, pose_vector
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import Telemetry, concatenate, equal_runs
from ur_energy_model.telemetry.usable_samples import freedrive_samples
from ur_energy_model.trajectory.plan import CUTOFF
from ur_energy_model.typing import Array, Mask

LONGEST = 900.0  # longest part of a recording that is read [s]; bounds memory and time
FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "actual_q", "actual_qd", "joint_temperatures",
    "joint_mode", "robot_mode", "safety_mode", *TRIGGER_FIELD.values(), *PAYLOAD,
    "actual_robot_voltage", "actual_robot_current", "actual_TCP_pose", "script_control_line",
    "speed_scaling", "target_speed_fraction",
)  # fmt: skip


@dataclass(frozen=True)
class RecordedMotion:
    """Motion of a recording, k samples of n joints."""

    telemetry: Telemetry  # all fields that were read
    q: Array  # targets, or smoothed measurements [k, n], rad
    qd: Array  # likewise [k, n], rad/s
    qdd: Array | None  # likewise [k, n], rad/s^2; None where the targets' were not recorded
    measured: bool  # whether q and qd are smoothed measurements
    cut: bool  # whether the recording is longer than what was read

    @property
    def time(self) -> Array:
        """Controller time [k], s."""
        return self.telemetry.time

    @cached_property
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
    columns = telemetry.columns
    known = "target_qd" in columns and "target_qdd" in columns
    by_hand = np.any(columns.get("robot_mode", np.zeros(0)) == BACKDRIVE)
    if by_hand or (known and freedrive_samples(telemetry).any()):
        problem = "contains freedrive: the arm was moved by hand, which is no motion of a program"
        raise RecordingError(path, problem, "record the program running on its own")
    if "target_q" in columns and "target_qd" in columns:
        targets = (columns["target_q"], columns["target_qd"], columns.get("target_qdd"))
        return RecordedMotion(telemetry, *targets, measured=False, cut=cut)
    # Measured positions, low-passed at the cut-off that planned trajectories have too.
    telemetry.require("actual_q", purpose="the motion of a cycle")
    time, measured = telemetry.time, telemetry["actual_q"]
    step = float(np.median(np.diff(time)))
    grid = np.linspace(time[0], time[-1], max(round((time[-1] - time[0]) / step), 1) + 1)
    even = np.stack([np.interp(grid, time, column) for column in measured.T], axis=1)
    smooth = CubicSpline(grid, low_pass(even, step, CUTOFF, padding=1.5, padtype="even"))
    q, qd, qdd = (np.asarray(smooth(time, order)) for order in range(3))
    return RecordedMotion(telemetry, q, qd, qdd, measured=True, cut=cut)


def _read(path: Path, robot: RobotDescription) -> tuple[Telemetry, bool]:
    """The first `LONGEST` seconds of a bag, and whether there is more."""
    parts: list[Telemetry] = []
    for batch in checked_clock(iterate_bag(path, FIELDS), path):
        if not parts:
            check_robot(path, batch.info, robot)
        names = ("target_q", "target_qd") if "target_q" in batch else ("actual_q",)
        check_batch(path, batch, names, robot.dof)
        inside = batch.time - (parts[0] if parts else batch).time[0] <= LONGEST
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
SHORTEST_MOVE = 0.02  # distance below which a motion is none, as a joint that settles [rad]
TURN = 0.05
"""Change of direction at which a slow instant counts as a stop between two moves [rad]."""


class MoveSpan(NamedTuple):
    """Samples at rest before and after a move; consecutive moves without a dwell share one."""

    first: int
    last: int


def find_moves(motion: RecordedMotion) -> list[MoveSpan]:
    """Complete moves of a recording, in order; partial ones at its ends are left out.

    A move ends where all joints stand still, also if only for an instant between two samples.
    Blended moves, which do not stop, are one move.
    """
    speed, gaps = np.abs(motion.qd).max(axis=1), motion.telemetry.gaps
    moving = speed > (STANDSTILL_SPEED if motion.measured else STILL_TARGET)
    moving[_instant_stops(motion)] = False
    moving[[0, -1]] &= speed[[0, -1]] > NEARLY_STILL
    for gap in gaps:
        beside = slice(max(gap.index - 1, 0), gap.index + 1)  # it moved where it is elsewhere now
        moving[beside] |= np.ptp(motion.q[beside], axis=0).max() > SHORTEST_MOVE
    whole = [
        (rows.start - 1, rows.stop)
        for rows in equal_runs(moving)
        if moving[rows.start] and rows.start > 0 and rows.stop < len(moving)
    ]
    most, out = round(SETTLING / motion.period), [MoveSpan(0, 0)]
    for k, (first, last) in enumerate(whole):
        # Slow beginnings and ends are included, so that each move starts where one ended.
        lowest = max(first - most, out[-1].last)
        highest = min(last + most, whole[k + 1][0] if k + 1 < len(whole) else len(speed) - 1)
        while first > lowest and 0.0 < speed[first] <= speed[first + 1]:
            first -= 1
        while last < highest and 0.0 < speed[last] <= speed[last - 1]:
            last += 1
        out.append(MoveSpan(first, last))
    broken = [gap.index for gap in gaps if gap.seconds > 0.1]
    return [
        move
        for move in out[1:]
        if np.ptp(motion.q[move.first : move.last + 1], axis=0).max() > SHORTEST_MOVE
        and not any(move.first < index <= move.last for index in broken)
    ]


def _instant_stops(motion: RecordedMotion) -> Mask:
    """Samples nearest to an instant of rest that lies between two samples [k].

    The speed falls to less than one sample's change of speed, and the arm leaves in another
    direction than it came in.
    """
    speed = np.linalg.norm(motion.qd, axis=1)
    inner, out = speed[1:-1], np.zeros(len(speed), dtype=bool)
    at = np.flatnonzero((inner <= speed[:-2]) & (inner < speed[2:]) & (inner > 0.0)) + 1
    low, high = np.maximum(at - 2, 0), np.minimum(at + 2, len(speed) - 1)
    change = np.minimum(speed[low] - speed[at], speed[high] - speed[at]) / 2
    straight = (motion.qd[low] * motion.qd[high]).sum(axis=1)
    turned = straight < np.cos(TURN) * np.maximum(speed[low] * speed[high], 1e-12)
    out[at] = (change > 0.0) & (speed[at] <= 1.5 * change) & turned
    return out


SignalKind = Literal["program", "digital_output", "int_register"]
FoundBy = Literal[SignalKind, "repetition", "whole"]

SIGNAL_DELAY = 0.05
"""Time by which a signal may come after the start of the motion that it announces [s]."""


class FoundCycles(NamedTuple):
    """Complete cycles of a recording."""

    found_by: FoundBy  # what showed them; "whole" if the recording is one cycle
    moves: Sequence[Sequence[MoveSpan]]  # of each cycle, the same number in all
    ends: Sequence[int]  # samples at which the dwells after the last moves of the cycles end
    closed: bool  # whether a cycle ends where it starts
    lead: float = 0.0  # standstill before the first move that belongs to its begin [s]


def find_cycles(motion: RecordedMotion, moves: list[MoveSpan]) -> FoundCycles:
    """The repeated cycle: by a signal of the program, else by repetition of the points of rest.

    A signal counts if at least two complete cycles between its events visit the same points.
    Repetition (`Repetition`) begins with the first line of the program's loop where
    `script_control_line` shows one. Without it the motion from first to last standstill is one
    cycle.

    Raises:
        RecordingError: no move from standstill to standstill is in it.
    """
    if not moves:
        raise RecordingError(
            motion.telemetry.info.source,
            "no cycle found: no move from standstill to standstill is in it",
            "record at least two whole cycles of the running program, from standstill to "
            "standstill",
        )
    points = motion.q[[move.first for move in moves]]
    for found_by, starts, lead in _signals(motion, moves):
        if _alike(points, starts):
            return _found(motion, moves, found_by, list(pairwise(starts)), lead)
    cycles = _repetition(motion, moves)
    if cycles:
        return _found(motion, moves, "repetition", cycles, _first_wait(motion, moves, cycles[0][0]))
    closed = bool(np.abs(points[0] - motion.q[moves[-1].last]).max() < SAME_POINT)
    return FoundCycles("whole", [moves], [moves[-1].last], closed)


def line_of(motion: RecordedMotion, move: MoveSpan) -> int | None:
    """Line of the program that a move is on; None where it was not recorded."""
    lines = motion.telemetry.columns.get("script_control_line")
    line = 0.0 if lines is None else lines[(move.first + move.last + 1) // 2]
    return int(line) if np.isfinite(line) and line >= 1 else None


def _found(
    motion: RecordedMotion,
    moves: list[MoveSpan],
    found_by: FoundBy,
    cycles: list[tuple[int, int]],
    lead: float,
) -> FoundCycles:
    """Cycles of these first moves and those after their last, turned to begin as the program does.

    That is with the first line of its loop or, where the lines show no loop, with the move after
    its start, if that is a move of the cycle.
    """
    first, end = cycles[0]
    points = motion.q[[move.first for move in moves]]
    lines = [line_of(motion, move) or 0 for move in moves[first:end]]
    begin, first_wait = first + int(np.argmin(lines)), 0.0
    if lines[0] <= lines[-1]:
        after = np.searchsorted([move.last for move in moves], _starts_of_program(motion))
        begin = int(after[0]) if len(after) and after[0] < len(moves) else first
        first_wait = _first_wait(motion, moves, begin)
    count = end - first
    turn = (begin - first) % count
    whole = points[first + (turn + np.arange(count + 1)) % count]
    if turn and np.abs(points[begin] - whole[0]).max() < SAME_POINT:
        turned = {
            (a + by, b + by)
            for a, b in cycles
            for by in (turn - count, turn)
            if a + by >= 0
            and b + by < len(moves)
            and np.abs(points[a + by : b + by + 1] - whole).max() < SAME_POINT
        }
        if turned:
            cycles, lead = sorted(turned), first_wait
    each, ends = [moves[a:b] for a, b in cycles], [moves[b].first for _, b in cycles]
    return FoundCycles(found_by, each, ends, True, lead)


def _first_wait(motion: RecordedMotion, moves: list[MoveSpan], first: int) -> float:
    """Standstill from the start of the program, or an approach, to the first cycle [s]."""
    end = moves[first].first
    begin = moves[first - 1].last if first else 0
    events = _starts_of_program(motion)
    events = events[(events > begin) & (events <= end)]
    if len(events):
        return float(motion.time[end] - motion.time[events[-1]])
    still = np.abs(motion.q[begin : end + 1] - motion.q[end]).max() < SAME_POINT
    return float(motion.time[end] - motion.time[begin]) if first and still else 0.0


def _starts_of_program(motion: RecordedMotion) -> np.ndarray:
    """Samples at which the program starts."""
    state = motion.telemetry.columns.get("runtime_state", np.empty(0))
    return np.flatnonzero((state[1:] == PLAYING) & (state[:-1] != PLAYING)) + 1


def _signals(
    motion: RecordedMotion, moves: list[MoveSpan]
) -> Iterator[tuple[FoundBy, list[int], float]]:
    """Each signal with events, the first move after each, and the standstill between them [s]."""
    late = max(2, round(SIGNAL_DELAY / motion.period))
    rests = np.array([move.first for move in moves]) + late
    outputs: list[tuple[SignalKind, int]] = [("digital_output", bit) for bit in range(OUTPUTS)]
    kinds: list[tuple[SignalKind, int]] = [("program", 0), *outputs, ("int_register", 0)]
    for trigger, output in kinds:
        if TRIGGER_FIELD[trigger] not in motion.telemetry:
            continue
        events = np.array([*CycleDetector(trigger, output).find(motion.telemetry)], dtype=int)
        after = np.searchsorted(rests, events)
        starts = np.unique(after[after < len(moves)])
        if len(starts) >= 3:
            leads = [
                motion.time[moves[k].first] - motion.time[events[after == k][-1]] for k in starts
            ]
            yield trigger, starts.tolist(), max(float(np.median(leads)), 0.0)


def _alike(points: Array, starts: list[int]) -> bool:
    """Whether the cycles between starts have the same number of moves from the same points."""
    each = starts[1] - starts[0]
    if (np.diff(starts) != each).any():
        return False
    groups = points[starts[0] : starts[-1]].reshape(-1, each, points.shape[1])
    return bool(np.abs(groups - groups[0]).max() < SAME_POINT)


def _repetition(motion: RecordedMotion, moves: list[MoveSpan]) -> list[tuple[int, int]]:
    """First move of each complete cycle, and that after its last; none without repetition.

    A cycle is complete if the next one has begun, which shows the length of its last dwell.
    """
    # A departure after the end lets the last cycle end where the recording does, at standstill.
    time = np.append(motion.time, motion.time[-1] + motion.period)
    q = np.concatenate([motion.q, motion.q[-1:]])
    qd = np.concatenate([motion.qd, np.ones_like(motion.qd[-1:])])
    marks = Repetition().update(time, q, qd, [], 1.0 / motion.period)
    places, found = list(marks), list[tuple[int, int]]()
    for number, ends in enumerate(marks.values()):
        found += pairwise(places[number - back] for back in (*ends, 0))
    firsts = np.array([move.first for move in moves])
    edges = np.searchsorted(firsts, np.array(found, dtype=int).reshape(-1, 2), side="right") - 1
    whole = edges[np.array([end < len(motion.time) for _, end in found], dtype=bool)]
    count = np.diff(whole, axis=1).ravel()
    usual = int(np.median(count)) if len(count) else 0
    whole = whole[(count == usual) & (whole[:, 0] >= 0)]
    covered = np.ptp(edges) if len(edges) else 0
    if not usual or covered < MOST * (len(moves) - 1):
        return []
    return [(int(a), int(b)) for a, b in whole]


def recorded_tool(telemetry: Telemetry, robot: RobotDescription) -> Array | None:
    """Pose of the tool centre point in the flange frame [6], m and rad; None where unknown.

    It is taken from the sample at which the arm is slowest, with the nominal kinematics: an arm's
    own calibration makes it wrong by a millimetre or two, which does not change what is straight.
    """
    if any(name not in telemetry for name in ("actual_q", "actual_qd", "actual_TCP_pose")):
        return None
    at = int(np.argmin(np.abs(telemetry["actual_qd"]).max(axis=1)))
    pose = telemetry["actual_TCP_pose"][at]
    if not np.isfinite(pose).all():
        return None
    flange = ArmDynamics(robot).flange_pose(telemetry["actual_q"][at : at + 1])[0]
    return pose_vector(np.linalg.inv(flange) @ matrix_of(pose))
