# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cycles of ordinary production and their energies, from a recording or a history store.

The energy of a cycle is its measured total: voltage times current of the robot bus,
integrated over the cycle. Cycles with an outage, and those that took unusually long, are
left out. Where nothing is measured, the energy is the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.found_cycles import (
    FoundCycles,
    complete_cycles,
    find_cycles,
)
from ur_energy_model.energy.measured_energy import MeasuredEnergy
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.powers import Channels, PowerOptions, TotalSource
from ur_energy_model.energy.recorded_motion import (
    STILL_TARGET,
    RecordedMotion,
    find_moves,
    read_motion,
    scaling_of,
)
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.energy.telemetry_checks import OperatingConditions
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.summary import WHOLE
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import has_host_time
from ur_energy_model.typing import Array, Indices, Mask

USUAL = 1.3  # factor on the median duration beyond which a cycle is not a usual one
SETTLED = 1.0
"""Time after the begin of a rest from which on its power only holds the arm [s]: the bus
capacitor that braking has charged is empty, and the joints have settled."""
SHORTEST_REST = 0.2  # shortest settled rest whose power is compared [s]
SLOW = (
    0.06  # sample period from which on a move is seen too coarsely to be recognized [s]
)
MEASURED = TotalSource("measured", 1.0)
"""Source of energies that are measured as a whole."""


class CyclePart(NamedTuple):
    """A move of the cycle, or the settled part of a rest; k cycles, n joints.

    Attributes:
        start: joint positions at its begin [n], rad.
        end: joint positions at its end [n], rad.
        duration: mean over the cycles [s].
        power: mean measured power in each cycle [k], W.
        moves: whether it is a move.
        tick: time by which sampling alone may change the duration [s].
    """

    start: Array
    end: Array
    duration: float
    power: Array
    moves: bool
    tick: float = 0.0


class ModelledCycles(NamedTuple):
    """Energies of cycles by a model.

    Attributes:
        channels: layout of the integrals.
        net: integral of each channel over each cycle [k, channels], J.
    """

    channels: Channels
    net: Array


