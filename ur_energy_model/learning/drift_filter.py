# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Levels that move within a day and wear over weeks, in one Kalman filter, and their steps.

The level of each channel (logarithm of a joint's friction, standby power, payload) is

    level = usual + slope (temperature - reference) + session + wander + common

`usual` is a random walk over days: wear and running-in, old measurements are forgotten.
`slope` is the part of the temperature's effect that the model's friction law leaves.
`session` and `common` (of all channels) are drawn anew in every session, `wander` forgets
within minutes of motion. Kalman 1960; estimates and tests are recursive, so memory is
constant.
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
"""Innovations beyond so many standard deviations count as just so many: a single bad minute must
not move the estimate far, nor be taken for a step (Huber's bounded influence)."""


@dataclass(frozen=True)
class DriftNoise:
    """Spreads of a level, standard deviations in its unit; a number or one per channel [c].

    `usual` is that of the usual level before the first measurement, `wear` its random
    walk per square root of a day, `running_in` its change from the first session to the
    second, which decreases by a factor e in five sessions. `session` is between sessions,
    of each channel, and `common` the same for all; `wander` within a session, with a
    correlation time [s]; `least` of a minute's measurement at least; `slope` with
    temperature, per kelvin.
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

    `mean` and `covariance` are those of the states [4 c + 1]: usual, slope, session and
    wander of every channel, then the common part.
    """

    def __init__(self, noise: DriftNoise, channels: int) -> None:
        self.noise = noise
        self.channels = channels
        # Variances [c] of each part.
        self._usual, self._slope, self._wear, self._session, self._wander, self._least = (
            np.square(getattr(noise, name) * np.ones(channels))
            for name in ("usual", "slope", "wear", "session", "wander", "least")
        )
        self.mean = np.zeros(4 * channels + 1)
        rest = np.zeros(2 * channels + 1)
        self.covariance = np.diag(np.concatenate([self._usual, self._slope, rest]))
        self.sessions = 0

    @property
    def usual(self) -> Array:
        """Usual level of each channel at the reference temperature [c]."""
        return np.array(self.mean[: self.channels])

    def start_session(self, days: float) -> Array:
        """Start a session some days after the last one; returns what states keep [4 c + 1]."""
        c = self.channels
        # Sessions measure the wear; the first minutes of the first one start from
        # `usual`.
        faded = np.exp(-self.sessions / RUNNING_IN_SESSIONS) if self.sessions else 0.0
        walk = self._wear * max(days, 0.0) + (self.noise.running_in * faded) ** 2
        common = np.full(1, self.noise.common**2)
        new = np.concatenate([walk, np.zeros(c), self._session, self._wander, common])
        self.sessions += 1
        return self._predict(np.repeat([1.0, 0.0], [2 * c, 2 * c + 1]), new)

    def advance(self, seconds: float) -> Array:
        """Let time pass within a session; returns what states keep [4 c + 1]."""
        c = self.channels
        keep = np.ones_like(self.mean)
        new = np.zeros_like(self.mean)
        keep[3 * c : 4 * c] = np.exp(-seconds / self.noise.wander_time)
        new[:c] = self._wear * seconds / 86400.0
        new[3 * c : 4 * c] = self._wander * (1.0 - keep[3 * c : 4 * c] ** 2)
        return self._predict(keep, new)

    def _predict(self, keep: Array, new: Array) -> Array:
        """States keep these shares and gain these variances; returns the shares."""
        self.mean = self.mean * keep
        self.covariance = self.covariance * np.outer(keep, keep) + np.diag(new)
        return keep

    def update(
        self, value: Array, covariance: Array, temperature: Array
    ) -> tuple[Indices, Array, Array, Array, Array] | None:
        """Use measured levels [c], NaN where not measured; a surprising one counts as less certain.

        Their covariance is [c, c], the temperatures of the channels [c], degC, NaN where
        unknown. Returns, for tests of steps in the k measured channels: their numbers
        [k], measurement minus prediction [k], the inverse of its covariance [k, k],
        measurement matrix [k, states] and gain [states, k]; None if nothing was measured.
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
        """Level of each channel and its std [c], at temperatures [c]; NaN is the reference.

        Those now, or those of another session, with the spread between sessions.
        """
        rows = self._rows(temperature)
        extra = np.zeros(self.channels)
        if another_session:
            rows[:, 2 * self.channels :] = 0.0
            extra = self._session + self._wander + self.noise.common**2
        variance = np.einsum("cs,st,ct->c", rows, self.covariance, rows) + extra
        return rows @ self.mean, np.sqrt(np.maximum(variance, 0.0))

    def forget(self, channels: Sequence[int]) -> None:
        """Know of these channels no more than before their first measurement."""
        c = self.channels
        states = _states_of(channels, c)
        first = np.concatenate([self._usual, self._slope, self._session, self._wander])
        self.mean[states] = 0.0
        self.covariance[states] = 0.0
        self.covariance[:, states] = 0.0
        self.covariance[states, states] = first[states]

    def shift(self, direction: Array, size: float, variance: float) -> None:
        """Take over a step: states move by direction [4 c + 1] times a size known so well."""
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
    return np.concatenate(
        [np.asarray(channels, dtype=int) + part * count for part in range(4)]
    )


# Steps of levels: a generalised likelihood ratio on the filter's innovations. A step that
# the filter does not expect leaves a known signature in them (Willsky and Jones 1976):
# one in its channel at first, and less with every update, as the filter gives way to it
# and its states go wrong by `bias`. Signature times size plus noise is a linear
# regression for each possible onset and channel, and its sums are all that is kept.

LATEST = 30
SESSIONS = 6
"""Possible times of a step: the last minutes, and the last starts of a session."""
_MEMORY = 240.0  # minutes over which the size of the innovations is averaged
_LARGEST = 9.0
"""Limit of a squared innovation in that average, so that a step hardly changes it; and of the
average."""
_NEVER = -1e9  # minutes of a possible step that is out of the question
_RATIO = 30.0
"""Twice the logarithm of the likelihood ratio from which a step within a session is certain."""
_MINUTES = 3.0
_SESSION_MINUTES = 10.0
"""Measured minutes that a step within a session, and one at its start, must last."""
_EXPLAINED = 0.6
"""Share of the squared innovations since the onset that a step within a session must explain: about
1 for a step, far less for a single bad minute."""
_SETTLING = 20.0
"""Measured minutes of a channel before anything is reported: before, its usual level is unknown."""
# a level is usual again closer to it than this share of the smallest reported step
_BACK = 0.5
FORGETTING_DAYS = 30.0  # time constant after which a changed level counts as usual
_SUMS = ("minutes", "information", "product", "squares")
"""Of each possible onset and channel [h, c]: measured minutes since then, and sums of signature
squared, signature times innovation, and innovation squared, in units of their covariance.
"""


@dataclass(frozen=True)
class LevelChange:
    """A step that is reported, of a channel by number, with the time of its onset [s].

    `size` is the level minus the usual one, `std` its standard deviation, `usual` the
    usual level at the present temperature of the channel [degC], NaN where that is
    unknown.
    """

    channel: int
    time: float
    size: float
    std: float
    usual: float
    temperature: float


class LevelDetector:
    """Follows c levels and reports their changes, each once.

    `least` is the smallest step that is reported, in the unit of the levels, one or one
    per channel; `session_ratio` twice the logarithm of the likelihood ratio from which a
    step at the start of a session is certain, over the spread of sessions. `filter` has
    the estimates, `changed` whether each level differs from its usual one after a
    reported change [c].
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
        """A session starts at this time [s], some days after the last one."""
        self._time = time
        self._pass(self.filter.start_session(days), days, start=True)

    def observe(
        self, time: float, value: Array, covariance: Array, temperature: Array
    ) -> list[LevelChange]:
        """Use the levels of a minute that ends at a later time [s] than the last one.

        Values, covariance and temperatures as for `DriftFilter.update`.
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
        out = [self._taken_over(*step, temperature) for step in self._certain()]
        self._usual = np.where(self.changed, self._usual, self.filter.usual)
        return [change for change in out if change is not None]

    def rebase(self, shift: Array, std: Array) -> None:
        """State levels relative to another model: a shift [c] known so well [c] is added."""
        for state, size, error in zip(
            np.eye(len(self.filter.mean)), shift, std, strict=False
        ):
            self.filter.shift(state, float(size), float(error) ** 2)
        self._usual = self._usual + shift

    def forget(self, channels: Sequence[int]) -> None:
        """Begin anew with these channels: what follows does not compare with what was."""
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
        """Everything needed to continue."""
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
        """Continue from what `saved` gave of a detector of the same kind."""
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
        """Time has passed, of which states keep these shares; a step is possible from now on."""
        onsets = self._onsets
        onsets["bias"] = onsets["bias"] * keep
        # of too many, the oldest is given up
        same = np.flatnonzero(onsets["start"] == start)
        kept = np.ones(len(onsets["time"]), dtype=bool)
        kept[same[:1]] = len(same) < (SESSIONS if start else LATEST)
        for name, rows in onsets.items():
            onsets[name] = np.concatenate(
                [rows[kept], np.zeros_like(rows, shape=(1, *rows.shape[1:]))]
            )
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
        """Use an innovation, see `DriftFilter.update`."""
        onsets = self._onsets
        # [onsets, c, k]
        left = np.eye(len(self._least))[:, known] - onsets["bias"] @ rows.T
        weighted = left @ precision
        onsets["information"] += (weighted * left).sum(axis=2)
        onsets["product"] += weighted @ value
        # The filter follows the rest of the signature as if it were the arm's own drift.
        onsets["bias"] += left @ gain.T
        onsets["minutes"][:, known] += 1.0
        # Squares of decorrelated innovations: of each channel, given the others.
        square = np.square(precision @ value) / np.diag(precision)
        onsets["squares"][:, known] += square
        self._square[known] += (
            np.minimum(square, _LARGEST) - self._square[known]
        ) / _MEMORY

    def _certain(self) -> list[tuple[int, int]]:
        """Onset and channel of the likeliest steps that are large and certain enough."""
        onsets = self._onsets
        channels = np.arange(len(self._least))
        information = np.maximum(onsets["information"], 1e-30)
        minutes = onsets["minutes"]
        ratio = np.where(minutes > 0, onsets["product"] ** 2 / information, 0.0)
        explained = ratio / np.maximum(onsets["squares"], 1e-30)
        size = np.abs(onsets["product"]) / information
        # Between sessions the spread of sessions decides, which innovations do not show.
        ratio = np.where(onsets["start"][:, None], ratio, ratio / self._excess)
        open_ = self._measured >= _SETTLING
        within = list[tuple[int, int]]()
        at_start = list[tuple[int, int]]()
        for start in (False, True):
            rows = np.flatnonzero(onsets["start"] == start)
            if not rows.size:
                continue
            best = rows[np.argmax(ratio[rows], axis=0)], channels
            limit, least = (
                (self._session_ratio, _SESSION_MINUTES) if start else (_RATIO, _MINUTES)
            )
            certain = open_ & (ratio[best] >= limit) & (size[best] >= self._least)
            lasting = minutes[best] >= least
            found = certain & lasting & (start | (explained[best] >= _EXPLAINED))
            (at_start if start else within).extend(
                (int(best[0][c]), int(c)) for c in np.flatnonzero(found)
            )
            # One that has not lasted may be a single bad minute, or begin later.
            open_ = open_ & ~found & ~(certain & ~lasting)
        return within + sorted(at_start, key=lambda step: -ratio[step])[:1]

    def _taken_over(self, h: int, channel: int, temperature: Array) -> LevelChange | None:
        """Let the filter expect a step; the change, unless the level is back at its usual."""
        onsets = self._onsets
        start = bool(onsets["start"][h])
        information = float(onsets["information"][h, channel])
        step = float(onsets["product"][h, channel]) / information
        variance = (1.0 if start else float(self._excess[channel])) / information
        direction = np.eye(len(self.filter.mean))[channel] - onsets["bias"][h, channel]
        self.filter.shift(direction, step, variance)
        # Its evidence is forgotten. A step at the start of a session was mistaken for the
        # common part, too, so that the other channels' evidence of such steps is void
        # with it.
        void = np.zeros_like(onsets["minutes"], dtype=bool)
        void[:, channel] = True
        void[onsets["start"]] |= start
        for name in ("bias", *_SUMS):
            onsets[name][void] = _NEVER if name == "minutes" else 0.0
        if not self.changed[channel]:  # the last minutes had moved it towards the step
            self._usual[channel] = self.filter.usual[channel] - step
        size = float(self.filter.usual[channel] - self._usual[channel])
        self.changed[channel] = abs(size) >= _BACK * self._least[channel]
        if not self.changed[channel]:
            return None
        usual = (
            float(self.filter.level(temperature, another_session=True)[0][channel]) - size
        )
        warmth = float(temperature[channel])
        std = float(np.sqrt(variance))
        return LevelChange(channel, float(onsets["time"][h]), size, std, usual, warmth)
