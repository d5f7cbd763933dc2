"""Design of an exciting trajectory as an optimisation problem.

A trajectory is x [2 L - 1, n], coefficients in `rest_basis`: both ends are at rest for every x.
Motions, and gradients with respect to x, are one matrix product each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import built
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.limits import SafetyLimits, TrajectoryVerdict, check, sample_period
from ur_energy_model.experiment.objectives import (
    ConditionNumber,
    EnergyAccuracy,
    LogDeterminant,
    MotionRegressor,
    Objective,
    ObjectiveName,
    base_choices,
    condition_number,
)
from ur_energy_model.learning.history import NEEDS, Need
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import TABLE, ArmGeometry, Capsule, Wall
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.trajectory.fourier import FourierTrajectory, rest_basis, series
from ur_energy_model.typing import Array

_RATE = 100.0
_OF_A_JOINT = ("speed", "load", "acceleration")


@dataclass(frozen=True)
class SpeedGap:
    """Speeds of a joint that a trajectory is to show.

    Attributes:
        joint: index from 0.
        low, high: joint speed [rad/s].
    """

    joint: int
    low: float
    high: float

    def seconds_of(self, trajectory: FourierTrajectory) -> float:
        """Time that one run of a trajectory spends within the speeds [s]."""
        qd = sample_period(trajectory, _RATE)[2]
        speed = np.abs(qd[:, self.joint])
        inside = (speed >= self.low) & (speed <= self.high)
        return float(inside.mean()) * trajectory.period * trajectory.repetitions


def needs_of(model: EnergyModel, path: str | Path) -> tuple[Need, ...]:
    """What a learned model lacks, as stated in it.

    Args:
        model: as read.
        path: of its file, for the error.

    Raises:
        InputError: it states nothing.
    """
    try:
        return tuple(built(list[Need], model.provenance[NEEDS]))
    except (KeyError, ValueError) as error:
        raise InputError(
            path,
            "has no list of what it lacks",
            "give a model that was learned (ur_energy learn, or the estimator with learn:=on)",
        ) from error


def gaps_among(
    needs: Sequence[Need], robot: RobotDescription, path: str | Path
) -> tuple[SpeedGap, ...]:
    """The gaps among needs that a motion of single joints closes.

    Args:
        needs: of the arm.
        robot: the arm, n joints; speeds beyond 0.9 of its limits are left out.
        path: of the model, for the error.

    Raises:
        InputError: there is none, or a joint is not the arm's.
    """
    out = []
    for need in needs:
        if need.what not in _OF_A_JOINT or need.joint is None:
            continue
        if not 0 <= need.joint < robot.dof:
            raise InputError(path, f"is not a model of {robot.name}", "give the arm's own model")
        most = 0.9 * float(robot.max_velocity[need.joint])
        low, high = need.speed_range or (0.0, most)
        out.append(SpeedGap(need.joint, min(low, 0.8 * most), min(high, most)))
    if not out:
        raise InputError(
            path,
            "lacks nothing that a trajectory could show",
            "go on with ordinary work, or leave --for-gap out for a trajectory of all joints",
        )
    return tuple(out)


def states_within(
    gaps: Sequence[SpeedGap], work: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Typical states q, qd, qdd [samples, n] with the speeds of the joints within their gaps."""
    q, qd, qdd = work
    qd = qd.copy()
    for gap in gaps:
        speed = qd[:, gap.joint]
        share = np.abs(speed) / max(float(np.abs(speed).max()), 1e-9)
        qd[:, gap.joint] = np.sign(speed) * (gap.low + share * (gap.high - gap.low))
    return q, qd, qdd


def shown(
    gaps: Sequence[SpeedGap], trajectory: FourierTrajectory, robot: RobotDescription
) -> list[dict[str, Any]]:
    """What one run of a trajectory shows of each gap, for its file and for JSON output."""
    return [
        {
            "joint": robot.joint_names[gap.joint],
            "speed_range": [gap.low, gap.high],
            "seconds": gap.seconds_of(trajectory),
        }
        for gap in gaps
    ]


