"""The work cycle of a recording: its moves and dwells, and what they take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.meter import integrate
from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.cycle import Dwell, Move, WorkCycle
from ur_energy_model.optimization.cycle_energy import CycleEnergies, recorded_stretches
from ur_energy_model.optimization.cycle_search import FoundCycles, find_cycles
from ur_energy_model.optimization.power_off import recorded_switching
from ur_energy_model.optimization.recorded_motion import LONGEST, RecordedMotion, read_motion
from ur_energy_model.optimization.recorded_tool import recorded_tool
from ur_energy_model.optimization.saving_interval import energy_std
from ur_energy_model.optimization.stops import Stretch, find_moves
from ur_energy_model.optimization.typed_moves import with_recorded_values
from ur_energy_model.typing import Array

SLOW_SAMPLES = 0.012
"""Sample period above which recorded accelerations are not used [s]: they change in steps, which a
smooth curve between slow samples cannot follow."""


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
    cycle = _typical(motion, found, robot, model.setup, keep_dwell)
    return with_energies(model, cycle, robot)


def with_energies(model: EnergyModel, cycle: WorkCycle, robot: RobotDescription) -> WorkCycle:
    """The cycle with what was typed for its moves, and with its energies by the model."""
    energies = CycleEnergies(model, cycle.temperature)
    found = iter(energies.of(recorded_stretches(cycle)))
    moves, dwells = [], []
    for move, rest in zip(cycle.moves, cycle.rests, strict=True):
        now = next(found)
        moves.append(
            replace(
                with_recorded_values(move, robot, cycle.tool),
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
    moves, dwells = [], []
    group = found.moves[chosen]
    nexts = [move.first for move in group[1:]] + [found.ends[chosen]]
    for stretch, until in zip(group, nexts, strict=True):
        moves.append(_move(motion, stretch, start, payloads))
        duration = float(motion.time[until] - motion.time[stretch.last])
        if duration > 0.0:
            dwells.append(
                Dwell(
                    float(motion.time[stretch.last]) - start,
                    duration,
                    motion.q[stretch.last].copy(),
                    kept=duration <= keep_dwell + motion.period,
                    payload=payloads[max(until - 1, stretch.last)],
                )
            )
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
        tool=recorded_tool(motion.telemetry, robot),
        notes=tuple(_notes(motion, found)),
        switching=recorded_switching(motion.telemetry),
    )


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
    )


def _payloads(motion: RecordedMotion, setup: Setup) -> list[Payload]:
    """The payload at each sample, as the controller knew it."""
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
