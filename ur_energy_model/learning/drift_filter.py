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

from ur_energy_model.codec import built
from ur_energy_model.model.friction import REFERENCE_TEMPERATURE
from ur_energy_model.typing import Array, Indices, Mask

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
        """Start a session some days after the last one; returns what states keep [4 c + 1]."""
        noise, c = self.noise, self.channels
        keep = np.ones_like(self.mean)
        keep[2 * c :] = 0.0
        # Sessions measure the wear; the first minutes of the first one start from `usual`.
        faded = np.exp(-self.sessions / RUNNING_IN_SESSIONS) if self.sessions else 0.0
        walk = np.square(self._each(noise.wear)) * max(days, 0.0)
        walk = walk + np.square(self._each(noise.running_in) * faded)
        session, wander = (np.square(self._each(x)) for x in (noise.session, noise.wander))
        new = np.concatenate([walk, np.zeros(c), session, wander, [noise.common**2]])
        self.sessions += 1
        return self._predicted(keep, new)

    def advance(self, seconds: float) -> Array:
        """Let time pass within a session; returns what states keep [4 c + 1]."""
        c, part = self.channels, slice(3 * self.channels, 4 * self.channels)
        keep = np.ones_like(self.mean)
        keep[part] = np.exp(-seconds / self.noise.wander_time)
        new = np.zeros_like(self.mean)
        new[:c] = np.square(self._each(self.noise.wear)) * seconds / 86400.0
        new[part] = np.square(self._each(self.noise.wander)) * (1.0 - keep[part] ** 2)
        return self._predicted(keep, new)

    def _predicted(self, keep: Array, new: Array) -> Array:
        """States keep these shares and gain these variances; returns the shares."""
        self.mean = self.mean * keep
        self.covariance = self.covariance * np.outer(keep, keep) + np.diag(new)
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
        """Level of each channel now and its standard deviation [c], at temperatures [c] (degC).

        NaN stands for the reference temperature.
        """
        return self._combined(self._rows(temperature), 0.0)

    def usual_level(self, temperature: Array) -> tuple[Array, Array]:
        """The same for another session, with the spread between sessions."""
        rows = self._rows(temperature)
        rows[:, 2 * self.channels :] = 0.0
        noise = self.noise
        scatter = np.square(self._each(noise.session)) + np.square(self._each(noise.wander))
        return self._combined(rows, scatter + noise.common**2)

    def shift(self, direction: Array, size: float, variance: float) -> None:
        """Take over a step: states move by direction [4 c + 1] times a size known so well."""
        self.mean = self.mean + direction * size
        self.covariance = self.covariance + variance * np.outer(direction, direction)

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue."""
        sessions = np.array(float(self.sessions))
        return {"mean": self.mean, "covariance": self.covariance, "sessions": sessions}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave of a filter of the same kind."""
        self.mean, self.covariance = np.array(saved["mean"]), np.array(saved["covariance"])
        self.sessions = int(saved["sessions"])

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


# Steps of a filtered level: generalised likelihood ratio on its innovations.

LATEST, SESSIONS = 30, 6
"""Possible times of a step: the last minutes, and the last starts of a session."""
_MEMORY = 240.0
"""Minutes over which the size of the innovations is averaged."""
_LARGEST_SQUARE, _LARGEST_FACTOR = 9.0, 9.0
"""Limit of a squared innovation in that average, so that a step hardly changes it; and of the
result."""
_NEVER = -1e9
"""Minutes of a possible step that is out of the question."""


@dataclass(frozen=True)
class Step:
    """The likeliest step of one channel.

    Attributes:
        channel: its number.
        time: of the onset [s].
        at_session_start: whether the onset is the start of a session.
        minutes: measured since then.
        size, variance: of the step.
        ratio: twice the logarithm of the likelihood ratio.
        explained: share of the channel's squared innovations since the onset that the step
            explains; about 1 for a step, far less for a single bad minute.
        direction: change of the filter's states per unit of the step, once it is taken over.
    """

    channel: int
    time: float
    at_session_start: bool
    minutes: float
    size: float
    variance: float
    ratio: float
    explained: float
    direction: Array


