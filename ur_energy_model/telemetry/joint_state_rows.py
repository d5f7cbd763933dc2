"""JointStateRows: decoded JointState messages of one arm as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array, Indices, Mask


@dataclass(frozen=True)
class JointStateRows:
    """Messages that name all joints, in order.

    Attributes:
        stamp: [n], ns since the epoch.
        lost: messages lost so far, as the publisher's numbers tell [n].
        era: [n]; `lost` can be compared within an era only; -1 where nothing is known.
        position, velocity, effort: [n, joints].
    """

    stamp: NDArray[np.int64]
    lost: Indices
    era: Indices
    position: Array
    velocity: Array
    effort: Array

    def __len__(self) -> int:
        return len(self.stamp)

    def select(self, keep: Mask) -> JointStateRows:
        """The rows with keep [n] True."""
        return JointStateRows(*(getattr(self, each.name)[keep] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[JointStateRows]) -> JointStateRows:
        """Rows of consecutive parts, at least one."""
        columns = ([getattr(part, each.name) for part in parts] for each in fields(cls))
        return cls(*map(np.concatenate, columns))


def newer_than(before: int, stamp: NDArray[np.int64]) -> Mask:
    """Stamps [n] (ns) that are later than `before` and than all before them."""
    highest = np.maximum.accumulate(np.concatenate([[before], stamp]))
    newer: Mask = stamp > highest[:-1]
    return newer


def missing_between(steps: Array) -> Indices:
    """Number of samples missing in each step [n], from its length in periods.

    A step that is long because its message was late is followed by a short one.
    """
    following = np.append(steps[1:], 1.0)
    late = np.clip(1.0 - following, 0.0, 1.0)
    missing = np.floor(steps - late + 0.25).astype(np.intp) - 1
    return np.maximum(missing, 0)
