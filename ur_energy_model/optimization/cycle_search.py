"""Finds the repeated work cycle among the moves of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ur_energy_model.energy.live.cycles import TRIGGER_FIELD, CycleDetector, Trigger
from ur_energy_model.errors import RecordingError
from ur_energy_model.optimization.recorded_motion import RecordedMotion
from ur_energy_model.optimization.stops import Stretch
from ur_energy_model.telemetry.runs import equal_runs
from ur_energy_model.typing import Array

FoundBy = Literal["program", "digital_output", "int_register", "repetition", "whole"]

SAME_POINT = 0.02
"""Distance within which two points of rest are the same [rad]: targets repeat exactly, taught
corrections and measured positions nearly."""
SIGNAL_DELAY = 0.05
"""Time by which a signal may come after the start of the motion that it announces [s]."""
OUTPUTS = 18
"""Digital outputs that are looked at: eight standard, eight configurable, two of the tool."""
MOST = 0.6
"""Share of the moves that a repetition must cover: approach and retreat may be in the recording."""
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
    """

    found_by: FoundBy
    moves: tuple[tuple[Stretch, ...], ...]
    ends: tuple[int, ...]
    closed: bool


def find_cycles(motion: RecordedMotion, moves: list[Stretch]) -> FoundCycles:
    """The repeated cycle: by a signal of the program, else by repetition of the points of rest.

    A signal counts if at least two complete cycles between its events visit the same points.
    Repetition is the smallest number of moves after which all points of rest come again. Without
    repetition the motion from first to last standstill is one cycle.

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
    for found_by, starts in _signals(motion, moves):
        groups = [tuple(moves[a:b]) for a, b in pairwise(starts)]
        if _alike(points, starts):
            return FoundCycles(
                found_by, tuple(groups), tuple(moves[k].first for k in starts[1:]), True
            )
    found = _repetition(points, ends)
    if found is not None:
        first, period, count = found
        starts = [first + k * period for k in range(count + 1)]
        groups = [tuple(moves[a:b]) for a, b in pairwise(starts)]
        return FoundCycles(
            "repetition", tuple(groups), tuple(moves[k].first for k in starts[1:]), True
        )
    closed = bool(np.abs(points[0] - ends[-1]).max() < SAME_POINT)
    return FoundCycles("whole", (tuple(moves),), (moves[-1].last,), closed)


def _signals(motion: RecordedMotion, moves: list[Stretch]) -> Iterator[tuple[FoundBy, list[int]]]:
    """Each signal with events, and the first move after each of its events."""
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
        events = CycleDetector(trigger, output).find(motion.telemetry)
        starts = np.unique(np.searchsorted(rests, events))
        starts = starts[starts < len(moves)]
        if len(starts) >= 3:
            yield trigger, starts.tolist()  # type: ignore[misc]


def _alike(points: Array, starts: list[int]) -> bool:
    """Whether the cycles between starts have the same number of moves from the same points."""
    lengths = set(np.diff(starts).tolist())
    if len(lengths) != 1:
        return False
    each = lengths.pop()
    groups = np.array([points[start : start + each] for start in starts[:-1]])
    return bool(np.abs(groups - groups[0]).max() < SAME_POINT)


def _repetition(points: Array, ends: Array) -> tuple[int, int, int] | None:
    """First move, number of moves and number of complete cycles; None without repetition.

    The smallest number of moves wins whose repetition covers most of the recording. A cycle is
    complete if the next one has begun, which shows the length of its last dwell.

    Args:
        points: where each move starts [moves, n], rad.
        ends: where it ends [moves, n], rad.
    """
    total = len(points)
    both = np.concatenate([points, ends], axis=1)
    for period in range(1, total):
        same = (np.abs(both[period:] - both[:-period]) < SAME_POINT).all(axis=1)
        runs = [rows for rows in equal_runs(same) if same[rows.start]]
        if not runs:
            continue
        longest = max(runs, key=lambda rows: rows.stop - rows.start)
        covered = longest.stop - longest.start + period
        if covered >= MOST * total:
            return longest.start, period, (covered - 1) // period
    return None