@dataclass
class StepDetector:
    """Follows the likelihood of steps in c channels of a filter, from each of h possible onsets.

    A step that the filter does not expect leaves a known signature in its innovations (Willsky and
    Jones 1976): one in its channel at first, and less with every update, as the filter gives way to
    it and its states go wrong by `bias`. Signature times size plus noise is a linear regression for
    each onset and channel, and its sums are all that is kept: the memory is constant, with the last
    LATEST minutes and the starts of the last SESSIONS sessions as onsets.

    Attributes:
        square: mean squared innovation of each channel over the filter's own variance [c].
        bias: error of the filter's states per unit of a step that is not expected [h, c, states].
        time: of the onsets [h], s.
        start: whether each is the start of a session [h].
        minutes: measured since then [h, c].
        information, product, squares: sums of signature squared, signature times innovation, and
            innovation squared, in units of the innovations' covariance [h, c].
    """

    square: Array
    bias: Array
    time: Array
    start: Mask
    minutes: Array
    information: Array
    product: Array
    squares: Array

    @classmethod
    def of(cls, channels: int, states: int) -> StepDetector:
        """A detector without onsets, for a filter with some states."""
        none = np.zeros((0, channels))
        bias = np.zeros((0, channels, states))
        time, start = np.zeros(0), np.zeros(0, dtype=bool)
        return cls(np.ones(channels), bias, time, start, *(none.copy() for _ in range(4)))

    @property
    def excess(self) -> Array:
        """Variance of each channel's innovations over the filter's own, at least 1 [c]."""
        return np.clip(self.square, 1.0, _LARGEST_FACTOR)

    def forget(self, keep: Array) -> None:
        """The filter's states keep these shares of their values [states]."""
        self.bias = self.bias * keep

    def open(self, time: float, *, session_start: bool) -> None:
        """From now on a step at this time is possible, and the oldest of too many is not."""
        same = np.flatnonzero(self.start == session_start)
        kept = np.ones(len(self.time), dtype=bool)
        kept[same[:1]] = len(same) < (SESSIONS if session_start else LATEST)
        for name in ("bias", "time", "start", "minutes", "information", "product", "squares"):
            rows = getattr(self, name)[kept]
            setattr(self, name, np.concatenate([rows, np.zeros((1, *rows.shape[1:]), rows.dtype)]))
        self.time[-1], self.start[-1] = time, session_start

    def observe(self, found: Innovation) -> None:
        """Use an innovation; possible steps before it must be open."""
        known = found.channels
        signature = np.zeros((len(self.square), len(known)))
        signature[known, np.arange(len(known))] = 1.0
        left = signature - self.bias @ found.rows.T  # [onsets, c, k]
        weighted = left @ found.precision
        self.information = self.information + (weighted * left).sum(axis=2)
        self.product = self.product + weighted @ found.value
        # The filter follows the rest of the signature as if it were the arm's own drift.
        self.bias = self.bias + left @ found.gain.T
        self.minutes[:, known] += 1.0
        # Squares of decorrelated innovations: of each channel, given the others.
        square = np.square(found.precision @ found.value) / np.diag(found.precision)
        self.squares[:, known] += square
        past = self.square[known]
        self.square[known] = past + (np.minimum(square, _LARGEST_SQUARE) - past) / _MEMORY

    def steps(self) -> list[Step]:
        """The likeliest step of each channel within a session, and at the start of one."""
        ratio = np.square(self.product) / np.maximum(self.information, 1e-30)
        # Between sessions the spread of sessions decides, which innovations do not show.
        ratio = np.where(self.start[:, None], ratio, ratio / self.excess)
        ratio[self.minutes <= 0] = 0.0
        out = []
        for start in (False, True):
            onsets = np.flatnonzero(self.start == start)
            for channel in range(len(self.square) if onsets.size else 0):
                h = int(onsets[np.argmax(ratio[onsets, channel])])
                if ratio[h, channel] > 0:
                    out.append(self._step(h, channel, float(ratio[h, channel])))
        return out

    def _step(self, h: int, channel: int, ratio: float) -> Step:
        information, product = float(self.information[h, channel]), self.product[h, channel]
        start = bool(self.start[h])
        return Step(
            channel=channel,
            time=float(self.time[h]),
            at_session_start=start,
            minutes=float(self.minutes[h, channel]),
            size=float(product) / information,
            variance=(1.0 if start else float(self.excess[channel])) / information,
            ratio=ratio,
            explained=product**2 / max(information * float(self.squares[h, channel]), 1e-30),
            direction=np.eye(self.bias.shape[2])[channel] - self.bias[h, channel],
        )

    def clear(self, step: Step) -> None:
        """Forget the evidence of a step that was taken over; new onsets count.

        A step at the start of a session was mistaken for the part common to all channels too, so
        that the other channels' evidence of such steps is void with it.
        """
        void = np.zeros_like(self.minutes, dtype=bool)
        void[:, step.channel] = True
        if step.at_session_start:
            void[self.start] = True
        for sums in (self.bias, self.information, self.product, self.squares):
            sums[void] = 0.0
        self.minutes[void] = _NEVER