SAMPLES_PER_HARMONIC = 12
"""Samples per period and harmonic in the search."""
VALUE_RATE = 100.0
"""Sampling rate of the reported figures [Hz]."""
_SHRINK = 0.98
_RANGE = np.pi
"""Centres of motion are drawn from plus or minus this angle, within the joint limits [rad]."""
_LEAST_ROOM = 0.05
"""Shortest way to a joint limit that counts, for a centre at the limit [rad]."""


@dataclass(frozen=True)
class DesignRequest:
    """Requirements on an exciting trajectory.

    Attributes:
        robot: the arm.
        setup: its mounting and payload.
        harmonics, period, repetitions: of the Fourier series; period in s.
        objective: objective to minimise.
        walls: forbidden half-spaces, base frame.
        tool: capsules of the tool, flange frame.
        clearance: minimum distance [m].
        tool_speed: maximum speed of flange and elbow [m/s].
        seed: of all random choices.
        centre: constant part of the series [n], rad; None searches it, too.
        gaps: speeds of joints to show; the accuracy of these joints at these speeds is then the
            objective. Empty for all joints.
    """

    robot: RobotDescription
    setup: Setup = field(default_factory=Setup)
    harmonics: int = 5
    period: float = 10.0
    repetitions: int = 3
    objective: ObjectiveName = "condition"
    walls: tuple[Wall, ...] = (TABLE,)
    tool: tuple[Capsule, ...] = ()
    clearance: float = 0.03
    tool_speed: float = 1.5
    seed: int = 0
    centre: tuple[float, ...] | None = None
    gaps: tuple[SpeedGap, ...] = ()


def limits_of(request: DesignRequest) -> SafetyLimits:
    """Safety limits of a request."""
    return SafetyLimits(
        ArmDynamics(request.robot, request.setup),
        ArmGeometry(request.robot, request.walls, request.tool),
        clearance=request.clearance,
        tool_speed=request.tool_speed,
    )


