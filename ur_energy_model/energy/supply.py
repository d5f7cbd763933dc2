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
            steps: bridged steps to the samples [samples], s; 0 behind a gap.
            demand: power demand of the whole arm [samples], W, which holds from the sample
                before to each sample.
        """
        floor = self.floor
        capacity = self.capacity
        stored = self.stored
        if stored <= 0.0 and demand.min() >= floor:  # nothing is regenerated
            return demand
        supplied = np.maximum(demand, floor)
        if capacity <= 0.0:
            return supplied
        # The loop visits only samples at which the capacitor is charged. It runs over
        # Python's numbers, which is several times faster than over an array.
        charges = (demand < floor).nonzero()[0].tolist()
        if stored > 0.0:
            charges = [0, *charges]
        each_step = steps.tolist()
        surplus = (steps * (floor - demand)).tolist()  # energy for the capacitor [J]
        count = len(surplus)
        k = 0  # sample after the last one that was visited
        for begin in charges:
            if begin < k:  # visited already: the capacitor was still charged
                continue
            k = begin
            while k < count:
                stored += surplus[k]
                if stored <= 0.0 or each_step[k] == 0.0:  # discharged, or behind a gap
                    break
                if stored > capacity:  # the braking resistor takes the rest
                    stored = capacity
                k += 1
            supplied[begin:k] = floor
            if k < count:
                if each_step[k] > 0.0:  # the supply delivers what the capacitor lacks
                    supplied[k] = floor - stored / each_step[k]
                stored = 0.0
                k += 1
        self.stored = stored
        return supplied


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
            steps: bridged steps to the samples [samples], s; 0 behind a gap.
            released: whether the brakes are released [samples].

        Returns:
            The state after the last sample, and the bus power of the samples.
        """
        count = len(samples)
        watts = samples.bus_power
        if watts is None:
            zeros = np.zeros(count)
            never = np.zeros(count, dtype=bool)
            return BusMeter(), BusPower(zeros, never, noise=zeros, resolution=zeros)
        finite = np.isfinite(watts)
        works = np.logical_or.accumulate((finite & (watts != 0.0)) | self.works)
        measured = finite & (works | ~released)
        columns = samples.columns
        voltage = columns["actual_robot_voltage"]
        current = columns["actual_robot_current"]
        voltage_step = _smallest_change(voltage, self.voltage, self.voltage_step)
        current_step = _smallest_change(current, self.current, self.current_step)
        joined = steps > 0.0
        with_last = np.concatenate((self.last, watts))
        variance = self._variance(with_last, joined)
        volts = np.where(np.isinf(voltage_step), VOLTAGE_STEP, voltage_step)
        amperes = np.where(np.isinf(current_step), CURRENT_STEP, current_step)
        # The last product keeps the resolution above 0 where both signals are 0.
        rounding = np.stack([current * volts, voltage * amperes, volts * amperes])
        resolution = _UNIFORM * np.linalg.norm(rounding, axis=0)
        state = BusMeter(
            last=(float(with_last[-2]), float(with_last[-1])),
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

    def _variance(self, watts: Array, joined: Mask) -> Array:
        """Variance of the noise of each sample [samples], W^2.

        Three samples in a row show the variance, without a gap and all of them measured;
        else the last variance that was seen holds.

        Args:
            watts: powers of the last two samples before, and of the samples
                [2 + samples], W; NaN where unknown.
            joined: whether each sample follows the one before without a gap [samples].
        """
        variance = np.square(np.diff(watts, n=2)) / _SECOND_DIFFERENCE
        in_a_row = joined & np.concatenate(([self.bridged], joined[:-1]))
        shown = in_a_row & np.isfinite(variance)
        numbers = np.arange(len(joined))
        latest = np.maximum.accumulate(np.where(shown, numbers, -1))  # -1: none so far
        return np.where(latest >= 0, variance[latest], self.variance)


def _smallest_change(values: Array, before: float, smallest: float) -> Array:
    """Smallest change other than 0 of a signal up to each sample [samples].

    Args:
        values: the signal [samples].
        before: its value at the sample before; NaN if unknown.
        smallest: smallest change before; infinite if there was none.
    """
    sizes = np.abs(changes(values, before))
    seen = np.where((sizes > 0.0) & np.isfinite(sizes), sizes, np.inf)
    return np.minimum(np.minimum.accumulate(seen), smallest)
