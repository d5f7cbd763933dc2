# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cycles of ordinary production in recordings, with measured energies or the model's.

Cycles with an outage, and those that took unusually long or short, are left out. The moves
and settled rests of a cycle are described as well, so that parts that a change left alike
can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.found_cycles import (
    FoundCycles,
    complete_cycles,
    find_cycles,
)
from ur_energy_model.energy.measured_energy import MeasuredEnergy
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.operating_conditions import OperatingConditions
from ur_energy_model.energy.powers import PowerOptions, TotalSource
from ur_energy_model.energy.recorded_motion import (
    STILL_TARGET,
    RecordedMotion,
    find_moves,
    read_motion,
    scaling_of,
)
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.plant.production import (
    MEASURED,
    CyclePart,
    ModelledCycles,
    Production,
    usual_cycles,
)
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import has_host_time
from ur_energy_model.typing import Array, Indices, Mask

SETTLED = 1.0
"""Time after the begin of a rest from which on its power only holds the arm [s]: the bus
capacitor that braking has charged is empty, and the joints have settled."""
SHORTEST_REST = 0.2  # shortest settled rest whose power is compared [s]
SLOW = 0.06
"""Sample period from which on a move is seen too coarsely to be recognized [s]."""


def recorded_productions(
    before: Sequence[Path],
    after: Sequence[Path],
    progress: Callable[[float], None] | None = None,
) -> tuple[list[Production], list[Production]]:
    """Cycles of recordings before and after a change: all measured, or else all modelled.

    The model is the generic one of the arm's type.

    Args:
        before: recordings before the change.
        after: recordings after it.
        progress: called with the share that is done.

    Raises:
        UrEnergyError: no cycle, an unknown arm, or a recording that cannot be used.
    """
    paths = [*before, *after]
    found = []
    for number, path in enumerate(paths):
        if progress is not None:
            progress(number / len(paths))
        found.append(recorded_production(path))
    if not all(each.is_measured for each in found):
        found = [with_modelled_energy(*each) for each in zip(paths, found, strict=True)]
    return found[: len(before)], found[len(before) :]


def recorded_production(path: str | Path) -> Production:
    """Cycles of a recording of ordinary production, with their measured energies.

    Cycles that took unusually long or short are left out, and cycles with an outage.
    Where no cycle is measured as a whole, all usual cycles are kept, and their energies
    are NaN.

    Args:
        path: path of the recording.

    Raises:
        UrEnergyError: no cycle, an unknown arm, or a recording that cannot be used.
    """
    info = read_info(path)
    if info.robot is None:
        problem = "does not name the arm that it was recorded on"
        raise RecordingError(path, problem, "record with --robot NAME")
    motion = read_motion(path, load_robot(info.robot))
    found = find_cycles(motion, find_moves(motion))
    measured = MeasuredEnergy.of(motion.telemetry)
    cycles = _cycles_of(motion, found)
    firsts = cycles.firsts
    ends = cycles.ends
    energy = measured.between(firsts, ends)  # NaN where it is not measured throughout
    duration = motion.time[ends] - motion.time[firsts]
    usual = usual_cycles(duration)
    whole = usual & np.isfinite(energy)
    is_measured = bool(whole.any())
    kept = whole if is_measured else usual
    begin, end = _span_of(motion, firsts[kept], ends[kept])
    production = Production(
        source=str(path),
        energy=energy[kept],
        duration=duration[kept],
        total_source=MEASURED if is_measured else TotalSource("modelled", 0.0),
        serial=info.serial,
        program=info.program,
        begin=begin,
        end=end,
        points=motion.q[[move.first for move in found.moves[0]]],
        left_out=int(np.count_nonzero(~kept)),
    )
    inside = np.zeros(len(motion.time), dtype=bool)
    for first, last in zip(firsts, ends, strict=True):
        inside[first : last + 1] = True
    if is_measured:
        production = replace(production, idle=_idle_power(motion, inside))
        if cycles.alike:
            parts = _parts(motion, found, measured, whole)
            production = replace(production, parts=parts)
    return _with_conditions(production, motion, inside)


