"""Uncertainty of the motor currents that a model predicts from motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.friction.presliding import STILL_SPEED
from ur_energy_model.model.joint_arrays import JointArrays
from ur_energy_model.model.joint_model import JointModel, square_root
from ur_energy_model.model.sessions import COMMON_FRICTION, Session, scaled_parameters
from ur_energy_model.typing import Array

PREDICTION_ERROR = 0.01
"""Error of the current of an unrecorded motion as a share of it, beyond the parameters' standard
deviations: nominal masses, the form of the friction law."""
STANDSTILL_ERROR = 0.5
"""Unknown share of a joint's Coulomb friction at standstill."""


@dataclass(frozen=True)
class CurrentDeviations:
    """Change of predicted currents per independent error, one standard deviation each.

    Attributes:
        own: of each of n joints [samples, p + 5], A.
        shared: of all joints per error of the bus model, which also changes the converted power
            [samples, n, k], A.
        scatter: RMS of the measured minus the modelled current [n], A.
    """

    own: list[Array]
    shared: Array
    scatter: Array

    @property
    def std(self) -> Array:
        """Standard deviation of single samples of the currents [samples, n], A."""
        squares = np.stack([np.square(part).sum(axis=1) for part in self.own], axis=1)
        squares += np.square(self.shared).sum(axis=2)
        return np.asarray(np.sqrt(squares + np.square(self.scatter)))


class CurrentErrors:
    """Independent errors of the currents of n joints, one standard deviation each.

    They come from the parameters and the reflected inertia, the model's form, the session's
    friction, and the friction that remains in a joint at rest. Their number does not depend on the
    session.

    Without measured bus power, the back-EMF constants follow from the torque constants, so that
    both have the same errors: a motor with a larger torque constant takes less current for the same
    torque, and the converted power, speed times torque, hardly changes.

    Args:
        joints: n joint models, p friction parameters each.
        arrays: their constants.
        session: its friction deviates from that of the joints.
        bus: its k errors are shared by all joints; the last is the friction that the joints have in
            common (`with_session_errors`).
    """

    def __init__(
        self, joints: Sequence[JointModel], arrays: JointArrays, session: Session, bus: BusModel
    ) -> None:
        self._arrays = arrays
        self._residual = np.array([joint.current_residual for joint in joints])
        inertia = np.array([joint.std.get("reflected_inertia", 0.0) for joint in joints])
        self._inertia = inertia / (arrays.gear_ratio * arrays.torque_constant)
        constant_errors = bus.torque_constant_errors(arrays.back_emf_constant)
        anchored = session.moving_seconds > 0
        self._roots, self._shared = [], []
        for joint, errors in zip(joints, constant_errors.T, strict=True):
            response = _response(joint, measured_friction=anchored)
            self._roots.append(_root(joint, response, float(errors @ errors)))
            self._shared.append(np.outer(response, errors))
        relative = session.friction_std / session.friction_scale
        common = 0.0 if anchored else COMMON_FRICTION
        self._session = []
        for j, (joint, share) in enumerate(zip(joints, relative.tolist(), strict=True)):
            scaled = scaled_parameters(joint.friction.law.parameters)
            per_ampere = share / joint.torque_constant
            error = np.where(scaled, joint.friction.values * per_ampere, 0.0)
            self._session.append(np.sqrt(1.0 - common) * error)
            self._shared[j][1:, -1] = np.sqrt(common) * error

    def __call__(
        self,
        qd: Array,
        qdd: Array,
        load: Array,
        current: Array,
        temperature: Array | None,
        direction: Array | None,
    ) -> CurrentDeviations:
        """Changes of the currents of a motion.

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
        errors, shared = [], []
        for j, root in enumerate(self._roots):
            columns = np.column_stack([motor[:, j], terms[j]])
            parameters = columns @ root
            shared.append(columns @ self._shared[j])
            form, session = PREDICTION_ERROR * current[:, j], terms[j] @ self._session[j]
            inertia = self._inertia[j] * qdd[:, j]
            errors.append(np.column_stack([parameters, inertia, form, session, rest[:, j]]))
        return CurrentDeviations(errors, np.stack(shared, axis=1), self._residual)


def _response(joint: JointModel, *, measured_friction: bool) -> Array:
    """Change of (1/k_t, friction parameters / k_t) per relative change of k_t [1 + p].

    Args:
        joint: of the model.
        measured_friction: whether the currents that friction takes were measured in the session.
    """
    covariance = joint.current_covariance
    names = joint.friction.law.parameters
    if not covariance.size or covariance[0, 0] <= 0:
        return np.zeros(1 + len(names))
    response = -covariance[:, 0] / covariance[0, 0] / joint.torque_constant
    if measured_friction:
        response[1:][scaled_parameters(names)] = 0.0
    return np.asarray(response)


def _root(joint: JointModel, response: Array, variance: float) -> Array:
    """Root of current_covariance [1 + p, 1 + p] without what a shared error of k_t explains.

    Args:
        joint: of the model.
        response: to a relative change of k_t [1 + p].
        variance: relative, of the shared error of k_t.
    """
    covariance = joint.current_covariance
    if not covariance.size or not response.any() or not variance:
        return joint.current_root
    whole = covariance[:, 0] / np.sqrt(covariance[0, 0])  # what any error of k_t explains
    known = min(variance * response[0] ** 2 / covariance[0, 0], 1.0)
    return square_root(covariance - known * np.outer(whole, whole))
