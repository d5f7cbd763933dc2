"""EcBot's dynamic model: motor currents or joint torques by one regression per joint.

Heredia, Schlette, Kjaergaard, EcBot, eq. 9-12 and 18-19. Masses and centres of mass of the links
are known; their inertia tensors, the motor's inertia, viscous and Coulomb friction and the torque
constant are not:

    torque = known torque + tensors and motor inertia + k_v qd + k_s sign(qd)
    current = torque / k_m
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ur_energy_model.identification.regression.gram_matrices import gram_matrices_by_joint
from ur_energy_model.identification.regression.least_squares import solve_normal_equations
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.inertial_parameters import COUNT, TENSOR
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array, Indices

Measured = Literal["current", "torque"]
"""What an arm measures: motor currents [A], or joint torques [N m]."""
KNOWN, VISCOUS, COULOMB, INERTIA = 0, 1, 2, 3
"""Columns of a joint's regression; those of the link tensors follow."""

_ZERO = 1e-6
"""RMS up to which a column counts as zero, in N m, rad/s or rad/s^2."""
_DEPENDENT = 1e-9
"""Squared remainder up to which a column of length one depends on those before it."""


@dataclass(frozen=True)
class DynamicModel:
    """Coefficients of n joints, joint side.

    Attributes:
        measured: what the model predicts.
        coefficients: of the columns of each joint [n, columns]; for currents over k_m.
    """

    measured: Measured
    coefficients: Array

    @property
    def torque_constant(self) -> Array | None:
        """k_m, joint torque per current [n], N m/A; None for an arm with torque sensors.

        NaN where gravity and the other links do not load a joint, such as the first one of an
        upright arm: only the friction over k_m is known there.
        """
        if self.measured == "torque":
            return None
        known = self.coefficients[:, KNOWN]
        return np.asarray(np.where(known != 0.0, 1.0 / np.where(known != 0.0, known, 1.0), np.nan))

    @property
    def viscous(self) -> Array:
        """k_v [n], N m s/rad."""
        return self._torques(VISCOUS)

    @property
    def coulomb(self) -> Array:
        """k_s [n], N m."""
        return self._torques(COULOMB)

    @property
    def inertia(self) -> Array:
        """Inertia about each joint's own axis that no other column explains [n], kg m^2.

        The motor's, reducer included, and of the link what cannot be told from it.
        """
        return self._torques(INERTIA)

    def _torques(self, column: int) -> Array:
        scale = self.torque_constant
        values = self.coefficients[:, column]
        return np.asarray(values if scale is None else values * scale)


class DynamicColumns:
    """Columns of the regressions of an arm in a setup.

    Args:
        robot: the arm, n joints.
        setup: mounting and payload, both known.
    """

    def __init__(self, robot: RobotDescription, setup: Setup) -> None:
        points = replace(robot, inertia=np.zeros_like(robot.inertia))
        self._dynamics = ArmDynamics(points, setup)
        self.width = INERTIA + 1 + (TENSOR.stop - TENSOR.start) * robot.dof

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns [samples, n, width] of positions, speeds and accelerations [samples, n]."""
        samples, n = q.shape
        rigid = self._dynamics.regressor(q, qd, qdd).reshape(samples, n, n, COUNT)
        tensors = rigid[..., TENSOR].reshape(samples, n, -1)
        known = self._dynamics.inverse_dynamics(q, qd, qdd)
        own = np.stack([known, qd, np.sign(qd), qdd], axis=2)
        return np.concatenate([own, tensors], axis=2)


class DynamicModelFit:
    """Accumulates samples and fits all joints, in constant memory.

    Args:
        columns: of the arm, n joints.
        measured: what is measured. Torques leave nothing to fit for the known torque.
    """

    def __init__(self, columns: DynamicColumns, measured: Measured) -> None:
        self._columns, self._measured = columns, measured
        self._gram: Array | None = None
        self.samples = 0
        """Number of samples so far."""

    def accumulate(self, columns: Array, measured: Array) -> None:
        """Add samples: their columns [samples, n, width] and measurements [samples, n]."""
        gram = gram_matrices_by_joint(np.concatenate([columns, measured[:, :, None]], axis=2))
        self._gram = gram if self._gram is None else self._gram + gram
        self.samples += len(measured)

    def fit(self) -> DynamicModel:
        """Least squares of every joint; columns that depend on those before them get zero."""
        assert self._gram is not None
        n, width = len(self._gram), self._columns.width
        coefficients = np.zeros((n, width))
        first = 0 if self._measured == "current" else 1
        for joint, gram in enumerate(self._gram):
            right = gram[:-1, -1].copy()
            if first:
                coefficients[joint, KNOWN] = 1.0
                right -= gram[:-1, KNOWN]
            free = first + _independent(gram[first:-1, first:-1], self.samples)
            coefficients[joint, free] = solve_normal_equations(
                gram[np.ix_(free, free)], right[free]
            )
        return DynamicModel(self._measured, coefficients)


def _independent(gram: Array, samples: int) -> Indices:
    """Columns of a Gram matrix [k, k] that are not zero and do not depend on those before them.

    Symmetric elimination, column by column (Cholesky); what is left on the diagonal is the squared
    remainder of a column of length one.
    """
    diagonal = np.diag(gram)
    seen = diagonal > _ZERO**2 * samples
    length = np.sqrt(np.where(seen, diagonal, 1.0))
    rest = np.where(np.outer(seen, seen), gram / np.outer(length, length), 0.0)
    kept = []
    for column in range(len(gram)):
        remainder = float(rest[column, column])
        if remainder > _DEPENDENT:
            kept.append(column)
            rest = rest - np.outer(rest[:, column], rest[column]) / remainder
    return np.array(kept, dtype=np.intp)
