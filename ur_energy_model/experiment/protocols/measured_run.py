"""Motion and torque of an arm that measures its torque, and their processing as in Machines 2024.

Sec. 5.3 there: averaged over the periods, smoothed without phase, acceleration by central
differences of the speed, least squares on the base parameters with friction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.identification.dynamics.regrouping import FullRegressor, Regrouping
from ur_energy_model.low_pass import low_pass
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.typing import Array

CUTOFF = 10.0
"""Of the smoothing [Hz]; the motion has components up to 0.5 Hz."""
_THINNING = 10
"""One of so many samples enters the least squares."""


@dataclass(frozen=True)
class Noise:
    """Errors of a measurement, standard deviations; n joints.

    Attributes:
        position: rad.
        speed: rad/s.
        torque: [n], N m.
    """

    position: float
    speed: float
    torque: Array


@dataclass(frozen=True)
class JointFriction:
    """Coulomb and viscous friction, joint side.

    Attributes:
        coulomb: [n], N m.
        viscous: [n], N m s/rad.
    """

    coulomb: Array
    viscous: Array

    def torque(self, qd: Array) -> Array:
        """At speeds [samples, n], rad/s; joint side, N m."""
        return np.asarray(self.coulomb * np.sign(qd) + self.viscous * qd)


@dataclass(frozen=True)
class MeasuredRun:
    """Samples of one arm with n joints.

    Attributes:
        time: evenly sampled [samples], s.
        q, qd, qdd: [samples, n], rad, rad/s, rad/s^2.
        torque: joint side [samples, n], N m.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array

    @property
    def period(self) -> float:
        """Step of the samples [s]."""
        return float(self.time[1] - self.time[0])


def simulate(
    dynamics: ArmDynamics,
    motion: PeriodicMotion,
    *,
    friction: JointFriction | None = None,
    noise: Noise | None = None,
    seed: int = 0,
) -> MeasuredRun:
    """An arm that follows a motion exactly, as joint drives do in a multibody simulation.

    Args:
        dynamics: the arm in its setup.
        motion: sampled at the rate of the arm, all repetitions.
        friction: None for none.
        noise: of the measurement, None for none.
        seed: of the noise.
    """
    rate = dynamics.robot.rate
    time = np.arange(round(motion.duration * rate)) / rate
    q, qd, qdd = motion.sample(time)
    torque = dynamics.inverse_dynamics(q, qd, qdd)
    if friction is not None:
        torque = torque + friction.torque(qd)
    if noise is not None:
        random = np.random.default_rng([seed, 595])
        q = q + noise.position * random.standard_normal(q.shape)
        qd = qd + noise.speed * random.standard_normal(q.shape)
        torque = torque + noise.torque * random.standard_normal(q.shape)
    return MeasuredRun(time, q, qd, qdd, torque)


def processed(run: MeasuredRun, repetitions: int, cutoff: float = CUTOFF) -> MeasuredRun:
    """One period: the average of all, smoothed, with acceleration by central differences.

    Args:
        run: whole repetitions of a periodic motion.
        repetitions: their number.
        cutoff: of the zero-phase filter [Hz].
    """
    samples = len(run.time) // repetitions
    kept = slice(0, samples * repetitions)

    def smooth(values: Array) -> Array:
        mean = values[kept].reshape(repetitions, samples, -1).mean(axis=0)
        # The motion is periodic, so it goes on at either end.
        around = low_pass(np.concatenate([mean] * 3), run.period, cutoff)
        return around[samples : 2 * samples]

    qd = smooth(run.qd)
    qdd = (np.roll(qd, -1, axis=0) - np.roll(qd, 1, axis=0)) / (2 * run.period)
    return MeasuredRun(run.time[:samples], smooth(run.q), qd, qdd, smooth(run.torque))


def least_squares(run: MeasuredRun, regressor: FullRegressor, regrouping: Regrouping) -> Array:
    """Base parameters [rank] by ordinary least squares (eq. 17)."""
    part = slice(None, None, _THINNING)
    columns = regressor(run.q[part], run.qd[part], run.qdd[part])[:, :, regrouping.base]
    flat = columns.reshape(-1, regrouping.rank)
    return np.asarray(np.linalg.lstsq(flat, run.torque[part].ravel(), rcond=None)[0])


def predict(
    run: MeasuredRun, regressor: FullRegressor, regrouping: Regrouping, values: Array
) -> Array:
    """Torque [samples, n], N m, of a motion by base parameters [rank]."""
    parts = np.array_split(np.arange(len(run.time)), max(1, len(run.time) // 1000))
    return np.concatenate(
        [
            regressor(run.q[part], run.qd[part], run.qdd[part])[:, :, regrouping.base] @ values
            for part in parts
        ]
    )
