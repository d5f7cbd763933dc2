"""Shift: energy of consecutive recordings over time, by state of the arm, and per cycle.

The live estimator (`energy.live`) processes the bags in constant memory, so counters, states and
cycles are those of the topic /energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Cycle, Trigger
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.options import LIVE_FIELDS, LiveOptions
from ur_energy_model.energy.meter import CONFIDENCE, MeterReading
from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock_check import checked_clock
from ur_energy_model.typing import Array, Progress

BIN = 1.0
"""Length of the intervals of mean power [s]."""
_BATCH = 125


@dataclass(frozen=True)
class Shift:
    """Energy of one arm over one or more recordings.

    Attributes:
        joint_names: n.
        time: since the start, with the recordings one after another [bins], s.
        power: mean total power between the previous time and this one [bins], W.
        bus: the same measured at the bus, NaN where it was not recorded [bins], W.
        starts: first bin of each recording but the first, and behind each gap.
        energy, bus_energy: whole arm [J]; bus_energy is None if it is not recorded throughout.
        half_width: of the 95 % interval of `energy`.
        state_time, state_energy: by state [s], [J].
        regenerated: electrical energy that the joints fed back [J].
        unaccounted: time in gaps [s].
        cycles: completed cycles.
        channels: layout of the cycles' readings.
    """

    joint_names: tuple[str, ...]
    time: Array
    power: Array
    bus: Array
    starts: NDArray[np.int_]
    energy: float
    bus_energy: float | None
    half_width: float
    state_time: dict[ArmState, float]
    state_energy: dict[ArmState, float]
    regenerated: float
    unaccounted: float
    cycles: tuple[Cycle, ...]
    channels: Channels

    @property
    def seconds(self) -> float:
        """Time accounted for [s]."""
        return sum(self.state_time.values())

    @property
    def idle_share(self) -> float:
        """Share of the energy while the arm does not move."""
        idle = sum(self.state_energy.values()) - self.state_energy[ArmState.MOVING]
        return idle / self.energy if self.energy > 0 else float("nan")


@dataclass
class _Series:
    """Mean powers over time, while the recordings are read."""

    times: list[float] = field(default_factory=lambda: [0.0])
    powers: list[float] = field(default_factory=lambda: [np.nan])
    buses: list[float] = field(default_factory=lambda: [np.nan])
    starts: list[int] = field(default_factory=list)
    bus_complete: bool = True

    def append(self, time: float, power: float, bus: float | None) -> None:
        """Append a bin; bus is None where the bus power was not measured."""
        self.times.append(time)
        self.powers.append(power)
        self.buses.append(np.nan if bus is None else bus)
        self.bus_complete &= bus is not None

    def start_recording(self, time: float | None = None) -> None:
        """Mark the start of the next recording, or the end of a gap, at a time (default: last)."""
        if self.times[-1] > 0:
            self.starts.append(len(self.times))
            self.times.append(self.times[-1] if time is None else time)
            self.powers.append(np.nan)
            self.buses.append(np.nan)


def read_shift(
    model: EnergyModel,
    bags: Sequence[str | Path],
    *,
    trigger: Trigger = "auto",
    output: int = 0,
    progress: Progress | None = None,
) -> Shift:
    """Run the live estimator over recordings, in order.

    Args:
        model: for the arm of the recordings, see `model_of_arm`.
        bags: recordings.
        trigger: what starts a cycle, see `energy.live.cycles`.
        output: number of the digital output for that trigger.
        progress: called with NaN and text.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    cycles: list[Cycle] = []
    options = LiveOptions(cycle_trigger=trigger, cycle_output=output, same_arm=True)
    robot = load_robot(model.robot)
    series = _Series()
    total: MeterReading | None = None
    channels: Channels | None = None
    for bag in bags:
        estimator = LiveEstimator(model, robot, options, on_cycle=cycles.append)
        channels = estimator.channels
        series.start_recording()
        before = series.times[-1]
        first: float | None = None
        last: float | None = None
        lost = 0.0
        for batch in checked_clock(iterate_bag(bag, LIVE_FIELDS, _BATCH), bag):
            if not len(batch):
                continue
            batch = batch.distinct()
            first = float(batch.time[0]) if first is None else first
            estimator.update(batch)
            now = float(batch.time[-1])
            if last is not None and 0 < now - last < BIN:
                continue
            shot = estimator.snapshot()
            if shot is None:
                continue
            last = now
            if shot.lifetime.unaccounted - lost >= BIN:
                series.start_recording(before + max(now - first, 0.0))
            lost = shot.lifetime.unaccounted
            series.append(
                before + max(now - first, 0.0),
                float(shot.power[channels.arm["total"]]),
                float(shot.power[channels.arm["bus"]]) if shot.bus_measured else None,
            )
            if progress is not None:
                progress(float("nan"), f"energy of {Path(bag).name}: {now - first:.0f} s")
        shot = estimator.snapshot()
        if shot is not None:
            total = shot.lifetime if total is None else total + shot.lifetime
    if total is None or channels is None:
        raise InputError(str(bags[0]), "contains no samples", "record again")
    return _assemble(channels, total, series, tuple(cycles))


def _assemble(
    channels: Channels, total: MeterReading, series: _Series, cycles: tuple[Cycle, ...]
) -> Shift:
    net = total.net
    states = list(ArmState)
    electrical = channels.per_joint["electrical_power"]
    return Shift(
        joint_names=channels.joints,
        time=np.array(series.times),
        power=np.array(series.powers),
        bus=np.array(series.buses),
        starts=np.array(series.starts, dtype=int),
        energy=float(net[channels.arm["total"]]),
        bus_energy=float(net[channels.arm["bus"]]) if series.bus_complete else None,
        half_width=CONFIDENCE * channels.deviations(net)[1],
        state_time=dict(zip(states, net[channels.state_time :].tolist(), strict=False)),
        state_energy=dict(zip(states, net[channels.state_energy :].tolist(), strict=False)),
        regenerated=float(total.regenerated[electrical].sum()),
        unaccounted=total.unaccounted,
        cycles=cycles,
        channels=channels,
    )