@dataclass(frozen=True)
class Production:
    """Cycles of a recording, or of a day of a history store; None where something is unknown.

    Attributes:
        source: path of the recording, or day (YYYY-MM-DD).
        energy: energies of its cycles [k], J: measured totals, or the model's.
        duration: durations of its cycles [k], s.
        total_source: where the energies come from.
        modelled: energies by the model, of a recording whose energies are the model's.
        model_std: standard deviation of the mean energy of a cycle, where it is the
            model's [J].
        serial: serial number or name of the arm.
        program: name of the program.
        begin: begin of the first cycle [s since 1970].
        end: end of the last cycle [s since 1970].
        points: joint positions at which the moves of a cycle start [moves, n], rad.
        parts: moves and settled rests of a cycle, in order.
        idle: mean measured power at rest [W].
        payload: smallest and largest mass of the payload [kg].
        temperature: mean temperature of the joints [degC].
        scaling: mean of the speed slider times the limiter.
        left_out: number of cycles that are not among these.
    """

    source: str
    energy: Array
    duration: Array
    total_source: TotalSource = MEASURED
    modelled: ModelledCycles | None = None
    model_std: float = 0.0
    serial: str | None = None
    program: str | None = None
    begin: float | None = None
    end: float | None = None
    points: Array | None = None
    parts: Sequence[CyclePart] = ()
    idle: float | None = None
    payload: tuple[float, float] | None = None
    temperature: float | None = None
    scaling: float | None = None
    left_out: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether all energies are measured."""
        return self.total_source.name == "measured"

    def as_json(self) -> dict[str, Any]:
        """A recording or day in the JSON of `ProductionSaving`."""
        return {
            "source": self.source,
            "cycles": len(self.energy),
            "cycles_left_out": self.left_out,
            "total_source": self.total_source.name,
            "total_measured_share": self.total_source.share,
            "energies": self.energy.tolist(),
            "durations": self.duration.tolist(),
            "serial": self.serial,
            "program": self.program,
            "moves": None if self.points is None else len(self.points),
            "idle_power": self.idle,
            "payload": None if self.payload is None else list(self.payload),
            "temperature": self.temperature,
            "speed_scaling": self.scaling,
        }


# Recordings.


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
        path: of the recording.

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
    energy = measured.between(firsts, ends)
    duration = motion.time[ends] - motion.time[firsts]
    usual = _usual(duration)
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
        production: of a recording.
        motion: of the recording.
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


def _usual(duration: Array) -> Mask:
    """Which cycles took about as long as most, and so were neither interrupted nor merged."""
    ratio = duration / np.median(duration)
    return np.asarray((ratio <= USUAL) & (ratio >= 1.0 / USUAL))


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
        motion: of the recording.
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
        path: of the recording.
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
    firsts, ends, _ = _cycles_of(motion, found)
    duration = motion.time[ends] - motion.time[firsts]
    # If standby came from the bus power on one side only, the error of the standby power
    # would not be common to both sides.
    options = PowerOptions(track_standby=False)
    calculator = EnergyCalculator(generic_model(info.robot), robot, options)
    net, lost = _net_between(calculator, path, motion.time[firsts], motion.time[ends])
    kept = _usual(duration) & (lost == 0.0)
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
        calculator: of the powers.
        path: of the recording.
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
    reached = np.array(nets)
    away = np.array(lost)
    return reached[last] - reached[first], away[last] - away[first]


# History stores.


def stored_productions(
    database: HistoryDatabase, changed: datetime
) -> tuple[list[Production], list[Production]]:
    """Cycles of a history store before and after an instant, by day.

    Where programs have names, only cycles of the program that ran most count. Energies
    are the measured ones if both sides have cycles that are measured as a whole, else the
    energies of the model.

    Args:
        database: of the store, for one arm.
        changed: when the program was changed.

    Raises:
        InputError: no whole cycle on one of the sides, or several arms.
    """
    later_from = f">= TIMESTAMPTZ '{changed.isoformat()}' AS later"
    cycles = _stored_cycles(database, later_from)
    days = database.rows(
        f"SELECT CAST(day AS VARCHAR) AS day, second {later_from}, "
        "avg(list_avg(joint_temperature)) AS temperature, avg(speed_scaling) AS scaling "
        "FROM seconds GROUP BY ALL"
    )
    states = {}
    for row in days:
        states[row["later"], row["day"]] = _DayState(row["temperature"], row["scaling"])
    before = _by_day(cycles, states, later=False)
    after = _by_day(cycles, states, later=True)
    for side, found in (("before", before), ("after", after)):
        if not found:
            raise InputError(
                "--changed",
                f"the store has no whole cycle {side} {changed:%Y-%m-%d %H:%M}",
                "name another date, or add recordings of that time",
            )
    return before, after


class _DayState(NamedTuple):
    """Mean state of an arm on a day, before or after the change; None where it is unknown.

    Attributes:
        temperature: mean of the joints [degC].
        scaling: mean of the speed slider.
    """

    temperature: float | None = None
    scaling: float | None = None


class _StoredCycles(NamedTuple):
    """Whole cycles of one arm and program in a history store, in order of time.

    Attributes:
        arm: name of the arm that ran the cycles.
        program: whose cycles they are; None where programs have no names.
        later: whether each is after the change [cycles].
        day: of each [cycles], YYYY-MM-DD.
        begin: of each [cycles], s since 1970.
        duration: of each [cycles], s.
        energy: of each [cycles], J, measured or by the model.
        measured: whether the total of each is measured as a whole [cycles].
        model_std: standard deviation of each modelled energy [cycles], J; 0 where all
            energies are measured.
    """

    arm: str
    program: str | None
    later: Mask
    day: Any
    begin: Array
    duration: Array
    energy: Array
    measured: Mask
    model_std: Array


def _stored_cycles(database: HistoryDatabase, later_from: str) -> _StoredCycles:
    """The cycles of the program that ran most, with measured energies if both sides have any.

    Args:
        database: of the store, for one arm.
        later_from: rest of an SQL expression after a time, which gives the column
            `later`: whether the time is after the change.

    Raises:
        InputError: no whole cycle, or several arms.
    """
    rows = database.columns(
        "SELECT arm, CAST(day AS VARCHAR) AS day, program, duration, bus_energy, "
        f"model_energy, model_std, epoch(start) AS begin, start {later_from} FROM cycles "
        f"WHERE {WHOLE} ORDER BY start"
    )
    arms = sorted(set(rows["arm"]))
    if not arms:
        remedy = "add recordings of the running program, or name another arm: --arm"
        raise InputError("--history", "has no whole cycle of this arm", remedy)
    if len(arms) > 1:
        raise InputError(
            "--history", f"holds cycles of {len(arms)} arms", f"name one: --arm {arms[0]}"
        )
    program = None
    wanted = np.ones(len(rows["arm"]), dtype=bool)
    names = [str(name) for name in rows["program"] if name is not None]
    if names:
        program = max(set(names), key=names.count)
        wanted = np.array([name == program for name in rows["program"]], dtype=bool)
    later = rows["later"].astype(bool)
    energy = rows["bus_energy"].astype(float)
    model_std = np.zeros(len(energy))
    measured = np.isfinite(energy)
    measured_before = (measured & wanted & ~later).any()
    measured_after = (measured & wanted & later).any()
    if not (measured_before and measured_after):
        energy = rows["model_energy"].astype(float)
        model_std = rows["model_std"].astype(float)
    kept = wanted & np.isfinite(energy)
    return _StoredCycles(
        arms[0],
        program,
        later[kept],
        rows["day"][kept],
        rows["begin"][kept].astype(float),
        rows["duration"][kept].astype(float),
        energy[kept],
        measured[kept],
        model_std[kept],
    )


def _by_day(
    cycles: _StoredCycles, states: Mapping[tuple[bool, str], _DayState], *, later: bool
) -> list[Production]:
    """Cycles of one side by day, without cycles that took unusually long or short.

    Args:
        cycles: of both sides.
        states: of the arm, by side (`later`) and day.
        later: whether the cycles after the change are selected.
    """
    usual = cycles.later == later
    usual[usual] = _usual(cycles.duration[usual])
    found = []
    for day in dict.fromkeys(cycles.day[usual]):
        here = usual & (cycles.day == day)
        begins = cycles.begin[here]
        durations = cycles.duration[here]
        state = states.get((later, day), _DayState())
        production = Production(
            source=str(day),
            energy=cycles.energy[here],
            duration=durations,
            total_source=TotalSource.of(float(cycles.measured[here].mean()), 1.0),
            model_std=float(cycles.model_std[here].mean()),
            serial=cycles.arm,
            program=cycles.program,
            begin=float(begins[0]),
            end=float(begins[-1] + durations[-1]),
            temperature=state.temperature,
            scaling=state.scaling,
        )
        found.append(production)
    return found