# Levels that are followed minute by minute; a step that matters is reported once.

FORGETTING_DAYS = 30.0
"""Time constant after which a changed level counts as usual."""
_BACK = 0.5
"""A level is usual again closer to it than this share of the smallest reported step."""


_RATIO = 30.0
"""Twice the logarithm of the likelihood ratio from which a step within a session is certain."""
_MINUTES, _SESSION_MINUTES = 3.0, 10.0
"""Measured minutes that a step within a session, and one at its start, must last."""
_EXPLAINED = 0.6
"""Share of the innovations since the onset that a step within a session must explain."""
_SETTLING = 20.0
"""Measured minutes of a channel before anything is reported: before, its usual level is unknown."""


@dataclass(frozen=True)
class LevelChange:
    """A step that is reported.

    Attributes:
        channel: its number.
        time: of the onset [s].
        size: level minus the usual one.
        std: its standard deviation.
        usual: the usual level at the present temperature.
        temperature: of the channel [degC]; NaN where unknown.
    """

    channel: int
    time: float
    size: float
    std: float
    usual: float
    temperature: float


class LevelDetector:
    """Follows c levels and reports their changes.

    Args:
        noise: spreads of the levels.
        least: smallest step that is reported, in the unit of the levels; one or one per channel.
        channels: c.
        session_ratio: twice the logarithm of the likelihood ratio from which a step at the start of
            a session is certain, over the spread of sessions.

    Attributes:
        filter: the estimates.
    """

    def __init__(
        self, noise: DriftNoise, least: float | Array, channels: int, session_ratio: float = 11.0
    ) -> None:
        self._least = np.broadcast_to(np.asarray(least, dtype=float), (channels,))
        self._session_ratio = session_ratio
        self.filter = DriftFilter(noise, channels)
        self._steps = StepDetector.of(channels, len(self.filter.mean))
        self._time: float | None = None
        self._usual = np.zeros(channels)
        """Usual level before the reported changes, at the reference temperature."""
        self._changed = np.zeros(channels, dtype=bool)
        self._measured = np.zeros(channels)
        """Measured minutes."""

    @property
    def changed(self) -> Mask:
        """Whether each level differs from its usual one after a reported change [c]."""
        return np.array(self._changed)

    @property
    def known(self) -> Mask:
        """Whether each level was ever measured [c]."""
        return np.asarray(self._measured > 0.0)

    def start_session(self, time: float, days: float) -> None:
        """A session starts at this time [s], some days after the last one."""
        self._steps.forget(self.filter.start_session(days))
        self._steps.open(time, session_start=True)
        self._forget_usual(days)
        self._time = time

    def observe(
        self, time: float, value: Array, covariance: Array, temperature: Array
    ) -> list[LevelChange]:
        """Use the levels of a minute.

        Args:
            time: at its end, later than that of the last one [s].
            value: [c], NaN where not measured.
            covariance: of the measured ones [c, c].
            temperature: of the channels [c], degC, NaN where unknown.
        """
        if self._time is None:
            self.start_session(time, 0.0)
        assert self._time is not None
        passed = max(time - self._time, 0.0)
        self._steps.forget(self.filter.advance(passed))
        self._steps.open(self._time, session_start=False)
        self._forget_usual(passed / 86400.0)
        self._time = time
        found = self.filter.update(value, covariance, temperature)
        if found is None:
            return []
        self._steps.observe(found)
        self._measured[found.channels] += 1.0
        out = [self._taken_over(step, temperature) for step in self._certain()]
        self._usual = np.where(self._changed, self._usual, self.filter.usual)
        return [change for change in out if change is not None]

    def rebase(self, shift: Array, std: Array) -> None:
        """Levels are stated relative to another model from now on.

        Args:
            shift: to be added to the levels [c].
            std: of the shift [c].
        """
        own = np.eye(len(self.filter.mean))
        for channel in range(len(shift)):
            self.filter.shift(own[channel], float(shift[channel]), float(std[channel]) ** 2)
        self._usual = self._usual + shift

    def saved(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            **with_prefix("filter_", self.filter.saved()),
            **with_prefix("test_", vars(self._steps)),
            "usual": self._usual,
            "changed": self._changed,
            "measured": self._measured,
            "time": np.array(np.nan if self._time is None else self._time),
        }

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `saved` gave of a detector of the same kind."""
        self.filter.restore(part_of(saved, "filter_"))
        self._steps = built(StepDetector, part_of(saved, "test_"))
        self._usual, self._measured = np.array(saved["usual"]), np.array(saved["measured"])
        self._changed = np.array(saved["changed"], dtype=bool)
        time = float(saved["time"])
        self._time = None if np.isnan(time) else time

    def _certain(self) -> list[Step]:
        """The likeliest step of each channel that is large and certain enough."""
        best: dict[int, Step] = {}
        waiting: set[int] = set()
        for step in self._steps.steps():  # those within a session first
            channel, start = step.channel, step.at_session_start
            certain = step.ratio >= (self._session_ratio if start else _RATIO)
            large = abs(step.size) >= self._least[channel]
            if not (certain and large) or self._measured[channel] < _SETTLING:
                continue
            if step.minutes < (_SESSION_MINUTES if start else _MINUTES):
                waiting.add(channel)  # may be a single bad minute, or begin later
            elif channel not in waiting and (start or step.explained >= _EXPLAINED):
                best.setdefault(channel, step)
        within = [step for step in best.values() if not step.at_session_start]
        at_start = [step for step in best.values() if step.at_session_start]
        return within + sorted(at_start, key=lambda step: -step.ratio)[:1]

    def _taken_over(self, step: Step, temperature: Array) -> LevelChange | None:
        """Let the filter expect a step; the change, unless the level is back at its usual."""
        self.filter.shift(step.direction, step.size, step.variance)
        self._steps.clear(step)
        channel = step.channel
        if not self._changed[channel]:  # the last minutes had moved it towards the step
            self._usual[channel] = self.filter.usual[channel] - step.size
        size = float(self.filter.usual[channel] - self._usual[channel])
        self._changed[channel] = abs(size) >= _BACK * self._least[channel]
        if not self._changed[channel]:
            return None
        usual = self.filter.usual_level(temperature)[0]
        return LevelChange(
            channel=channel,
            time=step.time,
            size=size,
            std=float(np.sqrt(step.variance)),
            usual=float(usual[channel]) - size,
            temperature=float(temperature[channel]),
        )

    def _forget_usual(self, days: float) -> None:
        """A changed level becomes usual within weeks."""
        share = -np.expm1(-max(days, 0.0) / FORGETTING_DAYS)
        self._usual = self._usual + share * (self.filter.usual - self._usual)
        near = np.abs(self.filter.usual - self._usual) < _BACK * self._least
        self._changed = self._changed & ~near


def with_prefix(prefix: str, saved: Mapping[str, Array]) -> dict[str, Array]:
    """Entries of a part of a saved state, named after it."""
    return {prefix + name: values for name, values in saved.items()}


def part_of(state: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The entries whose names start with a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
