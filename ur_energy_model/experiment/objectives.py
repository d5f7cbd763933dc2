# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Objectives of exciting trajectories, with gradients with respect to the motion.

Each objective is a scalar to minimise over sampled motions q, qd, qdd [samples, n].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin

from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.identification.least_squares import (
    first_independent_columns,
    pivoted_columns,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.setup import COUNT
from ur_energy_model.typing import Array

COULOMB_SMOOTHING = 0.05
"""Speed scale of tanh(qd / scale), which approximates sign(qd) in the search [rad/s]."""
REST = 1e-9  # speeds up to this count as rest; rounding errors of zero are far smaller [rad/s]
_STEP = 1e-6  # step of the forward differences [rad, rad/s]
_COLUMNS = COUNT + 3  # columns of a joint: inertial parameters, friction, motor inertia
_RIGID = slice(0, COUNT)
_COULOMB = COUNT
_VISCOUS = COUNT + 1
_MOTOR = COUNT + 2
_LEAST_EIGENVALUE = 1e-12  # keeps logarithms and quotients finite


class MotionRegressor:
    """Regressor of sampled motions of one arm, 13 columns a joint, joint after joint.

    The columns of a joint are ten inertial parameters, Coulomb friction sign(qd), viscous
    friction qd and motor inertia qdd (Raviola et al., RAAD 2021, sec. 2). Base columns are
    a largest independent set: 52 of 78 for a UR5, 36 inertial, 12 of friction and 4 motor
    inertias. Columns are not scaled.

    Args:
        dynamics: the arm in its setup, n joints.
    """

    def __init__(self, dynamics: ArmDynamics) -> None:
        self.dynamics = dynamics
        gravity = dynamics.model.gravity.linear
        # Joints whose position changes the regressor: not the first if its axis is vertical.
        vertical = bool(np.allclose(gravity[:2], 0.0))
        self._moved = range(1 if vertical else 0, dynamics.dof)

    def matrix(self, q: Array, qd: Array, qdd: Array, *, smooth: bool = False) -> Array:
        """The regressor of a sampled motion.

        The sign of a speed is zero at rest: rounding leaves speeds of 1e-16 rad/s at both ends,
        whose signs differ between processors.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
            smooth: replaces sign(qd) by a hyperbolic tangent.

        Returns:
            Regressor [samples, n, 13 n].
        """
        moving = np.where(np.abs(qd) > REST, qd, 0.0)
        coulomb = np.tanh(qd / COULOMB_SMOOTHING) if smooth else np.sign(moving)
        samples, n = q.shape
        full = np.zeros((samples, n, n, _COLUMNS))
        rigid = self.dynamics.regressor(q, qd, qdd)
        full[..., _RIGID] = rigid.reshape(samples, n, n, COUNT)
        joint = np.arange(n)
        full[:, joint, joint, _COULOMB] = coulomb
        full[:, joint, joint, _VISCOUS] = qd
        full[:, joint, joint, _MOTOR] = qdd
        return full.reshape(samples, n, _COLUMNS * n)

    def pull_back(
        self, q: Array, qd: Array, qdd: Array, weight: Array
    ) -> tuple[Array, Array, Array]:
        """Gradient of sum(weight * matrix(smooth=True)) with respect to the motion.

        Rigid-body terms are forward differences; the differences in qdd are exact because
        the regressor is affine in qdd.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
            weight: weight of each element of the regressor [samples, n, 13 n].

        Returns:
            Gradients with respect to q, qd and qdd, each [samples, n].
        """
        samples, n = q.shape
        blocks = weight.reshape(samples, n, n, _COLUMNS)
        rigid = blocks[..., _RIGID].reshape(samples, n, COUNT * n)

        # The motion, then the motion with one joint shifted: positions, speeds,
        # accelerations.
        states = [[q, qd, qdd]]
        for which, step in ((0, _STEP), (1, _STEP), (2, 1.0)):
            for joint in self._moved if which == 0 else range(n):
                states.append([each.copy() for each in states[0]])
                states[-1][which][:, joint] += step
        stacked = (np.concatenate(parts) for parts in zip(*states, strict=True))
        values = self.dynamics.regressor(*stacked)
        values = values.reshape(len(states), samples, n, COUNT * n)
        sums = np.einsum("stij,tij->st", values, rigid, optimize=True)
        slopes = (sums[1:] - sums[0]).T

        moved = len(self._moved)
        by_q = np.zeros((samples, n))
        by_q[:, list(self._moved)] = slopes[:, :moved] / _STEP
        joint_index = np.arange(n)
        own = blocks[:, joint_index, joint_index]
        slope = (1 - np.tanh(qd / COULOMB_SMOOTHING) ** 2) / COULOMB_SMOOTHING
        by_speed = slopes[:, moved : moved + n] / _STEP
        by_qd = by_speed + own[..., _COULOMB] * slope + own[..., _VISCOUS]
        by_qdd = slopes[:, moved + n :] + own[..., _MOTOR]
        return by_q, by_qd, by_qdd


def base_choices(dynamics: ArmDynamics, names: Sequence[str] = ()) -> tuple[Array, ...]:
    """Common choices of base regressors.

    The choice of base parameters is not unique, and the condition number depends on it.
    The first choice is the grouping of the identification (`regroup`), whose condition
    number is reported. The others are QR with column pivoting of the regressor over
    uniform random states within the limits, the first and the last independent columns,
    and the singular vectors.

    Args:
        dynamics: the arm in its setup, n joints.
        names: base columns, such as the columns of a paper, as the only choice.

    Returns:
        Maps of the full regressor onto base regressors, each [13 n, b].
    """
    regressor = FullRegressor(dynamics.robot, dynamics.model.gravity.linear)
    if names:
        chosen = [regressor.names.index(name) for name in names]
        return (np.eye(len(regressor.names))[:, chosen],)
    columns = regroup(regressor).base
    random = np.random.default_rng(0)
    robot = dynamics.robot
    bounds = (np.full(robot.dof, np.pi), robot.max_velocity, robot.max_acceleration)
    q, qd, qdd = (random.uniform(-bound, bound, (200, robot.dof)) for bound in bounds)
    width = _COLUMNS * robot.dof
    rank = len(columns)
    stacked = MotionRegressor(dynamics).matrix(q, qd, qdd).reshape(-1, width)
    identity = np.eye(width)
    pivoted = np.sort(pivoted_columns(stacked, rank))
    first = first_independent_columns(stacked)
    last = width - 1 - first_independent_columns(stacked[:, ::-1])
    _, _, singular_vectors = np.linalg.svd(stacked, full_matrices=False)
    return (
        identity[:, columns],
        identity[:, pivoted],
        identity[:, first],
        identity[:, last],
        singular_vectors[:rank].T,
    )


Motion = tuple[Array, Array, Array]
ObjectiveName = Literal["condition", "logdet", "energy"]


def condition_number(regressor: Array) -> float:
    """Largest over smallest singular value of a regressor [samples, n, b], stacked, not scaled."""
    stacked = regressor.reshape(-1, regressor.shape[-1])
    values = np.linalg.svd(stacked, compute_uv=False)
    if values[-1] <= 0.0:
        return float("inf")
    return float(values[0] / values[-1])


@dataclass(frozen=True)
class ConditionNumber:
    """Condition number of the stacked base regressor (Raviola et al. 2021; Machines 2024).

    It depends on the choice of base columns, so the objective is the geometric mean over
    several choices.

    Attributes:
        regressor: regressor of the arm's parameters.
        bases: maps onto base regressors, each [13 n, b].
    """

    regressor: MotionRegressor
    bases: Sequence[Array]

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """Geometric mean of the condition numbers, with sign(qd) as Coulomb columns."""
        full = self.regressor.matrix(q, qd, qdd)
        numbers = [condition_number(full @ base) for base in self.bases]
        return float(np.exp(np.mean(np.log(numbers))))

    def smooth(
        self, q: Array, qd: Array, qdd: Array, *, sharpness: float = 8.0
    ) -> tuple[float, Motion]:
        """Logarithm of the ratio of power means of the singular values, and its gradient."""
        full = self.regressor.matrix(q, qd, qdd, smooth=True)
        flat = full.reshape(-1, full.shape[-1])
        information = flat.T @ flat / len(q)
        total = 0.0
        push = np.zeros_like(information)
        for base in self.bases:  # of the eigenvalues of Y'Y / samples
            values, vectors = np.linalg.eigh(base.T @ information @ base)
            positive = np.maximum(values, _LEAST_EIGENVALUE)
            value, slopes = self._figure(positive, sharpness)
            total += value / len(self.bases)
            directions = base @ vectors
            push += (directions * (slopes / len(self.bases))) @ directions.T
        return total, self.regressor.pull_back(q, qd, qdd, 2 / len(q) * full @ push)

    def _figure(self, values: Array, sharpness: float) -> tuple[float, Array]:
        """The figure of ascending eigenvalues, and its slopes."""
        up = (values / values[-1]) ** sharpness
        down = (values[0] / values) ** sharpness
        means = (np.log(up.sum()) + np.log(down.sum())) / sharpness
        value = (np.log(values[-1] / values[0]) + means) / 2
        return float(value), (up / up.sum() - down / down.sum()) / (2 * values)


class LogDeterminant(ConditionNumber):
    """D-optimality: minus the log-determinant of the information matrix per sample.

    Other base columns only add a constant, so one choice suffices. `smooth` is the value
    over the number of base parameters, with smoothed Coulomb columns.
    """

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """-log det(Y' Y / samples) of the base regressor Y."""
        full = self.regressor.matrix(q, qd, qdd) @ self.bases[0]
        flat = full.reshape(-1, full.shape[-1])
        return float(-np.linalg.slogdet(flat.T @ flat / len(q))[1])

    def _figure(self, values: Array, sharpness: float) -> tuple[float, Array]:
        """Mean of minus the logarithms of the eigenvalues, and its slopes."""
        return float(-np.log(values).mean()), -1 / (values * len(values))


class EnergyAccuracy:
    """Variance of the currents, hence of the copper losses, that the identified model predicts.

    Per joint the current model of Clochiatti et al. 2024 (eq. 10-18) is linear in four
    unknowns with the regressor x = (tau / N, w, Coulomb driving, Coulomb driven). With
    the information matrix X'X / samples of the exciting motion and the second moments C
    of typical motions (`reference`), trace((X'X / samples)^-1 C) is the mean variance of
    the predicted current over the variance of a measured current (V-optimality). The
    objective is the geometric mean of this ratio over joints.

    Args:
        regressor: regressor of the arm, n joints.
        reflected_inertia: nominal reflected inertias, joint side [n], kg m^2.
        reference: typical motions whose currents are to be predicted.
        joints: numbers of the joints that count; None for all.
    """

    def __init__(
        self,
        regressor: MotionRegressor,
        reflected_inertia: Array,
        reference: Motion,
        joints: Sequence[int] | None = None,
    ) -> None:
        self._dynamics = regressor.dynamics
        self._inertia = reflected_inertia
        self._gear = self._dynamics.robot.gear_ratio
        n = self._dynamics.dof
        counted = np.isin(np.arange(n), range(n) if joints is None else list(joints))
        self._share = counted / counted.sum()
        columns = self._columns(*reference)[0]
        self._moments = np.einsum("tni,tnj->nij", columns, columns) / len(columns)

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """Geometric mean over joints of the relative variance of predicted currents."""
        return float(np.exp(self.smooth(q, qd, qdd)[0]))

    def smooth(
        self, q: Array, qd: Array, qdd: Array, *, sharpness: float = 8.0
    ) -> tuple[float, Motion]:
        """Mean logarithm of the relative variances, and its gradient."""
        samples = len(q)
        columns, torque, share = self._columns(q, qd, qdd)
        information = np.einsum("tni,tnj->nij", columns, columns) / samples
        inverse = np.linalg.inv(information + 1e-12 * np.eye(4))
        spread = inverse @ self._moments
        variance = np.trace(spread, axis1=1, axis2=2)
        push = -(spread @ inverse) * (self._share / variance)[:, None, None]
        by_column = 2 / samples * np.einsum("tni,nij->tnj", columns, push)

        speed = np.tanh(qd / COULOMB_SMOOTHING)
        slope = (1 - speed**2) / COULOMB_SMOOTHING
        by_share = (by_column[..., 2] - by_column[..., 3]) * speed
        share_slope = share * (1 - share) * 4
        by_power = by_share * share_slope
        by_torque = by_column[..., 0] / self._gear + by_power * qd
        by_qd = (
            by_column[..., 1] * self._gear
            + (by_column[..., 2] * share + by_column[..., 3] * (1 - share)) * slope
            + by_power * torque
        )
        by_q = np.empty_like(q)
        by_qdd = by_torque * self._inertia
        model = self._dynamics.model
        data = self._dynamics.data
        for t in range(samples):
            pin.computeRNEADerivatives(model, data, q[t], qd[t], qdd[t])
            by_q[t] = by_torque[t] @ data.dtau_dq
            by_qd[t] += by_torque[t] @ data.dtau_dv
            by_qdd[t] += pin.crba(model, data, q[t]) @ by_torque[t]
        return float(self._share @ np.log(variance)), (by_q, by_qd, by_qdd)

    def _columns(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
        """Current regressor [samples, n, 4], torque and share of driving [samples, n]."""
        torque = self._dynamics.inverse_dynamics(q, qd, qdd) + self._inertia * qdd
        share = 1 / (1 + np.exp(-4 * np.clip(qd * torque, -50, 50)))
        speed = np.tanh(qd / COULOMB_SMOOTHING)
        columns = [
            torque / self._gear,
            self._gear * qd,
            speed * share,
            speed * (1 - share),
        ]
        return np.stack(columns, axis=-1), torque, share


Objective = ConditionNumber | EnergyAccuracy
"""`value` over a sampled motion q, qd, qdd [samples, n]; smaller is better. `smooth` is a
differentiable approximation of its logarithm with gradients, each [samples, n];
`sharpness` is the order of the power means that approximate extreme values."""
