# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Levels that vary within a day and wear over weeks, in one Kalman filter.

The level of each channel (logarithm of a joint's friction, standby power, payload) is

    level = usual + slope (temperature - reference) + session + wander + common

`usual` is a random walk over days, by wear and running-in; the estimate forgets old
measurements. `slope` is the effect of temperature beyond the model's friction law. `session`,
and `common`, which is the same in all channels, have new values in every session. `wander`
varies within minutes of motion. Estimates are recursive (Kalman, J. Basic Eng. 82 (1960)
35), so that memory is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.friction_terms import REFERENCE_TEMPERATURE
from ur_energy_model.typing import Array, Indices

DAY = 86400.0  # s
RUNNING_IN_SESSIONS = 5.0
"""Sessions after which 63 % of running-in has passed (config/simulation/arm.yaml)."""
_SURPRISE = 4.0
"""Innovations are limited to this number of standard deviations: a single bad minute must not move
the estimate far, nor be taken for a step (Huber's bounded influence)."""


@dataclass(frozen=True)
class DriftNoise:
    """Spreads of a level: standard deviations in its unit, a number or one per channel [c].

    Attributes:
        usual: spread of the usual level before the first measurement.
        wear: spread of the random walk of the usual level, per square root of a day.
        session: spread between sessions, independent in each channel.
        wander: spread within a session.
        least: smallest standard deviation of a measurement of one minute.
        running_in: spread of the change of the usual level from the first session to the
            second; it decreases by a factor e in `RUNNING_IN_SESSIONS`.
        common: spread between sessions that is the same in all channels.
        wander_time: correlation time of the wander [s].
        slope: spread of the slope of the effect of temperature, per kelvin.
    """

    usual: float | Array
    wear: float | Array
    session: float | Array
    wander: float | Array
    least: float | Array
    running_in: float = 0.0
    common: float = 0.0
    wander_time: float = 900.0
    slope: float = 0.0


class Innovation(NamedTuple):
    """What measured levels add to a prediction, for tests of steps in the k measured channels.

    Attributes:
        channels: numbers of the measured channels [k].
        value: measurement minus prediction [k].
        precision: inverse of the covariance of the values [k, k].
        rows: measurement matrix [k, states].
        gain: gain of the filter [states, k].
    """

    channels: Indices
    value: Array
    precision: Array
    rows: Array
    gain: Array


class DriftFilter:
    """Estimates the levels of c channels from their values minute by minute.

    The states [4 c + 1] are usual, slope, session and wander of all channels, then the
    common part.

    Args:
        noise: spreads of the levels.
        channels: number of channels c.

    Attributes:
        mean: mean of the states [4 c + 1].
        covariance: covariance of the states [4 c + 1, 4 c + 1].
        sessions: number of sessions so far.
    """

    def __init__(self, noise: DriftNoise, channels: int) -> None:
        self.noise = noise
        self.channels = channels
        one = np.ones(channels)
        # Variances [c] of each part.
        self._usual = np.square(noise.usual * one)
        self._slope = np.square(noise.slope * one)
        self._wear = np.square(noise.wear * one)
        self._session = np.square(noise.session * one)
        self._wander = np.square(noise.wander * one)
        self._least = np.square(noise.least * one)
        self.mean = np.zeros(4 * channels + 1)
        rest = np.zeros(2 * channels + 1)
        self.covariance = np.diag(np.concatenate([self._usual, self._slope, rest]))
        self.sessions = 0

    @property
    def usual(self) -> Array:
        """Usual level of each channel at the reference temperature [c]."""
        return np.array(self.mean[: self.channels])

    def start_session(self, days: float) -> Array:
        """Start a session some days after the last one.

        Returns:
            Share of each state that remains [4 c + 1].
        """
        c = self.channels
        lasting = 2 * c  # usual levels and slopes
        renewed = 2 * c + 1  # parts of the session, wander and common part
        # No running-in before the first session, which starts from the spread of `usual`.
        faded = np.exp(-self.sessions / RUNNING_IN_SESSIONS) if self.sessions else 0.0
        walk = self._wear * max(days, 0.0) + (self.noise.running_in * faded) ** 2
        common = np.full(1, self.noise.common**2)
        new = np.concatenate([walk, np.zeros(c), self._session, self._wander, common])
        self.sessions += 1
        return self._predict(np.repeat([1.0, 0.0], [lasting, renewed]), new)

    def advance(self, seconds: float) -> Array:
        """Advance the states by a time [s] within a session.

        Returns:
            Share of each state that remains [4 c + 1].
        """
        c = self.channels
        usual = slice(0, c)
        wander = slice(3 * c, 4 * c)
        keep = np.ones_like(self.mean)
        new = np.zeros_like(self.mean)
        keep[wander] = np.exp(-seconds / self.noise.wander_time)
        new[usual] = self._wear * seconds / DAY
        new[wander] = self._wander * (1.0 - keep[wander] ** 2)
        return self._predict(keep, new)

    def _predict(self, keep: Array, new: Array) -> Array:
        """Prediction step of the filter.

        Args:
            keep: share of each state that remains [4 c + 1].
            new: variance that is added to each state [4 c + 1].

        Returns:
            The shares.
        """
        self.mean = self.mean * keep
        self.covariance = self.covariance * np.outer(keep, keep) + np.diag(new)
        return keep

    def update(
        self, value: Array, covariance: Array, temperature: Array
    ) -> Innovation | None:
        """Update the states with measured levels; an unexpected level counts as less certain.

        Args:
            value: measured levels [c]; NaN where not measured.
            covariance: covariance of the measurements [c, c].
            temperature: temperature of the channels [c], degC; NaN where unknown.

        Returns:
            The innovation of the measured channels; None if nothing was measured.
        """
        known = np.flatnonzero(np.isfinite(value))
        if not known.size:
            return None
        rows = self._rows(temperature)[known]
        spread = rows @ self.covariance @ rows.T + covariance[np.ix_(known, known)]
        spread = spread + np.diag(self._least[known])
        innovation = value[known] - rows @ self.mean
        # A value beyond _SURPRISE gets the variance that makes it _SURPRISE deviations.
        excess = np.square(innovation / _SURPRISE) - np.diag(spread)
        spread = spread + np.diag(np.maximum(excess, 0.0))
        precision = np.linalg.inv(spread)
        gain = self.covariance @ rows.T @ precision
        self.mean = self.mean + gain @ innovation
        updated = self.covariance - gain @ spread @ gain.T
        self.covariance = 0.5 * (updated + updated.T)
        return Innovation(known, innovation, precision, rows, gain)

    def level(
        self, temperature: Array, *, another_session: bool = False
    ) -> tuple[Array, Array]:
        """Level of each channel and its standard deviation [c].

        Args:
            temperature: temperature of the channels [c], degC; NaN for the reference
                temperature.
            another_session: whether the levels are expected for a session that has not begun,
                with the spread between sessions.
        """
        rows = self._rows(temperature)
        extra = np.zeros(self.channels)
        if another_session:
            rows[:, 2 * self.channels :] = 0.0  # session, wander and common part
            extra = self._session + self._wander + self.noise.common**2
        variance = np.einsum("cs,st,ct->c", rows, self.covariance, rows) + extra
        return rows @ self.mean, np.sqrt(np.maximum(variance, 0.0))

    def forget(self, channels: Sequence[int]) -> None:
        """Reset these channels to the state before their first measurement."""
        c = self.channels
        states = states_of(channels, c)
        first = np.concatenate([self._usual, self._slope, self._session, self._wander])
        self.mean[states] = 0.0
        self.covariance[states] = 0.0
        self.covariance[:, states] = 0.0
        self.covariance[states, states] = first[states]

    def shift(self, direction: Array, size: float, variance: float) -> None:
        """Move the states by a step.

        Args:
            direction: direction of the step [4 c + 1].
            size: size of the step in this direction.
            variance: variance of the size.
        """
        self.mean = self.mean + direction * size
        self.covariance = self.covariance + variance * np.outer(direction, direction)

    def _rows(self, temperature: Array) -> Array:
        """Measurement matrix [c, 4 c + 1] at temperatures [c]."""
        one = np.eye(self.channels)
        warmth = np.nan_to_num(temperature - REFERENCE_TEMPERATURE)
        common = np.full((self.channels, 1), 1.0 if self.noise.common else 0.0)
        return np.concatenate([one, one * warmth[:, None], one, one, common], axis=1)


def states_of(channels: Sequence[int], count: int) -> Indices:
    """Numbers of the states of some channels, without the common part.

    Args:
        channels: numbers of the channels [k].
        count: number of all channels c of the filter.

    Returns:
        Places in `DriftFilter.mean` [4 k].
    """
    parts = count * np.arange(4)[:, None]  # begins of usual, slope, session and wander
    return np.asarray((parts + np.asarray(channels, dtype=int)).ravel())
