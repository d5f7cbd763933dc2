# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parts of a long recording that the fits use: those with the most information about its arm.

The number of samples that the fits need does not grow with the length of a recording; what
matters is which ones. One half of the parts is spread evenly over the recording, so that
they represent it. The other half adds the most information (D-optimality: the determinant
of the information matrix, Pukelsheim, Optimal Design of Experiments, 1993, sec. 6.2),
which favours varied motion and a wide range of temperatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ur_energy_model.energy.powers import FIELDS as ENERGY_FIELDS
from ur_energy_model.identification.buffers import Buffer
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    merged_ranges,
)
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.typing import Array, Indices

SAMPLE_FIELDS: tuple[str, ...] = (*ENERGY_FIELDS, "target_moment", "actual_joint_voltage")
"""Fields of the samples that are kept as recorded."""

LENGTH = 30.0
"""Length of the parts that long recordings are divided into [s]: some cycles of a
program."""
TOTAL = 1500.0
"""Time that the fits use of all recordings together, where each one has its share [s]."""
_LEAST = 60.0  # least time of motion that is used of one recording [s]
_MOST = 300.0  # most time of motion that is used of one recording [s]
_SAMPLES_SHARE = 0.3  # time of the samples that are used over time of the motions
_INFORMATION_PERIOD = 0.1
"""Time between the samples that a part's information is computed from [s]."""
_COLUMNS = 9  # number of terms of a current, see `Segment.information`
_HOUR = 3600.0  # [s]
_RIDGE = 1e-6  # information before any part, over the information of the recording


@dataclass(frozen=True)
class KeptTime:
    """Time of a recording that the fits use.

    Attributes:
        motions: motions for torque constants, friction and presliding [s].
        samples: samples as recorded, for the bus capacitor and the metrics of the fit
            [s].
    """

    motions: float
    samples: float

    @classmethod
    def of_each(cls, recordings: int) -> KeptTime:
        """Time of each of some recordings that are fitted together."""
        motions = float(np.clip(TOTAL / max(recordings, 1), _LEAST, _MOST))
        return cls(motions, max(_LEAST, _SAMPLES_SHARE * motions))


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of a recording that is used or left out as a whole.

    Attributes:
        dof: number of joints n.
        motions: filtered motions of the part.
        samples: samples as recorded; None where they are not kept.
    """

    dof: int
    motions: tuple[FilteredMotion, ...]
    samples: Telemetry | None

    def divided(self) -> list[Segment]:
        """Parts of about LENGTH; the part itself if it is short or its clock goes back."""
        if self.samples is not None:
            time = self.samples.time
        else:
            times = [motion.time for motion in self.motions]
            time = np.concatenate([np.zeros(0), *times])
        if self.seconds < 1.5 * LENGTH or (np.diff(time) < 0).any():
            return [self]
        edges = np.linspace(time[0], time[-1], 1 + round(self.seconds / LENGTH))
        edges[0] = -np.inf
        edges[-1] = np.inf
        pieces = [self._between(*ends) for ends in pairwise(edges.tolist())]
        return [piece for piece in pieces if piece.motions or piece.samples is not None]

    def _between(self, start: float, stop: float) -> Segment:
        """What the part has from a time [s] on, up to but not including another."""
        motions = []
        for motion in self.motions:
            piece = motion.cut(_rows_between(motion.time, start, stop))
            if len(piece):
                motions.append(piece)
        samples = self.samples
        if samples is not None:
            samples = samples.cut(_rows_between(samples.time, start, stop))
            if not len(samples):
                samples = None
        return Segment(self.dof, tuple(motions), samples)

    @cached_property
    def seconds(self) -> float:
        """Time covered, without gaps [s]."""
        if self.samples is not None:
            return self.samples.duration
        return float(sum(motion.time[-1] - motion.time[0] for motion in self.motions))

    @cached_property
    def information(self) -> Array:
        """Gram matrices [n, k, k] of what the current of each moving joint depends on.

        The columns are current (its load), direction and powers of the speed,
        acceleration, load friction, and the direction times temperature and time, by
        which friction drifts.
        """
        out = np.zeros((self.dof, _COLUMNS, _COLUMNS))
        for motion in self.motions:
            if len(motion) < 2:
                continue
            step = max(1, round(_INFORMATION_PERIOD / motion.period))
            thin = motion.cut(slice(None, None, step))
            speed = thin.qd
            current = thin.current
            direction = np.sign(thin.qd)
            columns = (
                np.ones_like(speed),
                current,
                direction,
                speed,
                direction * np.sqrt(np.abs(speed)),
                thin.qdd,
                direction * np.abs(current),
                direction * np.nan_to_num(thin.temperature),
                direction * thin.time[:, None] / _HOUR,
            )
            moving = np.abs(speed) > MOVING_SPEED
            rows = np.stack(columns, axis=2) * moving[:, :, None]
            by_joint = np.swapaxes(rows, 0, 1)
            out += np.swapaxes(by_joint, 1, 2) @ by_joint
        return out


def _rows_between(time: Array, start: float, stop: float) -> slice:
    """Rows of ascending times from `start` up to but not including `stop`."""
    first, last = np.searchsorted(time, (start, stop)).tolist()
    return slice(first, last)


def chosen_parts(information: Array, seconds: Array, wanted: float) -> Indices:
    """Indices of the parts that cover about a wanted time, in order; always the first one.

    One part is chosen from each of several stretches of the recording, then further ones
    from the whole recording, each time the part that adds the most information. All parts
    are chosen where they do not cover more than the wanted time.

    Args:
        information: Gram matrices of each part [parts, n, k, k].
        seconds: times that the parts cover [parts], s.
        wanted: time to cover [s].
    """
    everything = np.arange(len(seconds))
    if seconds.sum() <= wanted:
        return everything
    chosen = [0]
    # Weak information about every coefficient, in the units of its column.
    scale = np.diagonal(information.sum(axis=0), axis1=-2, axis2=-1)
    weak = _RIDGE * np.where(scale > 0, scale, 1.0)
    known = weak[:, :, None] * np.eye(scale.shape[-1]) + information[0]
    count = max(1, int(0.5 * wanted / np.median(seconds)))
    number = np.floor(np.cumsum(seconds) / seconds.sum() * count * (1 - 1e-9))
    stretches = [np.flatnonzero(number == k) for k in range(1, count)]
    while True:
        candidates = stretches.pop(0) if stretches else np.setdiff1d(everything, chosen)
        left = max(wanted - seconds[chosen].sum(), 0.0)
        candidates = candidates[seconds[candidates] <= left]
        if len(candidates):
            _, logarithms = np.linalg.slogdet(known + information[candidates])
            best = int(candidates[np.argmax(logarithms.sum(axis=1))])
            chosen.append(best)
            known = known + information[best]
        elif not stretches:
            return np.sort(chosen)


class SegmentSelector:
    """Keeps the parts of a recording that the fits use, at most twice the limit.

    Args:
        limit: time to keep [s].

    Attributes:
        limit: limit as given.
        parts: the parts kept so far, in order.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.parts: list[Segment] = []

    def add(self, part: Segment) -> None:
        """Add the next part."""
        self.parts.append(part)
        self.choose(2 * self.limit)

    @property
    def kept(self) -> float:
        """Time that the parts kept cover [s]."""
        return sum(part.seconds for part in self.parts)

    def choose(self, longest: float) -> None:
        """Reduce the parts to the limit if they cover more than this [s]."""
        if self.kept > longest:
            parts: list[Segment] = []
            for part in self.parts:
                parts += part.divided()
            information = np.array([part.information for part in parts])
            seconds = np.array([part.seconds for part in parts])
            chosen = chosen_parts(information, seconds, self.limit)
            self.parts = [parts[k] for k in chosen.tolist()]


