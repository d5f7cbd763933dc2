# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Levels that vary within a day and wear over weeks, in one Kalman filter, and their steps.

The level of each channel (logarithm of a joint's friction, standby power, payload) is

    level = usual + slope (temperature - reference) + session + wander + common

`usual` is a random walk over days, by wear and running-in; the estimate forgets old
measurements. `slope` is the effect of temperature beyond the model's friction law. `session`,
and `common`, which is the same in all channels, have new values in every session. `wander`
varies within minutes of motion. Estimates (Kalman 1960) and tests are recursive, so that
memory is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.friction import REFERENCE_TEMPERATURE
from ur_energy_model.typing import Array, Indices, Mask

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
        # No running-in before the first session, which starts from the spread of `usual`.
        faded = np.exp(-self.sessions / RUNNING_IN_SESSIONS) if self.sessions else 0.0
        walk = self._wear * max(days, 0.0) + (self.noise.running_in * faded) ** 2
        common = np.full(1, self.noise.common**2)
        new = np.concatenate([walk, np.zeros(c), self._session, self._wander, common])
        self.sessions += 1
        return self._predict(np.repeat([1.0, 0.0], [2 * c, 2 * c + 1]), new)

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
        new[usual] = self._wear * seconds / 86400.0
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
    ) -> tuple[Indices, Array, Array, Array, Array] | None:
        """Update the states with measured levels; an unexpected level counts as less certain.

        Args:
            value: measured levels [c]; NaN where not measured.
            covariance: covariance of the measurements [c, c].
            temperature: temperature of the channels [c], degC; NaN where unknown.

        Returns:
            For tests of steps in the k measured channels: their numbers [k], measurement
            minus prediction [k], the inverse of its covariance [k, k], the measurement
            matrix [k, states] and the gain [states, k]; None if nothing was measured.
        """
        known = np.flatnonzero(np.isfinite(value))
        if not known.size:
            return None
        rows = self._rows(temperature)[known]
        spread = rows @ self.covariance @ rows.T + covariance[np.ix_(known, known)]
        spread = spread + np.diag(self._least[known])
        innovation = value[known] - rows @ self.mean
        excess = np.square(innovation / _SURPRISE) - np.diag(spread)
        spread = spread + np.diag(np.maximum(excess, 0.0))
        precision = np.linalg.inv(spread)
        gain = self.covariance @ rows.T @ precision
        self.mean = self.mean + gain @ innovation
        updated = self.covariance - gain @ spread @ gain.T
        self.covariance = 0.5 * (updated + updated.T)
        return known, innovation, precision, rows, gain

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
        states = _states_of(channels, c)
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


def _states_of(channels: Sequence[int], count: int) -> Indices:
    """Numbers of the states of some of `count` channels, in the order of `DriftFilter.mean`."""
    parts = count * np.arange(4)[:, None]
    return np.asarray((parts + np.asarray(channels, dtype=int)).ravel())


# Steps of levels: a generalised likelihood ratio on the filter's innovations. A step that
# the filter does not expect leaves a known signature in them (Willsky and Jones 1976): 1
# in its channel at first, and less with every update, because the filter follows the step
# and its states get an error, the `bias`. Innovations are signature times size plus noise:
# a linear regression for each possible onset and channel, of which only sums are kept.

