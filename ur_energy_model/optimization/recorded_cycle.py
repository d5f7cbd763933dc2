# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The work cycle of a recording: its moves, the waits between them, and what they take."""

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
from ur_energy_model.energy.telemetry_checks import OperatingConditions
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
"""Sample period above which recorded accelerations are not used [s]: they change in steps, which a
smooth curve between slow samples cannot follow."""
SHORTEST_WAIT = 0.01  # shortest wait that a person types [s]
# longest standstill before a move that counts as the controller's own [s]
LONGEST_PAUSE = 0.08
# time on a line of the program below which it is a part of a wait's loop [s]
SAME_LINE = 0.02

MOST_CALLS = 4  # of one wait without a pause in between

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
        model: of the arm, best in the session of the recording.
        path: of the recording.
        robot: type of the arm.
        keep_dwell: waits up to this long must stay [s].
        longest: part of a longer recording that is read, from its begin [s].

    Raises:
        UrEnergyError: no cycle, freedrive, another robot, or a recording that cannot be
            used.
    """
    motion = read_motion(path, robot, longest)
    found = find_cycles(motion, find_moves(motion))
    columns = motion.telemetry.columns
    starts = np.array([motion.time[moves[0].first] for moves in found.moves])
    durations = motion.time[list(found.ends)] - starts
    chosen = int(np.argsort(durations, kind="stable")[len(durations) // 2])
    measured = MeasuredEnergy.of(motion.telemetry).of_cycles(found)
    measured = measured[np.isfinite(measured)]
    warmth = columns.get("joint_temperatures")
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
        temperature=None if warmth is None else np.nanmean(warmth, axis=0),
        notes=tuple(_notes(motion, found)),
        switching=recorded_switching(motion.telemetry),
        scaling=scaling_of(motion),
        leading=leading,
        others=_other_work(motion, found),
    )
    energies = CycleEnergies(model, cycle.temperature).of(recorded_stretches(cycle))
    moving = (part for part in energies if part.stretch.moving)
    known = (
        replace(move, energy=part.energy, peak_power=part.peak_power)
        for move, part in zip(moves, moving, strict=True)
    )
    return replace(cycle, moves=tuple(known))


def _moves(
    motion: RecordedMotion,
    found: FoundCycles,
    chosen: int,
    robot: RobotDescription,
    setup: Setup,
    keep_dwell: float,
) -> tuple[list[Move], int]:
    """The moves of a cycle with their rests, and how many waits of the last begin the program."""
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
    """The payload that was set in the controller at each sample; that of the setup if unknown."""
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
    """A move without the rest after it; its start is the controller's time.

    Copies of the same work in one program have lines of their own: a move has the lines
    of all the times that it was run.
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
    durations = [
        float(motion.time[until] - motion.time[span.last])
        for span, until in zip(spans, ends, strict=True)
    ]
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
            # A path that is streamed begins and ends with standstill of its own.
            waits = [(time, lines) for time, lines in waits if time >= LONGEST_PAUSE]
        typed = [
            Wait(time, "short wait" if time <= longest_kept else "", lines)
            for time, lines in waits
        ]
        rests.append(Dwell(duration, tuple(typed)))
    return rests


def _other_work(motion: RecordedMotion, found: FoundCycles) -> OtherWork:
    """What lies between the cycles of a recording and is none of them."""
    begins = [cycle[0].first for cycle in found.moves]
    stretches = {bisect_right(begins, move.first) for move in found.others}
    lines = Counter(move.line(motion) for move in found.others)
    del lines[0]
    return OtherWork(len(stretches), dict(lines))


def _with_calls_apart(moves: Sequence[Move], period: float) -> list[Move]:
    """Moves whose waits are those of single calls of a line.

    A line that waits several times without a pause in between, as a function that is
    called again at once, shows one wait. Its length is a multiple of the one that the
    line has elsewhere.
    """
    shortest: dict[tuple[int, ...], Wait] = {}
    for wait in (wait for move in moves for wait in move.rest.waits if wait.lines):
        known = shortest.setdefault(wait.lines, wait)
        if wait.duration < known.duration:
            shortest[wait.lines] = wait
    out = []
    for move in moves:
        waits: list[Wait] = []
        for wait in move.rest.waits:
            once = shortest.get(wait.lines, wait)
            calls = round(wait.duration / once.duration)
            off = abs(wait.duration - calls * once.duration)
            several = 1 < calls <= MOST_CALLS and off <= 2.0 * (SHORTEST_WAIT + period)
            waits += [once] * calls if several else [wait]
        out.append(replace(move, rest=replace(move.rest, waits=tuple(waits))))
    return out


def _leading(moves: Sequence[Move], lead: float) -> int:
    """How many waits of the last rest begin the program, before its first move.

    Their lines are below that of the first move, and behind those of functions, or they
    are the standstill from the start of the program to its first move [s].
    """
    waits = moves[-1].rest.waits
    first = moves[0].lines[0] if moves[0].lines else 0
    functions = max(
        (line for move in moves for line in move.lines if line < first), default=0
    )
    leading = 0
    left = lead + SAME_LINE
    for wait in reversed(waits):
        left -= wait.duration
        if left < 0.0 and not any(functions < line < first for line in wait.lines):
            break
        leading += 1
    return leading


