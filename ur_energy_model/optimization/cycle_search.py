"""Finds the repeated work cycle among the moves of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ur_energy_model.energy.live.cycles import (
    MOST,
    OUTPUTS,
    SAME_POINT,
    TRIGGER_FIELD,
    CycleDetector,
    Repetition,
    Trigger,
)
from ur_energy_model.errors import RecordingError
from ur_energy_model.optimization.recorded_motion import RecordedMotion
from ur_energy_model.optimization.stops import Stretch
from ur_energy_model.telemetry.modes import PLAYING
from ur_energy_model.typing import Array

FoundBy = Literal["program", "digital_output", "int_register", "repetition", "whole"]

SIGNAL_DELAY = 0.05
"""Time by which a signal may come after the start of the motion that it announces [s]."""
_WHAT_TO_RECORD = (
    "record at least two whole cycles of the running program, from standstill to standstill"
)


@dataclass(frozen=True)
class FoundCycles:
    """Complete cycles of a recording.

    Attributes:
        found_by: what showed them; "whole" if the recording is one cycle.
        moves: of each cycle, the same number in all.
        ends: sample at which the dwell after the last move of each cycle ends.
        closed: whether a cycle ends where it starts.
        lead: standstill before the first move that belongs to the begin of the cycle [s].
    """

    found_by: FoundBy
    moves: tuple[tuple[Stretch, ...], ...]
    ends: tuple[int, ...]
    closed: bool
    lead: float = 0.0


def find_cycles(motion: RecordedMotion, moves: list[Stretch]) -> FoundCycles:
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
            _WHAT_TO_RECORD,
        )
    points = np.array([motion.q[move.first] for move in moves])
    ends = np.array([motion.q[move.last] for move in moves])
    for found_by, starts, lead in _signals(motion, moves):
        if _alike(points, starts):
            return _found(motion, moves, found_by, list(pairwise(starts)), lead)
    cycles = _repetition(motion, moves)
    if cycles:
        return _found(motion, moves, "repetition", cycles, _first_wait(motion, moves, cycles[0][0]))
    closed = bool(np.abs(points[0] - ends[-1]).max() < SAME_POINT)
    return FoundCycles("whole", (tuple(moves),), (moves[-1].last,), closed)


def line_of(motion: RecordedMotion, move: Stretch) -> int | None:
    """Line of the program that a move is on; None where it was not recorded."""
    lines = motion.telemetry.columns.get("script_control_line")
    line = 0.0 if lines is None else lines[(move.first + move.last + 1) // 2]
    return int(line) if np.isfinite(line) and line >= 1 else None


def _found(
    motion: RecordedMotion,
    moves: list[Stretch],
    found_by: FoundBy,
    cycles: list[tuple[int, int]],
    lead: float,
) -> FoundCycles:
    """Cycles of these first moves and those after their last, turned to begin as the program does.

    That is with the first line of its loop or, where the lines show no loop, with the move after
    its start, if that is a move of the cycle.
    """
    first, end = cycles[0]
    points = np.array([motion.q[move.first] for move in moves])
    lines = [line_of(motion, move) or 0 for move in moves[first:end]]
    begin, first_wait = first + int(np.argmin(lines)), 0.0
    if lines[0] <= lines[-1]:
        begin = _started(motion, moves, first)
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
    return FoundCycles(
        found_by,
        tuple(tuple(moves[a:b]) for a, b in cycles),
        tuple(moves[b].first for _, b in cycles),
        True,
        lead,
    )


def _first_wait(motion: RecordedMotion, moves: list[Stretch], first: int) -> float:
    """Standstill from the start of the program, or an approach, to the first cycle [s]."""
    end = moves[first].first
    begin = moves[first - 1].last if first else 0
    events = _starts_of_program(motion)
    events = events[(events > begin) & (events <= end)]
    if len(events):
        return float(motion.time[end] - motion.time[events[-1]])
    still = np.abs(motion.q[begin : end + 1] - motion.q[end]).max() < SAME_POINT
    return float(motion.time[end] - motion.time[begin]) if first and still else 0.0


def _started(motion: RecordedMotion, moves: list[Stretch], first: int) -> int:
    """The first move after a start of the program; that of the first cycle without one."""
    after = np.searchsorted([move.last for move in moves], _starts_of_program(motion))
    return int(after[0]) if len(after) and after[0] < len(moves) else first


def _starts_of_program(motion: RecordedMotion) -> np.ndarray:
    """Samples at which the program starts."""
    state = motion.telemetry.columns.get("runtime_state")
    if state is None:
        return np.empty(0, dtype=int)
    return np.flatnonzero((state[1:] == PLAYING) & (state[:-1] != PLAYING)) + 1


def _signals(
    motion: RecordedMotion, moves: list[Stretch]
) -> Iterator[tuple[FoundBy, list[int], float]]:
    """Each signal with events, the first move after each, and the standstill between them [s]."""
    late = max(2, round(SIGNAL_DELAY / motion.period))
    rests = np.array([move.first for move in moves]) + late
    kinds: list[tuple[Trigger, int]] = [
        ("program", 0),
        *(("digital_output", bit) for bit in range(OUTPUTS)),
        ("int_register", 0),
    ]
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
            yield trigger, starts.tolist(), max(float(np.median(leads)), 0.0)  # type: ignore[misc]


def _alike(points: Array, starts: list[int]) -> bool:
    """Whether the cycles between starts have the same number of moves from the same points."""
    lengths = set(np.diff(starts).tolist())
    if len(lengths) != 1:
        return False
    each = lengths.pop()
    groups = np.array([points[start : start + each] for start in starts[:-1]])
    return bool(np.abs(groups - groups[0]).max() < SAME_POINT)


def _repetition(motion: RecordedMotion, moves: list[Stretch]) -> list[tuple[int, int]]:
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
    if not usual or covered < MOST * (len(moves) - 1) or not len(whole):
        return []
    return [(int(a), int(b)) for a, b in whole]
