"""Regressor of a motion, its base columns, and gradients of functions of it.

The regressor has 13 columns a joint: ten inertial parameters, Coulomb friction sign(qd), viscous
friction qd and motor inertia qdd (Raviola et al., RAAD 2021, sec. 2), joint after joint. Its base
columns are a largest independent set: 52 of 78 for a UR5, 36 inertial, 12 of friction and 4 motor
inertias. Neither columns nor rows are scaled.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.dynamics.regrouping import FullRegressor, regroup
from ur_energy_model.identification.regression.pivoted_columns import (
    first_independent_columns,
    pivoted_columns,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.typing import Array

COULOMB_SMOOTHING = 0.05
"""Speed scale of tanh(qd / scale), which approximates sign(qd) in the search [rad/s]."""
REST = 1e-9
"""Speeds up to this count as rest; rounding errors of zero are far smaller [rad/s]."""
_STEP = 1e-6


class MotionRegressor:
    """Regressor of sampled motions of one arm, 13 n columns.

    Args:
        dynamics: the arm in its setup, n joints.
    """

    def __init__(self, dynamics: ArmDynamics) -> None:
        self.dynamics = dynamics
        gravity = dynamics.model.gravity.linear
        turns_with_base = bool(np.allclose(gravity[:2], 0.0))
        self._moved = range(1 if turns_with_base else 0, dynamics.dof)
        """Joints whose position changes the regressor: not the first if its axis is vertical."""

    def matrix(self, q: Array, qd: Array, qdd: Array, *, smooth: bool = False) -> Array:
        """Regressor [samples, n, 13 n]; `smooth` replaces sign(qd) by a hyperbolic tangent.

        The sign is zero at rest: rounding leaves speeds of 1e-16 rad/s at both ends, whose signs
        differ between processors.
        """
        moving = np.where(np.abs(qd) > REST, qd, 0.0)
        coulomb = np.tanh(qd / COULOMB_SMOOTHING) if smooth else np.sign(moving)
        samples, n = q.shape
        full = np.zeros((samples, n, n, 13))
        full[..., :10] = self.dynamics.regressor(q, qd, qdd).reshape(samples, n, n, 10)
        joint = np.arange(n)
        full[:, joint, joint, 10] = coulomb
        full[:, joint, joint, 11] = qd
        full[:, joint, joint, 12] = qdd
        return full.reshape(samples, n, 13 * n)

    def pull_back(
        self, q: Array, qd: Array, qdd: Array, weight: Array
    ) -> tuple[Array, Array, Array]:
        """Gradient of sum(weight * matrix(smooth=True)) with respect to q, qd, qdd.

        Args:
            q: [samples, n], rad.
            qd: [samples, n], rad/s.
            qdd: [samples, n], rad/s^2.
            weight: [samples, n, 13 n].

        Returns:
            Three arrays [samples, n]. Rigid-body terms are forward differences; those in qdd are
            exact because the regressor is affine in it.
        """
        samples, n = q.shape
        blocks = weight.reshape(samples, n, n, 13)
        rigid = blocks[..., :10].reshape(samples, n, 10 * n)

        states = [(q, qd, qdd)]
        for which, step in ((0, _STEP), (1, _STEP), (2, 1.0)):
            for joint in self._moved if which == 0 else range(n):
                state = [q, qd, qdd]
                state[which] = state[which].copy()
                state[which][:, joint] += step
                states.append((state[0], state[1], state[2]))
        stacked = (np.concatenate(parts) for parts in zip(*states, strict=True))
        values = self.dynamics.regressor(*stacked).reshape(len(states), samples, n, 10 * n)
        sums = np.einsum("stij,tij->st", values, rigid, optimize=True)
        slopes = (sums[1:] - sums[0]).T

        moved = len(self._moved)
        by_q = np.zeros((samples, n))
        by_q[:, list(self._moved)] = slopes[:, :moved] / _STEP
        joint_index = np.arange(n)
        own = blocks[:, joint_index, joint_index]
        slope = (1 - np.tanh(qd / COULOMB_SMOOTHING) ** 2) / COULOMB_SMOOTHING
        by_qd = slopes[:, moved : moved + n] / _STEP + own[..., 10] * slope + own[..., 11]
        by_qdd = slopes[:, moved + n :] + own[..., 12]
        return by_q, by_qd, by_qdd


def base_choices(dynamics: ArmDynamics) -> tuple[Array, ...]:
    """Maps [13 n, b] of the full regressor onto common choices of base regressors.

    The choice of base parameters is not unique, and the condition number depends on it. The first
    choice is that of the identification (`regroup`), whose condition number is reported. The others
    are QR with column pivoting of the regressor over random states, the first and the last
    independent columns, and the singular vectors.
    """
    full = FullRegressor(dynamics.robot, dynamics.model.gravity.linear)
    columns = regroup(full).base
    stacked = _random_regressor(dynamics)
    width = stacked.shape[1]
    identity = np.eye(width)
    rank = len(columns)
    combinations = np.linalg.svd(stacked, full_matrices=False)[2][:rank].T
    last = width - 1 - first_independent_columns(stacked[:, ::-1])
    return (
        identity[:, columns],
        identity[:, np.sort(pivoted_columns(stacked, rank))],
        identity[:, first_independent_columns(stacked)],
        identity[:, last],
        combinations,
    )


def _random_regressor(dynamics: ArmDynamics) -> Array:
    """Stacked regressor [states n, 13 n] over uniform random states within the limits."""
    random = np.random.default_rng(0)
    robot, states = dynamics.robot, 200
    bounds = (np.full(robot.dof, np.pi), robot.max_velocity, robot.max_acceleration)
    q, qd, qdd = (random.uniform(-bound, bound, (states, robot.dof)) for bound in bounds)
    return MotionRegressor(dynamics).matrix(q, qd, qdd).reshape(-1, 13 * robot.dof)
