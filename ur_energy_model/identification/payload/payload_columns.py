"""Columns of the joint torques of a loaded arm, and the prior of what the model leaves out.

At every joint, in torques of the joint side,

    k_t N I - friction = gain (links + payload) + model error.

The model error is small, but friction and inertia of an arm are many times the torque of a light
payload. It is therefore modelled and estimated together with the payload, with a prior from what
is known of its causes:

- friction that changes between recordings: Raviola et al. 2021 find viscous friction lower by a
  third after the arm has warmed up by ten kelvin;
- friction that drifts within a recording, as the arm warms up;
- friction that grows with the torque transmitted by the gear. The rotor sits before the gear, so
  that torque is the links' and the payload's, without the reflected inertia's;
- friction that depends on the direction: factory calibrations of UR5e joints differ by a few
  percent. This part is even in the speed, like a weight, and could be mistaken for one;
- compliance: a gear with stiffness K and rotor inertia J takes J/K times the second derivative of
  the torque; the resonances begin at about 20 Hz (stiffness from the Harmonic Drive catalogue);
- a delay between currents and motion, links that the controller computes as point masses, and
  rotor inertias that differ from the controller's.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.friction.terms import SMOOTHING
from ur_energy_model.model.inertial_parameters import COUNT
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array

_TYPICAL_SPEED = 0.5
"""Joint speed at which friction gives the scale of its changes [rad/s]."""
_LEAST_FRICTION = 0.1
"""Smallest such scale [N m]."""
_FADES = (0.1, 0.5)
"""Decay speeds of low-speed friction [rad/s]."""
_COMPLIANCE = (2 * np.pi * 20.0) ** -2
"""Rotor inertia over gear stiffness at a resonance of 20 Hz [s^2]."""
_ASYMMETRY = 0.016
"""Half the relative difference of friction between the directions, RMS over the joints and speeds
of a UR5e's factory calibration."""
_REPEATABILITY = 0.01
"""Relative change of friction between recordings at the same temperature, assumed."""
_TEMPERATURE_SLOPE = 0.035
"""Relative change of friction with temperature [1/K] (Raviola et al. 2021: viscous friction, by up
to 35 % in ten kelvin)."""
_UNKNOWN_TEMPERATURE = 0.2
"""Relative change of friction where no temperatures were recorded."""
DRIFT = 0.2
"""Relative change of friction within a recording, assumed: half of that in ten kelvin."""
_ERROR_STD: dict[str, float] = {
    "inertia": 0.03,  # of the reflected inertia
    "load": 0.01,  # of the transmitted torque
    "coulomb": 1.0,  # of the change of friction, like the next four
    "viscous": 1.0,
    "root": 1.0,
    "fast_fade": 1.0,
    "slow_fade": 1.0,
    "coulomb_drift": DRIFT,  # of friction over the recording, like the next one
    "viscous_drift": DRIFT,
    "asymmetric_viscous": _ASYMMETRY,
    "delay": 0.002,  # s
    "compliance": _COMPLIANCE,  # s^2
    "asymmetric_coulomb": _ASYMMETRY,
}
"""Standard deviations of the error terms of each joint; the last term is a constant."""
_LOADED = ("load", "delay", "compliance")
"""Error terms that depend on the payload."""
_FRICTION_CHANGES = ("coulomb", "viscous", "root", "fast_fade", "slow_fade")
_DRIFTS = ("coulomb_drift", "viscous_drift")
_JOINT_SIZE = 0.05
"""Length of a link beyond its joints [m]."""
_TENSOR_ERROR = 0.05
"""Relative error of link tensors from the robot file."""
_LEAST_MOMENT = 1e-6
"""Smallest principal moment of a tensor that counts as known [kg m^2]."""


