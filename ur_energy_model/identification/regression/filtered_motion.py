"""Filtered motion of an arm on an even time grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array, Indices

MOVING_SPEED = 0.02
"""Joint speed above which a sample counts as moving [rad/s]."""
_TIME, _JOINT_CHANNELS, _PAYLOAD = 1, 6, 4


@dataclass(frozen=True)
class FilteredMotion:
    """Filtered motion on an even grid, without gaps.

    Attributes:
        time: controller clock [samples], s.
        q, qd, qdd: joint side [samples, n], rad, rad/s, rad/s^2.
        current: motor currents [samples, n], A.
        moment: target_moment through the same filter [samples, n], N m; NaN where not recorded.
        temperature: [samples, n], degC; NaN where not recorded.
        payload: mass and centre of mass told to the controller [samples, 4], kg and m; NaN where
            not recorded.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    current: Array
    moment: Array
    temperature: Array
    payload: Array

    @classmethod
    def from_rows(cls, rows: Array) -> FilteredMotion:
        """Motion from rows [samples, `row_width`] as `rows` gives them."""
        time, joints, payload = np.split(rows, [_TIME, -_PAYLOAD], axis=1)
        q, qd, qdd, current, moment, temperature = np.split(joints, _JOINT_CHANNELS, axis=1)
        return cls(time[:, 0], q, qd, qdd, current, moment, temperature, payload)

    @staticmethod
    def row_width(dof: int) -> int:
        """Width of the rows of a motion of n joints."""
        return _TIME + _JOINT_CHANNELS * dof + _PAYLOAD

    @property
    def rows(self) -> Array:
        """All values in one array [samples, `row_width`]."""
        return np.column_stack(self._channels)

    @property
    def period(self) -> float:
        """Step of the grid [s]; the motion has two samples or more."""
        return float(self.time[1] - self.time[0])

    @property
    def temperature_range(self) -> Array:
        """Lowest and highest temperature of each joint [n, 2], degC; NaN where not recorded."""
        low, high = np.fmin.reduce(self.temperature), np.fmax.reduce(self.temperature)
        return np.stack([low, high], axis=1)

    @property
    def known_temperature(self) -> Array | None:
        """Temperatures where all of them were recorded, else None."""
        return self.temperature if np.isfinite(self.temperature).all() else None

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, part: slice | Indices) -> FilteredMotion:
        """Some of the samples."""
        return FilteredMotion(*(channel[part] for channel in self._channels))

    @property
    def _channels(self) -> tuple[Array, ...]:
        """All attributes in order."""
        motion = (self.time, self.q, self.qd, self.qdd)
        return (*motion, self.current, self.moment, self.temperature, self.payload)


def merged_ranges(first: Array, second: Array) -> Array:
    """Ranges [n, 2] that span two sets of ranges [n, 2] (low, high); NaN is ignored."""
    low, high = np.fmin(first[:, 0], second[:, 0]), np.fmax(first[:, 1], second[:, 1])
    return np.stack([low, high], axis=1)
