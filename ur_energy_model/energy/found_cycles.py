# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The repeated cycle of a recording: which moves it has, and where the program begins.

What a cycle is, `CycleDetector` decides, as for energies per cycle, profiles and
histories. Here its marks become moves, and the cycle is turned to begin as the program
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from ur_energy_model.energy.cycles import TRIGGER_FIELD, CycleDetector, ShownBy
from ur_energy_model.energy.program import LINE
from ur_energy_model.energy.recorded_motion import MoveSpan, RecordedMotion
from ur_energy_model.energy.repetition import SAME_POINT
from ur_energy_model.errors import RecordingError
from ur_energy_model.robot_modes import PLAYING
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

FoundBy = Literal[ShownBy, "whole"]

SIGNAL_DELAY = 0.05
"""Time by which a signal may come after the start of the motion that it announces [s]."""
LINES_BETWEEN = 2
"""Least distance in lines of the first line of a loop from one of a function before it: the
function ends in between."""


class MoveAndRest(NamedTuple):
    """A move of a recording with the rest after it.

    Attributes:
        move: its samples.
        until: sample at which the rest ends.
    """

    move: MoveSpan
    until: int


class FoundCycles(NamedTuple):
    """Complete cycles of a recording.

    Attributes:
        found_by: what showed them; "whole" if the recording is one cycle.
        moves: of each cycle, the same number in all.
        ends: samples at which the dwells after the last moves of the cycles end.
        closed: whether a cycle ends where it starts.
        runs: for each move of a cycle, all the times that it was run: in the complete cycles,
            and in incomplete ones beside them.
        others: moves between the cycles that are other work.
        lead: standstill before the first move that belongs to its begin [s].
    """

    found_by: FoundBy
    moves: Sequence[Sequence[MoveSpan]]
    ends: Sequence[int]
    closed: bool
    runs: Sequence[Sequence[MoveAndRest]]
    others: Sequence[MoveSpan] = ()
    lead: float = 0.0


