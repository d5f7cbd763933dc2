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
from ur_energy_model.energy.motion_marks import SAME_POINT
from ur_energy_model.energy.program import LINE
from ur_energy_model.energy.recorded_motion import MoveSpan, RecordedMotion
from ur_energy_model.errors import RecordingError
from ur_energy_model.robot_modes import PLAYING
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

FoundBy = Literal[ShownBy, "whole"]

SIGNAL_DELAY = 0.05
"""Time by which a signal may come after the start of the motion that it announces [s]."""
LINES_BETWEEN = 2
"""Least distance in lines between the last line of a function and the first line of the loop
behind it: the line that ends the function is in between."""


class MoveAndRest(NamedTuple):
    """A move of a recording with the rest after it.

    Attributes:
        move: samples of the move.
        until: sample at which the rest ends.
    """

    move: MoveSpan
    until: int


class FoundCycles(NamedTuple):
    """Complete cycles of a recording.

    Attributes:
        found_by: what showed the cycles; "whole" if the recording is one cycle.
        moves: moves of each cycle, the same number in all.
        ends: samples at which the dwells after the last moves of the cycles end.
        closed: whether a cycle ends where it starts.
        runs: all runs of each move of a cycle: in the complete cycles, and in incomplete
            cycles between them.
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
        motion: motion of the recording.
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
        last = moves[-1].last
        return FoundCycles(
            found_by="whole",
            moves=[moves],
            ends=[last],
            closed=_same_point(points[0], motion.q[last]),
            runs=[[_with_rest(moves, k)] for k in range(len(moves))],
        )
    first, end = cycles[0]
    begin = first + _begin(motion, moves, first, end)
    cycles = _turned(points, cycles, begin)
    places = _places_in_cycle(motion, moves, cycles)
    runs: list[list[MoveAndRest]] = [[] for _ in range(end - first)]
    for k, place in sorted(places.items()):
        runs[place].append(_with_rest(moves, k))
    first_move, _ = cycles[0]
    _, last_end = cycles[-1]
    between = range(first_move, last_end)
    return FoundCycles(
        found_by=found_by,
        moves=[moves[first:end] for first, end in cycles],
        ends=[moves[end].first for _, end in cycles],
        closed=True,
        runs=runs,
        others=[moves[k] for k in between if k not in places],
        lead=_first_wait(motion, moves, begin),
    )


def _same_point(one: Array, other: Array) -> bool:
    """Whether joint positions [..., n], rad, belong to the same point or points of rest."""
    return bool(np.abs(one - other).max() < SAME_POINT)


def _with_rest(moves: Sequence[MoveSpan], number: int) -> MoveAndRest:
    """A move with the rest until the next one, as far as it was recorded."""
    move = moves[number]
    until = moves[number + 1].first if number + 1 < len(moves) else move.last
    return MoveAndRest(move, until)


def _places_in_cycle(
    motion: RecordedMotion, moves: Sequence[MoveSpan], cycles: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """Number in the cycle of each move that belongs to a cycle, by its number in the recording.

    Beside complete cycles there are incomplete ones: at the ends of the recording, and
    where other work follows. Their moves have the points of the cycle as long as they
    belong to it.
    """
    begins = motion.q[[move.first for move in moves]]
    ends = motion.q[[move.last for move in moves]]
    first, end = cycles[0]
    count = end - first
    places: dict[int, int] = {}
    for cycle_first, cycle_end in cycles:
        places |= {cycle_first + place: place for place in range(cycle_end - cycle_first)}
    for cycle_first, cycle_end in cycles:
        # Onwards from its end, and backwards from its begin.
        for start, step in ((cycle_end, 1), (cycle_first - 1, -1)):
            k = start
            while 0 <= k < len(moves) and k not in places:
                place = (k - cycle_first) % count
                from_there = _same_point(begins[k], begins[first + place])
                to_there = _same_point(ends[k], ends[first + place])
                if not (from_there and to_there):
                    break
                places[k] = place
                k += step
    return places


def _repeated(
    motion: RecordedMotion, moves: list[MoveSpan]
) -> tuple[ShownBy, list[tuple[int, int]]]:
    """First move of each complete cycle and the move after its last, by their numbers.

    These are the cycles of the most frequent kind; none without repetition. Returned
    before them is what shows them.
    """
    shown_by, complete = complete_cycles(motion)
    cycles = []
    for begin, end in complete:
        first = _move_of(motion, moves, begin)
        after = _move_of(motion, moves, end)
        if first < after < len(moves):
            cycles.append((first, after))
    usual: list[tuple[int, int]] = []
    for one in cycles:
        alike = [other for other in cycles if _alike(motion, moves, one, other)]
        if len(alike) > len(usual):
            usual = alike
    return shown_by if usual else "repetition", usual


def complete_cycles(motion: RecordedMotion) -> tuple[ShownBy, list[tuple[int, int]]]:
    """Complete cycles of a recording, whatever their moves.

    A cycle is complete if the next one has begun, which shows the length of its last
    dwell.

    Args:
        motion: motion of the recording.

    Returns:
        Evidence of the cycles, and the samples at which each cycle begins and ends.
    """
    departing = _departing(motion)
    on_the_way = CycleDetector()
    on_the_way.find(departing)
    detector = on_the_way.afterwards()
    marks = detector.find(departing)
    samples = list(marks)
    found: list[tuple[int, int]] = []
    for number, mark in enumerate(marks.values()):
        borders = [samples[number - back] for back in (*mark.ends, 0)]
        found += pairwise(borders)
    recorded = [(begin, end) for begin, end in found if end < len(motion.time)]
    return detector.shown_by, recorded


def _departing(motion: RecordedMotion) -> Telemetry:
    """What `CycleDetector` takes of a recording, with a departure after its end.

    With this departure also a cycle is complete that ends where the recording does.
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
    has_targets = "target_q" in columns and "target_qd" in columns
    has_measured = "actual_q" in columns and "actual_qd" in columns
    if not (has_targets or has_measured):
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
    first = firsts[within]
    since = motion.time[sample] - motion.time[first]
    rested = _same_point(motion.q[sample - 1], motion.q[first])
    return within if rested or since <= SIGNAL_DELAY else within + 1