class KeptParts:
    """Gathers batches and the motions filtered from them, whole or in parts that are selected.

    Args:
        dof: number of joints n.
        limit: time to keep; None for all motions and no samples.

    Attributes:
        motions: motions that are kept, complete after `finish`.
        samples: samples that are kept, complete after `finish`.
        controller_payload: payload that was set in the controller first, mass and centre
            [4], kg and m; NaN if unknown.
        warmth: lowest and highest joint temperatures of all motions [n, 2], degC.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions: Buffer[FilteredMotion] = Buffer()
        self.samples: Buffer[Telemetry] = Buffer()
        self.controller_payload = np.full(4, np.nan)
        self.warmth = np.full((dof, 2), np.nan)
        self._dof = dof
        self._begun = False
        self._limited = limit is not None
        limit = limit or KeptTime(0.0, 0.0)
        self._filtered = SegmentSelector(limit.motions)
        self._recorded = SegmentSelector(limit.samples)
        self._batches: list[Telemetry] = []
        self._motions: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, and the motions that it completed.

        Args:
            batch: consecutive samples; None at the end of the recording.
            motions: motions filtered from this batch and earlier batches.
        """
        if motions and not self._begun:
            self.controller_payload = motions[0].payload[0]
            self._begun = True
        for motion in motions:
            self.warmth = merged_ranges(self.warmth, motion.temperature_range)
            if not self._limited:
                self.motions.append(motion)
        if not self._limited:
            return
        self._motions += motions
        if batch is not None:
            columns = {name: batch[name] for name in SAMPLE_FIELDS if name in batch}
            self._batches.append(replace(batch, columns=columns))
        if batch is None or sum(part.duration for part in self._batches) > LENGTH:
            own = tuple(self._motions)
            if own:
                self._filtered.add(Segment(self._dof, own, None))
            if self._batches:
                self._recorded.add(Segment(self._dof, own, concatenate(self._batches)))
            self._batches = []
            self._motions = []

    def finish(self) -> KeptTime | None:
        """Write the selected parts into the buffers.

        Returns:
            Time kept of motions and samples; None without a limit.
        """
        if not self._limited:
            return None
        for selector in (self._filtered, self._recorded):
            selector.choose(selector.limit)
        for part in self._filtered.parts:
            for motion in part.motions:
                self.motions.append(motion)
        for part in self._recorded.parts:
            if part.samples is not None:
                self.samples.append(part.samples)
        return KeptTime(self._filtered.kept, self._recorded.kept)