LATEST = 30  # number of the last minutes at which a step may have begun
SESSIONS = 6  # number of the last starts of a session at which a step may have begun
_MEMORY = 240.0  # number of minutes over which squared innovations are averaged
_LARGEST = 9.0
"""Limit of a squared innovation in the average, so that a step hardly changes the average; and
limit of the average."""
_NEVER = -1e9  # number of minutes of a possible step that is excluded for good
_RATIO = 30.0
"""Twice the logarithm of the likelihood ratio at which a step within a session is certain."""
_MINUTES = 3.0  # measured minutes that a step within a session must last
_SESSION_MINUTES = (
    10.0  # measured minutes that a step at the start of a session must last
)
_EXPLAINED = 0.6
"""Share of the squared innovations since the onset that a step within a session must explain: about
1 for a step, far less for a single bad minute."""
_SETTLING = 20.0
"""Measured minutes of a channel until its usual level is known and changes are reported."""
_BACK = 0.5
"""A level is usual again if its distance from the usual level is below this share of the smallest
reported step."""
FORGETTING_DAYS = 30.0  # time constant after which a changed level counts as usual
_SUMS = ("minutes", "information", "product", "squares")
"""Values of each possible onset and channel [onsets, c]: measured minutes since the onset, and sums
of signature squared, signature times innovation, and innovation squared, in units of the covariance
of the innovations."""


@dataclass(frozen=True)
class LevelChange:
    """A step of a level that is reported.

    Attributes:
        channel: number of the level.
        time: time of the onset [s].
        size: level less the usual level.
        std: standard deviation of the size.
        usual: the usual level at `temperature`.
        temperature: temperature of the channel at present, degC; NaN where unknown.
    """

    channel: int
    time: float
    size: float
    std: float
    usual: float
    temperature: float


