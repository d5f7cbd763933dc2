"""A part of a recording, about half a minute long, that the fits use or leave out as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import MOVING_SPEED, FilteredMotion
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

LENGTH = 30.0
"""Length of the parts that long recordings are divided into [s]: some cycles of a program."""
_INFORMATION_PERIOD = 0.1
"""Time between the samples that a part's information is computed from [s]."""
_HOUR = 3600.0


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive samples of a recording.

    Attributes:
        dof: number of joints n.
        motions: filtered.
        samples: as recorded; None where they are not kept.
    """

    dof: int
    motions: tuple[FilteredMotion, ...]
    samples: Telemetry | None

    def divided(self) -> list[Part]:
        """Parts of about LENGTH; the part itself if it is short or its clock goes back."""
        time = self._time
        if self.seconds < 1.5 * LENGTH or (np.diff(time) < 0).any():
            return [self]
        edges = np.linspace(time[0], time[-1], 1 + round(self.seconds / LENGTH))
        edges[0], edges[-1] = -np.inf, np.inf
        pieces = (self._between(*edge) for edge in pairwise(edges.tolist()))
        return [piece for piece in pieces if piece.motions or piece.samples is not None]

    def _between(self, start: float, stop: float) -> Part:
        """The part from one time up to but not including another."""
        samples = self.samples
        if samples is not None:
            samples = samples.cut(_rows(samples.time, start, stop))
        motions = (motion.cut(_rows(motion.time, start, stop)) for motion in self.motions)
        kept = tuple(motion for motion in motions if len(motion))
        return Part(self.dof, kept, samples if samples is None or len(samples) else None)

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
