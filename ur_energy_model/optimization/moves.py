"""The work cycle of a recording: its moves and rests, and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE, integrate
from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    Kind,
    Move,
    Rest,
    StretchEnergy,
    Wait,
    WorkCycle,
    recorded_stretches,
    recorded_switching,
)
from ur_energy_model.optimization.pendant import with_recorded_values
from ur_energy_model.optimization.recorded_motion import (
    LONGEST,
    STILL_TARGET,
    FoundCycles,
    MoveSpan,
    RecordedMotion,
    find_cycles,
    find_moves,
    line_of,
    read_motion,
    recorded_tool,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array

MOTION_ERROR = 0.14
"""Relative error of the predicted energy of motion (RMS over held-out recordings of real arms)."""
CORRELATION = 0.95
"""Correlation of that error between two time laws of the same paths. The part that each law has of
its own is then 4 % of the energy of motion; on simulated arms it was 2 %."""


def saving_interval(
    before: Sequence[StretchEnergy], after: Sequence[StretchEnergy]
) -> tuple[float, float]:
    """95 % interval (low, high) of the saving, percent of the energy before.

    Parameter errors are the same before and after. The model's error in the energy of motion is a
    relative one, with a common part and a part of each time law.
    """
    energy, new = (sum(part.energy for part in parts) for parts in (before, after))
    motion, new_motion = (abs(sum(part.motion for part in parts)) for parts in (before, after))
    parameters = [sum(part.sensitivity for part in parts) for parts in (before, after)]
    ratio = new / energy
    by_parameter = parameters[1] - ratio * parameters[0]
    own, other = MOTION_ERROR * new_motion, MOTION_ERROR * ratio * motion
    by_motion = own**2 + other**2 - 2 * CORRELATION * own * other
    deviation = 100.0 * float(np.sqrt(np.sum(np.square(by_parameter)) + by_motion)) / energy
    saving = 100.0 * (1.0 - ratio)
    return saving - CONFIDENCE * deviation, saving + CONFIDENCE * deviation


SLOW_SAMPLES = 0.012
"""Sample period above which recorded accelerations are not used [s]: they change in steps, which a
smooth curve between slow samples cannot follow."""
SHORTEST_WAIT = 0.01
"""Shortest wait that a person types [s]."""
LONGEST_PAUSE = 0.08
"""Longest standstill before a move that counts as the controller's own [s]."""
SAME_LINE = 0.02
"""Time on a line of the program below which it is a part of a wait's loop [s]."""


Waits = list[tuple[float, int | None]]
"""Durations [s] of waits, and their lines where they were recorded."""


def find_cycle(
    model: EnergyModel, path: str | Path, robot: RobotDescription, keep_dwell: float
) -> WorkCycle:
    """The work cycle of a recording, with the energies that the model gives for it.

    Args:
        model: of the arm, in the session of the recording where it is known.
        path: of the bag.
        robot: the arm.
        keep_dwell: waits up to this long must stay [s].

    Raises:
        UrEnergyError: no cycle, freedrive, another robot, or a recording that cannot be used.
    """
    motion = read_motion(path, robot)
    found = find_cycles(motion, find_moves(motion))
    return with_energies(model, _typical(motion, found, robot, model.setup, keep_dwell))


def with_energies(model: EnergyModel, cycle: WorkCycle) -> WorkCycle:
    """The cycle with the energies of its moves by the model."""
    energies = CycleEnergies(model, cycle.temperature).of(recorded_stretches(cycle))
    moving = (energy for energy in energies if energy.moving)
    return replace(
        cycle,
        moves=tuple(
            replace(move, energy=now.energy, peak_power=now.peak_power)
            for move, now in zip(cycle.moves, moving, strict=True)
        ),
    )