def find_cycles(motion: RecordedMotion, moves: list[MoveSpan]) -> FoundCycles:
    """The repeated cycle of a recording, by the rule of `CycleDetector`.

    Where the recording has several kinds of cycles, the most frequent one counts. It
    begins as the program does (`program_begin`). Without repetition the motion from first
    to last standstill is one cycle.

    Args:
        motion: of the recording.
        moves: all of its complete moves.

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
    found_by, cycles = _repeated(motion, moves)
    if not cycles:
        closed = bool(np.abs(points[0] - motion.q[moves[-1].last]).max() < SAME_POINT)
        once = [[_with_rest(moves, k)] for k in range(len(moves))]
        return FoundCycles("whole", [moves], [moves[-1].last], closed, once)
    first, end = cycles[0]
    begin = first + _begin(motion, moves, first, end)
    cycles = _turned(points, cycles, begin)
    each = [moves[a:b] for a, b in cycles]
    ends = [moves[b].first for _, b in cycles]
    places = _places_in_cycle(motion, moves, cycles)
    runs: list[list[MoveAndRest]] = [[] for _ in each[0]]
    for k, place in sorted(places.items()):
        runs[place].append(_with_rest(moves, k))
    between = range(cycles[0][0], cycles[-1][1])
    others = [moves[k] for k in between if k not in places]
    lead = _first_wait(motion, moves, begin)
    return FoundCycles(found_by, each, ends, True, runs, others, lead)


def _with_rest(moves: Sequence[MoveSpan], number: int) -> MoveAndRest:
    """A move with the rest until the next one, as far as it was recorded."""
    move = moves[number]
    until = moves[number + 1].first if number + 1 < len(moves) else move.last
    return MoveAndRest(move, until)


def _places_in_cycle(
    motion: RecordedMotion, moves: Sequence[MoveSpan], cycles: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """Which move of a cycle each move of a recording is, by their numbers.

    Beside complete cycles there are incomplete ones: at the ends of the recording, and
    where other work follows. Their moves have the points of the cycle as long as they
    belong to it.
    """
    begins = motion.q[[move.first for move in moves]]
    ends = motion.q[[move.last for move in moves]]
    first, end = cycles[0]
    count = end - first
    places = {a + k: k for a, b in cycles for k in range(b - a)}
    for a, b in cycles:
        for number, step in ((b, 1), (a - 1, -1)):
            k = number
            while 0 <= k < len(moves) and k not in places:
                place = (k - a) % count
                from_there = np.abs(begins[k] - begins[first + place]).max() < SAME_POINT
                to_there = np.abs(ends[k] - ends[first + place]).max() < SAME_POINT
                if not (from_there and to_there):
                    break
                places[k] = place
                k += step
    return places


def _repeated(
    motion: RecordedMotion, moves: list[MoveSpan]
) -> tuple[ShownBy, list[tuple[int, int]]]:
    """First move of each complete cycle, and that after its last; none without repetition."""
    shown_by, complete = complete_cycles(motion)
    cycles = []
    for begin, end in complete:
        first = _move_of(motion, moves, begin)
        after = _move_of(motion, moves, end)
        if first < after < len(moves):
            cycles.append((first, after))
    usual: list[tuple[int, int]] = []
    for one in cycles:  # the most frequent kind of cycle
        alike = [other for other in cycles if _alike(motion, moves, one, other)]
        if len(alike) > len(usual):
            usual = alike
    return shown_by if usual else "repetition", usual


def complete_cycles(motion: RecordedMotion) -> tuple[ShownBy, list[tuple[int, int]]]:
    """Complete cycles of a recording, whatever their moves.

    A cycle is complete if the next one has begun, which shows the length of its last
    dwell.

    Args:
        motion: of the recording.

    Returns:
        What shows the cycles, and the samples at which each begins and ends.
    """
    departing = _departing(motion)
    on_the_way = CycleDetector()
    on_the_way.find(departing)
    detector = on_the_way.afterwards()
    marks = detector.find(departing)
    samples = list(marks)
    found: list[tuple[int, int]] = []
    for number, mark in enumerate(marks.values()):
        found += pairwise(samples[number - back] for back in (*mark.ends, 0))
    return detector.shown_by, [
        (begin, end) for begin, end in found if end < len(motion.time)
    ]


def _departing(motion: RecordedMotion) -> Telemetry:
    """What `CycleDetector` takes of a recording, with a departure after its end.

    The departure lets a last cycle show repetition that ends where the recording does.
    """
    telemetry = motion.telemetry
    names = (
        "target_q",
        "target_qd",
        "actual_q",
        "actual_qd",
        LINE,
        *TRIGGER_FIELD.values(),
    )
    columns = {name: telemetry[name] for name in names if name in telemetry}
    sources = (("target_q", "target_qd"), ("actual_q", "actual_qd"))
    if not any(q in columns and qd in columns for q, qd in sources):
        columns |= {"target_q": motion.q, "target_qd": motion.qd}
    later = {
        name: np.concatenate([values, values[-1:]]) for name, values in columns.items()
    }
    for name in ("target_qd", "actual_qd"):
        if name in later:
            later[name][-1] = 1.0
    time = np.append(motion.time, motion.time[-1] + motion.period)
    return Telemetry(time, later, RecordingInfo(rate=1.0 / motion.period))


def _move_of(motion: RecordedMotion, moves: list[MoveSpan], sample: int) -> int:
    """Number of the move that a mark at a sample begins.

    A departure is in its move. A signal is before its move or a little later than its
    start.
    """
    firsts = [move.first for move in moves]
    within = int(np.searchsorted(firsts, sample, side="right")) - 1
    if within < 0 or sample > moves[within].last:
        return within + 1
    since = motion.time[sample] - motion.time[firsts[within]]
    rested = (
        not np.abs(motion.q[sample - 1] - motion.q[firsts[within]]).max() >= SAME_POINT
    )
    return within if rested or since <= SIGNAL_DELAY else within + 1


def _alike(
    motion: RecordedMotion,
    moves: list[MoveSpan],
    one: tuple[int, int],
    other: tuple[int, int],
) -> bool:
    """Whether two cycles have the same moves, from the same points."""
    if one[1] - one[0] != other[1] - other[0]:
        return False
    starts, others = (
        motion.q[[move.first for move in moves[first:end]]] for first, end in (one, other)
    )
    return bool(np.abs(starts - others).max() < SAME_POINT)


def _turned(
    points: Array, cycles: list[tuple[int, int]], begin: int
) -> list[tuple[int, int]]:
    """Cycles that begin with the move `begin` of the first one; as they are if none is complete.

    From the points at which all moves start [moves, n], rad.
    """
    first, end = cycles[0]
    count = end - first
    turn = begin - first
    whole = points[first + (turn + np.arange(count + 1)) % count]
    turned = {
        (a + by, b + by)
        for a, b in cycles
        for by in (turn - count, turn)
        if a + by >= 0
        and b + by < len(points)
        and np.abs(points[a + by : b + by + 1] - whole).max() < SAME_POINT
    }
    return sorted(turned) if turn and turned else cycles


# Where a program begins.


def _begin(motion: RecordedMotion, moves: list[MoveSpan], first: int, end: int) -> int:
    """Number, in a cycle of the moves from `first` to before `end`, of its first move."""
    lines = [move.line(motion) for move in moves[first:end]]
    starts = _starts_of_program(motion)
    lasts = [move.last for move in moves]
    earlier = starts[starts <= lasts[end - 1]]
    if not len(earlier):
        return 0 if 0 in lines else program_begin(lines)
    at = int(np.searchsorted(lasts, earlier[-1]))
    count = end - first
    if 0 in lines:  # the first move from a point of the cycle
        points = motion.q[[move.first for move in moves]]
        inside = [
            (k - first) % count
            for k in range(at, end)
            if np.abs(points[k] - points[first + (k - first) % count]).max() < SAME_POINT
        ]
        return inside[0] if inside else 0
    inside = [
        (k - first) % count
        for k in range(at, end)
        if moves[k].line(motion) == lines[(k - first) % count]
    ]
    if not inside:
        return program_begin(lines)
    begun = inside[0]
    before = (inside[0] - 1) % count
    # A program often begins by moving to where the arm already is, which is no motion
    # then. Its line comes once, and is the lowest; or no program can begin with the first
    # motion.
    stood = motion.q[moves[at].first]
    there = np.abs(motion.q[moves[first + begun].first] - stood).max() < SAME_POINT
    turns = [lines[k:] + lines[:k] for k in (begun, before)]
    lowest = lines[before] == min(lines) and lines.count(lines[before]) == 1
    if there and _is_program(turns[1]) and (lowest or not _is_program(turns[0])):
        return before
    return begun


def program_begin(lines: Sequence[int]) -> int:
    """Number of the first move of a program's loop, from the lines of the moves of one cycle.

    Functions are defined before the loop that calls them, so a line below the first one
    of the loop is in a function; any other step back is to a line that was executed
    before, as in a loop within the loop. Of the turns of the cycle that are such
    programs, the one with the most lines in the loop itself; the one that begins with the
    lowest line if none is.
    """
    turns = [[*lines[k:], *lines[:k]] for k in range(len(lines))]
    possible = [k for k, turn in enumerate(turns) if _is_program(turn)]
    if not possible:
        return int(np.argmin(lines))
    return max(possible, key=lambda k: (sum(line >= lines[k] for line in lines), -k))


def _is_program(lines: Sequence[int]) -> bool:
    """Whether lines can be those of the moves of a program's loop from its begin on."""
    first = lines[0]
    called = [line for line in lines if line < first]
    if called and first - max(called) < LINES_BETWEEN:
        return False
    in_order = list(dict.fromkeys(line for line in lines if line >= first))
    return in_order == sorted(in_order)


def _first_wait(motion: RecordedMotion, moves: list[MoveSpan], first: int) -> float:
    """Standstill before the first cycle that belongs to its begin [s].

    From the start of the program or, where no lines show what is waited for, from an
    approach.
    """
    end = moves[first].first
    begin = moves[first - 1].last if first else 0
    events = _starts_of_program(motion)
    events = events[(events > begin) & (events <= end)]
    if len(events):
        return float(motion.time[end] - motion.time[events[-1]])
    still = np.abs(motion.q[begin : end + 1] - motion.q[end]).max() < SAME_POINT
    approached = first > 0 and still and not moves[first].line(motion)
    return float(motion.time[end] - motion.time[begin]) if approached else 0.0


def _starts_of_program(motion: RecordedMotion) -> np.ndarray:
    """Samples at which the program starts."""
    state = motion.telemetry.columns.get("runtime_state", np.empty(0))
    return np.flatnonzero((state[1:] == PLAYING) & (state[:-1] != PLAYING)) + 1
