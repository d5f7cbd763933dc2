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
    rate = np.zeros(values.shape)
    if not len(time):
        return rate
    steps = np.zeros(len(time))
    np.subtract(time[1:], time[:-1], out=steps[1:])
    np.subtract(values[1:], values[:-1], out=rate[1:])
    if before is not None:
        steps[0], rate[0] = time[0] - before[0], values[0] - before[1]
    far = (steps <= 0) | (steps > LONGEST_STEP)
    steps[far] = np.inf
    rate /= steps.reshape(-1, *(1,) * (values.ndim - 1))
    return rate


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
