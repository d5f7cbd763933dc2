# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One arm on the path of one move: the path, its limits, its dynamics, and time laws on it.

With the path q(s), s from 0 to 1, the speed v = ds/dt and its rate a, the joints move at
q' v with acceleration q' a + q'' v^2, and the torques are linear in a and v^2 (Bobrow et
al. 1985; Verscheure et al. 2009): m(s) a + c(s) v^2 + g(s). The path is divided into
intervals within which a is constant; the squared speeds b = v^2 at their ends are the
unknowns of a time law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

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
        speed: rad/s.
        acceleration: rad/s^2.
        torque: N m.
        tool_speed: of flange and elbow [m/s].
        jerk: of the joints [rad/s^3]; infinite without a limit.
        recorded: whether the recorded motion is allowed in any case.
    """

    speed: Array
    acceleration: Array
    torque: Array
    tool_speed: float = TOOL_SPEED_SHARE * TOOL_SPEED
    jerk: float = np.inf
    recorded: bool = False

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
            factor: on these largest values.
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
        """Whether these values keep other limits, times a tolerance; jerk does not count."""
        for name in _VALUES:
            values = np.asarray(getattr(self, name))
            if (values > tolerance * getattr(others, name)).any():
                return False
        return True

    def at_least(self, *others: PathLimits) -> PathLimits:
        """These limits, raised to other limits where these are higher; the jerk stays."""
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
        model: of the arm.
        dynamics: the arm with its payload.
        q: joint positions [k, n], rad.
        temperature: of the joints [n], degC; None if unknown.

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
        dynamics: the arm.
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
_TINY = 1e-12
SLOWEST = 0.02
"""Lowest speed of the leading joint in the middle of a move [rad/s]: below, the friction
of steady motion does not apply."""


class PathDynamics:
    """One arm, with its payload, on the path of one recorded move, divided into N intervals.

    The path is a smooth curve, twice differentiable, with as few knots as keep it within
    `DEVIATION` of the recorded positions. All vectors of joints are on the joint side.

    Args:
        model: of the arm.
        dynamics: the arm with its payload.
        move: times of the samples [k], s, positions [k, n], rad, and velocities [k, n],
            rad/s, from rest to rest.
        temperature: of the joints [n], degC; None if unknown.
        intervals: N; None for one that follows from the duration of the move.

    Attributes:
        duration: of the recorded move [s].
        deviation: largest distance of the path from the recorded positions [rad].
        length: largest travel of a joint along the path [rad].
        s: ends of the intervals [N + 1], from 0 to 1, denser at the slow ends of a move.
        steps: lengths of the intervals [N].
        slope: dq/ds in the middle of the intervals [N, n], rad.
        curvature: d2q/ds2 there [N, n], rad.
        gravity: torque of the links at rest there [N, n], N m.
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
        self.duration = float(move[0][-1] - move[0][0])
        time, q, share = _travelled(*move)
        duration = float(time[-1] - time[0])
        self._recorded = ((time - time[0]) / duration, share, duration)
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
        recorded = np.interp(even, *self._recorded[:2])
        smooth = 0.5 * (1.0 - np.cos(np.pi * even))
        s = 0.5 * (recorded + smooth)
        s[0] = 0.0
        s[-1] = 1.0
        return np.asarray(s)

    def path(self, s: Array, order: int = 0) -> Array:
        """q(s), or its first or second derivative [k, n], rad."""
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
            speed: of s [..., N], 1/s.
            rate: of the speed [..., N], 1/s^2.

        Returns:
            Power [..., N], W.
        """
        powers, _ = self._powers(speed, rate)
        return np.asarray(powers.demand.reshape(speed.shape))

    def powers(self, speed: Array, rate: Array) -> tuple[Array, Array, Array]:
        """`demand`, and torques and accelerations of the joints in each interval.

        Args:
            speed: of s [..., N], 1/s.
            rate: of the speed [..., N], 1/s^2.

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
        """Powers, and accelerations of the joints, with all trials and intervals in one axis."""
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
        reach = point_speed(self.dynamics, self.path(self.s), slope)
        of_joints = limits.speed / np.maximum(np.abs(slope), _TINY)
        of_tool = limits.tool_speed / np.maximum(reach, _TINY)
        return np.asarray(np.minimum(of_joints.min(axis=1), of_tool))

    def limit_rows(self, limits: PathLimits) -> tuple[Array, Array, Array]:
        """The limits on this path, linear in rate a and squared speed b: g a + c b <= 1.

        Friction is bounded by its value at the highest speed that the limits allow (or
        its value at a twentieth of this speed, if larger), which makes the torque limits
        linear and slightly strict. Where `limits.recorded` is true, the limits are
        widened to what the recorded motion needs.

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
        slow_friction = self._friction(0.05 * middle, limits.torque)
        torque = limits.torque - np.maximum(fast_friction, slow_friction)
        most = np.broadcast_to(limits.acceleration, self.slope.shape)
        # Rows: accelerations in both directions, then torques in both directions.
        bound = np.hstack([most, most, torque - self.gravity, torque + self.gravity]).T
        by_rate = np.hstack([self.slope, -self.slope, inertia, -inertia]).T
        by_square = np.hstack(
            [self.curvature, -self.curvature, centrifugal, -centrifugal]
        ).T
        bound = np.maximum(bound, 1e-3)
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
            speed: of s [N, 1], 1/s.
            limit: of the torques [n], N m; friction that depends on load is taken at half
                of this limit.
        """
        qd = self.slope * speed
        load = np.broadcast_to(0.5 * np.minimum(limit, 1e6), qd.shape)
        powers = self.model.from_link_torque(
            load, qd, np.zeros_like(qd), temperature=self.temperature, std=False
        )
        return np.asarray(np.abs(powers.motor_torque * self._gear_ratio - load))