def _typical(
    motion: RecordedMotion,
    found: FoundCycles,
    robot: RobotDescription,
    setup: Setup,
    keep_dwell: float,
) -> WorkCycle:
    """The complete cycle of median duration, as recorded."""
    starts = np.array([motion.time[moves[0].first] for moves in found.moves])
    durations = motion.time[list(found.ends)] - starts
    chosen = int(np.argsort(durations, kind="stable")[len(durations) // 2])
    power, measured = motion.telemetry.bus_power, None
    if power is not None and np.isfinite(power).all():
        measured = cycle_energies(motion, found, power)
    start, payloads = float(starts[chosen]), _payloads(motion, setup)
    group, tool = found.moves[chosen], recorded_tool(motion.telemetry, robot)
    moves = [
        with_recorded_values(_move(motion, stretch, start, payloads), robot, tool)
        for stretch in group
    ]
    ends = [*(stretch.first for stretch in group[1:]), found.ends[chosen]]
    rested = [
        float(motion.time[until] - motion.time[stretch.last])
        for stretch, until in zip(group, ends, strict=True)
    ]
    kinds = [move.kind for move in (*moves[1:], moves[0])]
    longest = keep_dwell + SAME_LINE + motion.period
    for k, (stretch, until, duration) in enumerate(zip(group, ends, rested, strict=True)):
        waits: Waits | None = []
        if duration > 0.0:
            waits = _waits_by_line(motion, stretch.last, until, moves[k].line)
        if waits is None:
            pause = _pause(kinds[k], kinds, rested)
            waits = _split(duration - pause, found.lead if k + 1 == len(group) else 0.0)
        rest = Rest(
            duration,
            tuple(Wait(time, time <= longest, line) for time, line in waits),
            payloads[max(until - 1, stretch.last)],
        )
        moves[k] = replace(moves[k], rest=rest)
    leading = _leading(moves[-1], found.lead)
    moves[-1] = _with_lines_before(motion, moves[-1], leading, start)
    warmth = motion.telemetry.columns.get("joint_temperatures")
    return WorkCycle(
        source=motion.telemetry.info.source,
        robot=robot.name,
        found_by=found.found_by,
        duration=float(durations[chosen]),
        moves=tuple(moves),
        count=len(found.moves),
        measured_energy=None if measured is None else float(measured.mean()),
        measured_energy_std=(
            0.0 if measured is None or len(measured) < 2 else float(measured.std(ddof=1))
        ),
        temperature=None if warmth is None else np.nanmean(warmth, axis=0),
        tool=tool,
        notes=tuple(_notes(motion, found)),
        switching=recorded_switching(motion.telemetry),
        scaling=scaling_of(motion),
        leading=leading,
    )


def scaling_of(motion: RecordedMotion) -> float:
    """Speed slider times limiter while the arm moved; 1 where it was not recorded."""
    scaling = np.ones(len(motion.time))
    for name in ("speed_scaling", "target_speed_fraction"):
        scaling = scaling * motion.telemetry.columns.get(name, 1.0)
    moving = np.abs(motion.qd).max(axis=1) > STILL_TARGET
    found = float(np.nanmedian(scaling[moving])) if moving.any() else 1.0
    return found if 0.01 < found <= 1.0 else 1.0


def _pause(kind: Kind, kinds: Sequence[Kind], rested: Sequence[float]) -> float:
    """What the controller takes for itself before a move of a kind [s].

    The shortest standstill before such a move, unless it is so long that a program may have it.
    """
    shortest = min(rest for rest, after in zip(rested, kinds, strict=True) if after == kind)
    return shortest if shortest < LONGEST_PAUSE else 0.0


def _split(duration: float, lead: float) -> Waits:
    """Waits of a standstill [s], without lines; a last one of `lead` s begins the cycle."""
    last = min(lead, duration) if lead >= SHORTEST_WAIT else 0.0
    first = duration - last
    if 0.0 < first < LONGEST_PAUSE and last:
        first, last = 0.0, duration
    return [(round(time, 2), None) for time in (first, last) if time >= SHORTEST_WAIT]


def _waits_by_line(
    motion: RecordedMotion, first: int, last: int, before: int | None
) -> Waits | None:
    """Waits of a standstill with their lines of the program; None where it was not recorded.

    While the line is that of the move before or after, the controller is busy itself. Lines that
    change quickly are a loop that waits for a signal: one wait.
    """
    lines = motion.telemetry.columns.get("script_control_line")
    if lines is None or before is None or not np.isfinite(lines[first : last + 1]).all():
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


def _leading(last: Move, lead: float) -> int:
    """How many waits of the last standstill the program has before its first move."""
    count, left = 0, lead + SAME_LINE
    for wait in reversed(last.rest.waits):
        left -= wait.duration
        first = last.line is not None and wait.line is not None and wait.line < last.line
        if not first and left < 0.0:
            break
        count += 1
    return count


def _move(motion: RecordedMotion, stretch: MoveSpan, start: float, payloads: list[Payload]) -> Move:
    rows = slice(stretch.first, stretch.last + 1)
    time, qd = motion.time[rows], motion.qd[rows].copy()
    qd[0] = qd[-1] = 0.0
    slow = motion.qdd is None or (motion.period > SLOW_SAMPLES and not motion.measured)
    return Move(
        float(time[0]) - start,
        time - time[0],
        motion.q[rows],
        qd,
        qdd=None if slow or motion.qdd is None else motion.qdd[rows],
        payload=payloads[stretch.last],
        line=line_of(motion, stretch),
    )


def _with_lines_before(motion: RecordedMotion, last: Move, leading: int, start: float) -> Move:
    """The last move, its leading waits with the lines that they have before this cycle's start [s].

    A program that is written out has other lines for the next cycle.
    """
    lines = motion.telemetry.columns.get("script_control_line")
    waits, end = list(last.rest.waits), start
    for k in range(len(waits) - 1, len(waits) - 1 - leading, -1):
        at = int(np.searchsorted(motion.time, end - 0.5 * waits[k].duration))
        if lines is not None and waits[k].line is not None and at > 0 and lines[at] >= 1:
            waits[k] = replace(waits[k], line=int(lines[at]))
        end -= waits[k].duration
    return replace(last, rest=replace(last.rest, waits=tuple(waits)))


def _payloads(motion: RecordedMotion, setup: Setup) -> list[Payload]:
    """The payload at each sample, as set in the controller."""
    out: list[Payload] = []
    for rows, there in OperatingConditions(setup).parts(motion.telemetry):
        out += [there.payload] * (rows.stop - rows.start)
    return out


def cycle_energies(motion: RecordedMotion, found: FoundCycles, power: Array) -> Array:
    """Energy of each complete cycle [cycles], J, from the power at each sample [W]."""
    parts = [
        slice(moves[0].first, end + 1) for moves, end in zip(found.moves, found.ends, strict=True)
    ]
    return np.array([integrate(motion.time[part], power[part]).net[0] for part in parts])


def _notes(motion: RecordedMotion, found: FoundCycles) -> list[str]:
    out = []
    if found.found_by == "whole":
        closing = "" if found.closed else ", and the arm does not return to where it starts"
        out.append(
            "Nothing repeats in the recording: its motion from first to last standstill counts as "
            f"one cycle{closing}."
        )
    if motion.measured:
        out.append(
            "The recording has no target_q: the path is the measured one, smoothed, and rests "
            "shorter than its smoothing may be missed."
        )
    elif motion.period > SLOW_SAMPLES:
        out.append(
            f"The recording has {1 / motion.period:.0f} samples per second: starts and ends of "
            f"moves are known to {1000 * motion.period:.0f} ms only."
        )
    if motion.telemetry.bus_power is None:
        out.append("The recording has no bus power: nothing shows how far the model is off.")
    if "joint_temperatures" not in motion.telemetry:
        out.append("Joint temperatures are unknown: friction is that of the model's mean.")
    if motion.cut:
        out.append(f"Only the first {LONGEST / 60:.0f} minutes of the recording were read.")
    return out
