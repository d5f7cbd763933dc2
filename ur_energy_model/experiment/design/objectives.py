"""Objectives of exciting trajectories, with gradients with respect to the motion.

Each objective is a scalar to minimise over sampled motions q, qd, qdd [samples, n].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import numpy as np
import pinocchio as pin

from ur_energy_model.experiment.design.regressor import COULOMB_SMOOTHING, MotionRegressor
from ur_energy_model.typing import Array

Motion = tuple[Array, Array, Array]
ObjectiveName = Literal["condition", "logdet", "energy"]


class Objective(Protocol):
    """An objective over sampled motions; smaller is better."""

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """The objective; q, qd, qdd are [samples, n] in rad and s."""
        ...

    def smooth(
        self, q: Array, qd: Array, qdd: Array, *, sharpness: float = 8.0
    ) -> tuple[float, Motion]:
        """Differentiable approximation of its logarithm, and the gradients, each [samples, n].

        Args:
            q: [samples, n], rad.
            qd: [samples, n], rad/s.
            qdd: [samples, n], rad/s^2.
            sharpness: order of the power means that approximate extreme values.
        """
        ...


def condition_number(regressor: Array) -> float:
    """Ratio of the largest to the smallest singular value of a stacked regressor.

    Args:
        regressor: [samples, n, b]; neither columns nor rows are scaled.
    """
    values = np.linalg.svd(regressor.reshape(-1, regressor.shape[-1]), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


@dataclass(frozen=True)
class ConditionNumber:
    """Condition number of the stacked base regressor (Raviola et al. 2021; Machines 2024).

    It depends on the choice of base columns, so the objective is the geometric mean over several
    choices.

    Attributes:
        regressor: regressor of the arm.
        bases: maps [13 n, b] onto base regressors.
    """

    regressor: MotionRegressor
    bases: tuple[Array, ...]

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """Geometric mean of the condition numbers, with sign(qd) as Coulomb columns."""
        full = self.regressor.matrix(q, qd, qdd)
        return float(
            np.exp(np.mean([np.log(condition_number(full @ base)) for base in self.bases]))
        )

    def smooth(
        self, q: Array, qd: Array, qdd: Array, *, sharpness: float = 8.0
    ) -> tuple[float, Motion]:
        """Logarithm of the ratio of power means of the singular values, and its gradient."""
        return _spectral(self.regressor, self.bases, q, qd, qdd, partial(_log_condition, sharpness))


@dataclass(frozen=True)
class LogDeterminant:
    """D-optimality: minus the log-determinant of the information matrix per sample.

    Other base columns only add a constant, so one choice suffices.

    Attributes:
        regressor: regressor of the arm.
        base: map [13 n, b] onto its base regressor.
    """

    regressor: MotionRegressor
    base: Array

    def value(self, q: Array, qd: Array, qdd: Array) -> float:
        """-log det(Y' Y / samples) of the base regressor Y."""
        matrix = self.regressor.matrix(q, qd, qdd) @ self.base
        flat = matrix.reshape(-1, matrix.shape[-1])
        return float(-np.linalg.slogdet(flat.T @ flat / len(q))[1])

    def smooth(
        self, q: Array, qd: Array, qdd: Array, *, sharpness: float = 8.0
    ) -> tuple[float, Motion]:
        """The value per base parameter with smoothed Coulomb columns, and its gradient."""
        return _spectral(self.regressor, (self.base,), q, qd, qdd, _log_determinant)


class EnergyAccuracy:
    """Variance of the currents, hence of the copper losses, that the identified model predicts.

    Per joint the current model of Clochiatti et al. 2024 (eq. 10-18) is linear in four unknowns
    with the regressor x = (tau / N, w, Coulomb driving, Coulomb driven). With the information
    matrix X'X / samples of the exciting motion and the second moments C of typical motions,
    trace((X'X / samples)^-1 C) is the mean variance of the predicted current in units of the
    measurement's (V-optimality); the objective is its geometric mean over joints.

    Args:
        regressor: provides the dynamics; its base columns are not used.
        reflected_inertia: nominal motor and reducer inertia, joint side [n], kg m^2.
        reference: typical motions: q, qd, qdd, each [samples, n].
        joints: that count [k]; None for all.
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
        model, data = self._dynamics.model, self._dynamics.data
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
        columns = [torque / self._gear, self._gear * qd, speed * share, speed * (1 - share)]
        return np.stack(columns, axis=-1), torque, share


def _spectral(
    regressor: MotionRegressor,
    bases: tuple[Array, ...],
    q: Array,
    qd: Array,
    qdd: Array,
    figure: _Figure,
) -> tuple[float, Motion]:
    """Mean over bases of a function of the eigenvalues of Y'Y / samples, and its gradient."""
    full = regressor.matrix(q, qd, qdd, smooth=True)
    flat = full.reshape(-1, full.shape[-1])
    information = flat.T @ flat / len(q)
    total, push = 0.0, np.zeros_like(information)
    for base in bases:
        values, vectors = np.linalg.eigh(base.T @ information @ base)
        value, slopes = figure(np.maximum(values, 1e-12))
        total += value / len(bases)
        directions = base @ vectors
        push += (directions * (slopes / len(bases))) @ directions.T
    return total, regressor.pull_back(q, qd, qdd, 2 / len(q) * full @ push)


class _Figure(Protocol):
    def __call__(self, values: Array) -> tuple[float, Array]: ...


def _log_condition(sharpness: float, values: Array) -> tuple[float, Array]:
    up, down = (values / values[-1]) ** sharpness, (values[0] / values) ** sharpness
    means = (np.log(up.sum()) + np.log(down.sum())) / sharpness
    value = (np.log(values[-1] / values[0]) + means) / 2
    slope = (up / up.sum() - down / down.sum()) / (2 * values)
    return float(value), slope


def _log_determinant(values: Array) -> tuple[float, Array]:
    return float(-np.log(values).mean()), -1 / (values * len(values))
