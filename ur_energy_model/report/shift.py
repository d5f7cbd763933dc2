# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shift: energy of consecutive recordings over time, by state of the arm, and per cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.consistency.controller_constants import recorded_constants
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import CONFIDENCE, MeterReading
from ur_energy_model.energy.powers import ArmState, Channels, TotalSource
from ur_energy_model.energy.recording_energy import Rereading
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.wall import SOURCES, WallEnergy, box_terms
from ur_energy_model.errors import InputError
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.wall import SQUARE, SUPPLY
from ur_energy_model.report.chart import BarChart, Bars, Chart, LineChart, Panel, Timeline
from ur_energy_model.report.page import Cell, Table
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Progress

BIN = 1.0  # length of the intervals of mean power [s]
_BATCH = 125  # samples that are read at a time; a bin ends with one of these batches
SHOWN_CYCLES = 30  # most cycles of the chart, the latest ones
STATE_NAMES: dict[ArmState, str] = {
    ArmState.OFF: "off",
    ArmState.BRAKED: "brakes engaged",
    ArmState.STANDSTILL: "standing, brakes released",
    ArmState.MOVING: "moving",
    ArmState.PROTECTIVE_STOP: "protective stop",
}


@dataclass(frozen=True)
class Shift:
    """Energy of one arm over one or more recordings, one after another.

    Attributes:
        joint_names: names of the joints from base to tool.
        time: times since the start [bins], s.
        power: mean total power between the previous time and this one [bins], W.
        model: mean power of the sum of the modelled parts in the same time [bins], W.
        starts: first bin of each recording but the first, and behind each gap.
        energy: energy of the whole arm, measured where bus power is measured [J].
        total_source: source of `energy`, measured or modelled.
        explained_share: modelled over measured energy; None where nothing is measured.
        half_width: half width of the 95 % interval of `energy` [J].
        state_wall: energy at the mains by state of the arm, by the model [J].
        state_time: time in each state [s].
        state_energy: energy at the supply by state [J].
        cycles: completed cycles, in order.
        channels: layout of their readings.
        kinds: the cycles that were seen whole by the work that they do, see
            `kinds_of_cycles`; means are of one kind only.
    """

    joint_names: tuple[str, ...]
    time: Array
    power: Array
    model: Array
    starts: NDArray[np.int_]
    energy: float
    total_source: TotalSource
    explained_share: float | None
    half_width: float
    state_wall: dict[ArmState, float]
    state_time: dict[ArmState, float]
    state_energy: dict[ArmState, float]
    cycles: tuple[Cycle, ...]
    channels: Channels
    kinds: tuple[tuple[Cycle, ...], ...] = ()

    @property
    def seconds(self) -> float:
        """Time accounted for [s]."""
        return sum(self.state_time.values())

    @property
    def idle_share(self) -> float:
        """Share of the energy while the arm does not move."""
        idle = sum(self.state_energy.values()) - self.state_energy[ArmState.MOVING]
        return idle / self.energy if self.energy > 0 else float("nan")


