# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs of the robot of Machines 2024, 12(9), 595, and its base parameters (sec. 3 and 5.3).

The robot exists in simulation only and measures its joint torques. `simulate` makes a run,
`processed` averages and smooths it as the paper does (sec. 5.3), and `BaseModel`
identifies the base parameters by least squares (eq. 17) and predicts torques with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.experiment.limits import PeriodicMotion
from ur_energy_model.identification.base_parameters import BaseRegressor, FullRegressor
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.papers.published import Paper
from ur_energy_model.typing import Array

REPETITIONS = 3  # periods of a run, which are averaged
CUTOFF = 10.0  # cutoff frequency of the smoothing [Hz]; the motion stays below 0.5 Hz
_THINNING = 10  # one of so many samples enters the least squares
_DECIMALS = 4  # decimals of base parameters that are kept [kg m^2, kg m, ...]
_NOISE_STREAM = 595  # makes the noise independent of other draws with the same seed


def upright(robot: RobotDescription) -> Setup:
    """The robot upright without payload, with the gravity of the paper's load check."""
    return Setup(gravity=np.array([0.0, 0.0, -robot.controller_gravity]))


def zero_position(paper: Paper) -> Array:
    """The zero of the paper's joint angles in angles of the robot file [n], rad.

    The robot file counts from the middle of each range of Table 4.

    Args:
        paper: published values.
    """
    middle = np.mean(paper["angles"], axis=1)
    return np.asarray(-np.radians(middle))


@dataclass(frozen=True)
class MeasuredRun:
    """Samples of one arm with n joints.

    Attributes:
        time: evenly sampled [samples], s.
        q: joint positions [samples, n], rad.
        qd: joint speeds [samples, n], rad/s.
        qdd: joint accelerations [samples, n], rad/s^2.
        torque: joint side [samples, n], N m.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array

    @property
    def period(self) -> float:
        """Time from one sample to the next [s]."""
        return float(self.time[1] - self.time[0])


@dataclass(frozen=True)
class MeasurementNoise:
    """Standard deviations of white measurement noise.

    Attributes:
        position: standard deviation of joint positions [rad].
        speed: standard deviation of joint speeds [rad/s].
        torque: standard deviation of joint torques [n], joint side, N m, or one number
            for all joints.
    """

    position: float = 0.0
    speed: float = 0.0
    torque: Array | float = 0.0


NO_NOISE = MeasurementNoise()


def simulate(
    dynamics: ArmDynamics,
    motion: PeriodicMotion,
    *,
    friction: Array | None = None,
    noise: MeasurementNoise = NO_NOISE,
    seed: int = 0,
) -> MeasuredRun:
    """A run that follows a motion exactly, as joint drives do in a multibody simulation.

    Args:
        dynamics: the arm in its setup, n joints.
        motion: sampled at the rate of the arm, all repetitions.
        friction: Coulomb and viscous coefficients [2, n], joint side, N m and N m s/rad;
            None for no friction.
        noise: measurement noise that is added to positions, speeds and torques.
        seed: seed of the noise.
    """
    rate = dynamics.robot.rate
    time = np.arange(round(motion.duration * rate)) / rate
    q, qd, qdd = motion.sample(time)
    torque = dynamics.inverse_dynamics(q, qd, qdd)
    if friction is not None:
        coulomb, viscous = friction
        torque = torque + coulomb * np.sign(qd) + viscous * qd
    random = np.random.default_rng([seed, _NOISE_STREAM])
    measured_q = q + noise.position * random.standard_normal(q.shape)
    measured_qd = qd + noise.speed * random.standard_normal(qd.shape)
    measured_torque = torque + noise.torque * random.standard_normal(torque.shape)
    return MeasuredRun(time, measured_q, measured_qd, qdd, measured_torque)


def processed(run: MeasuredRun, repetitions: int, cutoff: float = CUTOFF) -> MeasuredRun:
    """One period: the average of all, smoothed, with acceleration by central differences.

    Source: sec. 5.3 of the paper.

    Args:
        run: whole repetitions of a periodic motion.
        repetitions: number of repetitions.
        cutoff: cutoff frequency of the zero-phase filter [Hz].
    """
    samples = len(run.time) // repetitions
    kept = slice(0, samples * repetitions)

    def smooth(values: Array) -> Array:
        mean = values[kept].reshape(repetitions, samples, -1).mean(axis=0)
        # A periodic motion continues beyond both ends: filter three periods, keep the
        # middle one, and the filter has no edges.
        three_periods = np.concatenate([mean, mean, mean])
        return low_pass(three_periods, run.period, cutoff)[samples : 2 * samples]

    qd = smooth(run.qd)
    qdd = (np.roll(qd, -1, axis=0) - np.roll(qd, 1, axis=0)) / (2 * run.period)
    return MeasuredRun(run.time[:samples], smooth(run.q), qd, qdd, smooth(run.torque))


@dataclass(frozen=True)
class BaseModel:
    """Base parameters by the columns that the paper chose.

    Attributes:
        base: the base columns, with friction or without.
    """

    base: BaseRegressor

    @classmethod
    def of(
        cls, robot: RobotDescription, names: Sequence[str], *, friction: bool
    ) -> BaseModel:
        """The base parameters of an arm.

        Args:
            robot: type of the arm.
            names: inertial base columns of the paper, such as "Iyy_1".
            friction: whether Coulomb and viscous friction of all joints are parameters.

        Raises:
            ValueError: the columns are not a largest independent set.
        """
        gravity = upright(robot).gravity
        full = FullRegressor(robot, gravity, friction=friction, motor_inertia=False)
        drive = [name for name in full.names if name.split("_")[0] in full.drive]
        return cls(BaseRegressor.of(full, [*names, *drive]))

    @property
    def names(self) -> list[str]:
        """Names of the base columns [rank], such as "Iyy_1"; fc and fv are frictions."""
        return list(self.base.names)

    @property
    def true(self) -> dict[str, float]:
        """Base parameters of the robot file by name; frictions are zero."""
        nominal = self.base.full.nominal()
        return self.by_name(self.base.regrouping.combination @ nominal)

    def by_name(self, values: Array) -> dict[str, float]:
        """Base parameters [rank] by name, rounded to four decimals.

        Adding zero turns -0.0 into 0.0.
        """
        rounded = np.round(values, _DECIMALS) + 0.0
        return dict(zip(self.names, rounded.tolist(), strict=True))

    def identified(self, run: MeasuredRun) -> Array:
        """Base parameters [rank] from a processed run by ordinary least squares (eq. 17)."""
        thin = slice(None, None, _THINNING)
        columns = self.base(run.q[thin], run.qd[thin], run.qdd[thin])
        solution, *_ = np.linalg.lstsq(
            columns.stacked, run.torque[thin].ravel(), rcond=None
        )
        return np.asarray(solution)

    def predicted(self, run: MeasuredRun, values: Array) -> Array:
        """Joint-side torque of a run by base parameters [samples, n], N m.

        Args:
            run: processed run.
            values: base parameters [rank].
        """
        return self.base.torque(values, run.q, run.qd, run.qdd)