def _with_conditions(
    production: Production, motion: RecordedMotion, inside: Mask
) -> Production:
    """A production with payload, temperature and speed scaling, as far as they were recorded.

    Args:
        production: production of a recording.
        motion: motion of the recording.
        inside: whether each sample is in a cycle [samples].
    """
    columns = motion.telemetry.columns
    payload = None
    if "payload" in columns:
        conditions = OperatingConditions(Setup()).parts(motion.telemetry)
        masses = [condition.payload.mass for _, condition in conditions]
        payload = (min(masses), max(masses))
    temperature = None
    if "joint_temperatures" in columns:
        temperature = float(np.nanmean(columns["joint_temperatures"][inside]))
    scaling = None
    if "speed_scaling" in columns or "target_speed_fraction" in columns:
        scaling = scaling_of(motion)
    return replace(production, payload=payload, temperature=temperature, scaling=scaling)


class _CycleRows(NamedTuple):
    """First and last samples of complete cycles [cycles].

    Attributes:
        firsts: sample at which each cycle begins.
        ends: sample at which each cycle ends.
        alike: whether they are the cycles of `FoundCycles`, which have the same moves.
    """

    firsts: Indices
    ends: Indices
    alike: bool


def _cycles_of(motion: RecordedMotion, found: FoundCycles) -> _CycleRows:
    """The complete cycles of a recording that have the same moves.

    In slowly sampled recordings most moves look different each time: where fewer than
    half of the cycles of such a recording have the same moves, all cycles count.
    """
    _, complete = complete_cycles(motion)
    alike = motion.period < SLOW or 2 * len(found.moves) > len(complete)
    if alike:
        firsts = np.array([moves[0].first for moves in found.moves], dtype=np.intp)
        ends = np.array(found.ends, dtype=np.intp)
    else:
        firsts, ends = np.array(complete, dtype=np.intp).T
    return _CycleRows(firsts, ends, alike)


def _span_of(
    motion: RecordedMotion, firsts: Indices, ends: Indices
) -> tuple[float | None, float | None]:
    """Time of day of the begin of the first cycle and the end of the last [s since 1970]."""
    telemetry = motion.telemetry
    if not has_host_time(telemetry):
        return None, None
    clock = telemetry.time if telemetry.stamp is None else 1e-9 * telemetry.stamp
    return float(clock[firsts.min()]), float(clock[ends.max()])


def _idle_power(motion: RecordedMotion, inside: Mask) -> float | None:
    """Mean measured power of the samples of cycles at which the arm rests [W]."""
    power = motion.telemetry.bus_power
    assert power is not None
    still = inside & (np.abs(motion.qd).max(axis=1) < STILL_TARGET) & np.isfinite(power)
    return float(power[still].mean()) if still.any() else None


def _parts(
    motion: RecordedMotion, found: FoundCycles, measured: MeasuredEnergy, whole: Mask
) -> list[CyclePart]:
    """Moves and settled rests of a cycle, in order.

    Args:
        motion: motion of the recording.
        found: cycles of the recording, all with the same moves.
        measured: energy between samples.
        whole: cycles that are measured as a whole [cycles], at least one.
    """
    time = motion.time
    cycles = [moves for moves, kept in zip(found.moves, whole, strict=True) if kept]
    firsts = np.array([[move.first for move in moves] for moves in cycles], dtype=np.intp)
    lasts = np.array([[move.last for move in moves] for moves in cycles], dtype=np.intp)
    ends = np.array(found.ends, dtype=np.intp)[whole]
    rests_end = np.column_stack([firsts[:, 1:], ends])

    def part(
        first: int, last: int, begins: Indices, stops: Indices, *, moves: bool
    ) -> CyclePart:
        """A part from begins to stops [cycles], at the positions of a first and a last sample."""
        duration = time[stops] - time[begins]
        power = measured.between(begins, stops) / duration
        return CyclePart(
            motion.q[first],
            motion.q[last],
            float(duration.mean()),
            power,
            moves,
            motion.period,
        )

    parts = []
    for number, usual in enumerate(cycles[0]):
        begin = firsts[:, number]
        stop = lasts[:, number]
        parts.append(part(usual.first, usual.last, begin, stop, moves=True))
        until = rests_end[:, number]
        if (time[until] - time[stop]).min() >= SETTLED + SHORTEST_REST:
            settled = np.searchsorted(time, time[stop] + SETTLED)
            parts.append(part(usual.last, usual.last, settled, until, moves=False))
    return parts


