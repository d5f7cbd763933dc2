# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One arm on the path of one move: the path, its limits and its dynamics.

With the path q(s), s from 0 to 1, the speed v = ds/dt and its rate a, the joints move at
q' v with acceleration q' a + q'' v^2, and the torques are linear in a and v^2 (Bobrow et
al. 1985; Verscheure et al. 2009): m(s) a + c(s) v^2 + g(s). The path is divided into
intervals within which a is constant; the squared speeds b = v^2 at their ends are the
unknowns of a time law (`time_law`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ur_energy_model.model.drives import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

if TYPE_CHECKING:  # scipy.interpolate is slow to import
    from scipy.interpolate import CubicSpline

SPEED_SHARE = 0.95
ACCELERATION_SHARE = 0.95
TORQUE_SHARE = 0.9
TOOL_SPEED_SHARE = 0.97
"""Usable parts of the limits of speed, acceleration, torque and tool speed; the rest is margin for
the controller's ripple and the interpolation between samples. The torque includes friction and
payload."""
ROUNDING = 1.0 + 1e-6
"""Factor on a limit up to which a value is within it."""
STILL = 0.02
"""Least share of the usual limit: a joint that stood still has a noisy path, which needs speed."""
TOOL_SPEED = 1.5
"""Speed of flange and elbow [m/s] that the controller's safety settings allow by default."""
_VALUES = ("speed", "acceleration", "torque", "tool_speed")


@dataclass(frozen=True)
class PathLimits:
    """Limits of a motion; of the joints [n] on the joint side, with friction in the torque.

    Attributes:
        speed: largest speed of the joints [n], rad/s.
        acceleration: largest acceleration of the joints [n], rad/s^2.
        torque: largest torque of the joints [n], N m.
        tool_speed: largest speed of flange and elbow [m/s].
        jerk: largest jerk of the joints [rad/s^3]; infinite without a limit.
        recorded: whether the recorded motion is allowed in any case, except for its power.
        power: largest power of the whole arm at the supply [W]; infinite without a limit.
    """

    speed: Array
    acceleration: Array
    torque: Array
    tool_speed: float = TOOL_SPEED_SHARE * TOOL_SPEED
    jerk: float = np.inf
    recorded: bool = False
    power: float = np.inf

    @classmethod
    def of_robot(cls, robot: RobotDescription) -> PathLimits:
        """The robot file's limits, with a margin."""
        return cls(
            SPEED_SHARE * robot.max_velocity,
            ACCELERATION_SHARE * robot.max_acceleration,
            TORQUE_SHARE * robot.max_torque,
        )

    def with_speedup(self, shown: PathLimits, factor: float) -> PathLimits:
        """These limits, lowered to a multiple of the largest speeds and accelerations of a move.

        Args:
            shown: the largest values of the recorded move.
            factor: factor on these largest values.
        """
        speed = factor * np.maximum(shown.speed, STILL * self.speed)
        acceleration = factor * np.maximum(shown.acceleration, STILL * self.acceleration)
        return replace(
            self,
            speed=np.minimum(self.speed, speed),
            acceleration=np.minimum(self.acceleration, acceleration),
            recorded=True,
        )

    def within(self, others: PathLimits, tolerance: float = ROUNDING) -> bool:
        """Whether these values keep other limits; jerk and power do not count.

        Args:
            others: limits to keep.
            tolerance: factor on these limits.
        """
        for name in _VALUES:
            values = np.asarray(getattr(self, name))
            if (values > tolerance * getattr(others, name)).any():
                return False
        return True

    def at_least(self, *others: PathLimits) -> PathLimits:
        """These limits, raised to other limits where the other ones are higher.

        The limits of jerk and power stay.

        Args:
            others: other limits.
        """
        highest = self
        for other in others:
            highest = replace(
                highest,
                speed=np.maximum(highest.speed, other.speed),
                acceleration=np.maximum(highest.acceleration, other.acceleration),
                torque=np.maximum(highest.torque, other.torque),
                tool_speed=max(highest.tool_speed, other.tool_speed),
            )
        return highest


def reached(
    q: Array, qd: Array, qdd: Array, torque: Array, dynamics: ArmDynamics
) -> PathLimits:
    """The largest values of a motion of k samples.

    Args:
        q: positions [k, n], rad.
        qd: velocities [k, n], rad/s.
        qdd: accelerations [k, n], rad/s^2.
        torque: joint side, friction included [k, n], N m.
        dynamics: the arm with its payload.
    """
    return PathLimits(
        speed=np.abs(qd).max(axis=0),
        acceleration=np.abs(qdd).max(axis=0),
        torque=np.abs(torque).max(axis=0),
        tool_speed=float(point_speed(dynamics, q, qd).max()),
    )


def holding_power(
    model: EnergyModel, dynamics: ArmDynamics, q: Array, temperature: Array | None
) -> Array:
    """Power of the whole arm at rest, brakes released.

    Args:
        model: model of the arm.
        dynamics: the arm with its payload.
        q: joint positions [k, n], rad.
        temperature: temperatures of the joints [n], degC; None if unknown.

    Returns:
        Power at the supply [k], W.
    """
    zero = np.zeros_like(q)
    link = dynamics.gravity_torque(q)
    return model.from_link_torque(
        link, zero, zero, temperature=temperature, std=False
    ).total_power


def point_velocities(
    dynamics: ArmDynamics, q: Array, qd: Array
) -> tuple[Array, Array, Array]:
    """Velocities of elbow and flange.

    The elbow is the far end of the second moving link.

    Args:
        dynamics: dynamics of the arm.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.

    Returns:
        Velocities [k, 2, 3], m/s, their Jacobians [k, 2, n, 3], m, and the unit vectors of
        the joint axes [k, n, 3].
    """
    links, joints = dynamics.frames(q)
    axes = joints[..., :3, 2]
    origins = joints[..., :3, 3]
    n = q.shape[1]
    jacobian = np.zeros((len(q), 2, n, 3))
    for point, link in enumerate((min(2, n), n)):
        lever = links[:, link, None, :3, 3] - origins[:, :link]
        jacobian[:, point, :link] = np.cross(axes[:, :link], lever)
    return np.einsum("tpji,tj->tpi", jacobian, qd), jacobian, axes


def point_speed(dynamics: ArmDynamics, q: Array, qd: Array) -> Array:
    """Speed of flange or elbow, whichever is faster [k], m/s."""
    velocities, _, _ = point_velocities(dynamics, q, qd)
    return np.asarray(np.linalg.norm(velocities, axis=-1).max(axis=1))


DEVIATION = 2e-5  # deviation of the path from the recorded targets that is aimed at [rad]
_FEWEST = 8  # intervals between knots of the first curve that is tried
_MOST = 2048  # intervals between knots of the finest curve
_FINE = 0.004
"""Period to which slow recordings are interpolated before the path is drawn through them [s]."""
INTERVALS = 60
MOST_INTERVALS = 1000
"""Least and largest number of intervals of a path; twice as many change the least energy of a
straight move by less than 0.1 %."""
INTERVAL = 0.03
"""Recorded duration of an interval where a path takes longer than the least number [s]."""
RECORDED_MARGIN = 1.02
"""Factor on the share of a limit that the recorded motion uses; it may use more between samples."""
_TINY = 1e-12  # keeps quotients finite
_LEAST_BOUND = 1e-3  # least acceleration and torque that a limit leaves [rad/s^2, N m]
_SLOW_FRICTION = 0.05
"""Share of the highest speed at which friction is evaluated, too, in case it is larger there."""
_FRICTION_LOAD = 0.5
"""Share of the torque limit at which friction that depends on load is evaluated."""
_ANY_TORQUE = 1e6  # stands for torque limits without end [N m]
SLOWEST = 0.02
"""Lowest speed of the leading joint in the middle of a move [rad/s]: below, the friction
of steady motion does not apply."""


class _RecordedTravel(NamedTuple):
    """Progress of a recorded move along its path.

    Attributes:
        time: share of the duration [k], from 0 to 1.
        share: share of the travel at these times [k], from 0 to 1.
        duration: duration of the move [s].
    """

    time: Array
    share: Array
    duration: float


class PathDynamics:
    """One arm, with its payload, on the path of one recorded move, divided into N intervals.

    The path is a smooth curve, twice differentiable, with as few knots as keep it within
    `DEVIATION` of the recorded positions. All vectors of joints are on the joint side.

    Args:
        model: model of the arm.
        dynamics: the arm with its payload.
        move: times of the samples [k], s, positions [k, n], rad, and velocities [k, n],
            rad/s, from rest to rest.
        temperature: temperatures of the joints [n], degC; None if unknown.
        intervals: N; None for one that follows from the duration of the move.

    Attributes:
        duration: duration of the recorded move [s].
        deviation: largest distance of the path from the recorded positions [rad].
        length: largest travel of a joint along the path [rad].
        s: ends of the intervals [N + 1], from 0 to 1, denser at the slow ends of a move.
        steps: lengths of the intervals [N].
        slope: dq/ds in the middle of the intervals [N, n], rad.
        curvature: d2q/ds2 in the middle of the intervals [N, n], rad.
        gravity: torque of the links at rest in the middle of the intervals [N, n], N m.
        inertia: torque of the links for each unit of the rate of v [N, n], N m s^2.
        centrifugal: torque of the links for each unit of v^2 [N, n], N m s^2.
    """

    def __init__(
        self,
        model: EnergyModel,
        dynamics: ArmDynamics,
        move: tuple[Array, Array, Array],
        temperature: Array | None = None,
        intervals: int | None = None,
    ) -> None:
        self.model = model
        self.dynamics = dynamics
        self.temperature = temperature
        recorded_time, recorded_q, recorded_qd = move
        self.duration = float(recorded_time[-1] - recorded_time[0])
        time, q, share = _travelled(recorded_time, recorded_q, recorded_qd)
        duration = float(time[-1] - time[0])
        self._recorded = _RecordedTravel((time - time[0]) / duration, share, duration)
        self._spline, self.deviation = _smooth_path(share, q)
        slope = np.abs(self.path(np.linspace(0.0, 1.0, 201), 1))
        self.length = float(slope.mean(axis=0).max())
        if intervals is None:
            intervals = int(np.clip(duration / INTERVAL, INTERVALS, MOST_INTERVALS))
        self.s = self._divided(intervals)
        self.steps = np.diff(self.s)
        middle = 0.5 * (self.s[1:] + self.s[:-1])
        q = self.path(middle)
        self.slope = self.path(middle, 1)
        self.curvature = self.path(middle, 2)
        zero = np.zeros_like(q)
        self.gravity = dynamics.inverse_dynamics(q, zero, zero)
        accelerated = dynamics.inverse_dynamics(q, zero, self.slope)
        self.inertia = accelerated - self.gravity
        moving = dynamics.inverse_dynamics(q, self.slope, self.curvature)
        self.centrifugal = moving - self.gravity

    def _divided(self, intervals: int) -> Array:
        """Ends of the intervals [intervals + 1], from 0 to 1.

        They are the mean of two divisions: by even times of the recorded motion, and by
        even times of a motion that starts and ends smoothly.
        """
        even = np.linspace(0.0, 1.0, intervals + 1)
        recorded = np.interp(even, self._recorded.time, self._recorded.share)
        smooth = 0.5 * (1.0 - np.cos(np.pi * even))
        s = 0.5 * (recorded + smooth)
        s[0] = 0.0
        s[-1] = 1.0
        return np.asarray(s)

    def path(self, s: Array, order: int = 0) -> Array:
        """Joint positions q(s), or a derivative by s [k, n], rad.

        Args:
            s: places on the path [k], from 0 to 1.
            order: order of the derivative, 0 to 2.
        """
        return np.asarray(self._spline(s, order))

    def recorded_squared_speed(self) -> Array:
        """Squared path speed of the recorded motion at the ends of the intervals [N + 1], 1/s^2."""
        time, share, duration = self._recorded
        speed = np.gradient(share, time) / max(duration, 1e-9)
        return np.asarray(np.interp(self.s, share, np.maximum(speed, 0.0)) ** 2)

    @property
    def slowest(self) -> float:
        """Mean path speed at which the leading joint moves at `SLOWEST`, 1/s."""
        return SLOWEST / self.length

    def demand(self, speed: Array, rate: Array) -> Array:
        """Power that the whole arm demands in each interval.

        Args:
            speed: path speed [..., N], 1/s.
            rate: rate of the path speed [..., N], 1/s^2.

        Returns:
            Power [..., N], W.
        """
        powers, _ = self._powers(speed, rate)
        return np.asarray(powers.demand.reshape(speed.shape))

    def powers(self, speed: Array, rate: Array) -> tuple[Array, Array, Array]:
        """`demand`, and torques and accelerations of the joints in each interval.

        Args:
            speed: path speed [..., N], 1/s.
            rate: rate of the path speed [..., N], 1/s^2.

        Returns:
            Power [..., N], W, torques, joint side, friction included [..., N, n], N m, and
            accelerations [..., N, n], rad/s^2.
        """
        found, qdd = self._powers(speed, rate)
        torque = found.motor_torque * self._gear_ratio
        shape = (*speed.shape, self.slope.shape[1])
        return (
            found.demand.reshape(speed.shape),
            torque.reshape(shape),
            qdd.reshape(shape),
        )

    def _powers(self, speed: Array, rate: Array) -> tuple[DrivePowers, Array]:
        """Powers, and accelerations of the joints, with all trials and intervals in one axis.

        Args:
            speed: path speed [..., N], 1/s.
            rate: rate of the path speed [..., N], 1/s^2.

        Returns:
            Powers of all k trials and intervals, and accelerations [k, n], rad/s^2.
        """
        v = speed[..., None]
        a = rate[..., None]
        n = self.slope.shape[1]
        qd = (self.slope * v).reshape(-1, n)
        qdd = (self.slope * a + self.curvature * v**2).reshape(-1, n)
        link = (self.inertia * a + self.centrifugal * v**2 + self.gravity).reshape(-1, n)
        found = self.model.from_link_torque(
            link, qd, qdd, temperature=self.temperature, std=False
        )
        return found, qdd

    @cached_property
    def _gear_ratio(self) -> Array:
        """Motor speed over joint speed [n]."""
        return np.array([joint.gear_ratio for joint in self.model.joints])

    def fastest(self, limits: PathLimits) -> Array:
        """Path speed that joint and tool speeds allow at the ends of the intervals [N + 1], 1/s."""
        slope = self.path(self.s, 1)
        # Speed of flange or elbow for a path speed of 1/s [N + 1], m.
        point_slope = point_speed(self.dynamics, self.path(self.s), slope)
        of_joints = limits.speed / np.maximum(np.abs(slope), _TINY)
        of_tool = limits.tool_speed / np.maximum(point_slope, _TINY)
        return np.asarray(np.minimum(of_joints.min(axis=1), of_tool))

    def limit_rows(self, limits: PathLimits) -> tuple[Array, Array, Array]:
        """The limits on this path, linear in rate a and squared speed b: g a + c b <= 1.

        Friction is bounded by its value at the highest speed that the limits allow (or
        its value at a twentieth of this speed, if larger), which makes the torque limits
        linear and slightly strict. Where `limits.recorded` is true, the limits are
        widened until they allow the recorded motion.

        Args:
            limits: limits of the motion.

        Returns:
            g and c [rows, N], and the squared speeds that joint and tool speeds allow at
            the ends of the intervals [N + 1].
        """
        fastest = self.fastest(limits)
        middle = 0.5 * (fastest[1:] + fastest[:-1])[:, None]
        motor = np.array([joint.inertia for joint in self.model.joints])
        inertia = self.inertia + motor * self.slope
        centrifugal = self.centrifugal + motor * self.curvature
        fast_friction = self._friction(middle, limits.torque)
        slow_friction = self._friction(_SLOW_FRICTION * middle, limits.torque)
        torque = limits.torque - np.maximum(fast_friction, slow_friction)
        most = np.broadcast_to(limits.acceleration, self.slope.shape)
        # Rows: accelerations in both directions, then torques in both directions.
        bound = np.hstack([most, most, torque - self.gravity, torque + self.gravity]).T
        by_rate = np.hstack([self.slope, -self.slope, inertia, -inertia]).T
        by_square = np.hstack(
            [self.curvature, -self.curvature, centrifugal, -centrifugal]
        ).T
        bound = np.maximum(bound, _LEAST_BOUND)
        g = by_rate / bound
        c = by_square / bound
        squares = fastest**2
        if limits.recorded:
            b = self.recorded_squared_speed()
            rate = np.diff(b) / (2 * self.steps)
            used = g * rate + c * 0.5 * (b[1:] + b[:-1])
            used = np.maximum(RECORDED_MARGIN * used, 1.0)
            g = g / used
            c = c / used
            squares = np.maximum(squares, RECORDED_MARGIN * b)
        return g, c, squares

    def _friction(self, speed: Array, limit: Array) -> Array:
        """Size of the friction in each interval, joint side [N, n], N m.

        Args:
            speed: path speed [N, 1], 1/s.
            limit: torque limits [n], N m; friction that depends on load is taken at half
                of the limit.
        """
        qd = self.slope * speed
        typical_load = _FRICTION_LOAD * np.minimum(limit, _ANY_TORQUE)
        load = np.broadcast_to(typical_load, qd.shape)
        powers = self.model.from_link_torque(
            load, qd, np.zeros_like(qd), temperature=self.temperature, std=False
        )
        return np.asarray(np.abs(powers.motor_torque * self._gear_ratio - load))


def _travelled(time: Array, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """The samples of a move at which it has travelled further than at the sample before.

    Slow recordings are first interpolated to a period of `_FINE`.

    Args:
        time: times of the samples, ascending [k], s.
        q: positions [k, n], rad.
        qd: velocities [k, n], rad/s.

    Returns:
        Times [m], s, positions [m, n], rad, and shares of the whole travel, from 0 to 1
        [m].
    """
    from scipy.interpolate import CubicHermiteSpline

    if np.median(np.diff(time)) > _FINE:
        samples = int(float(time[-1] - time[0]) / _FINE) + 2
        fine = np.linspace(time[0], time[-1], samples)
        q = np.asarray(CubicHermiteSpline(time, q, qd)(fine))
        time = fine
    travel = np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))
    share = np.concatenate([[0.0], travel / travel[-1]])
    further = np.concatenate([[True], np.diff(share) > _TINY])
    return time[further], q[further], share[further]


def _smooth_path(share: Array, q: Array) -> tuple[CubicSpline, float]:
    """A spline with few knots through positions, within `DEVIATION` if knots suffice.

    Args:
        share: shares of the travel [k], ascending from 0 to 1.
        q: joint positions [k, n], rad.

    Returns:
        The spline q(s), and its largest distance from the positions [rad].
    """
    from scipy.interpolate import CubicSpline

    knots = _FEWEST
    while True:
        grid = np.linspace(0.0, 1.0, knots + 1)
        points = np.stack([np.interp(grid, share, column) for column in q.T], axis=1)
        points[0] = q[0]
        points[-1] = q[-1]
        spline = CubicSpline(grid, points)
        deviation = float(np.abs(spline(share) - q).max())
        if deviation <= DEVIATION or knots >= min(_MOST, len(q) // 2):
            return spline, deviation
        knots *= 2