class PayloadColumns:
    """Columns of the joint torques of one arm, and the prior of their coefficients.

    A row is [bodies 10 n, bare arm, error terms 12, drive, 1]: torques per unit inertial parameter
    of each moving body (the payload is part of the last one); torque of the bare links and rotors;
    error terms of the model; torque of the drive less friction, which the others add up to.

    Args:
        model: of the arm, n joints.
        robot: its description.
        gravity: in the base frame [3], m/s^2.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription, gravity: Array) -> None:
        self.dof = n = robot.dof
        self._dynamics = ArmDynamics(robot, Setup(gravity=gravity))
        self._joints = joints = model.joints
        self._ratio = np.array([joint.gear_ratio for joint in joints])
        self.torque_constant = np.array([joint.torque_constant for joint in joints])
        self._inertia = np.array([joint.reflected_inertia for joint in joints])
        self._friction = FrictionBank([joint.friction for joint in joints], self._ratio)
        typical = np.full((1, n), _TYPICAL_SPEED)
        friction = self._ratio * self._friction.torque(typical, np.zeros((1, n)))[0]
        self.typical_friction = np.maximum(np.abs(friction), _LEAST_FRICTION)
        """Friction at a typical speed [n], N m, joint side."""

    @property
    def bare(self) -> int:
        """Position of the bare arm's torque in a row."""
        return COUNT * self.dof

    @property
    def drive(self) -> int:
        """Position of the drive's torque."""
        return self.bare + len(_ERROR_STD)

    @property
    def one(self) -> int:
        """Position of the closing 1, whose square sum counts the samples."""
        return self.drive + 1

    @property
    def errors(self) -> list[int]:
        """Positions of the error terms; the constant one is the closing 1."""
        return [*range(self.bare + 1, self.drive), self.one]

    @property
    def width(self) -> int:
        """Length of a row, with the closing 1."""
        return self.one + 1

    def rows(self, motion: FilteredMotion, payload: Array) -> Array:
        """Columns of a motion [samples, n, width - 1], N m, without the closing 1.

        Args:
            motion: of the arm.
            payload: inertial parameters at the flange [10], for load-dependent friction.
        """
        out, links = self.fixed_rows(motion)
        transmitted = links + out[:, :, self.flange] @ payload
        out[:, :, self.loaded] = self.loaded_columns(motion, transmitted)
        return out

    @property
    def flange(self) -> slice:
        """Columns of the last body, which the payload is part of."""
        return slice(self.bare - COUNT, self.bare)

    @property
    def loaded(self) -> list[int]:
        """Positions of the columns that depend on the payload: those of _LOADED and the drive."""
        return [*(self.bare + list(_ERROR_STD).index(name) + 1 for name in _LOADED), self.drive]

    def fixed_rows(self, motion: FilteredMotion, start: float | None = None) -> tuple[Array, Array]:
        """Columns of a motion without those that depend on the payload, and its links' torque.

        Args:
            motion: of the arm.
            start: time of the recording's first motion [s]; None takes that of this one.

        Returns:
            [samples, n, width - 1], N m, zero in the columns `loaded`; and [samples, n], N m.
        """
        q, qd, qdd = motion.q, motion.qd, motion.qdd
        out = np.zeros((*q.shape, self.one))
        out[:, :, : self.bare] = self._dynamics.regressor(q, qd, qdd)
        links = out[:, :, : self.bare] @ self._dynamics.parameters()
        out[:, :, self.bare] = links + self._inertia * qdd
        scale, direction, speed = self.typical_friction, np.tanh(qd / SMOOTHING), np.abs(qd)
        elapsed = (motion.time - (motion.time[0] if start is None else start))[:, None]
        columns = {
            "inertia": self._inertia * qdd,
            "coulomb": scale * direction,
            "viscous": scale * qd,
            "root": scale * direction * np.sqrt(speed),
            "fast_fade": scale * direction * np.exp(-speed / _FADES[0]),
            "slow_fade": scale * direction * np.exp(-speed / _FADES[1]),
            "coulomb_drift": scale * direction * elapsed,
            "viscous_drift": scale * qd * elapsed,
            "asymmetric_viscous": scale * speed,
        }
        for position, name in enumerate(_ERROR_STD, start=self.bare + 1):
            if name in columns:
                out[:, :, position] = columns[name]
        return out, links

    def loaded_columns(self, motion: FilteredMotion, transmitted: Array) -> Array:
        """The columns `loaded` of a motion [samples, n, 4], N m.

        Args:
            motion: of the arm.
            transmitted: torque of links and payload [samples, n], N m, joint side.
        """
        qd, time = motion.qd, motion.time
        friction = self._ratio * self._friction.torque(qd, transmitted, motion.temperature)
        slope = np.gradient(transmitted, time, axis=0)
        columns = {
            "load": np.tanh(qd / SMOOTHING) * np.abs(transmitted),
            "delay": slope,
            "compliance": np.gradient(slope, time, axis=0),
        }
        drive = self._ratio * self.torque_constant * motion.current - friction
        return np.stack([*(columns[name] for name in _LOADED), drive], axis=2)

    def error_std(self, joint: int, friction_change: float, duration: float) -> Array:
        """Standard deviations of the error terms of a joint, in the order of `errors`.

        Args:
            joint: its index.
            friction_change: of that joint, from `friction_change`.
            duration: of the recording [s].
        """
        factors = dict.fromkeys(_FRICTION_CHANGES, friction_change)
        factors |= dict.fromkeys(_DRIFTS, 1.0 / max(duration, 1.0))
        std = np.array([value * factors.get(name, 1.0) for name, value in _ERROR_STD.items()])
        std[-1] *= self.typical_friction[joint]
        return std

    def friction_change(self, temperature: Array) -> Array:
        """Relative deviation of friction from the model's [n].

        Args:
            temperature: mean joint temperatures of the recording [n], degC; NaN if unknown.
        """
        ranges = [joint.friction.temperature_range for joint in self._joints]
        middle = np.array([np.nan if span is None else np.mean(span) for span in ranges])
        change = np.hypot(_REPEATABILITY, _TEMPERATURE_SLOPE * (temperature - middle))
        return np.where(np.isnan(change), _UNKNOWN_TEMPERATURE, change)

    @property
    def masses(self) -> Array:
        """Masses of the moving bodies [n], kg."""
        return np.array([body.mass for body in self._bodies])

    @property
    def tensor_errors(self) -> tuple[Array, Array]:
        """Prior of the links' tensors beyond those of the robot file [n], kg m^2.

        Where the robot file has none, a link may be any body between its two joints: a diagonal
        entry is about half that of a rod of its mass, with an uncertainty of the same size.

        Returns:
            mean of the diagonal entries, standard deviation of all entries.
        """
        q = np.zeros(self.dof)
        flange = self._dynamics.flange_pose(q[None])[:, :3, 3]
        places = np.concatenate([self._dynamics.joint_positions(q), flange])
        length = np.linalg.norm(np.diff(places, axis=0), axis=1) + _JOINT_SIZE
        rod = self.masses * length**2 / 12
        known = np.array([np.linalg.eigvalsh(b.inertia)[0] > _LEAST_MOMENT for b in self._bodies])
        return np.where(known, 0.0, 0.5 * rod), np.where(known, _TENSOR_ERROR, 0.5) * rod

    @property
    def _bodies(self) -> list[pin.Inertia]:
        return list(self._dynamics.bare.inertias)[1:]
