"""Sequential test for steps of a filtered level: generalised likelihood ratio on innovations.

A step of unknown size at an unknown time leaves a known signature in the innovations of a Kalman
filter that does not expect it (Willsky and Jones 1976). For each of some possible times, the
signature's least-squares size and its likelihood ratio are updated recursively, so that memory is
constant: the last LATEST minutes and the starts of the last SESSIONS sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.learning.drift_filter import Innovation
from ur_energy_model.typing import Array

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


class StepTest:
    """Follows the likelihood of steps in c channels of a filter.

    Args:
        channels: c.
        states: of the filter.
    """

    def __init__(self, channels: int, states: int) -> None:
        self._channels = channels
        self._time = np.zeros(0)
        self._start = np.zeros(0, dtype=bool)
        self._minutes = np.zeros((0, channels))
        self._bias = np.zeros((0, channels, states))
        """Error of the filter's states per unit of a step that it does not expect."""
        self._information, self._product, self._squares = np.zeros((3, 0, channels))
        self._square = np.ones(channels)

    @property
    def excess(self) -> Array:
        """Variance of each channel's innovations over the filter's own, at least 1 [c]."""
        return np.clip(self._square, 1.0, _LARGEST_FACTOR)

    def forget(self, keep: Array) -> None:
        """The filter's states keep these shares of their values [states]."""
        self._bias = self._bias * keep

    def open(self, time: float, *, session_start: bool) -> None:
        """From now on a step at this time is possible."""
        kept = np.flatnonzero(self._start == session_start)
        most = SESSIONS if session_start else LATEST
        if len(kept) >= most:
            self._drop(kept[0])
        states = self._bias.shape[2]
        self._time = np.append(self._time, time)
        self._start = np.append(self._start, session_start)
        zero = np.zeros((1, self._channels))
        self._minutes = np.concatenate([self._minutes, zero])
        self._information = np.concatenate([self._information, zero])
        self._product = np.concatenate([self._product, zero])
        self._squares = np.concatenate([self._squares, zero])
        self._bias = np.concatenate([self._bias, np.zeros((1, self._channels, states))])

    def observe(self, found: Innovation) -> None:
        """Use an innovation; possible steps before it must be open."""
        known = found.channels
        signature = np.zeros((self._channels, len(known)))
        signature[known, np.arange(len(known))] = 1.0
        left = signature - self._bias @ found.rows.T  # [times, c, k]
        weighted = left @ found.precision
        self._information = self._information + (weighted * left).sum(axis=2)
        self._product = self._product + weighted @ found.value
        self._bias = self._bias + left @ found.gain.T
        self._minutes[:, known] += 1.0
        # Squares of decorrelated innovations: of each channel, given the others.
        square = np.square(found.precision @ found.value) / np.diag(found.precision)
        self._squares[:, known] += square
        past = self._square[known]
        self._square[known] = past + (np.minimum(square, _LARGEST_SQUARE) - past) / _MEMORY

    def steps(self) -> list[Step]:
        """The likeliest step of each channel within a session, and at the start of one."""
        out = []
        ratio = np.square(self._product) / np.maximum(self._information, 1e-30)
        # Between sessions the spread of sessions decides, which innovations do not show.
        ratio = np.where(self._start[:, None], ratio, ratio / self.excess)
        ratio[self._minutes <= 0] = 0.0
        for start in (False, True):
            places = np.flatnonzero(self._start == start)
            for channel in range(self._channels if places.size else 0):
                h = int(places[np.argmax(ratio[places, channel])])
                if ratio[h, channel] > 0:
                    out.append(self._step(h, channel, float(ratio[h, channel])))
        return out

    def _step(self, h: int, channel: int, ratio: float) -> Step:
        information = float(self._information[h, channel])
        start = bool(self._start[h])
        own = np.zeros(self._bias.shape[2])
        own[channel] = 1.0
        return Step(
            channel=channel,
            time=float(self._time[h]),
            at_session_start=start,
            minutes=float(self._minutes[h, channel]),
            size=float(self._product[h, channel]) / information,
            variance=(1.0 if start else float(self.excess[channel])) / information,
            ratio=ratio,
            explained=self._product[h, channel] ** 2
            / max(information * float(self._squares[h, channel]), 1e-30),
            direction=own - self._bias[h, channel],
        )

    def clear(self, step: Step) -> None:
        """Forget the evidence of a step that was taken over; new onsets count.

        A step at the start of a session was mistaken for the part common to all channels too, so
        that the other channels' evidence of such steps is void with it.
        """
        void = np.zeros_like(self._minutes, dtype=bool)
        void[:, step.channel] = True
        if step.at_session_start:
            void[self._start] = True
        self._bias[void] = 0.0
        for values in (self._information, self._product, self._squares):
            values[void] = 0.0
        self._minutes[void] = _NEVER

    def state(self) -> dict[str, Array]:
        """Everything needed to continue."""
        return {
            "time": self._time,
            "start": self._start.astype(float),
            "minutes": self._minutes,
            "bias": self._bias,
            "information": self._information,
            "product": self._product,
            "squares": self._squares,
            "square": self._square,
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from `state` of a test of the same kind.

        Raises:
            ValueError: it is of another number of channels or states, or damaged.
        """
        count, own = len(state["time"]), self.state()
        for name, values in own.items():
            given = np.asarray(state[name])
            shape = values.shape if name == "square" else (count, *values.shape[1:])
            if given.shape != shape or not np.isfinite(given).all():
                raise ValueError("state of another test")
        self._time, self._start = np.array(state["time"]), np.array(state["start"]) > 0.5
        self._minutes, self._bias = np.array(state["minutes"]), np.array(state["bias"])
        self._information = np.array(state["information"])
        self._squares = np.array(state["squares"])
        self._product, self._square = np.array(state["product"]), np.array(state["square"])

    def _drop(self, place: int) -> None:
        self._time = np.delete(self._time, place)
        self._start = np.delete(self._start, place)
        self._bias = np.delete(self._bias, place, axis=0)
        self._minutes, self._information, self._product, self._squares = (
            np.delete(values, place, axis=0)
            for values in (self._minutes, self._information, self._product, self._squares)
        )
