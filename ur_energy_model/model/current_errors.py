"""Uncertainty of the motor currents that a model predicts from motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.model.friction.presliding import STILL_SPEED
from ur_energy_model.model.joint_arrays import JointArrays
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.sessions import Session, scaled_parameters
from ur_energy_model.typing import Array

PREDICTION_ERROR = 0.01
"""Error of the current of an unrecorded motion as a share of it, beyond the parameters' standard
deviations: nominal masses, the form of the friction law."""
STANDSTILL_ERROR = 0.5
"""Unknown share of a joint's Coulomb friction at standstill."""


class CurrentErrors:
    """Independent errors of the currents of n joints, one standard deviation each.

    They come from the parameters and the reflected inertia, the model's form, the session's
    friction, and the friction that remains in a joint at rest. Their number does not depend on the
    session.

    Args:
        joints: n joint models, p friction parameters each.
        arrays: their constants.
        session: its friction deviates from that of the joints.
    """

    def __init__(self, joints: Sequence[JointModel], arrays: JointArrays, session: Session) -> None:
        self._arrays = arrays
        self._residual = np.array([joint.current_residual for joint in joints])
        inertia = np.array([joint.std.get("reflected_inertia", 0.0) for joint in joints])
        self._inertia = inertia / (arrays.gear_ratio * arrays.torque_constant)
        self._roots = [joint.current_root for joint in joints]
        relative = session.friction_std / session.friction_scale
        self._session = []
        for joint, share in zip(joints, relative.tolist(), strict=True):
            scaled = scaled_parameters(joint.friction.law.parameters)
            per_ampere = share / joint.torque_constant
            self._session.append(np.where(scaled, joint.friction.values * per_ampere, 0.0))

    def __call__(
        self,
        qd: Array,
        qdd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None,
    ) -> list[Array]:
        """Change of each joint's current per error [samples, p + 5], A.

        Args:
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
            load: torque without friction, joint side [samples, n], N m.
            current: predicted [samples, n], A.
            temperature: see `FrictionBank.torque`.
            direction: see `FrictionBank.torque`.
        """
        arrays = self._arrays
        terms = arrays.friction.regressors(qd, load, temperature, direction)
        breakaway = arrays.friction.torque(np.full_like(qd, STILL_SPEED), load, temperature)
        standing = np.exp(-np.square(qd / STILL_SPEED))
        rest = STANDSTILL_ERROR * standing * breakaway / arrays.torque_constant
        motor = load / arrays.gear_ratio
        errors = []
        for j, root in enumerate(self._roots):
            parameters = np.column_stack([motor[:, j], terms[j]]) @ root
            form, session = PREDICTION_ERROR * current[:, j], terms[j] @ self._session[j]
            inertia = self._inertia[j] * qdd[:, j]
            errors.append(np.column_stack([parameters, inertia, form, session, rest[:, j]]))
        return errors

    def deviation(self, errors: Sequence[Array]) -> Array:
        """Standard deviation of single samples of the currents [samples, n], A."""
        squares = np.stack([np.square(part).sum(axis=1) for part in errors], axis=1)
        return np.asarray(np.sqrt(squares + np.square(self._residual)))
