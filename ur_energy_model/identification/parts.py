"""Parts of a long recording that the fits use: those with the most information about the arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ur_energy_model.identification.filtered_motion import MOVING_SPEED, FilteredMotion
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices

# A part of a recording, about half a minute long, that the fits use or leave out as a whole.

LENGTH = 30.0
"""Length of the parts that long recordings are divided into [s]: some cycles of a program."""
_INFORMATION_PERIOD = 0.1  # time between the samples that a part's information is computed from [s]
_HOUR = 3600.0


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive samples of a recording."""

    dof: int  # number of joints n
    motions: tuple[FilteredMotion, ...]  # filtered
    samples: Telemetry | None  # as recorded; None where they are not kept

    def divided(self) -> list[Segment]:
        """Parts of about LENGTH; the part itself if it is short or its clock goes back."""
        time = self._time
        if self.seconds < 1.5 * LENGTH or (np.diff(time) < 0).any():
            return [self]
        edges = np.linspace(time[0], time[-1], 1 + round(self.seconds / LENGTH))
        edges[0], edges[-1] = -np.inf, np.inf
        pieces = []
        for start, stop in pairwise(edges.tolist()):
            samples = self.samples
            if samples is not None:
                samples = samples.cut(_rows(samples.time, start, stop))
                samples = samples if len(samples) else None
            cut = (motion.cut(_rows(motion.time, start, stop)) for motion in self.motions)
            motions = tuple(motion for motion in cut if len(motion))
            if motions or samples is not None:
                pieces.append(Segment(self.dof, motions, samples))
        return pieces

    @property
    def _time(self) -> Array:
        """Times of the samples, or of the motions where those are not kept [samples], s."""
        if self.samples is not None:
            return self.samples.time
        return np.concatenate([np.zeros(0), *(motion.time for motion in self.motions)])

    @cached_property
    def seconds(self) -> float:
        """Time covered, without gaps [s]."""
        if self.samples is not None:
            return self.samples.duration
        return float(sum(motion.time[-1] - motion.time[0] for motion in self.motions))

    @cached_property
    def information(self) -> Array:
        """Gram matrices [n, k, k] of what the current of each moving joint depends on.

        The columns are current (its load), direction and powers of the speed, acceleration, load
        friction, and the direction times temperature and time, by which friction drifts.
        """
        out = np.zeros((self.dof, _COLUMNS, _COLUMNS))
        for motion in self.motions:
            if len(motion) > 1:
                step = max(1, round(_INFORMATION_PERIOD / motion.period))
                rows = np.swapaxes(_columns(motion.cut(slice(None, None, step))), 0, 1)
                out += np.swapaxes(rows, 1, 2) @ rows
        return out


_COLUMNS = 9


def _columns(motion: FilteredMotion) -> Array:
    """Columns [samples, n, k], zero where a joint does not move."""
    speed, current = motion.qd, motion.current
    direction = np.sign(speed)
    warmth = np.nan_to_num(motion.temperature)
    columns = (
        np.ones_like(speed),
        current,
        direction,
        speed,
        direction * np.sqrt(np.abs(speed)),
        motion.qdd,
        direction * np.abs(current),
        direction * warmth,
        direction * motion.time[:, None] / _HOUR,
    )
    return np.stack(columns, axis=2) * (np.abs(speed) > MOVING_SPEED)[:, :, None]


def _rows(time: Array, start: float, stop: float) -> slice:
    """Samples from one time up to but not including another."""
    first, last = np.searchsorted(time, (start, stop)).tolist()
    return slice(first, last)


# Choice of the parts of a long recording with the most information about its arm.
#
# The number of samples that the fits need does not grow with the length of a recording; what
# matters is which ones. One half of the parts is spread evenly over the recording, so that they
# represent it. The other half adds the most information (D-optimality: the determinant of the
# information matrix, Pukelsheim, Optimal Design of Experiments, 1993, sec. 6.2), which favours
# varied motion and a wide range of temperatures.

_RIDGE = 1e-6  # information that is there before, relative to that of the whole recording


def chosen_parts(information: Array, seconds: Array, wanted: float) -> Indices:
    """Indices of the parts that cover about the time wanted [s], in order; always the first one.

    All parts where they do not cover more. `information` are Gram matrices of each [parts, n, k,
    k], `seconds` the times that they cover [parts].
    """
    if seconds.sum() <= wanted:
        return np.arange(len(seconds))
    chosen = [0]
    # Weak information about every coefficient, in the units of its column.
    scale = np.diagonal(information.sum(axis=0), axis1=-2, axis2=-1)
    weak = _RIDGE * np.where(scale > 0, scale, 1.0)
    known = weak[:, :, None] * np.eye(scale.shape[-1]) + information[0]
    stretches = max(1, int(0.5 * wanted / np.median(seconds)))
    number = np.floor(np.cumsum(seconds) / seconds.sum() * stretches * (1 - 1e-9))
    groups = [np.flatnonzero(number == k) for k in range(1, stretches)]
    everything = np.arange(len(seconds))
    while True:
        open_ones = groups.pop(0) if groups else np.setdiff1d(everything, chosen)
        left = wanted - seconds[chosen].sum()
        open_ones = open_ones[seconds[open_ones] <= max(left, 0.0)]
        if len(open_ones):
            gain = np.linalg.slogdet(known + information[open_ones])[1].sum(axis=1)
            best = int(open_ones[np.argmax(gain)])
            chosen.append(best)
            known = known + information[best]
        elif not groups:
            return np.sort(chosen)


TOTAL = 1500.0
"""Time that the fits use of all recordings together, where each one has its share [s]."""
_LEAST, _MOST = 60.0, 300.0
_SAMPLES_SHARE = 0.3


@dataclass(frozen=True)
class KeptTime:
    """Time of a recording that the fits use."""

    motions: float  # for torque constants, friction and presliding [s]
    samples: float  # as recorded, for the bus capacitor and the metrics of the fit [s]

    @classmethod
    def of_each(cls, recordings: int) -> KeptTime:
        """Time of each of some recordings that are fitted together."""
        motions = float(np.clip(TOTAL / max(recordings, 1), _LEAST, _MOST))
        return cls(motions, max(_LEAST, _SAMPLES_SHARE * motions))


class SegmentSelector:
    """Takes the parts of a recording in order and keeps those chosen, at most twice the limit.

    `limit`: time to keep [s].

    Attributes:
        seconds: time that all parts so far cover [s].
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.seconds = 0.0
        self._parts: list[Segment] = []

    def add(self, part: Segment) -> None:
        """Add the next part."""
        self._parts.append(part)
        self.seconds += part.seconds
        if self.kept > 2 * self.limit:
            self._choose()

    def finished(self) -> Sequence[Segment]:
        """The chosen parts in order; the parts as added if they are within the limit."""
        if self.kept > self.limit:
            self._choose()
        return self._parts

    @property
    def kept(self) -> float:
        """Time that the parts kept cover [s]."""
        return sum(part.seconds for part in self._parts)

    def _choose(self) -> None:
        parts = [piece for part in self._parts for piece in part.divided()]
        information = np.array([part.information for part in parts])
        seconds = np.array([part.seconds for part in parts])
        self._parts = [parts[k] for k in chosen_parts(information, seconds, self.limit).tolist()]