def read_shift(
    model: EnergyModel,
    bags: Sequence[str | Path],
    *,
    constants: Sequence[ControllerConstants | None] | None = None,
    trigger: Trigger = "auto",
    output: int = 0,
    progress: Progress | None = None,
) -> Shift:
    """Run an estimator over recordings, in order.

    Each recording is followed twice, as in `estimate_energy`: the second time from the
    session's final state.

    Args:
        model: model of the arm.
        bags: recordings of the arm.
        constants: torque constants that the controller states in each recording; None to
            find them in the bags.
        trigger: what starts a cycle, see `energy.cycles`.
        output: digital output that starts a cycle, if `trigger` is an output.
        progress: called with NaN, as the length is unknown, and a text.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    robot = load_robot(model.robot)
    common = LiveOptions(cycle_trigger=trigger, cycle_output=output, same_arm=True)
    cycles: list[Cycle] = []
    curve = _Curve()
    total: MeterReading | None = None
    channels: Channels | None = None
    if constants is None:
        constants = [recorded_constants(bag, robot) for bag in bags]
    for bag, stated in zip(bags, constants, strict=True):
        options = replace(common, constants=stated)
        estimator = LiveEstimator(model, robot, options, on_cycle=cycles.append)
        channels = estimator.channels
        batches = Rereading(partial(_checked, bag))
        estimator.calculator.follow_session(batches)
        _follow(estimator, batches, curve, Path(bag).name, progress)
        shot = estimator.snapshot()
        if shot is not None:
            total = shot.lifetime if total is None else total + shot.lifetime
    if total is None or channels is None:
        raise InputError(str(bags[0]), "contains no samples", "record again")
    net = total.net
    whole = tuple(cycle for cycle in cycles if cycle.is_whole)
    kinds: tuple[tuple[Cycle, ...], ...] = (whole,)
    if trigger == "auto":
        kinds = kinds_of_cycles(whole, channels)
    return Shift(
        joint_names=channels.joints,
        time=np.array(curve.time),
        power=np.array(curve.power),
        model=np.array(curve.model),
        starts=np.array(curve.starts, dtype=int),
        energy=float(net[channels.arm["total"]]),
        total_source=channels.total_source(net, total.accounted),
        explained_share=channels.explained_share(net),
        half_width=CONFIDENCE * float(channels.deviations_of_total(net)),
        state_wall=_wall_by_state(channels, net),
        state_time=channels.by_state(net, channels.state_time),
        state_energy=channels.by_state(net, channels.state_energy),
        cycles=tuple(cycles),
        channels=channels,
        kinds=kinds,
    )


@dataclass
class _Curve:
    """Mean powers over the shift, as they are read; the first bin is the start.

    Attributes:
        time: end of each bin since the start of the shift [s].
        power: mean total power in each bin [W]; NaN where a recording or a gap ended.
        model: mean power of the sum of the modelled parts in each bin [W].
        starts: first bin of each recording but the first, and behind each gap.
    """

    time: list[float] = field(default_factory=lambda: [0.0])
    power: list[float] = field(default_factory=lambda: [np.nan])
    model: list[float] = field(default_factory=lambda: [np.nan])
    starts: list[int] = field(default_factory=list)

    def add(self, time: float, power: float, model: float) -> None:
        """Add a bin that ends at a time [s], with mean powers [W]."""
        self.time.append(time)
        self.power.append(power)
        self.model.append(model)

    def interrupt(self, time: float) -> None:
        """Go on at a time [s] behind a gap, or with another recording."""
        self.starts.append(len(self.time))
        self.add(time, np.nan, np.nan)


def _follow(
    estimator: LiveEstimator,
    batches: Iterable[Telemetry],
    curve: _Curve,
    name: str,
    progress: Progress | None,
) -> None:
    """Run an estimator over a recording, and add its powers to the curve behind its end.

    Args:
        estimator: estimator of the recorded arm.
        batches: samples of the recording, in order.
        curve: curve of the recordings before.
        name: name of the recording, for progress.
        progress: called with NaN, as the length is unknown, and a text.
    """
    channels = estimator.channels
    shown = [channels.arm["total"], channels.arm["model"]]
    before = curve.time[-1]
    if before > 0.0:
        curve.interrupt(before)
    first: float | None = None
    last: float | None = None
    lost = 0.0
    for each in batches:
        batch = each.distinct()
        if first is None:
            first = float(batch.time[0])
        estimator.update(batch)
        now = float(batch.time[-1])
        if last is not None and 0.0 < now - last < BIN:
            continue
        shot = estimator.snapshot()
        if shot is None:
            continue
        last = now
        time = before + max(now - first, 0.0)
        is_behind_gap = shot.lifetime.unaccounted - lost >= BIN
        if is_behind_gap and curve.time[-1] > 0.0:
            curve.interrupt(time)
        lost = shot.lifetime.unaccounted
        power, modelled = shot.power[shown].tolist()
        curve.add(time, power, modelled)
        if progress is not None:
            progress(float("nan"), f"energy of {name}: {now - first:.0f} s")


SAME_TIME = 0.15
"""Largest relative difference of the time in motion between cycles of the same work."""
SAME_ENERGY = 0.25
"""Largest relative difference of all motors' energies together between such cycles: cold
joints need more than warm ones."""


def kinds_of_cycles(
    cycles: Sequence[Cycle], channels: Channels
) -> tuple[tuple[Cycle, ...], ...]:
    """Cycles that were found without a stated trigger, by the work that they do.

    Cycles are of the same work if they have the same program, about the same time in
    motion and about the same energy of every joint. Their time at standstill does not count.

    Args:
        cycles: cycles in order.
        channels: layout of their readings.

    Returns:
        Kinds of work in order of their first cycle, each with its cycles.
    """
    kinds: list[list[Cycle]] = []
    for cycle in cycles:
        for kind in kinds:
            if _same_work(kind[0], cycle, channels):
                kind.append(cycle)
                break
        else:
            kinds.append([cycle])
    return tuple(map(tuple, kinds))


def _same_work(first: Cycle, second: Cycle, channels: Channels) -> bool:
    """Whether two cycles are of the same work; see `kinds_of_cycles`."""
    if first.program != second.program:
        return False
    moving = channels.state_time + ArmState.MOVING
    times = first.reading.net[moving], second.reading.net[moving]
    if abs(times[1] - times[0]) > SAME_TIME * max(times):
        return False
    joints = channels.per_joint["electrical_power"]
    energies = first.reading.net[joints]
    others = second.reading.net[joints]
    larger = max(np.abs(energies).sum(), np.abs(others).sum())
    return bool(np.abs(others - energies).sum() <= SAME_ENERGY * larger)


def _wall_by_state(channels: Channels, net: Array) -> dict[ArmState, float]:
    """Energy at the wall by state [J].

    The integral of the squared power is known of all states together; it is divided
    among them in proportion to time times the square of the mean power.

    Args:
        channels: layout of `net`.
        net: integrals of the channels over the shift [channels], J.
    """
    states = np.arange(len(ArmState))
    time = net[channels.state_time + states]
    energy = net[channels.state_energy + states]
    terms = box_terms(states, energy)
    terms[:, :SUPPLY] *= time[:, None]
    squares = energy**2 / np.maximum(time, 1e-9)
    shares = squares / max(squares.sum(), 1e-9)
    terms[:, SQUARE] = shares * net[channels.arm["total_square"]]
    return dict(zip(ArmState, channels.wall.value(terms).tolist(), strict=True))


def _checked(bag: str | Path) -> Iterator[Telemetry]:
    """The samples of a bag in batches, its clock checked."""
    return checked_clock(iterate_bag(bag, LIVE_FIELDS, _BATCH), bag)


def shift_charts(shift: Shift) -> list[Chart]:
    """Power over the shift, and energy of the latest cycles, in motion and idle.

    The second chart is left out where no cycle was completed.
    """
    minutes = Timeline(shift.time / 60, shift.starts)
    source = shift.total_source
    lines = [minutes.curve(f"total, {source.name}", shift.power, "measured")]
    if source.name != "modelled":
        lines.append(minutes.curve("model", shift.model))
    power = LineChart(
        key="shift_power",
        title="Power over the shift",
        caption=f"Mean power of the whole arm per second: {source.words(shift.explained_share)}.",
        x_label="time [min]",
        y_label="power [W]",
        panels=[Panel("", lines)],
        group="shift",
    )
    return [power, _cycle_chart(shift)] if shift.cycles else [power]


def _cycle_chart(shift: Shift) -> BarChart:
    """Energy of the latest cycles, in motion and idle."""
    count = len(shift.cycles)
    latest = shift.cycles[-SHOWN_CYCLES:]
    caption = "Energy while moving and while waiting, by cycle"
    if count > len(latest):
        caption += f"; the last {len(latest)} of {count}"
    moving = []
    waiting = []
    for cycle in latest:
        figures = cycle.summary(shift.channels)
        moving.append(figures["motion_energy_J"])
        waiting.append(figures["idle_energy_J"])
    return BarChart(
        key="cycles",
        title="Energy per cycle" if len(shift.kinds) == 1 else "Energy of each cycle",
        caption=f"{caption}.",
        y_label="energy [J]",
        categories=[f"cycle {cycle.number}" for cycle in latest],
        joints=[None] * len(latest),
        bars=[
            Bars("moving", np.array(moving)),
            Bars("waiting", np.array(waiting), role="aside"),
        ],
        stacked=True,
    )


def shift_table(shift: Shift, tariff: Tariff, wall: WallEnergy) -> Table:
    """Time, energy, cost and CO2 by state of the arm.

    Args:
        shift: energies of the recordings.
        tariff: price and CO2; without them there are no such columns.
        wall: energy at the mains of all recordings, measured or modelled, to which the model's
            energies at the mains are scaled.
    """
    amounts = [name.replace("CO₂ [kg]", "CO2 [g]") for name in tariff.columns()]
    columns = [
        "",
        "time [min]",
        "energy [Wh]",
        "mean power [W]",
        "share of energy [%]",
        "at the wall [Wh]",
        *amounts,
    ]

    def row(name: str, seconds: float, joules: float, paid: float) -> tuple[Cell, ...]:
        """Time [s], energies at the supply and at the wall [J], and what they cost."""
        cells: list[Cell] = [
            name,
            seconds / 60,
            joules / 3600,
            joules / seconds if seconds > 0 else None,
            100 * joules / shift.energy if shift.energy > 0 else None,
            paid / 3600,
        ]
        cost = tariff.cost(joules, paid)
        grams = tariff.emission(1000 * joules, 1000 * paid)
        if cost is not None:
            cells.append(cost)
        if grams is not None:
            cells.append(grams)
        return tuple(cells)

    modelled = sum(shift.state_wall.values())
    # A power meter may have measured another energy than the model's.
    scale = wall.energy / modelled if modelled > 0 else 0.0
    rows = []
    for state, seconds in shift.state_time.items():
        if seconds > 0:
            paid = scale * shift.state_wall[state]
            energy = shift.state_energy[state]
            rows.append(row(STATE_NAMES[state], seconds, energy, paid))
    rows.append(row("whole recording", shift.seconds, shift.energy, wall.energy))
    note = (
        f"Energy of the robot bus: {shift.total_source.words(shift.explained_share)}. "
        f"At the wall {wall.words()}."
    )
    if tariff.columns():
        note += f" {tariff.note(SOURCES[wall.source])}"
    return Table("Energy of the shift", columns, rows, note)


def cycle_table(shift: Shift) -> Table | None:
    """Mean, standard deviation and range of the cycles' durations, energies and peak powers.

    Cycles with an outage are left out, because a part of their energy is unknown.

    Args:
        shift: shift with its cycles.

    Returns:
        The table; None without cycles, and for cycles of different work, which have no
        common mean.
    """
    whole = [cycle for cycle in shift.cycles if cycle.is_whole]
    if not whole or len(shift.kinds) > 1:
        return None
    figures = [cycle.summary(shift.channels) for cycle in whole]
    rows: list[tuple[Cell, ...]] = []
    shown = {
        "duration_s": "duration [s]",
        "total_energy_J": "energy [J]",
        "motion_energy_J": "energy while moving [J]",
        "idle_energy_J": "energy while waiting [J]",
        "peak_power_W": "peak power [W]",
    }
    shown |= {f"{joint}_energy_J": f"{joint} [J]" for joint in shift.joint_names}
    for key, name in shown.items():
        values = np.array([cycle[key] for cycle in figures])
        rows.append(
            (
                name,
                float(values.mean()),
                float(values.std()),
                float(values.min()),
                float(values.max()),
            )
        )
    columns = ("per cycle", "mean", "standard deviation", "smallest", "largest")
    left_out = len(shift.cycles) - len(whole)
    note = f"{left_out} more had an outage and are left out." if left_out else ""
    return Table(f"{len(figures)} cycles", columns, rows, note)
