# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Safety limits of a motion: joints, torques, tool speed and clearance.

`SafetyLimits.penalty` is differentiable and coarse, for the search; `check` evaluates a
trajectory on a fine grid and is decisive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.optimization.path import point_velocities
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array


class RepeatedMotion:
    """A `Motion` that starts and ends at the same position, at rest, repeated.

    Trapezoidal speed profiles start with a step of the acceleration.

    Args:
        robot: name of the arm.
        motion: motion of one repetition.
        repetitions: number of repetitions.
    """

    starts_smoothly = False

    def __init__(self, robot: str, motion: Motion, repetitions: int = 1) -> None:
        self.robot = robot
        self.motion = motion
        self.repetitions = repetitions
        self.period = motion.duration
        self.duration = motion.duration * repetitions
        self.start = np.asarray(motion.sample(np.zeros(1))[0][0])

    def sample(self, time: Array | float) -> tuple[Array, Array, Array]:
        """Position, velocity, acceleration [samples, n] in rad, rad/s, rad/s^2."""
        instants = np.atleast_1d(np.asarray(time, dtype=float))
        inside = np.clip(instants, 0.0, self.duration)
        phase = np.where(inside < self.duration, np.mod(inside, self.period), self.period)
        q, qd, qdd = self.motion.sample(phase)
        moving = (inside == instants)[:, None]
        return q, moving * qd, moving * qdd

    def repeated(self, repetitions: int) -> RepeatedMotion:
        """The same motion with another number of repetitions."""
        return RepeatedMotion(self.robot, self.motion, repetitions)


PeriodicMotion = FourierTrajectory | RepeatedMotion
"""A joint motion from and to the same position, at rest."""


def sample_period(
    motion: PeriodicMotion, rate: float
) -> tuple[Array, Array, Array, Array]:
    """A motion over one repetition, both ends included.

    Args:
        motion: motion to sample.
        rate: samples per second [Hz].

    Returns:
        Time [samples], s, position, velocity and acceleration [samples, n], rad, rad/s,
        rad/s^2.
    """
    time = np.linspace(0.0, motion.period, max(2, round(motion.period * rate) + 1))
    return time, *motion.sample(time)


CHECK_RATE = 500.0  # sampling rate of the checks [Hz]
_REST = 1e-9  # joint speed and acceleration that count as rest [rad/s, rad/s^2]
_ROUNDING = 1e-6  # share of a limit by which rounding may exceed it
_TIGHTER = 0.99  # factor on the limits in the penalty
_CLEARANCE_MARGIN = 0.01  # added to the clearance in the penalty [m]
_CLEARANCE_SCALE = 0.05
"""Missing clearance that counts like a joint at twice its limit [m]."""


