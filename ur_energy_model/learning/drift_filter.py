"""Two clocks in one Kalman filter: a level that moves within a day and wears over weeks.

The level of each channel (logarithm of a joint's friction, standby power, payload) is

    level = usual + slope (temperature - reference) + session + wander + common

`usual` is a random walk over days: wear and running-in, old measurements are forgotten. `slope` is
the part of the temperature's effect that the model's friction law leaves. `session` and `common`
(of all channels) are drawn anew in every session, `wander` forgets within minutes of motion.
Kalman 1960; the estimate is recursive, so memory is constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.friction.terms import REFERENCE_TEMPERATURE
from ur_energy_model.typing import Array, Indices

_PARTS = 4
"""Usual, slope, session and wander of every channel; the common part is one more state."""


@dataclass(frozen=True)
class DriftNoise:
    """Spreads of a level, standard deviations in its unit; a number or one per channel [c].

    Attributes:
        usual: of the usual level before the first measurement.
        wear: random walk of the usual level, per square root of a day.
        running_in: change of the usual level from the first session to the second; decreases by
            a factor e in five sessions.
        session: between sessions, of each channel.
        common: between sessions, the same for all channels.
        wander: within a session.
        wander_time: correlation time of that [s].
        slope: with temperature, per kelvin.
        least: of a minute's measurement, at least.
    """

    usual: float | Array
    wear: float | Array
    session: float | Array
    wander: float | Array
    least: float | Array
    running_in: float | Array = 0.0
    common: float = 0.0
    wander_time: float = 900.0
    slope: float | Array = 0.0


RUNNING_IN_SESSIONS = 5.0
"""Sessions after which 63 % of running-in has passed (config/simulation/arm.yaml)."""

_SURPRISE = 4.0
"""Innovations beyond so many standard deviations count as just so many: a single bad minute must
not move the estimate far, nor be taken for a step (Huber's bounded influence)."""


@dataclass(frozen=True)
class Innovation:
    """What a measurement adds to the prediction, for tests of steps; k measured channels.

    Attributes:
        channels: measured ones [k].
        value: measurement minus prediction [k].
        precision: inverse of its covariance [k, k].
        rows: measurement matrix [k, states].
        gain: of the filter [states, k].
    """

    channels: Indices
    value: Array
    precision: Array
    rows: Array
    gain: Array


class DriftFilter:
    """Estimates the levels of some channels from their values minute by minute.

    Args:
        noise: spreads of the levels.
        channels: their number c.

    Attributes:
        mean, covariance: of the states [4 c + 1]: usual, slope, session, wander of every channel,
            then the common part.
        sessions: number of sessions so far.
    """

    def __init__(self, noise: DriftNoise, channels: int) -> None:
        self.noise, self.channels = noise, channels
        self.mean = np.zeros(_PARTS * channels + 1)
        first = [self._each(value) for value in (noise.usual, noise.slope)]
        self.covariance = np.diag(np.concatenate([*first, np.zeros(2 * channels + 1)]) ** 2)
        self.sessions = 0

    @property
    def usual(self) -> Array:
        """Usual level of each channel at the reference temperature [c]."""
        return np.array(self.mean[: self.channels])

    def start_session(self, days: float) -> Array:
        """Start a session some days after the last one.

        Returns:
            factors on the states [4 c + 1]: what they keep of their values.
        """
        keep = np.ones_like(self.mean)
        keep[2 * self.channels :] = 0.0
        self.mean = self.mean * keep
        self.covariance = self.covariance * np.outer(keep, keep)
        noise, c = self.noise, self.channels
        # Sessions measure the wear; the first minutes of the first one start from `usual`.
        faded = np.exp(-self.sessions / RUNNING_IN_SESSIONS) if self.sessions else 0.0
        walk = np.square(self._each(noise.wear)) * max(days, 0.0)
        walk = walk + np.square(self._each(noise.running_in) * faded)
        new = np.concatenate(
            [
                walk,
                np.zeros(c),
                np.square(self._each(noise.session)),
                np.square(self._each(noise.wander)),
                [noise.common**2],
            ]
        )
        self.covariance = self.covariance + np.diag(new)
        self.sessions += 1
        return keep

    def advance(self, seconds: float) -> Array:
        """Let time pass within a session.

        Returns:
            as `start_session`.
        """
        c, part = self.channels, slice(3 * self.channels, 4 * self.channels)
        keep = np.ones_like(self.mean)
        keep[part] = np.exp(-seconds / self.noise.wander_time)
        self.mean = self.mean * keep
        self.covariance = self.covariance * np.outer(keep, keep)
        new = np.zeros_like(self.mean)
        new[:c] = np.square(self._each(self.noise.wear)) * seconds / 86400.0
        new[part] = np.square(self._each(self.noise.wander)) * (1.0 - keep[part] ** 2)
        self.covariance = self.covariance + np.diag(new)
        return keep

    def update(self, value: Array, covariance: Array, temperature: Array) -> Innovation | None:
        """Use measured levels; a surprising one counts as less certain.

        Args:
            value: [c], NaN where not measured.
            covariance: of the measured ones [c, c].
            temperature: of the channels [c], degC, NaN where unknown.

        Returns:
            the innovation; None if nothing was measured.
        """
        known = np.flatnonzero(np.isfinite(value))
        if not known.size:
            return None
        rows = self._rows(temperature)[known]
        least = np.diag(np.square(self._each(self.noise.least))[known])
        spread = rows @ self.covariance @ rows.T + covariance[np.ix_(known, known)] + least
        innovation = value[known] - rows @ self.mean
        variance = np.diag(spread)
        spread = spread + np.diag(np.maximum(np.square(innovation / _SURPRISE) - variance, 0.0))
        precision = np.linalg.inv(spread)
        gain = self.covariance @ rows.T @ precision
        self.mean = self.mean + gain @ innovation
        updated = self.covariance - gain @ spread @ gain.T
        self.covariance = 0.5 * (updated + updated.T)
        return Innovation(known, innovation, precision, rows, gain)

    def level(self, temperature: Array) -> tuple[Array, Array]:
        """Level of each channel now, and its standard deviation [c] each.

        Args:
            temperature: to state it for [c], degC; NaN for the reference temperature.
        """
        return self._combined(self._rows(temperature), 0.0)

    def usual_level(self, temperature: Array) -> tuple[Array, Array]:
        """Level expected in another session [c], and its standard deviation, its spread included.

        Args:
            temperature: to state it for [c], degC; NaN for the reference temperature.
        """
        rows = self._rows(temperature)
        rows[:, 2 * self.channels :] = 0.0
        scatter = np.square(self._each(self.noise.session)) + np.square(
            self._each(self.noise.wander)
        )
        return self._combined(rows, scatter + self.noise.common**2)

    def shift(self, direction: Array, size: float, variance: float) -> None:
        """Take over a step: states move by direction [4 c + 1] times a size known so well."""
        self.mean = self.mean + direction * size
        self.covariance = self.covariance + variance * np.outer(direction, direction)

    def state(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            "mean": self.mean,
            "covariance": self.covariance,
            "sessions": np.array(float(self.sessions)),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state` of a filter of the same kind.

        Raises:
            ValueError: it is of another number of channels, or damaged.
        """
        mean, covariance = np.array(state["mean"]), np.array(state["covariance"])
        size = len(self.mean)
        finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
        if mean.shape != (size,) or covariance.shape != (size, size) or not finite:
            raise ValueError("state of another filter")
        self.mean, self.covariance = mean, covariance
        self.sessions = int(state["sessions"])

    def _combined(self, rows: Array, extra: Array | float) -> tuple[Array, Array]:
        variance = np.einsum("cs,st,ct->c", rows, self.covariance, rows) + extra
        return rows @ self.mean, np.sqrt(np.maximum(variance, 0.0))

    def _rows(self, temperature: Array) -> Array:
        """Measurement matrix [c, 4 c + 1] at temperatures [c]."""
        one = np.eye(self.channels)
        warmth = np.nan_to_num(temperature - REFERENCE_TEMPERATURE)
        common = np.full((self.channels, 1), 1.0 if self.noise.common else 0.0)
        return np.concatenate([one, one * warmth[:, None], one, one, common], axis=1)

    def _each(self, value: float | Array) -> Array:
        return np.full(self.channels, value, dtype=float)
