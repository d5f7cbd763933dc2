# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steps of levels: a generalised likelihood ratio on the innovations of the drift filter.

A step that the filter does not expect leaves a known signature in the innovations (Willsky
and Jones, IEEE Trans. Automatic Control 21 (1976) 108): 1 in its channel at first, and
less with every update, because the filter follows the step and its states get an error,
the `bias`. Innovations are signature times size plus noise: a linear regression for each
possible onset and channel, of which only sums are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.learning.drift_filter import (
    DAY,
    DriftFilter,
    DriftNoise,
    Innovation,
    states_of,
)
from ur_energy_model.typing import Array, Mask

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
_SESSION_MINUTES = 10.0  # measured minutes that a step at a session's start must last
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
        self._time = np.nan  # time of the last minute or session start [s]; NaN before
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
        """Possible onsets of steps, the values by name. time: of the onset [onsets], s;
        start: whether a session starts there [onsets]; bias: error of the filter's states
        by a step of size 1 [onsets, c, 4 c + 1]; _SUMS [onsets, c]."""

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
        self._pass(self.filter.advance(passed), passed / DAY, start=False)
        self._time = time
        innovation = self.filter.update(value, covariance, temperature)
        if innovation is None:
            return []
        self._accumulate(innovation)
        self._measured[innovation.channels] += 1.0
        changes = []
        for onset, channel in self._certain_steps():
            change = self._accept(onset, channel, temperature)
            if change is not None:
                changes.append(change)
        self._usual = np.where(self.changed, self._usual, self.filter.usual)
        return changes

    def rebase(self, shift: Array, std: Array) -> None:
        """State levels relative to another model.

        Args:
            shift: difference that is added to the levels [c].
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
        self._onsets["bias"][:, :, states_of(places, self.filter.channels)] = 0.0

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
        if len(same) >= most:
            kept[same[0]] = False  # the oldest onset makes room
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

    def _accumulate(self, innovation: Innovation) -> None:
        """Add an innovation to the sums of all possible onsets."""
        known, value, precision, rows, gain = innovation
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

    def _certain_steps(self) -> list[tuple[int, int]]:
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