@dataclass(frozen=True)
class SafetyLimits:
    """Limits of one arm in its workplace.

    The usable shares leave a margin of velocity for the ripple of streamed set points (a
    controller stops at its limit), and of torque for friction, which is unknown before the
    identification.

    Attributes:
        dynamics: the arm in its setup, n joints.
        geometry: geometry of the arm and its surroundings.
        clearance: minimum distance [m].
        tool_speed: maximum speed of flange and elbow [m/s].
        share: usable part of joint position and acceleration limits.
        velocity_share: usable part of the joint velocity limits.
        torque_share: usable share of the joint torque limit, for links and motor inertia.
    """

    dynamics: ArmDynamics
    geometry: ArmGeometry
    clearance: float = 0.03
    tool_speed: float = 1.5
    share: float = 0.99
    velocity_share: float = 0.9
    torque_share: float = 0.8

    @property
    def reflected_inertia(self) -> Array:
        """Nominal motor and reducer inertia, joint side [n], kg m^2; 0 if unknown."""
        return np.asarray(np.nan_to_num(self.dynamics.robot.reflected_inertia))

    @property
    def max_position(self) -> Array:
        """Usable joint positions [n], rad, to both sides of `middle_position`."""
        return self.share * self.dynamics.robot.max_position

    @property
    def middle_position(self) -> Array:
        """Middles of the joints' ranges [n], rad."""
        return self.dynamics.robot.middle_position

    @property
    def max_velocity(self) -> Array:
        """Usable joint velocities [n], rad/s."""
        return self.velocity_share * self.dynamics.robot.max_velocity

    @property
    def max_acceleration(self) -> Array:
        """Usable joint accelerations [n], rad/s^2."""
        return self.share * self.dynamics.robot.max_acceleration

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Joint torques without friction, with motor inertia [samples, n], N m."""
        return self.dynamics.inverse_dynamics(q, qd, qdd) + self.reflected_inertia * qdd

    def speeds(self, q: Array, qd: Array) -> Array:
        """Speeds of elbow and flange [samples, 2], m/s."""
        velocities, _, _ = point_velocities(self.dynamics, q, qd)
        return np.asarray(np.linalg.norm(velocities, axis=-1))

    def penalty(
        self, q: Array, qd: Array, qdd: Array
    ) -> tuple[float, tuple[Array, Array, Array]]:
        """Mean square of relative violations, and its gradient with respect to the motion.

        The limits are slightly tightened so that a motion that is feasible on the grid is
        feasible between its points.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.

        Returns:
            The penalty, and its gradients with respect to q, qd and qdd, each [samples, n].
        """
        value = 0.0
        gradient = [np.zeros_like(q) for _ in range(3)]
        bounds = (self.max_position, self.max_velocity, self.max_acceleration)
        motions = (q - self.middle_position, qd, qdd)
        for motion, bound, out in zip(motions, bounds, gradient, strict=True):
            limit = _TIGHTER * bound
            excess = np.maximum(np.abs(motion) / limit - 1, 0)
            value += float(np.sum(excess**2))
            out += 2 * excess * np.sign(motion) / limit
        distance, slope = self.geometry.gradients(q)
        missing = self.clearance + _CLEARANCE_MARGIN - distance
        excess = np.maximum(missing / _CLEARANCE_SCALE, 0)
        gradient[0] -= np.einsum("tp,tpj->tj", 2 * excess / _CLEARANCE_SCALE, slope)
        value += float(np.sum(excess**2))
        value += self._add_tool_speed(q, qd, gradient)
        value += self._add_torque(q, qd, qdd, gradient)
        by_q, by_qd, by_qdd = (each / len(q) for each in gradient)
        return value / len(q), (by_q, by_qd, by_qdd)

    def _add_tool_speed(self, q: Array, qd: Array, gradient: list[Array]) -> float:
        """Sum of squared violations by speeds of elbow and flange.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            gradient: gradients with respect to q, qd and qdd, each [samples, n], to which
                the gradients of the sum are added.
        """
        velocity, jacobian, axes = point_velocities(self.dynamics, q, qd)
        speed = np.linalg.norm(velocity, axis=-1)
        fastest = _TIGHTER * self.tool_speed
        excess = np.maximum(speed / fastest - 1, 0)
        push = (2 * excess / fastest / np.maximum(speed, 1e-9))[..., None] * velocity
        gradient[1] += np.einsum("tpi,tpji->tj", push, jacobian)
        # d(J_k)/dq_m is axis_m x J_k for m <= k and axis_k x J_m for m > k.
        moved = jacobian * qd[:, None, :, None]
        later = np.flip(np.cumsum(np.flip(moved, axis=2), axis=2), axis=2)
        spin = axes * qd[..., None]
        earlier = np.cumsum(spin, axis=1) - spin
        turn = np.cross(axes[:, None], later) + np.cross(earlier[:, None], jacobian)
        carried = np.any(jacobian != 0, axis=(0, 3))
        gradient[0] += np.einsum(
            "tpi,tpji,pj->tj", push, turn, carried * 1.0, optimize=True
        )
        return float(np.sum(excess**2))

    def _add_torque(
        self, q: Array, qd: Array, qdd: Array, gradient: list[Array]
    ) -> float:
        """Sum of squared violations by joint torques.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
            gradient: gradients with respect to q, qd and qdd, each [samples, n], to which
                the gradients of the sum are added.
        """
        torque = self.torque(q, qd, qdd)
        limit = self.torque_share * self.dynamics.robot.max_torque
        excess = np.maximum(np.abs(torque) / limit - 1, 0)
        push = 2 * excess * np.sign(torque) / limit
        model = self.dynamics.model
        data = self.dynamics.data
        for t in np.flatnonzero(excess.any(axis=1)):
            pin.computeRNEADerivatives(model, data, q[t], qd[t], qdd[t])
            gradient[0][t] += push[t] @ data.dtau_dq
            gradient[1][t] += push[t] @ data.dtau_dv
            gradient[2][t] += pin.crba(model, data, q[t]) @ push[t]
            gradient[2][t] += push[t] * self.reflected_inertia
        return float(np.sum(excess**2))


@dataclass(frozen=True)
class TrajectoryVerdict:
    """Result of the checks of a trajectory; ratios are relative to the joint limits.

    Attributes:
        max_position_ratio: largest position of a joint over its limit.
        max_velocity_ratio: largest velocity of a joint over its limit.
        max_acceleration_ratio: largest acceleration of a joint over its limit.
        max_torque_ratio: largest torque of a joint, without friction, over its limit.
        max_tool_speed: largest speed of elbow and flange [m/s].
        end_velocity: largest joint velocity at both ends [rad/s].
        end_acceleration: largest joint acceleration at both ends [rad/s^2].
        clearance: lower bound of the distance to links and walls, between the samples
            too [m].
        closest: the two closest bodies.
        problems: violated limits in words; empty if the trajectory may run.
    """

    max_position_ratio: float
    max_velocity_ratio: float
    max_acceleration_ratio: float
    max_torque_ratio: float
    max_tool_speed: float
    end_velocity: float
    end_acceleration: float
    clearance: float
    closest: tuple[str, str]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values for YAML and JSON."""
        return {
            **asdict(self),
            "closest": list(self.closest),
            "problems": list(self.problems),
        }


