"""Joint controller: target moment, target current and servo gains.

"feedforward" is the e-Series controller as Clochiatti et al. 2024 (sec. 3.2) describe it: inverse
dynamics fed forward plus feedback. "pd" is proportional-derivative control with gravity
compensation (Battistini et al.).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pinocchio as pin

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm.parameters import ArmParameters, constants
from ur_energy_model.simulation.arm.plant import ServoGains
from ur_energy_model.typing import Array

ControllerKind = Literal["feedforward", "pd"]

_SLOW = 0.02
"""Speed from which friction is fully compensated [rad/s]."""
_LINK_SHARE = 0.3
"""Link inertia assumed in the tuning of the servo, relative to the reflected inertia."""


@dataclass(frozen=True)
class Targets:
    """Targets of one cycle, arrays [n].

    Attributes:
        q, qd, qdd: rad, rad/s, rad/s^2.
        moment: inverse dynamics with rotors, without friction, joint side, N m.
        current: A.
    """

    q: Array
    qd: Array
    qdd: Array
    moment: Array
    current: Array


class JointController:
    """Feed-forward and servo of all joints.

    Args:
        robot: n joints.
        parameters: of the arm; the controller uses the torque constants, the nominal reflected
            inertia and its own friction estimate.
        setup: mounting and payload as configured.
        kind: "feedforward" or "pd".

    Raises:
        InputError: unknown kind.
    """

    def __init__(
        self, robot: RobotDescription, parameters: ArmParameters, setup: Setup, kind: ControllerKind
    ) -> None:
        if kind not in get_args(ControllerKind):
            raise InputError(
                kind, "is not a controller", f"use {' or '.join(get_args(ControllerKind))}"
            )
        servo = constants()["servo"]
        self.kind = kind
        self._robot, self._parameters = robot, parameters
        self.set_setup(setup)
        bandwidth = servo["bandwidth"] if kind == "feedforward" else servo["pd_bandwidth"]
        omega = 2 * np.pi * float(bandwidth)
        inertia = (1.0 + _LINK_SHARE) * parameters.reflected_inertia
        self.gains = ServoGains(omega**2 * inertia, 2 * servo["damping"] * omega * inertia)
        self._integral = float(servo["integral"]) if kind == "feedforward" else 0.0
        self._deadband = float(servo["deadband"])
        self.trim = np.zeros(robot.dof)
        """Correction of the rotor reference for the gear twist [n], rad."""

    def set_setup(self, setup: Setup) -> None:
        """Use another mounting or payload."""
        self._dynamics = ArmDynamics(self._robot, setup)

    def targets(self, q: Array, qd: Array, qdd: Array) -> Targets:
        """Target moment and current for a commanded state [n]."""
        p = self._parameters
        model, data = self._dynamics.model, self._dynamics.data
        moment = pin.rnea(model, data, q, qd, qdd) + p.reflected_inertia * qdd
        if self.kind == "pd":
            current = pin.computeGeneralizedGravity(model, data, q) / p.current_to_torque
        else:
            direction = np.clip(qd / _SLOW, -1.0, 1.0)
            friction = p.controller_coulomb * direction + p.controller_viscous * qd
            current = (moment + friction) / p.current_to_torque
        return Targets(q, qd, qdd, moment, current)

    def correct(self, dt: float, error: Array) -> None:
        """Integrate the joint-side position error [n], rad, outside the dead band."""
        if self._integral:
            beyond = np.where(np.abs(error) > self._deadband, error, 0.0)
            self.trim = self.trim + self._integral * dt * beyond