class DesignProblem:
    """Objective, limits and random starts of one request."""

    def __init__(self, request: DesignRequest) -> None:
        self.request = request
        self.limits = limits_of(request)
        dynamics = self.limits.dynamics
        self.regressor = MotionRegressor(dynamics)
        self.bases = base_choices(dynamics)
        self.objective = self._objective()
        self._basis = rest_basis(request.harmonics)
        samples = SAMPLES_PER_HARMONIC * request.harmonics
        time = (np.arange(samples) + 0.5) / samples * request.period
        self._motions = tuple(
            values @ self._basis for values in series(time, request.harmonics, request.period)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the free coefficients x."""
        return self._basis.shape[1], self.request.robot.dof

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """q, qd, qdd [samples, n] of a trajectory on the grid of the search."""
        q, qd, qdd = (values @ x for values in self._motions)
        return q, qd, qdd

    def cost(self, x: Array, weight: float, sharpness: float) -> tuple[float, Array]:
        """Smooth objective plus `weight` times the penalty of violated limits, and its gradient.

        Args:
            x: free coefficients [2 L - 1, n].
            weight: of the penalty.
            sharpness: of the objective, see `Objective.smooth`.
        """
        motion = self.motion(x)
        value, slopes = self.objective.smooth(*motion, sharpness=sharpness)
        penalty, pushes = self.limits.penalty(*motion)
        gradient = sum(
            values.T @ (slope + weight * push)
            for values, slope, push in zip(self._motions, slopes, pushes, strict=True)
        )
        gradient = np.array(gradient)
        if self.request.centre is not None:
            gradient[0] = 0.0
        return value + weight * penalty, gradient

    def trajectory(self, x: Array, design: dict[str, Any] | None = None) -> FourierTrajectory:
        """The trajectory of free coefficients x [2 L - 1, n], rad."""
        request = self.request
        coefficients = self._basis @ x
        split = 1 + request.harmonics
        return FourierTrajectory(
            request.robot.name,
            request.period,
            request.repetitions,
            coefficients[0],
            coefficients[1:split].T,
            coefficients[split:].T,
            design or {},
        )

    def value(self, trajectory: FourierTrajectory) -> float:
        """The objective over one period, as reported."""
        return self.objective.value(*sample_period(trajectory, VALUE_RATE)[1:])

    def condition_number(self, trajectory: FourierTrajectory) -> float:
        """Condition number of the base regressor over one period."""
        full = self.regressor.matrix(*sample_period(trajectory, VALUE_RATE)[1:])
        return condition_number(full @ self.bases[0])

    def within_joint_limits(self, x: Array) -> Array:
        """Free coefficients [2 L - 1, n] scaled about the centre into the joint limits."""
        use = np.zeros(x.shape[1])
        bounds = (self.limits.max_velocity, self.limits.max_acceleration)
        q, *rates = self.motion(x)
        for motion, bound in zip(rates, bounds, strict=True):
            use = np.maximum(use, np.abs(motion).max(axis=0) / bound)
        room = self.limits.max_position - np.abs(x[0])
        use = np.maximum(use, np.abs(q - x[0]).max(axis=0) / np.maximum(room, _LEAST_ROOM))
        out = x.copy()
        out[1:] /= np.maximum(use, 1.0)
        return np.asarray(out)

    def finish(self, x: Array) -> tuple[Array, TrajectoryVerdict]:
        """Free coefficients [2 L - 1, n], scaled down a little if that makes them pass; verdict."""
        x = self.within_joint_limits(x)
        verdict = check(self.trajectory(x), self.limits)
        for _ in range(5):
            if verdict.passed:
                break
            x = x.copy()
            x[1:] *= _SHRINK
            verdict = check(self.trajectory(x), self.limits)
        return x, verdict

    def random_start(self, random: np.random.Generator) -> Array:
        """Free coefficients [2 L - 1, n] of a random motion about a collision-free centre."""
        x = np.empty(self.shape)
        width = np.minimum(_RANGE, self.limits.max_position)
        for _ in range(1000 if self.request.centre is None else 0):
            x[0] = random.uniform(-width, width)
            if self.limits.geometry.distances(x[:1]).min() > self.request.clearance:
                break
        x[1:] = 0.15 * random.standard_normal(x[1:].shape)
        return self.within_joint_limits(self.centred(x))

    def centred(self, x: Array) -> Array:
        """Free coefficients [..., 2 L - 1, n] with the requested centre, if there is one."""
        if self.request.centre is not None:
            x[..., 0, :] = self.request.centre
        return x

    def _objective(self) -> Objective:
        gaps = self.request.gaps
        if gaps:
            return EnergyAccuracy(
                self.regressor,
                self.limits.reflected_inertia,
                states_within(gaps, self._typical_work()),
                [gap.joint for gap in gaps],
            )
        match self.request.objective:
            case "condition":
                return ConditionNumber(self.regressor, self.bases)
            case "logdet":
                return LogDeterminant(self.regressor, self.bases[0])
            case "energy":
                work = self._typical_work()
                return EnergyAccuracy(self.regressor, self.limits.reflected_inertia, work)

    def _typical_work(self) -> tuple[Array, Array, Array]:
        """States spread evenly over collision-free positions, speeds and accelerations."""
        robot = self.request.robot
        random = np.random.default_rng(0)
        q = random.uniform(-_RANGE, _RANGE, (4000, robot.dof))
        q = q[self.limits.geometry.distances(q).min(axis=1) > self.request.clearance][:400]
        spread = random.uniform(-1, 1, (2, *q.shape))
        return q, spread[0] * robot.max_velocity, spread[1] * robot.max_acceleration
