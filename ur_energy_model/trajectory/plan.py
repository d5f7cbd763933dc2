"""A planned joint trajectory: positions at times, with derivatives where they are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.typing import Array

SAMPLE_PERIOD = 0.008
"""Sample period of the predicted powers [s]."""


@dataclass(frozen=True)
class Plan:
    """A planned joint trajectory: positions at times, derivatives where they are known.

    Attributes:
        time: increasing [k], k >= 2, s.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s, or None.
        qdd: joint accelerations [k, n], rad/s^2, or None.
        source: origin, for error messages.
    """

    time: Array
    q: Array
    qd: Array | None = None
    qdd: Array | None = None
    source: str = "trajectory"

    def __post_init__(self) -> None:
        parts = [self.time, self.q, *(part for part in (self.qd, self.qdd) if part is not None)]
        if len(self.time) < 2:
            raise InputError(self.source, "has fewer than two points", "give a whole trajectory")
        if not all(np.isfinite(part).all() for part in parts):
            raise InputError(
                self.source, "contains values that are not finite", "correct or remove those points"
            )
        if (np.diff(self.time) <= 0).any():
            place = int(np.flatnonzero(np.diff(self.time) <= 0)[0]) + 1
            raise InputError(
                self.source, f"time does not increase at point {place}", "sort the points by time"
            )

    @property
    def duration(self) -> float:
        """From the first to the last point [s]."""
        return float(self.time[-1] - self.time[0])

    def sampled(self, period: float = SAMPLE_PERIOD) -> tuple[Array, Array, Array, Array]:
        """Time from the start [m], positions, velocities and accelerations [m, n].

        Quintic between points with accelerations, cubic between points with velocities; a cubic
        spline that starts and ends at rest through points with positions alone.
        """
        from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline  # slow to import

        knots = self.time - self.time[0]
        time = np.linspace(0.0, knots[-1], max(2, int(np.ceil(knots[-1] / period)) + 1))
        curve: CubicSpline | CubicHermiteSpline | BPoly
        if self.qd is None:
            curve = CubicSpline(knots, self.q, bc_type="clamped")
        elif self.qdd is None:
            curve = CubicHermiteSpline(knots, self.q, self.qd)
        else:
            curve = BPoly.from_derivatives(knots, np.stack([self.q, self.qd, self.qdd], axis=1))
        return time, curve(time), curve.derivative(1)(time), curve.derivative(2)(time)