class LevelDetector:
    """Follows c levels and reports their changes, each once.

    Args:
        noise: spreads of the levels.
        least: smallest step that is reported, in the unit of the levels; a number or one
            per channel [c].
        channels: number of the levels c.
        session_ratio: twice the logarithm of the likelihood ratio from which a step at the
            start of a session is certain.

    Attributes:
        filter: estimates of the levels.
        changed: whether each level differs from its usual one after a reported change [c].
    """

    def __init__(
        self,
        noise: DriftNoise,
        least: float | Array,
        channels: int,
        session_ratio: float = 11.0,
    ) -> None:
        self._least = least * np.ones(channels)
        self._session_ratio = session_ratio
        self.filter = DriftFilter(noise, channels)
        self._time = np.nan  # of the last minute or start [s]; NaN before the first
        self._usual = np.zeros(channels)
        """Usual level before the reported changes, at the reference temperature."""
        self.changed = np.zeros(channels, dtype=bool)
        self._measured = np.zeros(channels)  # measured minutes
        self._square = np.ones(channels)
        """Mean squared innovation of each channel over the filter's own variance."""
        sums = {name: np.zeros((0, channels)) for name in _SUMS}
        bias = np.zeros((0, channels, len(self.filter.mean)))
        self._onsets = {
            "time": np.zeros(0),
            "start": np.zeros(0, dtype=bool),
            "bias": bias,
            **sums,
        }

    @property
    def _excess(self) -> Array:
        """Variance of each channel's innovations over the filter's own, at least 1 [c]."""
        return np.clip(self._square, 1.0, _LARGEST)

    @property
    def known(self) -> Mask:
        """Whether each level was ever measured [c]."""
        return np.asarray(self._measured > 0.0)

    def start_session(self, time: float, days: float) -> None:
        """Start a session at a time [s], some days after the last one."""
        self._time = time
        self._pass(self.filter.start_session(days), days, start=True)

    def observe(
        self, time: float, value: Array, covariance: Array, temperature: Array
    ) -> list[LevelChange]:
        """Use the levels of a minute.

        Args:
            time: time at which the minute ends, later than the last one [s].
            value: measured levels [c]; NaN where not measured.
            covariance: covariance of the measurements [c, c].
            temperature: temperature of the channels [c], degC; NaN where unknown.

        Returns:
            Changes that are certain now.
        """
        if np.isnan(self._time):
            self.start_session(time, 0.0)
        passed = max(time - self._time, 0.0)
        self._pass(self.filter.advance(passed), passed / 86400.0, start=False)
        self._time = time
        found = self.filter.update(value, covariance, temperature)
        if found is None:
            return []
        self._accumulate(*found)
        self._measured[found[0]] += 1.0
        changes = []
        for onset, channel in self._certain():
            change = self._accept(onset, channel, temperature)
            if change is not None:
                changes.append(change)
        self._usual = np.where(self.changed, self._usual, self.filter.usual)
        return changes

    def rebase(self, shift: Array, std: Array) -> None:
        """State levels relative to another model.

        Args:
            shift: added to the levels [c].
            std: standard deviations of the shift [c].
        """
        directions = np.eye(len(self.filter.mean))
        for channel, (size, error) in enumerate(zip(shift, std, strict=True)):
            self.filter.shift(directions[channel], float(size), float(error) ** 2)
        self._usual = self._usual + shift

    def forget(self, channels: Sequence[int]) -> None:
        """Begin anew with these channels: later levels are not compared with earlier ones."""
        places = list(channels)
        self.filter.forget(places)
        self._usual[places] = 0.0
        self._measured[places] = 0.0
        self._square[places] = 1.0
        self.changed[places] = False
        for name in ("bias", *_SUMS):
            self._onsets[name][:, places] = 0.0
        self._onsets["bias"][:, :, _states_of(places, self.filter.channels)] = 0.0

    def saved(self) -> dict[str, Array]:
        """Everything that `restore` needs to continue."""
        return {
            "filter_mean": self.filter.mean,
            "filter_covariance": self.filter.covariance,
            "filter_sessions": np.array(float(self.filter.sessions)),
            "test_square": self._square,
            **{f"test_{name}": values for name, values in self._onsets.items()},
            "usual": self._usual,
            "changed": self.changed,
            "measured": self._measured,
            "time": np.array(self._time),
        }

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue with values that `saved` returned for a detector of the same kind."""
        own = {name: np.array(values) for name, values in saved.items()}
        self.filter.mean = own["filter_mean"]
        self.filter.covariance = own["filter_covariance"]
        self.filter.sessions = int(own["filter_sessions"])
        self._time = float(own["time"])
        self._usual = own["usual"]
        self._measured = own["measured"]
        self.changed = own["changed"].astype(bool)
        self._square = own["test_square"]
        self._onsets = {name: own[f"test_{name}"] for name in self._onsets}

    def _pass(self, keep: Array, days: float, *, start: bool) -> None:
        """Add the present time as a possible onset of steps.

        Args:
            keep: share of each state that remained since the last time [states].
            days: time that has passed [days].
            start: whether a session starts.
        """
        onsets = self._onsets
        onsets["bias"] = onsets["bias"] * keep
        same = np.flatnonzero(onsets["start"] == start)
        most = SESSIONS if start else LATEST
        kept = np.ones(len(onsets["time"]), dtype=bool)
        kept[same[:1]] = (
            len(same) < most
        )  # the oldest onset is dropped if there is no room
        for name, rows in onsets.items():
            new_row = np.zeros_like(rows, shape=(1, *rows.shape[1:]))
            onsets[name] = np.concatenate([rows[kept], new_row])
        onsets["time"][-1] = self._time
        onsets["start"][-1] = start
        # A changed level becomes usual within weeks.
        share = -np.expm1(-max(days, 0.0) / FORGETTING_DAYS)
        self._usual = self._usual + share * (self.filter.usual - self._usual)
        far = np.abs(self.filter.usual - self._usual) >= _BACK * self._least
        self.changed = self.changed & far

    def _accumulate(
        self, known: Indices, value: Array, precision: Array, rows: Array, gain: Array
    ) -> None:
        """Use an innovation; arguments are the results of `DriftFilter.update`."""
        onsets = self._onsets
        # Part of the steps that the filter has not followed yet [onsets, c, k].
        signature = np.eye(len(self._least))[:, known] - onsets["bias"] @ rows.T
        weighted = signature @ precision
        onsets["information"] += (weighted * signature).sum(axis=2)
        onsets["product"] += weighted @ value
        # The filter follows the signature as if it were the arm's own drift.
        onsets["bias"] += signature @ gain.T
        onsets["minutes"][:, known] += 1.0
        # Squares of decorrelated innovations: of each channel, given the others.
        square = np.square(precision @ value) / np.diag(precision)
        onsets["squares"][:, known] += square
        limited = np.minimum(square, _LARGEST)
        self._square[known] += (limited - self._square[known]) / _MEMORY

    def _certain(self) -> list[tuple[int, int]]:
        """Onset and channel of the most likely steps that are large and certain enough."""
        onsets = self._onsets
        channels = np.arange(len(self._least))
        information = np.maximum(onsets["information"], 1e-30)
        minutes = onsets["minutes"]
        ratio = np.where(minutes > 0, onsets["product"] ** 2 / information, 0.0)
        explained = ratio / np.maximum(onsets["squares"], 1e-30)
        size = np.abs(onsets["product"]) / information
        # The excess of the innovations is a spread within sessions: it does not apply to
        # steps at the start of a session.
        ratio = np.where(onsets["start"][:, None], ratio, ratio / self._excess)
        undecided = self._measured >= _SETTLING
        steps: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for start, found_steps in steps.items():
            rows = np.flatnonzero(onsets["start"] == start)
            if not rows.size:
                continue
            likeliest = rows[np.argmax(ratio[rows], axis=0)]  # onset for each channel [c]
            best = (likeliest, channels)
            limit = self._session_ratio if start else _RATIO
            least_minutes = _SESSION_MINUTES if start else _MINUTES
            certain = undecided & (ratio[best] >= limit) & (size[best] >= self._least)
            lasting = minutes[best] >= least_minutes
            found = certain & lasting
            if not start:
                found &= explained[best] >= _EXPLAINED
            for channel in np.flatnonzero(found).tolist():
                found_steps.append((int(likeliest[channel]), channel))
            # A step that has not lasted may be a single bad minute, or begin later.
            undecided = undecided & ~found & ~(certain & ~lasting)
        # A step at the start of a session changes the evidence of the other channels.
        at_start = max(steps[True], key=ratio.__getitem__, default=None)
        if at_start is None:
            return steps[False]
        return [*steps[False], at_start]

    def _accept(self, onset: int, channel: int, temperature: Array) -> LevelChange | None:
        """Add a step to the estimates.

        Args:
            onset: number of the onset.
            channel: channel of the step.
            temperature: temperature of the channels at present [c], degC; NaN where
                unknown.

        Returns:
            The change to report; None if the level is back at its usual one.
        """
        onsets = self._onsets
        start = bool(onsets["start"][onset])
        information = float(onsets["information"][onset, channel])
        step = float(onsets["product"][onset, channel]) / information
        excess = 1.0 if start else float(self._excess[channel])
        variance = excess / information
        bias = onsets["bias"][onset, channel]
        direction = np.eye(len(self.filter.mean))[channel] - bias
        self.filter.shift(direction, step, variance)
        # The evidence of the step is discarded. A step at the start of a session has also
        # appeared as a common part, so that the evidence of steps of other channels at the
        # start of sessions is discarded as well.
        discarded = np.zeros_like(onsets["minutes"], dtype=bool)
        discarded[:, channel] = True
        discarded[onsets["start"]] |= start
        for name in ("bias", *_SUMS):
            onsets[name][discarded] = _NEVER if name == "minutes" else 0.0
        if not self.changed[channel]:
            # The last minutes had moved the usual level towards the step.
            self._usual[channel] = self.filter.usual[channel] - step
        size = float(self.filter.usual[channel] - self._usual[channel])
        self.changed[channel] = abs(size) >= _BACK * self._least[channel]
        if not self.changed[channel]:
            return None
        levels, _ = self.filter.level(temperature, another_session=True)
        return LevelChange(
            channel=channel,
            time=float(onsets["time"][onset]),
            size=size,
            std=float(np.sqrt(variance)),
            usual=float(levels[channel]) - size,
            temperature=float(temperature[channel]),
        )
