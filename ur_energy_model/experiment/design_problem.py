# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Design of an exciting trajectory as an optimisation problem.

A trajectory is x [2 L - 1, n], coefficients in `rest_basis`: both ends are at rest for
every x. Motions, and gradients with respect to x, are one matrix product each. The first
row of x is the centre of the series; where a request states the position of both ends, it
is that position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.codec import built
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.limits import (
    SafetyLimits,
    TrajectoryVerdict,
    check,
    sample_period,
)
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
from ur_energy_model.model.capsules import Capsule
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import TABLE, ArmGeometry, Wall
from ur_energy_model.model.needs import NEEDS, Need
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.trajectory.fourier import FourierTrajectory, rest_basis, series
from ur_energy_model.typing import Array

_OF_A_JOINT = ("speed", "load", "acceleration")


class SpeedGap(NamedTuple):
    """Speeds of a joint that a trajectory is to show.

    Attributes:
        joint: index, from 0.
        low: lowest speed [rad/s].
        high: highest speed [rad/s].
    """

    joint: int
    low: float
    high: float


def needs_of(model: EnergyModel, path: str | Path) -> tuple[Need, ...]:
    """What a learned model lacks, as stated in it.

    Args:
        model: model that was learned.
        path: path of its file, for the error.

    Raises:
        InputError: the model states nothing.
    """
    try:
        return tuple(built(list[Need], model.provenance[NEEDS]))
    except (KeyError, ValueError) as error:
        remedy = "give a model that was learned (ur_energy learn, or the estimator with learn:=on)"
        raise InputError(path, "has no list of what it lacks", remedy) from error


def gaps_among(
    needs: Sequence[Need], robot: RobotDescription, path: str | Path
) -> tuple[SpeedGap, ...]:
    """The gaps among the needs of an arm that a motion of single joints closes.

    Speeds beyond 0.9 of the arm's limits are left out.

    Args:
        needs: what a learned model lacks.
        robot: arm of the model.
        path: path of the model, for the error.

    Raises:
        InputError: there is none, or a joint is not the arm's.
    """
    out = []
    for need in needs:
        if need.what not in _OF_A_JOINT or need.joint is None:
            continue
        if not 0 <= need.joint < robot.dof:
            raise InputError(
                path, f"is not a model of {robot.name}", "give the arm's own model"
            )
        most = 0.9 * float(robot.max_velocity[need.joint])
        low, high = need.speed_range or (0.0, most)
        out.append(SpeedGap(need.joint, min(low, 0.8 * most), min(high, most)))
    if not out:
        remedy = "go on with ordinary work, or leave --for-gap out for a trajectory of all joints"
        raise InputError(path, "lacks nothing that a trajectory could show", remedy)
    return tuple(out)


def shown(
    gaps: Sequence[SpeedGap], trajectory: FourierTrajectory, robot: RobotDescription
) -> list[dict[str, Any]]:
    """What one run of a trajectory shows of each gap, for its file and for JSON output.

    Args:
        gaps: gaps that the trajectory was designed for.
        trajectory: all of its repetitions count.
        robot: the arm.

    Returns:
        For each gap the joint's name, the range of speeds [rad/s], and the time in it [s].
    """
    speed = np.abs(sample_period(trajectory, VALUE_RATE)[2])
    rows = []
    for joint, low, high in gaps:
        inside = (speed[:, joint] >= low) & (speed[:, joint] <= high)
        seconds = float(inside.mean()) * trajectory.period * trajectory.repetitions
        name = robot.joint_names[joint]
        rows.append({"joint": name, "speed_range": [low, high], "seconds": seconds})
    return rows


SAMPLES_PER_HARMONIC = 12  # samples per period and harmonic in the search
VALUE_RATE = 100.0  # sampling rate of the reported figures [Hz]
_SHRINK = 0.98  # factor on a motion that narrowly fails
_SHRINKS = 5  # times that such a motion is made smaller
_RANGE = np.pi  # centres of motion are drawn from plus or minus this angle [rad]
_CENTRES = 1000  # centres that are tried
_AMPLITUDE = 0.15  # standard deviation of the coefficients of a random motion [rad]
_LEAST_ROOM = 0.05
"""Shortest way to a joint limit that counts, for a centre at the limit [rad]."""
_DRAWN_STATES = 4000  # random positions for typical work
_TYPICAL_STATES = 400  # collision-free states of typical work


