"""One arm on the path of one move: the path, its limits, its dynamics, and time laws on it.

With the path q(s), s from 0 to 1, the speed v = ds/dt and its rate a, the joints move at q' v with
acceleration q' a + q'' v^2, and the torques are linear in a and v^2 (Bobrow et al. 1985; Verscheure
et al. 2009): m(s) a + c(s) v^2 + g(s). The path is divided into intervals within which a is
constant; the squared speeds b = v^2 at their ends are the unknowns of a time law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

DEVIATION = 2e-5
"""Deviation of the path from the recorded targets that is aimed at [rad]."""
_FEWEST, _MOST = 8, 2048
_FINE = 0.004
"""Period to which slow recordings are interpolated before the path is drawn through them [s]."""


class JointPath:
    """A smooth path q(s), twice differentiable, with as few knots as keep to a recorded move.

    Args:
        time: of the samples [k], s.
        q: positions [k, n], rad.
        qd: velocities [k, n], rad/s.

    Attributes:
        deviation: largest distance from the positions it was made from [rad].
        duration: of the motion it was made from [s].
    """

    def __init__(self, time: Array, q: Array, qd: Array) -> None:
        if np.median(np.diff(time)) > _FINE:
            fine = np.linspace(time[0], time[-1], int((time[-1] - time[0]) / _FINE) + 2)
            q, time = np.asarray(CubicHermiteSpline(time, q, qd)(fine)), fine
        share = _shares(q)
        kept = np.concatenate([[True], np.diff(share) > 1e-12])
        share, q, time = share[kept], q[kept], time[kept]
        self.duration = float(time[-1] - time[0])
        self._recorded = ((time - time[0]) / self.duration, share)
        knots = _FEWEST
        while True:
            grid = np.linspace(0.0, 1.0, knots + 1)
            points = np.stack([np.interp(grid, share, column) for column in q.T], axis=1)
            points[0], points[-1] = q[0], q[-1]
            self._spline = CubicSpline(grid, points)
            self.deviation = float(np.abs(self.position(share) - q).max())
            if self.deviation <= DEVIATION or knots >= min(_MOST, len(q) // 2):
                break
            knots *= 2

    def grid(self, intervals: int) -> Array:
        """Ends of intervals along the path [intervals + 1], denser where a motion is slow.

        Half way between even times of the recorded motion, and a motion that starts and ends
        smoothly.
        """
        even = np.linspace(0.0, 1.0, intervals + 1)
        recorded = np.interp(even, *self._recorded)
        grid = 0.5 * (recorded + 0.5 * (1.0 - np.cos(np.pi * even)))
        grid[0], grid[-1] = 0.0, 1.0
        return np.asarray(grid)

    def recorded_squared_speed(self, s: Array) -> Array:
        """Squared path speed of the recorded motion at places on the path [k], 1/s^2."""
        time, share = self._recorded
        speed = np.gradient(share, time) / max(self.duration, 1e-9)
        return np.asarray(np.interp(s, share, np.maximum(speed, 0.0)) ** 2)

    @cached_property
    def length(self) -> float:
        """Largest travel of a joint along the path [rad]."""
        slope = np.abs(self.slope(np.linspace(0.0, 1.0, 201)))
        return float(slope.mean(axis=0).max())

    def position(self, s: Array) -> Array:
        """q(s) [k, n], rad."""
        return np.asarray(self._spline(s))

    def slope(self, s: Array) -> Array:
        """dq/ds [k, n], rad."""
        return np.asarray(self._spline(s, 1))

    def curvature(self, s: Array) -> Array:
        """d2q/ds2 [k, n], rad."""
        return np.asarray(self._spline(s, 2))


def _shares(q: Array) -> Array:
    """Share of the length at samples of a path [k], 0 to 1."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    return np.asarray(way / way[-1])


SPEED_SHARE = 0.95
"""Usable part of the joint speeds; the rest is margin for the controller's ripple."""
ACCELERATION_SHARE = 0.95
"""Usable part of the joint accelerations; interpolation between samples overshoots a little."""
TORQUE_SHARE = 0.9
"""Usable part of the joint torques, friction and payload included."""
ROUNDING = 1.0 + 1e-6
STILL = 0.02
"""Share of the usual limit that a joint may use which stood still: a path is exact to noise only.
"""
TOOL_SPEED = 1.5
"""Speed of flange and elbow [m/s] that the controller's safety settings allow by default."""
TOOL_SPEED_SHARE = 0.97
"""Usable part of the tool speed; the rest is margin for the controller's ripple."""