def _with_lines_before(
    motion: RecordedMotion, found: FoundCycles, waits: Sequence[Wait]
) -> tuple[Wait, ...]:
    """Waits before the first move, with the lines that they have before each cycle, too.

    After the last cycle of a program that is written out they have others, or none.
    """
    lines = motion.telemetry.columns.get(LINE)
    if lines is None:
        return tuple(waits)
    out: list[Wait] = []
    until = 0.0
    for wait in reversed(waits):
        middle = until + 0.5 * wait.duration
        until += wait.duration
        own = set(wait.lines)
        for cycle in found.moves:
            start = motion.time[cycle[0].first]
            at = int(np.searchsorted(motion.time, start - middle))
            if at > 0 and lines[at] >= 1:
                own.add(int(lines[at]))
        out.insert(0, replace(wait, lines=tuple(sorted(own))))
    return tuple(out)


def _pause(kind: str, kinds: Sequence[str], rested: Sequence[float]) -> float:
    """What the controller takes for itself before a move of a kind [s].

    The shortest standstill before such a move, unless it is so long that a program may
    have it.
    """
    shortest = min(
        rest for rest, after in zip(rested, kinds, strict=True) if after == kind
    )
    return shortest if shortest < LONGEST_PAUSE else 0.0


def _waits_without_lines(duration: float, lead: float) -> Waits:
    """Waits of a standstill [s]; a last one of `lead` s begins the cycle."""
    last = min(lead, duration) if lead >= SHORTEST_WAIT else 0.0
    first = duration - last
    if 0.0 < first < LONGEST_PAUSE and last:
        first = 0.0
        last = duration
    return [(round(time, 2), ()) for time in (first, last) if time >= SHORTEST_WAIT]


def _waits_of_all(
    motion: RecordedMotion, own: MoveAndRest, runs: Sequence[MoveAndRest]
) -> Waits | None:
    """Waits after a move of the chosen cycle, with their lines in all its runs.

    None where lines were not recorded. A standstill that has other waits in another run
    is left out.
    """
    waits = _waits_by_line(motion, *own)
    if waits is None:
        return None
    sides = [_waits_by_line(motion, *run) for run in runs]
    alike = [side for side in sides if side is not None and len(side) == len(waits)]
    out: Waits = []
    for k, (time, line) in enumerate(waits):
        lines = {line}
        for side in alike:
            other_time, other_line = side[k]
            if abs(other_time - time) <= SAME_WAIT:
                lines.add(other_line)
        out.append((time, tuple(sorted(lines))))
    return out


def _waits_by_line(
    motion: RecordedMotion, move: MoveSpan, last: int
) -> list[tuple[float, int]] | None:
    """Waits of the standstill after a move with their lines; None where it was not recorded.

    While the line is that of the move before or after, the controller is busy itself.
    Lines that change quickly are a loop that waits for a signal: one wait.
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
        long = time >= SAME_LINE and any(part[0] >= SAME_LINE for part in blocks[-1])
        if line in own or line < 1 or long:
            blocks.append([])
        if line not in own and line >= 1:
            blocks[-1].append((time, line))
    waits = [(sum(time for time, _ in block), max(block)[1]) for block in blocks if block]
    return [(round(time, 2), line) for time, line in waits if time >= SHORTEST_WAIT]


# What the whole recording shows: speed scaling, energies, switching off, and what is
# missing.


def recorded_switching(telemetry: Telemetry) -> Switching | None:
    """Mean of the complete switchings in a recording; None without one, or without bus power.

    The state in between is the lowest robot_mode reached; everything else between two
    stretches of running counts as change.
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
        there = modes[rows]
        drawn = power[rows]
        low = there == there[1:-1].min()
        low_time = float(np.diff(time, append=time[-1])[low].sum())
        low_power = float(drawn[low].mean())
        whole = float(integrate(time, drawn).net[0])
        found.append(
            (time[-1] - time[0] - low_time, whole - low_power * low_time, low_power)
        )
    return Switching(*map(float, np.mean(found, axis=0))) if found else None


def _notes(motion: RecordedMotion, found: FoundCycles) -> list[str]:
    closing = "" if found.closed else ", and the arm does not return to where it starts"
    notes = {
        "Nothing repeats in the recording: its motion from first to last standstill counts as one "
        f"cycle{closing}.": found.found_by == "whole",
        "The recording has no target_q: the path is the measured one, smoothed, and rests shorter "
        "than its smoothing may be missed.": motion.measured,
        f"The recording has {1 / motion.period:.0f} samples per second: starts and ends of moves "
        f"are known to {1000 * motion.period:.0f} ms only.": motion.period > SLOW_SAMPLES
        and not motion.measured,
        "The recording has no bus power: nothing shows how far the model is off.": (
            motion.telemetry.bus_power is None
        ),
        "Joint temperatures are unknown: friction is that of the model's mean.": (
            "joint_temperatures" not in motion.telemetry
        ),
        f"Only the first {LONGEST / 60:.0f} minutes of the recording were read.": motion.cut,
    }
    return [text for text, applies in notes.items() if applies]
