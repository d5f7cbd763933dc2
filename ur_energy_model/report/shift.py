"""Energy of a shift: over time, by what the arm does, and per cycle.

The same estimator as live (`energy.live`) goes through the bags in constant memory, so that
counters, states and cycles mean the same here and on /energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from ur_energy_model.typing import Array, Progress

BIN = 1.0
"""Length of the stretches that mean powers are kept of [s]."""
_BATCH = 125


@dataclass(frozen=True)
class Shift:
    """Energy of one arm over one or more recordings.

    Attributes:
        joint_names: n.
        time: since the start, recordings one after another [bins], s.
        power: mean total power up to each time since the one before [bins], W.
        bus: the same as measured at the bus, NaN where it was not [bins], W.
        starts: indices of bins that a recording starts at, the first left out.
        energy, bus_energy: whole arm [J]; bus_energy None where it was not recorded throughout.
        half_width: of the 95 % interval of `energy`.
        state_time, state_energy: by state [s], [J].
        regenerated: electrical energy that joints fed back [J].
        unaccounted: time in gaps [s].
        cycles: completed ones.
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
        """Share of the energy that was taken while nothing moved."""
        idle = sum(self.state_energy.values()) - self.state_energy[ArmState.MOVING]
        return idle / self.energy if self.energy > 0 else float("nan")


def read_shift(
    model: EnergyModel,
    bags: Sequence[str | Path],
    *,
    trigger: Trigger = "none",
    output: int = 0,
    progress: Progress | None = None,
) -> Shift:
    """Run the estimator over recordings, in order.

    Raises:
        UrEnergyError: input that cannot be used.
    """
    cycles: list[Cycle] = []
    options = LiveOptions(cycle_trigger=trigger, cycle_output=output)
    robot = load_robot(model.robot)
    total: MeterReading | None = None
    times, powers, buses, starts = [0.0], [np.nan], [np.nan], []
    bus_complete = True
    channels: Channels | None = None
    elapsed = 0.0
    for bag in bags:
        estimator = LiveEstimator(model, robot, options, on_cycle=cycles.append)
        channels = estimator.channels
        first: float | None = None
        last: float | None = None
        if times[-1] > 0:
            starts.append(len(times))
            times.append(elapsed)
            powers.append(np.nan)
            buses.append(np.nan)
        for batch in iterate_bag(bag, LIVE_FIELDS, _BATCH):
            if not len(batch):
                continue
            batch = batch.distinct()
            first = float(batch.time[0]) if first is None else first
            estimator.update(batch)
            now = float(batch.time[-1])
            if last is not None and now - last < BIN and now > last:
                continue
            shot = estimator.snapshot()
            if shot is None:
                continue
            last = now
            times.append(elapsed + max(now - first, 0.0))
            powers.append(float(shot.power[channels.arm["total"]]))
            measured = shot.bus_measured
            bus_complete &= measured
            buses.append(float(shot.power[channels.arm["bus"]]) if measured else np.nan)
            if progress is not None:
                progress(float("nan"), f"energy of {Path(bag).name}: {now - first:.0f} s")
        shot = estimator.snapshot()
        if shot is not None:
            total = shot.lifetime if total is None else total + shot.lifetime
        elapsed = times[-1]
    if total is None or channels is None:
        raise InputError(str(bags[0]), "holds no samples", "record again")
    return _assemble(channels, total, (times, powers, buses, starts), tuple(cycles), bus_complete)


def _assemble(
    channels: Channels,
    total: MeterReading,
    series: tuple[list[float], list[float], list[float], list[int]],
    cycles: tuple[Cycle, ...],
    bus_complete: bool,
) -> Shift:
    times, powers, buses, starts = series
    net = total.net
    states = list(ArmState)
    electrical = channels.per_joint["electrical_power"]
    return Shift(
        joint_names=channels.joints,
        time=np.array(times),
        power=np.array(powers),
        bus=np.array(buses),
        starts=np.array(starts, dtype=int),
        energy=float(net[channels.arm["total"]]),
        bus_energy=float(net[channels.arm["bus"]]) if bus_complete else None,
        half_width=CONFIDENCE * channels.deviations(net)[1],
        state_time=dict(zip(states, net[channels.state_time :].tolist(), strict=False)),
        state_energy=dict(zip(states, net[channels.state_energy :].tolist(), strict=False)),
        regenerated=float(total.regenerated[electrical].sum()),
        unaccounted=total.unaccounted,
        cycles=cycles,
        channels=channels,
    )
