# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The supply of an arm: what it delivers by the model, and how well its power is measured.

The supply delivers power and takes none back (Heredia et al., EcBot, eq. 13-21: power at
the supply is never negative). The measured power is voltage times current of the robot
bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry, changes
from ur_energy_model.typing import Array, Mask


class BusCapacitor:
    """Power at the supply, which only delivers power, from the demand of the arm, batch by batch.

    Regenerated power feeds the rest of the arm first, then charges the bus capacitor up
    to the voltage at which a braking resistor dissipates the surplus (Heredia et al.:
    power at the supply is never negative). While the capacitor is above the supply's
    voltage it feeds the arm and the supply rests.

    Args:
        capacity: energy that the capacitor holds above the supply's voltage [J]; with 0
            all regenerated energy is dissipated.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held at present [J].
    """

    def __init__(self, capacity: float, floor: float = 0.0) -> None:
        self.capacity = capacity
        self.floor = floor
        self.stored = 0.0

    def __call__(self, steps: Array, demand: Array) -> Array:
        """Power at the supply [samples], W.

        Args:
            steps: bridged steps to the samples [samples], s.
            demand: power demand of the whole arm [samples], W, which holds from the sample
                before to each sample.
        """
        floor = self.floor
        capacity = self.capacity
        stored = self.stored
        if stored <= 0.0 and demand.min() >= floor:  # only regenerated power charges it
            return demand
        out = np.maximum(demand, floor)
        if capacity <= 0.0:
            return out
        begins = (demand < floor).nonzero()[0].tolist()
        # A loop over numbers of Python is several times faster than one over an array.
        each_step = steps.tolist()
        surplus = (steps * (floor - demand)).tolist()
        k = 0
        count = len(surplus)
        for begin in [0, *begins] if stored > 0.0 else begins:
            if begin < k:  # still charged
                continue
            k = begin
            while k < count:
                stored += surplus[k]
                if stored <= 0.0 or each_step[k] == 0.0:
                    break
                stored = capacity if stored > capacity else stored
                k = k + 1
            out[begin:k] = floor
            if k < count:
                if each_step[k] > 0.0:  # else a gap: discharged by now
                    out[k] = floor - stored / each_step[k]  # the supply delivers the rest
                stored = 0.0
                k = k + 1
        self.stored = stored
        return out


VOLTAGE_STEP = 8.96e-4
CURRENT_STEP = 2.24e-3
"""Resolution of voltage [V] and current [A] of the robot bus on real arms of three types; used
until a recording shows its resolution."""
NOISE_VARIANCE = 9.0
"""Variance of the noise of a sample, used until three samples have shown it [W^2]: real arms have a
standard deviation of about 3 W."""
_SECOND_DIFFERENCE = 6.0
"""Variance of the second difference of white noise, over the variance of the noise."""
_UNIFORM = 1.0 / np.sqrt(12.0)
"""Standard deviation of a rounding error, over the step of the resolution."""


class BusPower(NamedTuple):
    """Measured power of the robot bus at consecutive samples.

    Attributes:
        watts: voltage times current [samples], W; 0 where the power is not measured.
        measured: whether the power is measured [samples].
        noise: variance of the noise of each sample times the step to it [samples], W^2 s.
        resolution: standard deviation that all samples may have in common [samples], W.
    """

    watts: Array
    measured: Mask
    noise: Array
    resolution: Array


@dataclass(frozen=True)
class BusMeter:
    """State of the measurement of the bus power, after the last sample.

    The interval of a measured energy comes from the measurement itself. The second
    difference of the power shows the noise, and at low rates also what a trapezoid leaves
    out between samples; it is taken sample by sample, so that the integral over time
    averages it. The smallest change of voltage and current that was ever seen is their
    resolution; its rounding error may be the same in all samples of an arm that rests.
    The error of the scale of these sensors is not included: nobody has published it.

    Some simulators report a bus power of 0 while the arm works: until another value was
    seen, the power of an arm whose brakes are released counts as not measured.

    Attributes:
        last: powers of the last two samples [W].
        voltage: voltage of the last sample [V].
        current: current of the last sample [A].
        voltage_step: smallest change of the voltage so far [V].
        current_step: smallest change of the current so far [A].
        works: whether a power other than 0 was seen.
        bridged: whether the last sample followed another one without a gap.
        variance: variance of the noise of a sample, as seen last [W^2].
    """

    last: tuple[float, float] = (np.nan, np.nan)
    voltage: float = np.nan
    current: float = np.nan
    voltage_step: float = np.inf
    current_step: float = np.inf
    works: bool = False
    bridged: bool = False
    variance: float = NOISE_VARIANCE

    def step(
        self, samples: Telemetry, steps: Array, released: Mask
    ) -> tuple[BusMeter, BusPower]:
        """The bus power of samples that follow those before.

        Args:
            samples: samples with voltage and current of the robot bus, or without.
            steps: bridged steps to them [samples], s.
            released: whether the brakes are released [samples].
        """
        count = len(samples)
        watts = samples.bus_power
        if watts is None:
            nothing = np.zeros(count)
            return BusMeter(), BusPower(
                nothing, np.zeros(count, dtype=bool), nothing, nothing
            )
        finite = np.isfinite(watts)
        works = np.logical_or.accumulate((finite & (watts != 0.0)) | self.works)
        measured = finite & (works | ~released)
        columns = samples.columns
        voltage = columns["actual_robot_voltage"]
        current = columns["actual_robot_current"]
        voltage_step = _smallest_change(voltage, self.voltage, self.voltage_step)
        current_step = _smallest_change(current, self.current, self.current_step)
        known = np.concatenate((self.last, watts))
        variance = np.square(np.diff(known, n=2)) / _SECOND_DIFFERENCE
        # Three samples in a row show the variance, without a gap and all of them measured;
        # else the last variance that was seen holds.
        joined = steps > 0.0
        in_a_row = joined & np.concatenate(([self.bridged], joined[:-1]))
        shown = in_a_row & np.isfinite(variance)
        latest = np.maximum.accumulate(np.where(shown, np.arange(count), -1))
        variance = np.where(latest >= 0, variance[latest], self.variance)
        volts = np.where(np.isinf(voltage_step), VOLTAGE_STEP, voltage_step)
        amperes = np.where(np.isinf(current_step), CURRENT_STEP, current_step)
        # The last product keeps the resolution above 0 where both signals are 0.
        rounding = np.stack([current * volts, voltage * amperes, volts * amperes])
        resolution = _UNIFORM * np.linalg.norm(rounding, axis=0)
        state = BusMeter(
            last=(float(known[-2]), float(known[-1])),
            voltage=float(voltage[-1]),
            current=float(current[-1]),
            voltage_step=float(voltage_step[-1]),
            current_step=float(current_step[-1]),
            works=bool(works[-1]),
            bridged=bool(joined[-1]),
            variance=float(variance[-1]),
        )
        return state, BusPower(
            watts=np.where(measured, watts, 0.0),
            measured=measured,
            noise=np.where(measured, variance * steps, 0.0),
            resolution=np.where(measured, resolution, 0.0),
        )


def _smallest_change(values: Array, before: float, smallest: float) -> Array:
    """Smallest change other than 0 of a signal [samples] up to each sample."""
    sizes = np.abs(changes(values, before))
    seen = np.where((sizes > 0.0) & np.isfinite(sizes), sizes, np.inf)
    return np.minimum(np.minimum.accumulate(seen), smallest)
