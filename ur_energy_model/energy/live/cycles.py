"""Energy per cycle: detection of cycle starts, readings between them, and their log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.telemetry.modes import PLAYING
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices

Trigger = Literal["none", "program", "digital_output", "int_register"]

TRIGGER_FIELD: dict[str, str] = {
    "program": "runtime_state",
    "digital_output": "actual_digital_output_bits",
    "int_register": "output_int_register_0",
}
LOWEST_SIGNAL, BITS = -(2.0**31), 2.0**64
"""Least value of a trigger (a register), and the first beyond all values (of 64 bits)."""


@dataclass(frozen=True)
class Cycle:
    """Energy of one cycle.

    Attributes:
        number: 1 for the first since the estimator started.
        start: controller time [s].
        reading: energies of all channels during the cycle.
        peak_power: largest total power [W].
    """

    number: int
    start: float
    reading: MeterReading
    peak_power: float

    @property
    def duration(self) -> float:
        """Time from start to end, gaps included [s]."""
        return self.reading.accounted + self.reading.unaccounted

    def summary(self, channels: Channels) -> dict[str, float]:
        """Named values [J, s, W] in a fixed order, as in the cycle log."""
        net = self.reading.net
        energy = dict(zip(ArmState, net[channels.state_energy :], strict=False))
        time = dict(zip(ArmState, net[channels.state_time :], strict=False))
        joints = zip(channels.joints, net[channels.per_joint["electrical_power"]], strict=True)
        return {
            "start": self.start,
            "duration": self.duration,
            "total_energy": float(net[channels.arm["total"]]),
            "bus_energy": float(net[channels.arm["bus"]]),
            "peak_power": self.peak_power,
            "motion_time": float(time[ArmState.MOVING]),
            "motion_energy": float(energy[ArmState.MOVING]),
            "idle_time": float(sum(time.values()) - time[ArmState.MOVING]),
            "idle_energy": float(sum(energy.values()) - energy[ArmState.MOVING]),
            **{f"{name}_energy": float(value) for name, value in joints},
            **{
                f"{name}_energy": float(net[channels.arm[name]])
                for name in ("standby", "driver", "regeneration")
            },
        }


class CycleDetector:
    """Finds the samples at which a new cycle starts.

    Args:
        trigger: "program": a program starts; "digital_output": its rising edge;
            "int_register": output_int_register_0 changes; "none": never.
        output: number of the digital output.
    """

    def __init__(self, trigger: Trigger = "none", output: int = 0) -> None:
        self.trigger = trigger
        self.output = output
        self._last: float | None = None

    def find(self, batch: Telemetry) -> Indices:
        """Indices of the samples of this batch that start a cycle.

        Raises:
            MissingFieldError: the source lacks the field of the trigger.
        """
        if self.trigger == "none":
            return np.empty(0, dtype=np.intp)
        name = TRIGGER_FIELD[self.trigger]
        if name not in batch.columns:
            raise MissingFieldError(
                batch.info.source,
                f"is missing, which cycle_trigger {self.trigger} needs",
                "set cycle_trigger to none",
                field=name,
            )
        signal = self._known(batch.columns[name])
        first = signal[0] if self._last is None else self._last
        self._last = float(signal[-1])
        if first == self._last and (len(signal) == 1 or (signal == first).all()):
            return np.empty(0, dtype=np.intp)
        before = np.concatenate(([first], signal[:-1]))
        if self.trigger == "program":
            return np.flatnonzero((signal == PLAYING) & (before != PLAYING))
        if self.trigger == "int_register":
            return np.flatnonzero(signal != before)
        bits, old = (
            (np.maximum(values, 0.0).astype(np.uint64) >> np.uint64(self.output)) & np.uint64(1)
            for values in (signal, before)
        )
        return np.flatnonzero(bits > old)

    def _known(self, signal: Array) -> Array:
        """A signal whose impossible values are replaced by the last possible one before them."""
        possible = (signal >= LOWEST_SIGNAL) & (signal < BITS)
        if possible.all():
            return signal
        last = np.maximum.accumulate(np.where(possible, np.arange(len(signal)), -1))
        return np.where(last < 0, self._last or 0.0, signal[last])


class CycleCounter:
    """Forms cycles from the readings at their starts.

    Args:
        number: of the last cycle.
    """

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._start: tuple[float, MeterReading] | None = None
        self._peak = 0.0

    @property
    def open(self) -> bool:
        """Whether a cycle has started."""
        return self._start is not None

    def change_channels(self, convert: Callable[[MeterReading], MeterReading]) -> None:
        """Convert the reading at the start of the open cycle to other channels."""
        if self._start is not None:
            time, reading = self._start
            self._start = (time, convert(reading))

    def observe(self, total_power: float) -> None:
        """Include the largest total power [W] of some samples in the open cycle."""
        self._peak = max(self._peak, total_power)

    def begin(self, time: float, reading: MeterReading) -> Cycle | None:
        """Start a cycle at a controller time [s]; returns the one that it ends, if any."""
        done = None
        if self._start is not None:
            start, before = self._start
            self.number += 1
            done = Cycle(self.number, start, reading - before, self._peak)
        self._start = (time, reading)
        self._peak = 0.0
        return done
