"""How well a model fits: error statistics that accumulate over batches.

Mean, maximum and RMS error and R2 per joint (Clochiatti et al., Robotica 2024, Tables V and VII);
RMSE, RMSE in percent of the range, R2 and energy error of power (Heredia et al., EcBot, eq.
22-26). The JSON spelling of all of them is METRICS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ur_energy_model.energy.channels import ArmState, Channels
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.typing import Array, Mask

SHORTEST_STANDSTILL = 0.5
"""Standstill from which the supply's power at rest is known [s]."""


LEAST_MOTION_POWER = 1.0
"""Mean power above standstill that is told from a drift of standby [W]."""


class ErrorStatistics:
    """Errors of n channels, model minus measurement."""

    def __init__(self, channels: int) -> None:
        self.count = np.zeros(channels)
        self._absolute = np.zeros(channels)
        self._squared = np.zeros(channels)
        self._largest = np.zeros(channels)
        self._mean = np.zeros(channels)
        self._scatter = np.zeros(channels)

    def add(self, measured: Array, model: Array, mask: Mask | None = None) -> None:
        """Add samples [samples, n]; those where the mask [samples, n] is False do not count."""
        if not len(measured):
            return
        use = np.ones(measured.shape, dtype=bool) if mask is None else mask
        error = np.where(use, np.abs(model - measured), 0.0)
        self._absolute += error.sum(axis=0)
        self._squared += np.square(error).sum(axis=0)
        self._largest = np.maximum(self._largest, error.max(axis=0))
        # Scatter about the mean, merged pairwise (Chan et al. 1983): no cancellation.
        count = use.sum(axis=0).astype(float)
        total = self.count + count
        mean = np.where(use, measured, 0.0).sum(axis=0) / np.maximum(count, 1.0)
        scatter = np.where(use, np.square(measured - mean), 0.0).sum(axis=0)
        shift = mean - self._mean
        self._scatter += scatter + shift**2 * self.count * count / np.maximum(total, 1.0)
        self._mean += shift * count / np.maximum(total, 1.0)
        self.count = total

    @property
    def rms(self) -> Array:
        """RMS error per channel [n]; NaN without samples."""
        return np.asarray(np.sqrt(self._squared / _positive(self.count)))

    @property
    def r2(self) -> Array:
        """Coefficient of determination per channel [n]; NaN where the measurement is constant."""
        return np.asarray(1.0 - self._squared / _positive(self._scatter))

    def entries(self) -> list[dict[str, float | None]]:
        """{"mean", "max", "rms", "r2"} per channel; mean and max are of absolute errors."""
        mean = self._absolute / _positive(self.count)
        largest = np.where(self.count > 0, self._largest, np.nan)
        return [
            {"mean": _figure(a), "max": _figure(b), "rms": _figure(c), "r2": _figure(d)}
            for a, b, c, d in zip(mean, largest, self.rms, self.r2, strict=True)
        ]


class IntervalStatistics:
    """How many errors of n channels lie within their stated 95 % intervals."""

    def __init__(self, channels: int) -> None:
        self._count = np.zeros(channels)
        self._within = np.zeros(channels)
        self._variance = np.zeros(channels)

    def add(self, error: Array, std: Array, mask: Mask) -> None:
        """Add errors and their stated deviations [samples, n], where the mask is True."""
        self._count += mask.sum(axis=0)
        self._within += ((np.abs(error) <= CONFIDENCE * std) & mask).sum(axis=0)
        self._variance += (np.square(std) * mask).sum(axis=0)

    def entries(self) -> list[dict[str, float | None]]:
        """{"std", "coverage"} per channel: RMS of the stated deviations, and a share."""
        count = _positive(self._count)
        std, coverage = np.sqrt(self._variance / count), self._within / count
        return [
            {"std": _figure(a), "coverage": _figure(b)} for a, b in zip(std, coverage, strict=True)
        ]


class PowerStatistics:
    """Errors of the supply's power and energy while brakes are released, motion on its own.

    Energy of motion is what the supply gives above its power at standstill, over the samples at
    which the arm moves. Most of an arm's energy is standby, so that an error of one percent of
    the whole says little of the motors.

    Args:
        channels: layout of the tables.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._errors = ErrorStatistics(1)
        self._low, self._high = np.inf, -np.inf
        self._seconds, self._measured, self._model = (np.zeros(len(ArmState)) for _ in range(3))

    def add(self, table: PowerTable) -> None:
        """Add what the calculator answered; tables without bus power are passed over."""
        use = table.states >= ArmState.STANDSTILL
        if not table.bus_measured or not use.any():
            return
        arm = self._channels.arm
        measured, model = (table.power[use, arm[name]] for name in ("bus", "total"))
        steps, states = table.steps.bridged[use], table.states[use]
        self._errors.add(measured[:, None], model[:, None])
        count = len(ArmState)
        self._seconds += np.bincount(states, steps, count)
        self._measured += np.bincount(states, steps * measured, count)
        self._model += np.bincount(states, steps * model, count)
        self._low = min(self._low, float(measured.min()))
        self._high = max(self._high, float(measured.max()))

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self._errors.count[0])

    @property
    def motion_energy_error_percent(self) -> float | None:
        """Error of the energy above standstill while the arm moves, over the measured one [%].

        None where the recording shows no standstill or next to no power of motion.
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
        return _figure(100 * float(expected - above) / float(above))

    def entry(self) -> dict[str, float | None]:
        """{"rmse", "rmse_percent", "r2", "energy_error_percent"}."""
        rmse = float(self._errors.rms[0])
        span = self._high - self._low
        measured, model = self._measured.sum(), self._model.sum()
        return {
            "rmse": _figure(rmse),
            "rmse_percent": _figure(100 * rmse / span) if span > 0 else None,
            "r2": _figure(float(self._errors.r2[0])),
            "energy_error_percent": (
                _figure(100 * (model - measured) / measured) if measured else None
            ),
        }


@dataclass(frozen=True)
class Metrics:
    """METRICS of one recording.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint, None where columns lack.
        current: the same, over the samples at which the joint moves: at standstill friction, and
            with it the current, takes any value up to its limit.
        current_all: the same over all samples, standstill included.
        power: of the supply from measured currents, as `PowerStatistics.entry` has it, or None.
        power_from_motion: the same from the motion alone, without measured currents.
        motion_energy_error_percent: of the energy above standstill, as power_from_motion has it
            (power where that is None), over the measured one.
        remarks: further facts about the comparison: cut-off, duration, session, and how many
            currents lie within their stated intervals.
    """

    bag: str
    samples: int
    torque: list[dict[str, float | None]] | None
    current: list[dict[str, float | None]] | None
    current_all: list[dict[str, float | None]] | None
    power: dict[str, float | None] | None
    remarks: dict[str, Any] = field(default_factory=dict)
    power_from_motion: dict[str, float | None] | None = None
    motion_energy_error_percent: float | None = None

    def as_json(self) -> dict[str, Any]:
        """METRICS as the command line prints them."""
        return {
            "bag": self.bag,
            "samples": self.samples,
            "torque": self.torque,
            "current": self.current,
            "current_all": self.current_all,
            "power": self.power,
            "power_from_motion": self.power_from_motion,
            "motion_energy_error_percent": self.motion_energy_error_percent,
            **self.remarks,
        }


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def _figure(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
