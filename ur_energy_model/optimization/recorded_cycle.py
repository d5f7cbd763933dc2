# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The work cycle of a recording: its moves, the waits between them, and their energies."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.found_cycles import (
    FoundCycles,
    MoveAndRest,
    find_cycles,
)
from ur_energy_model.energy.measured_energy import MeasuredEnergy
from ur_energy_model.energy.meter import integrate
from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.energy.program import LINE
from ur_energy_model.energy.recorded_motion import (
    LONGEST,
    MoveSpan,
    RecordedMotion,
    find_moves,
    read_motion,
    recorded_tool,
    scaling_of,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.cycle import (
    SAME_WAIT,
    CycleEnergies,
    Dwell,
    Move,
    OtherWork,
    Switching,
    Wait,
    WorkCycle,
    recorded_stretches,
)
from ur_energy_model.optimization.programmed import programmed_move
from ur_energy_model.robot_modes import BACKDRIVE, BRAKES_RELEASED
from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.typing import Array

SLOW_SAMPLES = 0.012
"""Sample period above which recorded accelerations are not used [s]: accelerations change
in steps, which a smooth curve between slow samples cannot follow."""
SHORTEST_WAIT = 0.01  # shortest wait that a person types [s]
LONGEST_PAUSE = 0.08
"""Longest standstill before a move that is a pause of the controller, not a wait [s]."""
SAME_LINE = 0.02
"""Time on a line of the program below which the line is part of a loop that waits [s]."""
MOST_CALLS = 4  # most calls of one wait that follow each other without a pause

Waits = list[tuple[float, tuple[int, ...]]]
"""Durations [s] of waits, and their lines where they were recorded."""


def find_cycle(
    model: EnergyModel,
    path: str | Path,
    robot: RobotDescription,
    keep_dwell: float,
    longest: float = LONGEST,
) -> WorkCycle:
    """The complete cycle of median duration in a recording, with the energies of the model.

    Args:
        model: model of the arm, best in the session of the recording.
        path: path of the recording.
        robot: type of the arm.
        keep_dwell: waits up to this long must stay [s].
        longest: time from the begin of the recording that is read at most [s].

    Raises:
        UrEnergyError: the recording has no cycle, belongs to another robot, was made in
            freedrive, or cannot be read.
    """
    motion = read_motion(path, robot, longest)
    found = find_cycles(motion, find_moves(motion))
    columns = motion.telemetry.columns
    firsts = [moves[0].first for moves in found.moves]
    durations = motion.time[list(found.ends)] - motion.time[firsts]
    chosen = int(np.argsort(durations, kind="stable")[len(durations) // 2])
    measured = MeasuredEnergy.of(motion.telemetry).of_cycles(found)
    measured = measured[np.isfinite(measured)]
    temperatures = columns.get("joint_temperatures")
    moves, leading = _moves(motion, found, chosen, robot, model.setup, keep_dwell)
    cycle = WorkCycle(
        source=motion.telemetry.info.source,
        robot=robot.name,
        found_by=found.found_by,
        duration=float(durations[chosen]),
        moves=tuple(moves),
        count=len(found.moves),
        measured_energy=float(measured.mean()) if len(measured) else None,
        measured_energy_std=float(measured.std(ddof=1)) if len(measured) > 1 else 0.0,
        temperature=None if temperatures is None else np.nanmean(temperatures, axis=0),
        notes=tuple(_notes(motion, found)),
        switching=recorded_switching(motion.telemetry),
        scaling=scaling_of(motion),
        leading=leading,
        others=_other_work(motion, found),
    )
    energies = CycleEnergies(model, cycle.temperature).of(recorded_stretches(cycle))
    moving = [part for part in energies if part.stretch.moving]
    with_energies = [
        replace(move, energy=part.energy, peak_power=part.peak_power)
        for move, part in zip(moves, moving, strict=True)
    ]
    return replace(cycle, moves=tuple(with_energies))


def _moves(
    motion: RecordedMotion,
    found: FoundCycles,
    chosen: int,
    robot: RobotDescription,
    setup: Setup,
    keep_dwell: float,
) -> tuple[list[Move], int]:
    """The moves of a cycle with their rests.

    Args:
        motion: motion of the recording, with lines and payloads.
        found: cycles of the recording.
        chosen: number of the cycle.
        robot: type of the arm.
        setup: setup of the arm; its payload holds where the recording shows none.
        keep_dwell: waits up to this long must stay [s].

    Returns:
        The moves in order of time, and the number of waits at the end of the last rest
        with which the program begins.
    """
    payloads = _payloads(motion, setup)
    spans = found.moves[chosen]
    tool = recorded_tool(motion.telemetry, robot)
    start = float(motion.time[spans[0].first])
    moves = []
    for span, runs in zip(spans, found.runs, strict=True):
        move = _move(motion, span, runs, robot, tool)
        moves.append(replace(move, start=move.start - start, payload=payloads[span.last]))
    rests = _rests(motion, found, chosen, moves, keep_dwell)
    ends = _ends_of_rests(found, chosen)
    for k, rest in enumerate(rests):
        payload = payloads[max(ends[k] - 1, spans[k].last)]
        moves[k] = replace(moves[k], rest=replace(rest, payload=payload))
    moves = _with_calls_apart(moves, motion.period)
    leading = _leading(moves, found.lead)
    last = moves[-1]
    trailing = len(last.rest.waits) - leading
    first = _with_lines_before(motion, found, last.rest.waits[trailing:])
    waits = last.rest.waits[:trailing] + first
    moves[-1] = replace(last, rest=replace(last.rest, waits=waits))
    return moves, leading


def _payloads(motion: RecordedMotion, setup: Setup) -> list[Payload]:
    """The payload set in the controller at each sample; where unknown, the payload of the setup."""
    payloads: list[Payload] = []
    for rows, there in OperatingConditions(setup).parts(motion.telemetry):
        payloads += [there.payload] * (rows.stop - rows.start)
    return payloads


def _move(
    motion: RecordedMotion,
    span: MoveSpan,
    runs: Sequence[MoveAndRest],
    robot: RobotDescription,
    tool: Array | None,
) -> Move:
    """A move without the rest after it.

    Copies of the same work in one program have different lines: a move has the lines of
    all its runs.

    Args:
        motion: motion of the recording.
        span: samples of the move in the chosen cycle.
        runs: runs of the same move in all cycles.
        robot: type of the arm.
        tool: tool centre point in the flange frame [6], m and rad; None for the flange.

    Returns:
        The move; its start is in the controller's time.
    """
    rows = slice(span.first, span.last + 1)
    time = motion.time[rows]
    since = time - time[0]
    q = motion.q[rows]
    qd = motion.qd[rows].copy()
    qd[0] = 0.0
    qd[-1] = 0.0
    qdd = None
    coarse = motion.period > SLOW_SAMPLES and not motion.measured
    if motion.qdd is not None and not coarse:
        qdd = motion.qdd[rows]
    programmed = programmed_move(since, q, robot, tool)
    lines = {run.move.line(motion) for run in runs}
    if programmed is None:
        lines |= span.lines(motion)
    known_lines = tuple(sorted(lines - {0}))
    return Move(
        float(time[0]), since, q, qd, qdd=qdd, programmed=programmed, lines=known_lines
    )


def _ends_of_rests(found: FoundCycles, chosen: int) -> list[int]:
    """The sample at which the rest after each move of a cycle ends."""
    following = found.moves[chosen][1:]
    return [*(span.first for span in following), found.ends[chosen]]


def _rests(
    motion: RecordedMotion,
    found: FoundCycles,
    chosen: int,
    moves: Sequence[Move],
    keep_dwell: float,
) -> list[Dwell]:
    """The standstill after each move of a cycle, with its waits, without payloads."""
    spans = found.moves[chosen]
    ends = _ends_of_rests(found, chosen)
    lasts = [span.last for span in spans]
    durations = (motion.time[ends] - motion.time[lasts]).tolist()
    next_kinds = [move.kind for move in (*moves[1:], moves[0])]
    longest_kept = keep_dwell + SAME_LINE + motion.period
    rests = []
    for k, (span, until, duration) in enumerate(zip(spans, ends, durations, strict=True)):
        waits: Waits | None = []
        if duration > 0.0:
            waits = _waits_of_all(motion, MoveAndRest(span, until), found.runs[k])
        if waits is None:
            lead = found.lead if k + 1 == len(spans) else 0.0
            pause = _pause(next_kinds[k], next_kinds, durations)
            waits = _waits_without_lines(duration - pause, lead)
        if "other" in (moves[k].kind, next_kinds[k]):
            # A streamed path itself begins and ends with standstill, which is no wait.
            waits = [(time, lines) for time, lines in waits if time >= LONGEST_PAUSE]
        typed = [
            Wait(time, "short wait" if time <= longest_kept else "", lines)
            for time, lines in waits
        ]
        rests.append(Dwell(duration, tuple(typed)))
    return rests


def _other_work(motion: RecordedMotion, found: FoundCycles) -> OtherWork:
    """The moves of a recording that belong to none of its cycles."""
    begins = [cycle[0].first for cycle in found.moves]
    # Other moves between the same two cycles are one interruption.
    interruptions = {bisect_right(begins, move.first) for move in found.others}
    lines = Counter(move.line(motion) for move in found.others)
    del lines[0]  # unknown lines
    return OtherWork(len(interruptions), dict(lines))


def _with_calls_apart(moves: Sequence[Move], period: float) -> list[Move]:
    """Moves in whose rests each wait is one call of its line.

    A line that waits several times without a pause in between, as a function that is
    called again at once, is recorded as one wait. The duration of such a wait is a
    multiple of the shortest wait of the same line.

    Args:
        moves: moves of a cycle, with the recorded waits.
        period: period of the samples [s].
    """
    shortest: dict[tuple[int, ...], Wait] = {}
    for move in moves:
        for wait in move.rest.waits:
            known = shortest.setdefault(wait.lines, wait)
            if wait.duration < known.duration:
                shortest[wait.lines] = wait
    tolerance = 2.0 * (SHORTEST_WAIT + period)
    divided = []
    for move in moves:
        waits: list[Wait] = []
        for wait in move.rest.waits:
            once = shortest[wait.lines] if wait.lines else wait
            calls = round(wait.duration / once.duration)
            remainder = abs(wait.duration - calls * once.duration)
            if 1 < calls <= MOST_CALLS and remainder <= tolerance:
                waits += [once] * calls
            else:
                waits.append(wait)
        divided.append(replace(move, rest=replace(move.rest, waits=tuple(waits))))
    return divided


def _leading(moves: Sequence[Move], lead: float) -> int:
    """Number of waits at the end of the last rest with which the program begins.

    Functions of a program precede its main part. A wait belongs to the begin of the main
    part if its line is between the lines of functions and the line of the first move, or
    if the wait is within the standstill from the start of the program to its first move.

    Args:
        moves: moves of the cycle, with their rests.
        lead: standstill from the start of the program to its first move [s].
    """
    first = moves[0].lines[0] if moves[0].lines else 0
    functions = 0  # highest line of a move above the line of the first move
    for move in moves:
        for line in move.lines:
            if functions < line < first:
                functions = line
    leading = 0
    left = lead + SAME_LINE
    for wait in reversed(moves[-1].rest.waits):
        left -= wait.duration
        before_first = any(functions < line < first for line in wait.lines)
        if left < 0.0 and not before_first:
            break
        leading += 1
    return leading


def _with_lines_before(
    motion: RecordedMotion, found: FoundCycles, waits: Sequence[Wait]
) -> tuple[Wait, ...]:
    """Waits before the first move, with the lines of the same waits before each cycle.

    In a program without a loop, each cycle has lines of its own.
    """
    lines = motion.telemetry.columns.get(LINE)
    if lines is None:
        return tuple(waits)
    with_lines: list[Wait] = []
    until_move = 0.0  # time from the end of the wait to the first move [s]
    for wait in reversed(waits):
        middle = until_move + 0.5 * wait.duration
        until_move += wait.duration
        own = set(wait.lines)
        for cycle in found.moves:
            start = motion.time[cycle[0].first]
            sample = int(np.searchsorted(motion.time, start - middle))
            if sample > 0 and lines[sample] >= 1:
                own.add(int(lines[sample]))
        with_lines.insert(0, replace(wait, lines=tuple(sorted(own))))
    return tuple(with_lines)


def _pause(kind: str, next_kinds: Sequence[str], durations: Sequence[float]) -> float:
    """Time that the controller takes for itself before a move of a kind [s].

    The pause is the shortest standstill before a move of this kind. It is zero where even
    the shortest standstill is so long that the program may wait in it.

    Args:
        kind: kind of the move.
        next_kinds: kind of the move after each standstill, at least one of them `kind`.
        durations: durations of the standstills [s].
    """
    shortest = np.inf
    for duration, next_kind in zip(durations, next_kinds, strict=True):
        if next_kind == kind:
            shortest = min(shortest, duration)
    return shortest if shortest < LONGEST_PAUSE else 0.0


def _waits_without_lines(duration: float, lead: float) -> Waits:
    """Waits of a standstill, where lines of the program were not recorded.

    Args:
        duration: duration of the standstill, without the controller's own pause [s].
        lead: duration of the wait at its end with which the program begins [s].
    """
    last = min(lead, duration) if lead >= SHORTEST_WAIT else 0.0
    first = duration - last
    if last and first < LONGEST_PAUSE:
        first = 0.0
        last = duration
    return [(round(wait, 2), ()) for wait in (first, last) if wait >= SHORTEST_WAIT]


def _waits_of_all(
    motion: RecordedMotion, own: MoveAndRest, runs: Sequence[MoveAndRest]
) -> Waits | None:
    """Waits after a move of the chosen cycle, with the lines of all its runs.

    Args:
        motion: motion of the recording.
        own: the move in the chosen cycle, and the end of the rest after it.
        runs: move and end of the rest in all cycles; a run with another number of waits
            is left out.

    Returns:
        Durations [s] and lines of the waits; None where lines were not recorded.
    """
    waits = _waits_by_line(motion, *own)
    if waits is None:
        return None
    lines = [{line} for _, line in waits]
    for run in runs:
        others = _waits_by_line(motion, *run)
        if others is None or len(others) != len(waits):
            continue
        for number, (duration, line) in enumerate(others):
            if abs(duration - waits[number][0]) <= SAME_WAIT:
                lines[number].add(line)
    found: Waits = []
    for (duration, _), own_lines in zip(waits, lines, strict=True):
        found.append((duration, tuple(sorted(own_lines))))
    return found


def _waits_by_line(
    motion: RecordedMotion, move: MoveSpan, last: int
) -> list[tuple[float, int]] | None:
    """Waits of the standstill after a move.

    While the line belongs to the move before or after, the controller plans or the arm
    settles: that is no wait. Lines that change quickly are a loop that waits for a
    signal: together they are one wait, with the line of the longest part.

    Args:
        motion: motion of the recording.
        move: move before the standstill.
        last: sample at which the standstill ends.

    Returns:
        Duration [s] and line of each wait; None where lines were not recorded.
    """
    lines = motion.telemetry.columns.get(LINE)
    first = move.last
    before = move.line(motion)
    if lines is None or not before or not np.isfinite(lines[first : last + 1]).all():
        return None
    own = (before, int(lines[min(last + 2, len(lines) - 1)]))
    blocks: list[list[tuple[float, int]]] = [[]]
    for rows in equal_runs(lines[first:last]):
        line = int(lines[first + rows.start])
        time = float(motion.time[first + rows.stop] - motion.time[first + rows.start])
        if line in own or line < 1:
            blocks.append([])
            continue
        longest = max(blocks[-1], default=(0.0, 0))[0]
        if min(time, longest) >= SAME_LINE:  # two waits that follow each other
            blocks.append([])
        blocks[-1].append((time, line))
    waits = []
    for block in blocks:
        duration = sum(time for time, _ in block)
        if duration >= SHORTEST_WAIT:
            waits.append((round(duration, 2), max(block)[1]))
    return waits


# What the whole recording shows: switching off, and what is missing.


def recorded_switching(telemetry: Telemetry) -> Switching | None:
    """Time and energy of switching the arm off and on again, as means over a recording.

    A switching is the time between two stretches with brakes released. In it, the time at
    the lowest robot_mode counts as off, all other time as change.

    Returns:
        None where the recording has no complete switching, no robot_mode or no bus power.
    """
    power = telemetry.bus_power
    modes = telemetry.columns.get("robot_mode")
    if power is None or modes is None:
        return None
    off = np.asarray(~np.isin(modes, BRAKES_RELEASED) & (modes < BACKDRIVE))
    found = []
    for run in equal_runs(off):
        if not off[run.start] or run.start == 0 or run.stop == len(off):
            continue
        rows = slice(run.start - 1, run.stop + 1)
        time = telemetry.time[rows]
        run_modes = modes[rows]
        run_power = power[rows]
        lowest = run_modes == run_modes[1:-1].min()
        lowest_time = float(np.diff(time, append=time[-1])[lowest].sum())
        lowest_power = float(run_power[lowest].mean())
        change_time = float(time[-1] - time[0]) - lowest_time
        energy = float(integrate(time, run_power).net[0])
        found.append((change_time, energy - lowest_power * lowest_time, lowest_power))
    if not found:
        return None
    change_time, change_energy, off_power = np.mean(found, axis=0).tolist()
    return Switching(change_time, change_energy, off_power)


def _notes(motion: RecordedMotion, found: FoundCycles) -> list[str]:
    """Sentences on what the recording does not show."""
    notes = []
    if found.found_by == "whole":
        closing = ""
        if not found.closed:
            closing = ", and the arm does not return to where it starts"
        notes.append(
            "Nothing repeats in the recording: its motion from first to last standstill counts "
            f"as one cycle{closing}."
        )
    if motion.measured:
        notes.append(
            "The recording has no target_q: the path is the measured one, smoothed, and rests "
            "shorter than its smoothing may be missed."
        )
    elif motion.period > SLOW_SAMPLES:
        notes.append(
            f"The recording has {1 / motion.period:.0f} samples per second: starts and ends of "
            f"moves are known to {1000 * motion.period:.0f} ms only."
        )
    if motion.telemetry.bus_power is None:
        notes.append(
            "The recording has no bus power: nothing shows how far the model is off."
        )
    if "joint_temperatures" not in motion.telemetry:
        notes.append(
            "Joint temperatures are unknown: friction is that of the model's mean."
        )
    if motion.cut:
        notes.append(
            f"Only the first {LONGEST / 60:.0f} minutes of the recording were read."
        )
    return notes
