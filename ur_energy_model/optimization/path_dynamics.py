"""An arm on a given path: its torques, powers and limits as functions of path speed.

With the path q(s), the speed v = ds/dt and its rate a, the joints move at q' v with acceleration
q' a + q'' v^2, and the torques are linear in a and v^2 (Bobrow et al. 1985; Verscheure et al.
2009): m(s) a + c(s) v^2 + g(s). The path is divided into intervals within which a is constant; the
squared speeds b = v^2 at their ends are the unknowns of a time law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.motion_limits import PathLimits, point_speed
from ur_energy_model.optimization.path import JointPath
from ur_energy_model.typing import Array

INTERVALS, MOST_INTERVALS = 60, 1000
"""Least and largest number of intervals of a path; twice as many change the least energy of a
straight move by less than 0.1 %."""
RECORDED_MARGIN = 1.02
"""Factor on what the recorded motion uses, for the search between its samples."""
INTERVAL = 0.03
"""Recorded duration of an interval where a path takes longer than the least number [s]."""


@dataclass(frozen=True)
class LimitRows:
    """Limits of a path, linear in rate and squared speed: along a + across b <= bound.

    Attributes:
        along, across, bound: [rows, intervals]; bounds are positive.
        fastest: squared speed that joint and tool speeds allow at the ends of the intervals
            [intervals + 1].
    """

    along: Array
    across: Array
    bound: Array
    fastest: Array


class PathDynamics:
    """One arm on one path, divided into N intervals.

    Args:
        model: of the arm, n joints.
        dynamics: of the arm with its payload.
        path: of the move.
        temperature: of the joints [n], degC; None if unknown.
        intervals: N; None chooses it.

    Attributes:
        s: ends of the intervals [N + 1], from 0 to 1, denser at the slow ends of a move.
        steps: their lengths [N].
    """

    def __init__(
        self,
        model: EnergyModel,
        dynamics: ArmDynamics,
        path: JointPath,
        temperature: Array | None = None,
        intervals: int | None = None,
    ) -> None:
        self.model, self.dynamics, self.path = model, dynamics, path
        self.temperature = temperature
        if intervals is None:
            intervals = int(np.clip(path.duration / INTERVAL, INTERVALS, MOST_INTERVALS))
        self.s = path.grid(intervals)
        self.steps = np.diff(self.s)
        middle = 0.5 * (self.s[1:] + self.s[:-1])
        self._q = path.position(middle)
        self.slope, self.curvature = path.slope(middle), path.curvature(middle)
        zero = np.zeros_like(self._q)
        self.gravity = dynamics.inverse_dynamics(self._q, zero, zero)
        self.inertia = dynamics.inverse_dynamics(self._q, zero, self.slope) - self.gravity
        self.centrifugal = (
            dynamics.inverse_dynamics(self._q, self.slope, self.curvature) - self.gravity
        )

    def demand(self, speed: Array, rate: Array) -> Array:
        """Power that the whole arm demands in each interval [..., N], W.

        Args:
            speed: of s [..., N], 1/s.
            rate: of that speed [..., N], 1/s^2.
        """
        v, a = speed[..., None], rate[..., None]
        n = self.slope.shape[1]
        qd = (self.slope * v).reshape(-1, n)
        qdd = (self.slope * a + self.curvature * v**2).reshape(-1, n)
        link = (self.inertia * a + self.centrifugal * v**2 + self.gravity).reshape(-1, n)
        powers = self.model.from_link_torque(link, qd, qdd, temperature=self.temperature, std=False)
        return np.asarray(powers.demand.reshape(speed.shape))

    def limit_rows(self, limits: PathLimits) -> LimitRows:
        """The limits on this path.

        Friction is bounded by its value at the highest speed that the limits allow, which makes the
        torque limits linear and slightly strict. What the recorded motion exceeds by that is
        allowed where `limits.recorded` is true: it was run.
        """
        nodes = self.path.slope(self.s)
        reach = point_speed(self.dynamics, self.path.position(self.s), nodes)
        tiny = 1e-12
        fastest = np.minimum(
            (limits.speed / np.maximum(np.abs(nodes), tiny)).min(axis=1),
            limits.tool_speed / np.maximum(reach, tiny),
        )
        middle = 0.5 * (fastest[1:] + fastest[:-1])[:, None]
        motor = np.array([joint.reflected_inertia for joint in self.model.joints])
        inertia = self.inertia + motor * self.slope
        centrifugal = self.centrifugal + motor * self.curvature
        friction = np.maximum(
            *(self._friction(speed, limits.torque) for speed in (middle, 0.05 * middle))
        )
        along, across = [self.slope, inertia], [self.curvature, centrifugal]
        torque = limits.torque - friction
        bounds = [
            (np.broadcast_to(limits.acceleration, self.slope.shape),) * 2,
            (torque - self.gravity, torque + self.gravity),
        ]
        rows, offsets, limit = [], [], []
        for g, c, (high, low) in zip(along, across, bounds, strict=True):
            rows += [g.T, -g.T]
            offsets += [c.T, -c.T]
            limit += [high.T, low.T]
        bound = np.maximum(np.concatenate(limit), 1e-3)
        scale = 1.0 / bound
        g, c, most = np.concatenate(rows) * scale, np.concatenate(offsets) * scale, fastest**2
        if limits.recorded:
            b = self.path.recorded_squared_speed(self.s)
            used = g * np.diff(b) / (2 * self.steps) + c * 0.5 * (b[1:] + b[:-1])
            used = np.maximum(RECORDED_MARGIN * used, 1.0)
            g, c = g / used, c / used
            most = np.maximum(most, RECORDED_MARGIN * b)
        return LimitRows(g, c, np.ones_like(bound), most)

    def _friction(self, speed: Array, limit: Array) -> Array:
        """Size of the friction at path speeds [N, 1], joint side [N, n], N m.

        Args:
            speed: of s, 1/s.
            limit: of the torques [n], N m; friction that depends on load is that of half of it.
        """
        qd = self.slope * speed
        ratio = np.array([joint.gear_ratio for joint in self.model.joints])
        load = np.broadcast_to(0.5 * np.minimum(limit, 1e6), qd.shape)
        powers = self.model.from_link_torque(
            load, qd, np.zeros_like(qd), temperature=self.temperature, std=False
        )
        return np.asarray(np.abs(powers.motor_torque * ratio - load))
