"""Joint speeds at the instants of the currents in the same packets.

Within a packet current and speed belong to different instants: drives hold a current over a
controller cycle, sensors and buses add delays. Because current and acceleration are correlated, a
power k i w with the later speed is systematically too high by k i (dw/dt) delay.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.typing import Array


def backward_difference(time: Array, values: Array) -> Array:
    """Rate of change since the last sample [samples, ...], per second; zero across gaps.

    Args:
        time: [samples], s.
        values: [samples, ...].
    """
    return rate_of_change(bridged_steps(time), np.diff(values, axis=0, prepend=values[:1]))


class SpeedAlignment:
    """Shifts speeds by the delay of the currents, batch by batch.

    Args:
        delay: of the currents behind the speeds [s]; negative where they are ahead.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._last: Array | None = None

    def __call__(self, steps: Array, qd: Array) -> Array:
        """Joint velocities at the instants of the currents of the same samples [samples, n], rad/s.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s.
            qd: joint velocities as reported [samples, n], rad/s.
        """
        if self.delay == 0.0 or not len(qd):
            return qd
        before = qd[:1] if self._last is None else self._last[None]
        self._last = qd[-1]
        return np.asarray(
            qd - self.delay * rate_of_change(steps, np.diff(qd, axis=0, prepend=before))
        )


def rate_of_change(steps: Array, change: Array) -> Array:
    """Change per step [samples, ...]; zero where the step [samples] is zero."""
    safe = np.where(steps > 0.0, steps, np.inf)
    return np.asarray(change / safe.reshape(-1, *(1,) * (change.ndim - 1)))