def with_modelled_energy(path: str | Path, production: Production) -> Production:
    """The cycles of a recording with the energies that the generic model gives for them.

    Args:
        path: path of the recording.
        production: cycles of the recording, from `recorded_production`.

    Raises:
        UrEnergyError: no complete cycle without an outage, or a recording that cannot be
            used.
    """
    info = read_info(path)
    assert info.robot is not None
    robot = load_robot(info.robot)
    motion = read_motion(path, robot)
    found = find_cycles(motion, find_moves(motion))
    cycles = _cycles_of(motion, found)
    begins = motion.time[cycles.firsts]
    ends = motion.time[cycles.ends]
    duration = ends - begins
    # If standby came from the bus power on one side only, the error of the standby power
    # would not be common to both sides.
    options = PowerOptions(track_standby=False)
    calculator = EnergyCalculator(generic_model(info.robot), robot, options)
    net, lost = _net_between(calculator, path, begins, ends)
    kept = usual_cycles(duration) & (lost == 0.0)
    if not kept.any():
        raise RecordingError(
            path, "has no complete cycle without an outage", "record the program again"
        )
    channels = calculator.channels
    measured = float(net[kept, channels.arm["measured"]].sum())
    return replace(
        production,
        energy=net[kept, channels.arm["model"]],
        duration=duration[kept],
        total_source=TotalSource.of(measured, float(duration[kept].sum())),
        modelled=ModelledCycles(channels, net[kept]),
        model_std=float(channels.deviations_of_model(net[kept].mean(axis=0))),
        parts=(),
        left_out=int(np.count_nonzero(~kept)),
    )


def _net_between(
    calculator: EnergyCalculator, path: str | Path, begins: Array, ends: Array
) -> tuple[Array, Array]:
    """Integrals and time in gaps between two times of each cycle.

    Args:
        calculator: calculator of the powers.
        path: path of the recording.
        begins: begin of each cycle [k], s, by the clock of the recording.
        ends: end of each cycle [k], s.

    Returns:
        Integrals of the channels [k, channels], J, and time in gaps [k], s. The time is
        not finite where samples at the end of the recording cannot be used.
    """
    edges = np.unique(np.concatenate([begins, ends]))
    meter = EnergyMeter(len(calculator.channels))
    nets: list[Array] = []
    lost: list[float] = []
    for table in measured_powers(calculator, path):
        time = table.samples.time
        passed = edges[len(nets) :]
        stops = np.searchsorted(time, passed[passed <= time[-1]], side="right")
        totals = meter.integrate_steps(table.steps, table.power, stops.tolist())
        nets += list(totals.net[: len(stops)])
        lost += totals.unaccounted[: len(stops)].tolist()
        if len(nets) == len(edges):
            break
    while len(nets) < len(edges):  # the last samples of the recording were refused
        nets.append(meter.reading.net)
        lost.append(np.inf)
    first = np.searchsorted(edges, begins)
    last = np.searchsorted(edges, ends)
    net_at_edges = np.array(nets)
    lost_at_edges = np.array(lost)
    net = net_at_edges[last] - net_at_edges[first]
    return net, lost_at_edges[last] - lost_at_edges[first]
