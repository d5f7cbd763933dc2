# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Statistics of errors of a model: of n channels, and of the power at the supply.

They are accumulated batch by batch, in constant memory. Mean, largest and RMS error and R2
of a channel: Clochiatti et al., Robotica 2024, Tables V and VII. RMSE over the range and
energy error of the power: Heredia et al., EcBot, eq. 22-26.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array, Mask

Statistics: TypeAlias = dict[str, float | None]
"""Statistics of one channel by name; None where they cannot be computed."""

SHORTEST_STANDSTILL = 0.5  # least standstill that determines the power at standstill [s]
_BUS_RESIDUAL = 1.7
"""Noise of the measured power for a model that was identified without it [W]: models of
real arms leave 1.6 to 1.8 W."""
_BLOCK = 1.0
"""Errors of power within this time count as one when the interval of their RMS is
computed [s]."""
LEAST_MOTION_POWER = 1.0
"""Least mean power above standstill that exceeds a drift of standby [W]."""


class ErrorStatistics:
    """Errors (model minus measurement) of n channels, and how many their stated intervals hold.

    Args:
        channels: number of channels n.

    Attributes:
        count: number of samples of each channel [n].
    """

    def __init__(self, channels: int) -> None:
        self.count = np.zeros(channels)
        # Sums of the errors, of their sizes and squares, and the largest size [n].
        self._signed = np.zeros(channels)
        self._absolute = np.zeros(channels)
        self._squared = np.zeros(channels)
        self._largest = np.zeros(channels)
        # Mean of the measurement, and sum of the squared deviations from the mean [n].
        self._mean = np.zeros(channels)
        self._scatter = np.zeros(channels)
        # Number of errors within their intervals, and sum of the stated variances [n].
        self._within = np.zeros(channels)
        self._variance = np.zeros(channels)
        # Lowest and highest measurement [n].
        self._low = np.full(channels, np.inf)
        self._high = np.full(channels, -np.inf)

    def accumulate(
        self,
        measured: Array,
        model: Array,
        mask: Mask | None = None,
        std: Array | None = None,
    ) -> None:
        """Accumulate consecutive samples of all channels.

        Args:
            measured: values [samples, n], in the unit of the quantity.
            model: values of the model [samples, n], in the same unit.
            mask: the samples that count [samples, n]; None for all.
            std: stated standard deviations of the errors [samples, n]; None for none.
        """
        if not len(measured):
            return

        def used(values: Array, otherwise: float = 0.0) -> Array:
            """Values of the samples that count, and `otherwise` in place of the others."""
            return values if mask is None else np.where(mask, values, otherwise)

        error = used(model - measured)
        size = np.abs(error)
        self._signed += error.sum(axis=0)
        self._absolute += size.sum(axis=0)
        self._squared += np.square(error).sum(axis=0)
        self._largest = np.maximum(self._largest, size.max(axis=0))
        if std is not None:
            self._within += used((size <= CONFIDENCE * std).astype(float)).sum(axis=0)
            self._variance += used(np.square(std)).sum(axis=0)
        # Scatter about the mean, merged pairwise (Chan et al. 1983): no cancellation.
        whole = np.full(measured.shape[1], float(len(measured)))
        count = whole if mask is None else mask.sum(axis=0).astype(float)
        total = self.count + count
        mean = used(measured).sum(axis=0) / np.maximum(count, 1.0)
        scatter = used(np.square(measured - mean)).sum(axis=0)
        shift = mean - self._mean
        self._scatter += scatter + shift**2 * self.count * count / np.maximum(total, 1.0)
        self._mean += shift * count / np.maximum(total, 1.0)
        self.count = total
        self._low = np.minimum(self._low, used(measured, np.inf).min(axis=0))
        self._high = np.maximum(self._high, used(measured, -np.inf).max(axis=0))

    @property
    def rms(self) -> Array:
        """RMS error per channel [n]; NaN without samples."""
        return np.asarray(np.sqrt(self._squared / _positive(self.count)))

    @property
    def mean(self) -> Array:
        """Mean error per channel [n], its sign kept; NaN without samples."""
        return np.asarray(self._signed / _positive(self.count))

    @property
    def largest(self) -> Array:
        """Largest absolute error per channel [n]; NaN without samples."""
        return np.where(self.count > 0, self._largest, np.nan)

    @property
    def r2(self) -> Array:
        """Coefficient of determination per channel [n]; NaN where the measurement is constant."""
        return np.asarray(1.0 - self._squared / _positive(self._scatter))

    @property
    def rms_percent(self) -> Array:
        """RMS error over the range of the measurement (EcBot, eq. 23 and 26) per channel [n], %.

        NaN where the measurement is constant.
        """
        span = np.where(self.count > 0, self._high - self._low, 0.0)
        return np.asarray(100 * self.rms / _positive(span))

    def entries(self, idle: Mask) -> list[Statistics]:
        """{"mean", "max", "rms", "r2"} per channel; mean and max of the absolute errors.

        Args:
            idle: joints that hardly moved [n]; they have no R2, because there is no
                variation to explain.
        """
        mean = self._absolute / _positive(self.count)
        r2 = np.where(idle, np.nan, self.r2)
        return _by_channel(mean=mean, max=self.largest, rms=self.rms, r2=r2)

    def intervals(self) -> list[Statistics]:
        """{"std", "coverage"} per channel: RMS of the stated deviations, share within 95 %."""
        count = _positive(self.count)
        return _by_channel(
            std=np.sqrt(self._variance / count), coverage=self._within / count
        )


