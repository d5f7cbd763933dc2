"""Time law of one move: the least energy along its path.

Direct transcription on the path (Verscheure et al., Time-optimal path tracking for robots, IEEE
TAC 2009): unknown are the squared path speeds at the ends of short intervals. The energy of an
interval is the power that the package's own model gives for it, times its duration, so no cost is
modelled a second time. Because an interval depends on two neighbouring unknowns only, Newton's
method with a tridiagonal Hessian solves a move in some ten milliseconds; general solvers (SLSQP,
IPOPT) take a hundred times as long to reach the same minimum. What is minimized is energy minus
`price` times duration, the price being the marginal energy of time: along a cycle all moves have
the same one.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.optimization.barrier import IntervalRows, minimize
from ur_energy_model.optimization.motion_limits import PathLimits
from ur_energy_model.optimization.path_dynamics import PathDynamics
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.typing import Array

SLOWEST = 0.02
"""Lowest speed of the leading joint in the middle of a move [rad/s]: below, friction is not that of
steady motion."""
FLOOR_WIDTH = 1.0
"""Width over which the supply's lowest power is rounded while searching [W]."""


class EnergyLaws:
    """Finds the time laws of least energy of one move.

    Args:
        arm: on the path of the move.
        limits: to keep.
    """

    def __init__(self, arm: PathDynamics, limits: PathLimits) -> None:
        self.arm, self.limits = arm, limits
        found = arm.limit_rows(limits)
        each = found.along / (2 * arm.steps)
        shape = 4 * arm.s * (1 - arm.s)
        high = found.fastest[1:-1]
        lowest = (SLOWEST / arm.path.length) ** 2 * shape[1:-1] ** 2
        self.rows = IntervalRows(
            0.5 * found.across - each,
            0.5 * found.across + each,
            np.minimum(lowest, 1e-3 * high),
            high,
        )
        self._start = self._feasible(shape)

    @property
    def possible(self) -> bool:
        """Whether the search has a law to start from that keeps all limits."""
        return self.rows.inside(self._start)

    def energy(self, b: Array) -> float:
        """Energy at the supply of squared path speeds [N + 1], J, as the search sees it."""
        return float(self._energies(b[:-1], b[1:], 0.0).sum())

    def cheapest(self, price: float, start: TimeLaw | None = None) -> TimeLaw:
        """The law that minimizes energy minus price times duration.

        Args:
            price: marginal energy of time [W]; the lower, the faster.
            start: of the search; a law with a similar price.
        """

        def terms(before: Array, after: Array) -> Array:
            return self._energies(before, after, price)

        near = start is not None and self.rows.inside(start.b)
        b = start.b if start is not None and near else self._start
        return TimeLaw(self.arm, minimize(terms, self.rows, b, near=near))

    def _energies(self, before: Array, after: Array, price: float) -> Array:
        """Energy minus price times duration of the intervals [..., N], J."""
        speed = 0.5 * (np.sqrt(before) + np.sqrt(after))
        rate = (after - before) / (2 * self.arm.steps)
        demand = self.arm.demand(speed, rate)
        floor = self.arm.model.bus.floor
        above = (demand - floor) / FLOOR_WIDTH
        supply = floor + FLOOR_WIDTH * np.logaddexp(0.0, above)
        return np.asarray((supply - price) * self.arm.steps / speed)

    def _feasible(self, shape: Array) -> Array:
        """A smooth law at half of the largest speed that keeps all limits [N + 1]."""
        b = shape.copy()
        b[0] = b[-1] = 0.0
        used = 1.0 - self.rows.slack(b)
        most = max(float(used.max()), float((b[1:-1] / self.rows.high).max()))
        return np.asarray(0.25 * b / most)