@dataclass(frozen=True)
class PathLimits:
    """Limits of a motion.

    Attributes:
        speed, acceleration, torque: of the joints [n], rad/s, rad/s^2, N m, joint side; the torque
            includes friction.
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
        """These limits, lowered to a multiple of the largest speeds and accelerations of a move."""
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
        return all(
            bool((np.asarray(getattr(self, name)) <= tolerance * getattr(others, name)).all())
            for name in ("speed", "acceleration", "torque", "tool_speed")
        )

    def at_least(self, *others: PathLimits) -> PathLimits:
        """These limits, raised to those of others that go beyond them; jerk does not count."""
        names = ("speed", "acceleration", "torque", "tool_speed")
        columns = ([getattr(each, name) for each in (self, *others)] for name in names)
        speed, acceleration, torque, tool = (np.maximum.reduce(column) for column in columns)
        return PathLimits(speed, acceleration, torque, float(tool), self.jerk, self.recorded)


def reached(q: Array, qd: Array, qdd: Array, torque: Array, dynamics: ArmDynamics) -> PathLimits:
    """The largest values of a motion [k, n] in SI; the torque includes friction."""
    speed, acceleration, most = (np.abs(values).max(axis=0) for values in (qd, qdd, torque))
    return PathLimits(speed, acceleration, most, float(point_speed(dynamics, q, qd).max()))


def point_velocities(dynamics: ArmDynamics, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """Velocities of elbow and flange [k, 2, 3], m/s, their Jacobians [k, 2, n, 3], and joint axes.

    The elbow is the far end of the second moving link.

    Args:
        dynamics: of the arm.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.
    """
    links, joints = dynamics.frames(q)
    axes, origins = joints[..., :3, 2], joints[..., :3, 3]
    n = q.shape[1]
    jacobian = np.zeros((len(q), 2, n, 3))
    for point, link in enumerate((min(2, n), n)):
        arm = links[:, link, None, :3, 3] - origins[:, :link]
        jacobian[:, point, :link] = np.cross(axes[:, :link], arm)
    return np.einsum("tpji,tj->tpi", jacobian, qd), jacobian, axes


def point_speed(dynamics: ArmDynamics, q: Array, qd: Array) -> Array:
    """Speed of flange or elbow, whichever is faster [k], m/s."""
    return np.asarray(np.linalg.norm(point_velocities(dynamics, q, qd)[0], axis=-1).max(axis=1))


INTERVALS, MOST_INTERVALS = 60, 1000
"""Least and largest number of intervals of a path; twice as many change the least energy of a
straight move by less than 0.1 %."""
RECORDED_MARGIN = 1.02
"""Factor on what the recorded motion uses, for the search between its samples."""
INTERVAL = 0.03
"""Recorded duration of an interval where a path takes longer than the least number [s]."""


@dataclass(frozen=True)
class LimitRows:
    """Limits of a path, linear in rate and squared speed: along a + across b <= 1.

    Attributes:
        along, across: [rows, intervals].
        fastest: squared speed that joint and tool speeds allow at the ends of the intervals
            [intervals + 1].
    """

    along: Array
    across: Array
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
        torque = limits.torque - friction
        most = np.broadcast_to(limits.acceleration, self.slope.shape)
        bound = [most, most, torque - self.gravity, torque + self.gravity]
        along = [self.slope, -self.slope, inertia, -inertia]
        across = [self.curvature, -self.curvature, centrifugal, -centrifugal]
        bound, along, across = (np.concatenate(x, axis=1).T for x in (bound, along, across))
        bound = np.maximum(bound, 1e-3)
        g, c, squares = along / bound, across / bound, fastest**2
        if limits.recorded:
            b = self.path.recorded_squared_speed(self.s)
            used = g * np.diff(b) / (2 * self.steps) + c * 0.5 * (b[1:] + b[:-1])
            used = np.maximum(RECORDED_MARGIN * used, 1.0)
            g, c = g / used, c / used
            squares = np.maximum(squares, RECORDED_MARGIN * b)
        return LimitRows(g, c, squares)

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


PERIOD = 0.002
"""Period over which accelerations change [s]: that of an e-Series controller."""
MARGIN = 0.97
"""Usable part of the limit; the rest is for laws that are shortened a little afterwards."""
LONGEST = 1.0
"""Longest window, relative to the duration of the law."""
_TRIALS = 10


def with_jerk_limit(law: TimeLaw, limit: float) -> TimeLaw:
    """The law averaged over a window, and as much longer, so that it keeps a jerk limit.

    On paths with sharp bends averaging does not suffice; there the law is slowed down too.

    Args:
        law: without a window.
        limit: rad/s^3; infinite for none.
    """
    if np.isinf(limit):
        return law
    goal, low, high = MARGIN * limit, 0.0, LONGEST * law.duration
    longest = replace(law, window=high)
    excess = longest.jerk(PERIOD) / goal
    if excess > 1.0:
        return longest.stretched(longest.duration * excess ** (1 / 3), high * excess ** (1 / 3))
    for _ in range(_TRIALS):
        middle = 0.5 * (low + high)
        enough = replace(law, window=middle).jerk(PERIOD) <= goal
        low, high = (low, middle) if enough else (middle, high)
    return replace(law, window=high)