@dataclass(frozen=True)
class DesignRequest:
    """Requirements on an exciting trajectory.

    Attributes:
        robot: type of the arm, n joints.
        setup: mounting and payload.
        harmonics: number of harmonics L of the Fourier series.
        period: period of the series [s].
        repetitions: number of periods that are run.
        objective: objective to minimise, by its name.
        walls: forbidden half-spaces, base frame.
        tool: capsules of the tool, flange frame.
        clearance: minimum distance [m].
        tool_speed: maximum speed of flange and elbow [m/s].
        seed: seed of all random choices.
        centre: centre of the series [n], rad; None searches it.
        start: position at both ends [n], rad, in place of a centre; None for any.
        gaps: speeds to show with the greatest accuracy; they replace the objective.
        base: columns whose condition number counts; () for several choices.
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
    start: tuple[float, ...] | None = None
    gaps: tuple[SpeedGap, ...] = ()
    base: tuple[str, ...] = ()


def limits_of(request: DesignRequest) -> SafetyLimits:
    """Safety limits of a request: the limits of its arm among its walls, with its tool."""
    return SafetyLimits(
        ArmDynamics(request.robot, request.setup),
        ArmGeometry(request.robot, request.walls, request.tool),
        clearance=request.clearance,
        tool_speed=request.tool_speed,
    )


class DesignProblem:
    """Objective, limits and random starts of one request.

    Free coefficients x are [2 L - 1, n]; motions on the grid of the search are
    [samples, n].

    Args:
        request: requirements on the trajectory.

    Attributes:
        request: requirements on the trajectory.
        limits: safety limits of the request.
        regressor: regressor of the arm's parameters.
        bases: choices of base columns whose condition numbers count.
        objective: objective to minimise.
    """

    def __init__(self, request: DesignRequest) -> None:
        self.request = request
        self.limits = limits_of(request)
        dynamics = self.limits.dynamics
        inertia = self.limits.reflected_inertia
        self.regressor = MotionRegressor(dynamics)
        self.bases = base_choices(dynamics, request.base)
        self.objective: Objective
        if request.gaps or request.objective == "energy":
            joints = [gap.joint for gap in request.gaps] or None
            self.objective = EnergyAccuracy(
                self.regressor, inertia, self._typical_work(), joints
            )
        elif request.objective == "logdet":
            self.objective = LogDeterminant(self.regressor, self.bases[:1])
        else:
            self.objective = ConditionNumber(self.regressor, self.bases)
        self._basis = rest_basis(request.harmonics)
        self._fixed = request.centre
        if request.start is not None:
            self._fixed = request.start
            # q(0) = q0 - sum of b: with b added to q0, the first row of x is q(0).
            of_b = self._basis[1 + request.harmonics :]
            self._basis[0] += of_b.sum(axis=0)
        samples = SAMPLES_PER_HARMONIC * request.harmonics
        time = (np.arange(samples) + 0.5) / samples * request.period
        self._motions = tuple(
            values @ self._basis
            for values in series(time, request.harmonics, request.period)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the free coefficients x."""
        return self._basis.shape[1], self.request.robot.dof

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """The motion of a trajectory on the grid of the search.

        Args:
            x: free coefficients [2 L - 1, n], rad.

        Returns:
            Positions, velocities and accelerations [samples, n], rad, rad/s, rad/s^2.
        """
        q, qd, qdd = (values @ x for values in self._motions)
        return q, qd, qdd

    def cost(self, x: Array, weight: float, sharpness: float) -> tuple[float, Array]:
        """Smooth objective plus the penalty of violated limits, and its gradient.

        Args:
            x: free coefficients [2 L - 1, n], rad.
            weight: weight of the penalty.
            sharpness: sharpness of the smooth objective, see `Objective.smooth`.

        Returns:
            The cost, and its gradient [2 L - 1, n].
        """
        motion = self.motion(x)
        value, slopes = self.objective.smooth(*motion, sharpness=sharpness)
        penalty, pushes = self.limits.penalty(*motion)
        gradient = sum(
            values.T @ (slope + weight * push)
            for values, slope, push in zip(self._motions, slopes, pushes, strict=True)
        )
        gradient = np.array(gradient)
        if self._fixed is not None:
            gradient[0] = 0.0
        return value + weight * penalty, gradient

    def trajectory(
        self, x: Array, design: dict[str, Any] | None = None
    ) -> FourierTrajectory:
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
            request.robot.own_file,
        )

    def value(self, trajectory: FourierTrajectory) -> float:
        """The objective over one period, as reported."""
        _, q, qd, qdd = sample_period(trajectory, VALUE_RATE)
        return self.objective.value(q, qd, qdd)

    def condition_number(self, trajectory: FourierTrajectory) -> float:
        """Condition number of the base regressor over one period."""
        _, q, qd, qdd = sample_period(trajectory, VALUE_RATE)
        full = self.regressor.matrix(q, qd, qdd)
        return condition_number(full @ self.bases[0])

    def within_joint_limits(self, x: Array) -> Array:
        """Free coefficients [2 L - 1, n] scaled into the joint limits about their first row.

        That is the centre of the series, or the requested position of both ends.
        """
        q, qd, qdd = self.motion(x)
        about = x[0]
        beyond_middle = about - self.limits.middle_position
        above = np.maximum(self.limits.max_position - beyond_middle, _LEAST_ROOM)
        below = np.maximum(self.limits.max_position + beyond_middle, _LEAST_ROOM)
        if self.request.start is None:  # a series reaches as far to both sides
            nearer = np.minimum(above, below)
            above = nearer
            below = nearer
        # Largest values of each joint [n] over the limits.
        of_position = np.maximum((q - about) / above, (about - q) / below).max(axis=0)
        of_velocity = np.abs(qd).max(axis=0) / self.limits.max_velocity
        of_acceleration = np.abs(qdd).max(axis=0) / self.limits.max_acceleration
        most = np.maximum.reduce([of_position, of_velocity, of_acceleration])
        out = x.copy()
        out[1:] /= np.maximum(most, 1.0)
        return np.asarray(out)

    def finish(self, x: Array) -> tuple[Array, TrajectoryVerdict]:
        """Free coefficients, scaled down a little if that makes them pass the checks.

        Args:
            x: free coefficients [2 L - 1, n], rad.

        Returns:
            Free coefficients, and the verdict of the checks on them.
        """
        x = self.within_joint_limits(x)
        verdict = check(self.trajectory(x), self.limits)
        for _ in range(_SHRINKS):
            if verdict.passed:
                break
            x = x.copy()
            x[1:] *= _SHRINK
            verdict = check(self.trajectory(x), self.limits)
        return x, verdict

    def random_start(self, random: np.random.Generator) -> Array:
        """Free coefficients of a random motion about a collision-free or requested position.

        Args:
            random: generator of all random choices.

        Returns:
            Free coefficients [2 L - 1, n], rad.
        """
        x = np.empty(self.shape)
        middle = self.limits.middle_position
        width = np.minimum(_RANGE, self.limits.max_position)
        if self._fixed is None:
            for _ in range(_CENTRES):
                x[0] = middle + random.uniform(-width, width)
                if self.limits.geometry.distances(x[:1]).min() > self.request.clearance:
                    break
        x[1:] = _AMPLITUDE * random.standard_normal(x[1:].shape)
        return self.within_joint_limits(self.centred(x))

    def centred(self, x: Array) -> Array:
        """Free coefficients [..., 2 L - 1, n] with the requested centre or ends, if any."""
        if self._fixed is not None:
            x[..., 0, :] = self._fixed
        return x

    def _typical_work(self) -> tuple[Array, Array, Array]:
        """States spread evenly over collision-free positions, speeds and accelerations.

        Speeds of a joint with a gap are within the gap.

        Returns:
            Positions, velocities and accelerations [k, n], rad, rad/s, rad/s^2.
        """
        robot = self.request.robot
        gaps = self.request.gaps
        random = np.random.default_rng(0)
        width = np.minimum(_RANGE, robot.max_position)
        shares = random.uniform(-1, 1, (_DRAWN_STATES, robot.dof))
        q = robot.middle_position + width * shares
        free = self.limits.geometry.distances(q).min(axis=1) > self.request.clearance
        q = q[free][:_TYPICAL_STATES]
        speed_shares, acceleration_shares = random.uniform(-1, 1, (2, *q.shape))
        qd = speed_shares * robot.max_velocity
        for joint, low, high in gaps:
            speed = np.abs(qd[:, joint])
            share = speed / max(float(speed.max()), 1e-9)
            qd[:, joint] = np.sign(qd[:, joint]) * (low + share * (high - low))
        return q, qd, acceleration_shares * robot.max_acceleration