def _travelled(time: Array, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """The samples of a move at which it has travelled further than at the sample before.

    Samples of slow recordings are interpolated to a period of `_FINE` before.

    Args:
        time: ascending [k], s.
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
        share: of the travel [k], ascending from 0 to 1.
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


@dataclass(frozen=True)
class TimeLaw:
    """A time law of a move: its path speeds, and the window over which they are averaged.

    A moving average of the path parameter bounds the jerk (Biagiotti and Melchiorri, FIR
    filters for online trajectory planning, 2012). It keeps the path and lengthens the
    move by the window.

    Attributes:
        arm: on the path of the move.
        b: squared path speeds before averaging, at the ends of the intervals [N + 1],
            1/s^2; zero at both ends of the path.
        window: of the moving average [s]; zero for none.
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
            duration: from rest to rest [s].
            window: over which the motion is averaged [s]; None keeps the window of the
                law.
        """
        window = self.window if window is None else window
        factor = float(self.steps.sum()) / (duration - window)
        return replace(self, b=self.b * factor**2, window=window)

    def sample(self, period: float) -> tuple[Array, Array, Array, Array]:
        """The motion at even times about a period [s] apart, its ends included.

        Returns:
            Times [k], s, and positions, speeds and accelerations of the joints [k, n];
            rad, s.
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
            time: since the start of the move [k], s.

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


# period over which accelerations change [s]: the cycle time of an e-Series controller
PERIOD = 0.002
MARGIN = 0.97
"""Usable part of the limit; the rest is for laws that are shortened a little afterwards."""
LONGEST = 1.0  # longest window, relative to the duration of the law
_TRIALS = 10


def with_jerk_limit(law: TimeLaw, limit: float) -> TimeLaw:
    """The law with the shortest window of averaging that keeps a jerk limit.

    On paths with sharp bends averaging does not suffice: there the law is slowed down, too,
    by the third root of what the jerk is above its limit.

    Args:
        law: without a window.
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
