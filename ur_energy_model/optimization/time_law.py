# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time laws of a move on its path: squared path speeds, sampled motions, and limited jerk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ur_energy_model.optimization.path import PathDynamics
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class TimeLaw:
    """A time law of a move: its path speeds, and the window over which they are averaged.

    A moving average of the path parameter bounds the jerk (Biagiotti and Melchiorri, FIR
    filters for online trajectory planning, 2012). It keeps the path and lengthens the
    move by the window.

    Attributes:
        arm: dynamics of the arm on the path of the move.
        b: squared path speeds before averaging, at the ends of the intervals [N + 1],
            1/s^2; zero at both ends of the path.
        window: length of the moving average [s]; zero for none.
    """

    arm: PathDynamics
    b: Array
    window: float = 0.0

    @cached_property
    def steps(self) -> Array:
        """Durations of the intervals before averaging [N], s."""
        v = np.sqrt(self.b)
        return np.asarray(2 * self.arm.steps / (v[1:] + v[:-1]))

    @property
    def duration(self) -> float:
        """From rest to rest [s]."""
        return float(self.steps.sum()) + self.window

    def stretched(self, duration: float, window: float | None = None) -> TimeLaw:
        """The same law, evenly slower or faster.

        Args:
            duration: duration from rest to rest [s].
            window: length of the moving average [s]; None keeps the window of the law.
        """
        window = self.window if window is None else window
        factor = float(self.steps.sum()) / (duration - window)
        return replace(self, b=self.b * factor**2, window=window)

    def sample(self, period: float) -> tuple[Array, Array, Array, Array]:
        """The motion at even times about a period apart, its ends included.

        Args:
            period: time between samples [s].

        Returns:
            Times [k], s, and positions [k, n], rad, speeds [k, n], rad/s, and accelerations
            [k, n], rad/s^2, of the joints.
        """
        duration = self.duration
        intervals = max(int(np.ceil(duration / period)), 2)
        time = np.linspace(0.0, duration, intervals + 1)
        area, s, speed, rate = self._before_averaging(time)
        if self.window > 0.0:
            # The average over the window is the difference of integrals at its two ends.
            area_before, s_before, speed_before, _ = self._before_averaging(
                time - self.window
            )
            rate = (speed - speed_before) / self.window
            speed = np.maximum((s - s_before) / self.window, 0.0)
            s = (area - area_before) / self.window
        s = np.clip(s, 0.0, 1.0)
        slope = self.arm.path(s, 1)
        curvature = self.arm.path(s, 2)
        qd = slope * speed[:, None]
        qd[[0, -1]] = 0.0
        qdd = slope * rate[:, None] + curvature * speed[:, None] ** 2
        return time, self.arm.path(s), qd, qdd

    def jerk(self, period: float) -> float:
        """Largest jerk of a joint between samples a period apart [rad/s^3]."""
        time, _, _, qdd = self.sample(period)
        return float(np.abs(np.diff(qdd, axis=0)).max() / (time[1] - time[0]))

    def _before_averaging(self, time: Array) -> tuple[Array, Array, Array, Array]:
        """The path parameter without averaging, also before and after the move.

        Args:
            time: time since the start of the move [k], s.

        Returns:
            Integral of the path parameter over time [k], s, the path parameter [k], its
            speed [k], 1/s, and the rate of its speed [k], 1/s^2.
        """
        steps = self.steps
        nodes = np.concatenate([[0.0], np.cumsum(steps)])
        inside = np.clip(time, 0.0, nodes[-1])
        v = np.sqrt(self.b)
        s = self.arm.s
        rates = (v[1:] - v[:-1]) / steps
        areas = s[:-1] * steps + v[:-1] * steps**2 / 2 + rates * steps**3 / 6
        area_before = np.concatenate([[0.0], np.cumsum(areas)])
        k = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
        since = inside - nodes[k]
        rate = rates[k]
        area = area_before[k] + (s[k] + (v[k] / 2 + rate * since / 6) * since) * since
        area = area + np.maximum(time - nodes[-1], 0.0)  # the path ends at s = 1
        place = s[k] + (v[k] + 0.5 * rate * since) * since
        speed = np.maximum(v[k] + rate * since, 0.0)
        return area, place, speed, rate * (inside == time)


PERIOD = 0.002
"""Period over which accelerations change [s]: the cycle time of an e-Series controller."""
MARGIN = 0.97
"""Usable part of the limit; the rest is for laws that are shortened a little afterwards."""
LONGEST = 1.0  # longest window, relative to the duration of the law
_TRIALS = 10  # bisections of the window: to a thousandth of the longest window


def with_jerk_limit(law: TimeLaw, limit: float) -> TimeLaw:
    """The law with the shortest window of averaging that keeps a jerk limit.

    On paths with sharp bends averaging does not suffice: there the law is slowed down, too,
    by the third root of the ratio of jerk and limit.

    Args:
        law: time law without a window.
        limit: largest jerk of a joint [rad/s^3]; infinite for none.
    """
    if np.isinf(limit):
        return law
    goal = MARGIN * limit
    low = 0.0
    high = LONGEST * law.duration
    longest = replace(law, window=high)
    excess = longest.jerk(PERIOD) / goal
    if excess > 1.0:
        slower = excess ** (1 / 3)
        return longest.stretched(longest.duration * slower, high * slower)
    for _ in range(_TRIALS):
        middle = 0.5 * (low + high)
        if replace(law, window=middle).jerk(PERIOD) <= goal:
            high = middle
        else:
            low = middle
    return replace(law, window=high)