def _by_channel(**values: Array) -> list[Statistics]:
    """Values [n] by name as one entry per channel."""
    entries = []
    for row in zip(*values.values(), strict=True):
        known = map(finite_or_none, row)
        entries.append(dict(zip(values, known, strict=True)))
    return entries


def _positive(values: Array) -> Array:
    """The values, with NaN in place of those that are not positive."""
    return np.where(values > 0, values, np.nan)


def finite_or_none(value: float) -> float | None:
    """The value for JSON; None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


class PowerStatistics:
    """Errors of the power and energy at the supply while brakes are released.

    The energy of motion is evaluated separately: energy above the power at standstill,
    over the samples at which the arm moves. Most of an arm's energy is standby, so an
    error of one percent of the total shows little of the motors.

    Args:
        channels: layout of the powers.
        noise: standard deviation of the measured power about an exact model's [W]; NaN
            where it is not known.
    """

    def __init__(self, channels: Channels, noise: float) -> None:
        self._channels = channels
        self._noise = noise if np.isfinite(noise) else _BUS_RESIDUAL
        self._errors = ErrorStatistics(1)
        self._blocks: list[float] = []  # mean squared error of each block of time [W^2]
        # Time [s], measured and modelled energy [J] by state of the arm.
        self._seconds = np.zeros(len(ArmState))
        self._measured = np.zeros(len(ArmState))
        self._model = np.zeros(len(ArmState))

    def accumulate(self, table: PowerTable, used: Mask | None = None) -> None:
        """Accumulate the calculator's powers; tables without bus power are ignored.

        Args:
            table: powers of consecutive samples.
            used: samples [samples] that count, None for all.
        """
        use = table.states >= ArmState.STANDSTILL
        if used is not None:
            use &= used
        if not table.bus_measured or not use.any():
            return
        arm = self._channels.arm
        measured = table.power[use, arm["bus"]]
        model = table.power[use, arm["model"]]
        steps = table.steps.bridged[use]
        states = table.states[use]
        known = self._channels.deviations_of_model(table.power[use], over=steps)
        std = np.hypot(known, self._noise)
        self._errors.accumulate(measured[:, None], model[:, None], std=std[:, None])
        squares = np.square(model - measured)
        blocks = time_blocks(table.samples.time[use], _BLOCK)
        self._blocks += [float(squares[block].mean()) for block in blocks]
        count = len(ArmState)
        self._seconds += np.bincount(states, steps, count)
        self._measured += np.bincount(states, steps * measured, count)
        self._model += np.bincount(states, steps * model, count)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self._errors.count[0])

    @property
    def motion_energy_error_percent(self) -> float | None:
        """Relative error of the energy of motion [%].

        None where the recording has no standstill or hardly any power of motion.

        Energy of motion is what the arm takes while it moves, less its power at standstill
        over the same time. The model's own power at standstill is subtracted from the
        model's energy.
        """
        still = ArmState.STANDSTILL
        moving = ArmState.MOVING
        seconds = self._seconds
        if seconds[still] < SHORTEST_STANDSTILL or seconds[moving] <= 0.0:
            return None
        level = self._measured[still] / seconds[still]
        modelled = self._model[still] / seconds[still]
        above = self._measured[moving] - level * seconds[moving]
        expected = self._model[moving] - modelled * seconds[moving]
        if above <= LEAST_MOTION_POWER * seconds[moving]:
            return None
        return finite_or_none(100 * float(expected - above) / float(above))

    def entry(self) -> Statistics:
        """{"rmse", "rmse_low", "rmse_high", "rmse_percent", "r2", "energy_error_percent", ...}.

        RMSE, its 95 % interval from the scatter over blocks of time, RMSE over the range
        of the measurement (EcBot, eq. 22-23), and {"std", "coverage"} of the stated
        intervals of the power, see `ErrorStatistics.intervals`.
        """
        rmse = float(self._errors.rms[0])
        low = float("nan")
        high = float("nan")
        if len(self._blocks) > 1:
            scatter = float(np.std(self._blocks, ddof=1))
            half = CONFIDENCE * scatter / np.sqrt(len(self._blocks))
            low = np.sqrt(max(rmse**2 - half, 0.0))
            high = np.sqrt(rmse**2 + half)
        measured = self._measured.sum()
        model = self._model.sum()
        share = 100 * (model - measured) / measured if measured else float("nan")
        figures = {
            "rmse": rmse,
            "rmse_low": low,
            "rmse_high": high,
            "rmse_percent": self._errors.rms_percent[0],
            "r2": self._errors.r2[0],
            "energy_error_percent": share,
        }
        known = {name: finite_or_none(value) for name, value in figures.items()}
        return {**known, **self._errors.intervals()[0]}
