"""Accelerations from velocities, for telemetry without accelerations."""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array


class Differentiator:
    """Low-pass filtered derivative of joint velocities, batch by batch.

    Args:
        joints: n.
        cutoff: of the first-order low-pass [Hz].
    """

    def __init__(self, joints: int, cutoff: float) -> None:
        self._rate = 2 * np.pi * cutoff
        self._value = np.zeros(joints)
        self._last: tuple[float, Array] | None = None

    def update(self, time: Array, qd: Array) -> Array:
        """Accelerations [samples, n], rad/s^2, of velocities [samples, n] at times [samples]."""
        out = np.empty_like(qd)
        for i, now in enumerate(time):
            if self._last is not None and now > self._last[0]:
                step = float(now - self._last[0])
                weight = 1.0 - np.exp(-self._rate * step)
                self._value = self._value + weight * ((qd[i] - self._last[1]) / step - self._value)
            out[i] = self._value
            self._last = (float(now), qd[i])
        return out
