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
    """

    found_by: FoundBy
    moves: tuple[tuple[Stretch, ...], ...]
    ends: tuple[int, ...]
    closed: bool


def find_cycles(motion: RecordedMotion, moves: list[Stretch]) -> FoundCycles:
    """The repeated cycle: by a signal of the program, else by repetition of the points of rest.

    A signal counts if at least two complete cycles between its events visit the same points.
    Without repetition (`Repetition`) the motion from first to last standstill is one cycle.

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
    cycles = _repetition(motion, moves)
    if cycles:
        return FoundCycles(
            "repetition",
            tuple(tuple(moves[a:b]) for a, b in cycles),
            tuple(moves[b].first for _, b in cycles),
            True,
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
        events = list(CycleDetector(trigger, output).find(motion.telemetry))
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
