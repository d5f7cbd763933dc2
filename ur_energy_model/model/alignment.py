"""Joint speeds at the instants that the currents of the same packets belong to.

A packet's current was there some time before its speed, or after: drives hold a current over a
controller cycle, and sensors and buses delay what they report. What counts is that current and
acceleration go together, so that a power k i w taken with the later speed is too high by
k i (dw/dt) delay all the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONGEST_STEP = 0.1
"""Time between samples beyond which speed is not taken to change steadily [s]."""


def backward_difference(
    time: Array, values: Array, before: tuple[float, Array] | None = None
) -> Array:
    """Rate of change since the last sample [samples, ...], per second; zero across gaps.

    Args:
        time: [samples], s.
        values: [samples, ...].
        before: time and values of the sample before the first; None if there is none.
    """
    if before is None:
        before = (float(time[0]), values[0]) if len(time) else (0.0, np.zeros(values.shape[1:]))
    steps = np.diff(time, prepend=before[0])
    near = (steps > 0) & (steps <= LONGEST_STEP)
    changes = np.diff(values, axis=0, prepend=np.asarray(before[1])[None])
    scale = np.where(near, 1.0 / np.where(near, steps, 1.0), 0.0)
    return np.asarray(changes * scale.reshape(-1, *(1,) * (values.ndim - 1)))


class SpeedAlignment:
    """Speeds `delay` seconds earlier, batch by batch.

    Args:
        delay: of the currents behind the speeds [s]; negative where currents are ahead.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._last: tuple[float, Array] | None = None

    def __call__(self, time: Array, qd: Array) -> Array:
        """Joint velocities [samples, n], rad/s, to go with the currents of the same samples.

        Args:
            time: of the samples [samples], s.
            qd: joint velocities as reported [samples, n], rad/s.
        """
        if self.delay == 0.0 or not len(time):
            return qd
        before, self._last = self._last, (float(time[-1]), qd[-1])
        return np.asarray(qd - self.delay * backward_difference(time, qd, before))