def check(motion: PeriodicMotion, limits: SafetyLimits) -> TrajectoryVerdict:
    """Check a motion on a fine grid over one repetition.

    Args:
        motion: motion to be run.
        limits: limits of the arm in its workplace.
    """
    robot = limits.dynamics.robot
    _, q, qd, qdd = sample_period(motion, CHECK_RATE)
    _, velocities, accelerations = motion.sample(np.array([0.0, motion.duration]))
    speeds = limits.speeds(q, qd)
    closest = limits.geometry.clearance(q)
    # Largest approach of two points between a sample and the midpoint to the next sample:
    # each point moves for half a period, both together as far as one in a whole period.
    between_samples = float(limits.geometry.fastest_point(q, qd).max()) / CHECK_RATE
    ratios = {
        "position": float(robot.position_shares(q).max()),
        "velocity": float((np.abs(qd) / robot.max_velocity).max()),
        "acceleration": float((np.abs(qdd) / robot.max_acceleration).max()),
        "torque": float((np.abs(limits.torque(q, qd, qdd)) / robot.max_torque).max()),
    }
    end_velocity = float(np.abs(velocities).max())
    end_acceleration = float(np.abs(accelerations).max())
    clearance = closest.distance - between_samples
    problems = [
        f"joint {name} reaches {100 * ratio:.0f} % of its limit"
        for name, ratio in ratios.items()
        if ratio > 1 + _ROUNDING
    ]
    if speeds.max() > limits.tool_speed:
        problems.append(f"tool or elbow reaches {speeds.max():.2f} m/s")
    at_rest = end_velocity <= _REST
    if motion.starts_smoothly:
        at_rest &= end_acceleration <= _REST
    if not at_rest:
        problems.append("it does not start and end at rest")
    if clearance < 0:
        problems.append(f"{' and '.join(closest.pair)} collide")
    elif clearance < limits.clearance:
        problems.append(
            f"{' and '.join(closest.pair)} come within {1000 * clearance:.0f} mm"
        )
    return TrajectoryVerdict(
        max_position_ratio=ratios["position"],
        max_velocity_ratio=ratios["velocity"],
        max_acceleration_ratio=ratios["acceleration"],
        max_torque_ratio=ratios["torque"],
        max_tool_speed=float(speeds.max()),
        end_velocity=end_velocity,
        end_acceleration=end_acceleration,
        clearance=clearance,
        closest=closest.pair,
        problems=tuple(problems),
    )
