"""The controller's torque as a product of known columns and few unknowns.

target_moment is the controller's own frictionless inverse dynamics (Clochiatti et al. 2024, eq.
2 and 7). In the mounting's gravity g, with a payload of ten parameters p on the flange and
reflected motor inertias J it is, sample by sample,

    torque = bare(q, qd, qdd) + G(q) g + Y(q, qd, qdd) p + sum_k g_k Y_k(q) p[:4] + J qdd

bilinear in g and p. With the products g_k p as separate unknowns it is linear, so any number of
samples reduces to one Gram matrix per joint, on which any setup is evaluated cheaply.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.inertial_parameters import COUNT, FIRST_MOMENT, TENSOR
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array

_STATIC = FIRST_MOMENT.stop
"""Parameters of a payload that gravity acts on: mass and first moments."""


@dataclass(frozen=True)
class TorqueColumns:
    """Columns of the joint torques of one arm in any setup.

    Args:
        robot: the arm, n joints.
        tensors: add the six tensor entries of every moving link as unknowns (deviations from the
            robot file).
    """

    robot: RobotDescription
    tensors: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        n = self.robot.dof
        return 1 + 3 + COUNT + 3 * _STATIC + n + (6 * n if self.tensors else 0)

    @cached_property
    def _dynamics(self) -> ArmDynamics:
        """The arm without gravity."""
        return ArmDynamics(self.robot, Setup(gravity=np.zeros(3)))

    @cached_property
    def _parameters(self) -> Array:
        """Inertial parameters of the bare arm [10 n]."""
        return self._dynamics.parameters()

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns [samples, n, width] for joint positions, velocities, accelerations [samples, n].

        Multiplied with `coefficients` they give joint torques in N m.
        """
        weightless = self._dynamics
        n = self.robot.dof
        regressor = weightless.regressor(q, qd, qdd)
        bare = regressor @ self._parameters
        parts = [
            bare[:, :, None],
            weightless.gravity_regressor(q),
            regressor[:, :, -COUNT:],
            weightless.flange_weight_regressor(q).reshape(len(q), n, 3 * _STATIC),
            np.eye(n)[None] * qdd[:, None, :],
        ]
        if self.tensors:
            parts.append(
                regressor.reshape(len(q), n, n, COUNT)[..., TENSOR].reshape(len(q), n, 6 * n)
            )
        return np.concatenate(parts, axis=2)

    def coefficients(
        self, gravity: Array, payload: Array, reflected_inertia: Array, tensors: Array | None = None
    ) -> Array:
        """Coefficients [width] of the columns for one setup.

        Args:
            gravity: in the base frame [3], m/s^2.
            payload: ten parameters about the flange origin (see `inertial_parameters`).
            reflected_inertia: joint side [n], kg m^2.
            tensors: deviations of the link tensors [6 n], kg m^2, with `tensors` only.
        """
        products = np.outer(gravity, payload[:_STATIC]).ravel()
        parts = [np.ones(1), gravity, payload, products, reflected_inertia]
        if self.tensors:
            parts.append(np.zeros(6 * self.robot.dof) if tensors is None else tensors)
        return np.concatenate(parts)

    def slopes(self, gravity: Array, payload: Array, changes: Array) -> Array:
        """Change of `coefficients` with each unknown [width, unknowns].

        Args:
            gravity: in the base frame [3], m/s^2.
            payload: ten parameters about the flange origin.
            changes: of these with each unknown of the payload [10, k].

        Returns:
            for reflected inertias, tensors (with `tensors` only), gravity and payload, in order.
        """
        first = self.width - (common := self.robot.dof * (7 if self.tensors else 1))
        out = np.zeros((self.width, common + 3 + changes.shape[1]))
        out[first:, :common] = np.eye(common)
        at_gravity, at_payload = slice(common, common + 3), slice(common + 3, None)
        out[1:4, at_gravity] = np.eye(3)
        out[4 : 4 + COUNT, at_payload] = changes
        out[4 + COUNT : first, at_gravity] = np.kron(np.eye(3), payload[:_STATIC, None])
        out[4 + COUNT : first, at_payload] = np.kron(gravity[:, None], changes[:_STATIC])
        return out
