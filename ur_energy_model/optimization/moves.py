"""The work cycle of a recording: its moves and dwells, and what they take."""

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
    Dwell,
    Move,
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
    RecordedMotion,
    Stretch,
    find_cycles,
    find_moves,
    line_of,
    read_motion,
    recorded_tool,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array

# Uncertainty of energies and of a saving: the model's errors, not its parameters' alone.

MOTION_ERROR = 0.14
"""Relative error of the predicted energy of motion (RMS over held-out recordings of real arms)."""
CORRELATION = 0.95
"""Correlation of that error between two time laws of the same paths. The part that each law has of
its own is then 4 % of the energy of motion; on simulated arms it was 2 %."""


def energy_std(energy: StretchEnergy) -> float:
    """Standard deviation of a stretch's energy [J]: parameters, and the error of its motion."""
    return float(np.hypot(energy.energy_std, MOTION_ERROR * abs(energy.motion)))


def saving_interval(
    before: Sequence[StretchEnergy], after: Sequence[StretchEnergy]
) -> tuple[float, float]:
    """95 % interval (low, high) of the saving, percent of the energy before.

    Parameter errors are the same before and after. The model's error in the energy of motion is a
    relative one, with a common part and a part of each time law.

    Args:
        before: stretches of the recorded cycle.
        after: stretches of the new cycle.
    """
    energy, new = (sum(part.energy for part in parts) for parts in (before, after))
    motion, new_motion = (abs(sum(part.motion for part in parts)) for parts in (before, after))
    ratio = new / energy
    by_parameter = sum(part.sensitivity for part in after) - ratio * sum(
        part.sensitivity for part in before
    )
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
        keep_dwell: dwells up to this long must stay [s].

    Raises:
        UrEnergyError: no cycle, freedrive, another robot, or a recording that cannot be used.
    """
    motion = read_motion(path, robot)
    found = find_cycles(motion, find_moves(motion))
    return with_energies(model, _typical(motion, found, robot, model.setup, keep_dwell))


def with_energies(model: EnergyModel, cycle: WorkCycle) -> WorkCycle:
    """The cycle with its energies by the model."""
    energies = CycleEnergies(model, cycle.temperature)
    found = iter(energies.of(recorded_stretches(cycle)))
    moves, dwells = [], []
    for move, rest in zip(cycle.moves, cycle.rests, strict=True):
        now = next(found)
        moves.append(
            replace(
                move,
                energy=now.energy,
                energy_std=energy_std(now),
                peak_power=now.peak_power,
            )
        )
        if rest.duration > 0.0:
            dwells.append(replace(rest, energy=next(found).energy))
    return replace(cycle, moves=tuple(moves), dwells=tuple(dwells))


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
    measured = _measured(motion, found)
    start, payloads = float(starts[chosen]), _payloads(motion, setup)
    group, tool = found.moves[chosen], recorded_tool(motion.telemetry, robot)
    moves = [
        with_recorded_values(_move(motion, stretch, start, payloads), robot, tool)
        for stretch in group
    ]
    dwells = []
    limits = [move.first for move in group[1:]] + [found.ends[chosen]]
    nexts = [*moves[1:], moves[0]]
    pauses = _pauses(motion, [*group], limits, nexts)
    for k, (stretch, until) in enumerate(zip(group, limits, strict=True)):
        duration = float(motion.time[until] - motion.time[stretch.last])
        if duration > 0.0:
            waits = _waits_by_line(motion, stretch.last, until, moves[k].line)
            if waits is None:
                waits = _split(
                    duration - pauses[nexts[k].kind], found.lead if k + 1 == len(group) else 0.0
                )
            dwells.append(
                Dwell(
                    float(motion.time[stretch.last]) - start,
                    duration,
                    motion.q[stretch.last].copy(),
                    tuple(
                        Wait(time, time <= keep_dwell + SAME_LINE + motion.period, line)
                        for time, line in waits
                    ),
                    payload=payloads[max(until - 1, stretch.last)],
                )
            )
    leading = _leading(moves[-1], dwells[-1] if dwells else None, found.lead)
    if leading:
        dwells[-1] = _with_lines_before(motion, dwells[-1], leading, start)
    warmth = motion.telemetry.columns.get("joint_temperatures")
    return WorkCycle(
        source=motion.telemetry.info.source,
        robot=robot.name,
        found_by=found.found_by,
        start=start,
        duration=float(durations[chosen]),
        moves=tuple(moves),
        dwells=tuple(dwells),
        count=len(found.moves),
        duration_std=float(np.std(durations, ddof=1)) if len(durations) > 1 else 0.0,
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


def _pauses(
    motion: RecordedMotion, group: list[Stretch], limits: list[int], nexts: list[Move]
) -> dict[str, float]:
    """What the controller takes for itself before a move, by its kind [s].

    The shortest standstill before such a move, unless it is so long that a program may have it.
    """
    out = dict.fromkeys(("moveJ", "moveL", "other"), 0.0)
    for kind in out:
        rests = [
            float(motion.time[until] - motion.time[stretch.last])
            for stretch, until, after in zip(group, limits, nexts, strict=True)
            if after.kind == kind
        ]
        if rests and min(rests) < LONGEST_PAUSE:
            out[kind] = min(rests)
    return out


def _split(duration: float, lead: float) -> Waits:
    """Waits of a standstill, without lines: the last one belongs to the begin of the cycle.

    Args:
        duration: of the standstill [s].
        lead: of the wait with which the cycle begins [s]; 0 without one.
    """
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

    Args:
        motion: recorded.
        first: sample at which the standstill begins.
        last: sample at which it ends.
        before: line of the move before.
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


def _leading(last_move: Move, last: Dwell | None, lead: float) -> int:
    """How many waits of the last standstill the program has before its first move."""
    if last is None or round(last.start - last_move.start - last_move.duration, 6) != 0.0:
        return 0
    count, left = 0, lead + SAME_LINE
    for wait in reversed(last.waits):
        left -= wait.duration
        first = last_move.line is not None and wait.line is not None and wait.line < last_move.line
        if not first and left < 0.0:
            break
        count += 1
    return count


def _move(motion: RecordedMotion, stretch: Stretch, start: float, payloads: list[Payload]) -> Move:
    rows = slice(stretch.first, stretch.last + 1)
    time, qd = motion.time[rows], motion.qd[rows].copy()
    qd[0] = qd[-1] = 0.0
    slow = motion.qdd is None or (motion.period > SLOW_SAMPLES and not motion.measured)
    return Move(
        start=float(time[0]) - start,
        time=time - time[0],
        q=motion.q[rows],
        qd=qd,
        kind="other",
        speed=float("nan"),
        acceleration=float("nan"),
        energy=float("nan"),
        energy_std=float("nan"),
        peak_power=float("nan"),
        qdd=None if slow or motion.qdd is None else motion.qdd[rows],
        payload=payloads[stretch.last],
        line=line_of(motion, stretch),
    )


def _with_lines_before(motion: RecordedMotion, last: Dwell, leading: int, start: float) -> Dwell:
    """The last standstill, its leading waits with the lines that they have before this cycle.

    A program that is written out has other lines for the next cycle.

    Args:
        motion: recorded.
        last: of the cycle.
        leading: number of its waits with which the cycle begins.
        start: of the first move [s].
    """
    lines = motion.telemetry.columns.get("script_control_line")
    waits, end = list(last.waits), start
    for k in range(len(waits) - 1, len(waits) - 1 - leading, -1):
        at = int(np.searchsorted(motion.time, end - 0.5 * waits[k].duration))
        if lines is not None and waits[k].line is not None and at > 0 and lines[at] >= 1:
            waits[k] = replace(waits[k], line=int(lines[at]))
        end -= waits[k].duration
    return replace(last, waits=tuple(waits))


def _payloads(motion: RecordedMotion, setup: Setup) -> list[Payload]:
    """The payload at each sample, as set in the controller."""
    out: list[Payload] = []
    for rows, there in OperatingConditions(setup).parts(motion.telemetry):
        out += [there.payload] * (rows.stop - rows.start)
    return out


def _measured(motion: RecordedMotion, found: FoundCycles) -> Array | None:
    """Measured bus energy of each complete cycle [cycles], J; None if it was not recorded."""
    power = motion.telemetry.bus_power
    if power is None or not np.isfinite(power).all():
        return None
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
