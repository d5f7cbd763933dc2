"""Error statistics of n channels, accumulated batch by batch.

Mean, maximum and RMS error and R2 per joint: Clochiatti et al., Robotica 2024, Tables V and VII.
The paper's mean keeps its sign (`ErrorStatistics.mean`); METRICS have that of absolute errors.
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
_BLOCK = 1.0
"""Errors of power within this time count as one when the interval of their RMS is computed [s]."""
LEAST_MOTION_POWER = 1.0  # least mean power above standstill that exceeds a drift of standby [W]


class ErrorStatistics:
    """Errors (model minus measurement) of n channels, and how many their stated intervals hold."""

    def __init__(self, channels: int) -> None:
        self.count, self._absolute, self._signed = (np.zeros(channels) for _ in range(3))
        self._squared, self._largest = np.zeros(channels), np.zeros(channels)
        self._mean, self._scatter = np.zeros(channels), np.zeros(channels)
        self._low, self._high = np.full(channels, np.inf), np.full(channels, -np.inf)
        self._within, self._variance = np.zeros(channels), np.zeros(channels)

    def accumulate(
        self, measured: Array, model: Array, mask: Mask | None = None, std: Array | None = None
    ) -> None:
        """Accumulate samples [samples, n], only those where the mask [samples, n] is True.

        `std`: stated standard deviations of the errors [samples, n], if any.
        """
        if not len(measured):
            return

        def used(values: Array, otherwise: float = 0.0) -> Array:
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

    def entries(self) -> list[Statistics]:
        """{"mean", "max", "rms", "r2"} per channel; mean and max of the absolute errors."""
        mean = self._absolute / _positive(self.count)
        return _by_channel(mean=mean, max=self.largest, rms=self.rms, r2=self.r2)

    def intervals(self) -> list[Statistics]:
        """{"std", "coverage"} per channel: RMS of the stated deviations, share within 95 %."""
        count = _positive(self.count)
        return _by_channel(std=np.sqrt(self._variance / count), coverage=self._within / count)


def _by_channel(**values: Array) -> list[Statistics]:
    """Values [n] by name as one entry per channel."""
    rows = zip(*values.values(), strict=True)
    return [dict(zip(values, map(finite_or_none, row), strict=True)) for row in rows]


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def finite_or_none(value: float) -> float | None:
    """The value for JSON; None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


class PowerStatistics:
    """Errors of the power and energy at the supply while brakes are released.

    The energy of motion is evaluated separately: energy above the power at standstill, over the
    samples at which the arm moves. Most of an arm's energy is standby, so an error of one percent
    of the total shows little of the motors.

    `noise`: standard deviation of the measured power about an exact model's [W].
    """

    def __init__(self, channels: Channels, noise: float = 0.0) -> None:
        self._channels, self._noise = channels, float(np.nan_to_num(noise))
        self._errors = ErrorStatistics(1)
        self._blocks: list[float] = []
        """Mean squared error of each block of time [W^2]."""
        self._seconds, self._measured, self._model = (np.zeros(len(ArmState)) for _ in range(3))

    def accumulate(self, table: PowerTable) -> None:
        """Accumulate the calculator's powers; tables without bus power are ignored."""
        use = table.states >= ArmState.STANDSTILL
        if not table.bus_measured or not use.any():
            return
        arm = self._channels.arm
        measured, model = (table.power[use, arm[name]] for name in ("bus", "total"))
        steps, states = table.steps.bridged[use], table.states[use]
        std = np.hypot(self._channels.deviations_of_total(table.power[use]), self._noise)
        self._errors.accumulate(measured[:, None], model[:, None], std=std[:, None])
        squares, blocks = np.square(model - measured), time_blocks(table.samples.time[use], _BLOCK)
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
        """
        still, moving = ArmState.STANDSTILL, ArmState.MOVING
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

        RMSE, its 95 % interval from the scatter over blocks of time, RMSE over the range of the
        measurement (EcBot, eq. 22-23), and {"std", "coverage"} of the stated intervals of the
        power, see `ErrorStatistics.intervals`.
        """
        rmse, low, high = float(self._errors.rms[0]), float("nan"), float("nan")
        if len(self._blocks) > 1:
            half = CONFIDENCE * float(np.std(self._blocks, ddof=1)) / np.sqrt(len(self._blocks))
            low, high = np.sqrt(max(rmse**2 - half, 0.0)), np.sqrt(rmse**2 + half)
        measured, model = self._measured.sum(), self._model.sum()
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
