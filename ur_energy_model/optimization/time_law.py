"""Time law of a move: how fast it runs along its path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ur_energy_model.optimization.path_dynamics import PathDynamics
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class TimeLaw:
    """Path speeds of a move.

    Attributes:
        arm: the arm on the path.
        b: squared path speeds at the ends of the intervals [N + 1], 1/s^2; zero at both ends.
        window: over which the motion is averaged [s], which bounds its jerk (Biagiotti and
            Melchiorri, FIR filters for online trajectory planning, 2012): the move takes as much
            longer, on the same path.
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
        """The same law, evenly slower or faster, for a duration [s].

        Args:
            duration: of the new law [s].
            window: of the new law [s]; that of this one where None.
        """
        window = self.window if window is None else window
        factor = float(self.steps.sum()) / (duration - window)
        return replace(self, b=self.b * factor**2, window=window)

    def sample(self, period: float) -> tuple[Array, Array, Array, Array]:
        """Time [k], s, and q, qd, qdd [k, n] at even times with the ends, about a period apart."""
        duration = self.duration
        time = np.linspace(0.0, duration, max(int(np.ceil(duration / period)), 2) + 1)
        s, speed, rate = self._along(time)
        slope, curvature = self.arm.path.slope(s), self.arm.path.curvature(s)
        qd = slope * speed[:, None]
        qd[0] = qd[-1] = 0.0
        qdd = slope * rate[:, None] + curvature * speed[:, None] ** 2
        return time, self.arm.path.position(s), qd, qdd

    def jerk(self, period: float) -> float:
        """Largest jerk of a joint between samples a period apart [rad/s^3]."""
        time, _, _, qdd = self.sample(period)
        return float(np.abs(np.diff(qdd, axis=0)).max() / (time[1] - time[0]))

    def _along(self, time: Array) -> tuple[Array, Array, Array]:
        """Path parameter and its two derivatives at times [k]."""
        if self.window == 0.0:
            _, s, speed, rate = self._before_averaging(time)
            return np.clip(s, 0.0, 1.0), speed, rate
        late, early = (self._before_averaging(t) for t in (time, time - self.window))
        s, speed, rate = ((a - b) / self.window for a, b in zip(late[:3], early[:3], strict=True))
        return np.clip(s, 0.0, 1.0), np.maximum(speed, 0.0), rate

    def _before_averaging(self, time: Array) -> tuple[Array, Array, Array, Array]:
        """Integral of the path parameter, itself, its speed and its rate at times [k]."""
        nodes = np.concatenate([[0.0], np.cumsum(self.steps)])
        inside = np.clip(time, 0.0, nodes[-1])
        v, s = np.sqrt(self.b), self.arm.s
        rates = (v[1:] - v[:-1]) / self.steps
        areas = s[:-1] * self.steps + v[:-1] * self.steps**2 / 2 + rates * self.steps**3 / 6
        k = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
        since, rate = inside - nodes[k], rates[k]
        area = np.concatenate([[0.0], np.cumsum(areas)])[k]
        area = area + (s[k] + (v[k] / 2 + rate * since / 6) * since) * since
        area = area + np.maximum(time - nodes[-1], 0.0)
        place = s[k] + (v[k] + 0.5 * rate * since) * since
        speed = np.maximum(v[k] + rate * since, 0.0)
        return area, place, speed, rate * (inside == time)