def _alike(
    motion: RecordedMotion,
    moves: list[MoveSpan],
    one: tuple[int, int],
    other: tuple[int, int],
) -> bool:
    """Whether two cycles have the same number of moves, from the same points.

    Args:
        motion: motion of the recording.
        moves: all of its complete moves.
        one: first move of a cycle and the move after its last, by their numbers.
        other: first move of another cycle and the move after its last.
    """
    starts = [move.first for move in moves[slice(*one)]]
    other_starts = [move.first for move in moves[slice(*other)]]
    if len(starts) != len(other_starts):
        return False
    return _same_point(motion.q[starts], motion.q[other_starts])


def _turned(
    points: Array, cycles: list[tuple[int, int]], begin: int
) -> list[tuple[int, int]]:
    """The cycles turned so that each begins with another move of the cycle.

    Args:
        points: points at which all moves of the recording start [moves, n], rad.
        cycles: first move of each cycle, and the move after its last.
        begin: move of the first cycle that is to begin it.

    Returns:
        The turned cycles that are complete; the cycles as they are if none is.
    """
    first, end = cycles[0]
    count = end - first
    turn = begin - first
    if not turn:
        return cycles
    whole = points[first + (turn + np.arange(count + 1)) % count]
    turned = set()
    for cycle_first, cycle_end in cycles:
        for shift in (turn - count, turn):
            low = cycle_first + shift
            high = cycle_end + shift
            is_recorded = low >= 0 and high < len(points)
            if is_recorded and _same_point(points[low : high + 1], whole):
                turned.add((low, high))
    return sorted(turned) or cycles


# Where a program begins.


def _begin(motion: RecordedMotion, moves: list[MoveSpan], first: int, end: int) -> int:
    """Number of the move with which the program begins, in the cycle of moves `first` to `end`.

    It is the first move after a start of the program, if one was recorded, and else by the
    lines of the moves, if these were recorded.
    """
    lines = [move.line(motion) for move in moves[first:end]]
    starts = _starts_of_program(motion)
    lasts = [move.last for move in moves]
    earlier = starts[starts <= lasts[end - 1]]
    if not len(earlier):
        return 0 if 0 in lines else program_begin(lines)
    at = int(np.searchsorted(lasts, earlier[-1]))
    begun = None
    for k in range(at, end):
        place = (k - first) % (end - first)
        if 0 in lines:
            own = motion.q[moves[k].first]
            belongs = _same_point(own, motion.q[moves[first + place].first])
        else:
            belongs = moves[k].line(motion) == lines[place]
        if belongs:
            begun = place
            break
    if 0 in lines:
        return begun or 0
    if begun is None:
        return program_begin(lines)
    # A program often begins by moving to where the arm already is, which is no motion
    # then. Its line comes once, and is the lowest; or no program can begin with the first
    # motion.
    before = (begun - 1) % len(lines)
    there = _same_point(motion.q[moves[first + begun].first], motion.q[moves[at].first])
    lowest = lines[before] == min(lines) and lines.count(lines[before]) == 1
    is_begin = lowest or not _is_program(_turned_lines(lines, begun))
    if there and is_begin and _is_program(_turned_lines(lines, before)):
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
    numbers = range(len(lines))
    possible = [k for k in numbers if _is_program(_turned_lines(lines, k))]
    if not possible:
        return int(np.argmin(lines))

    def lines_in_loop(number: int) -> int:
        return sum(line >= lines[number] for line in lines)

    return max(possible, key=lines_in_loop)


def _turned_lines(lines: Sequence[int], number: int) -> list[int]:
    """Lines of the moves of a cycle, from one of the moves on."""
    return [*lines[number:], *lines[:number]]


def _is_program(lines: Sequence[int]) -> bool:
    """Whether lines can belong to the moves of a program's loop, from the begin of the loop on."""
    first = lines[0]
    called = [line for line in lines if line < first]
    if called and first - max(called) < LINES_BETWEEN:
        return False
    in_order = list(dict.fromkeys(line for line in lines if line >= first))
    return in_order == sorted(in_order)


def _first_wait(motion: RecordedMotion, moves: list[MoveSpan], first: int) -> float:
    """Standstill before the first cycle that belongs to it [s].

    It begins with the start of the program or, where no lines show what is waited for,
    with the end of the motion that leads to the first point.
    """
    end = moves[first].first
    begin = moves[first - 1].last if first else 0
    events = _starts_of_program(motion)
    events = events[(events > begin) & (events <= end)]
    if len(events):
        return float(motion.time[end] - motion.time[events[-1]])
    still = _same_point(motion.q[begin : end + 1], motion.q[end])
    approached = first > 0 and still and not moves[first].line(motion)
    return float(motion.time[end] - motion.time[begin]) if approached else 0.0


def _starts_of_program(motion: RecordedMotion) -> np.ndarray:
    """Samples at which the program starts."""
    state = motion.telemetry.columns.get("runtime_state", np.empty(0))
    return np.flatnonzero((state[1:] == PLAYING) & (state[:-1] != PLAYING)) + 1
