"""What the motor currents of a loaded arm are made of, and how far each part of it is known.

At every joint, in torques of the joint side,

    k_t N I - friction = gain (links + payload) + what the model leaves out.

What is left out is small, but friction and inertia of an arm are many times what a light payload
adds, so it is written down and estimated along with the payload, held by what is known of it:

- friction that changes from one recording to the next: Raviola et al. 2021 find viscous friction
  lower by a third after ten kelvin of warming up;
- friction that grows with the torque that passes the gear. The rotor sits before the gear, so
  that torque is the links' and the payload's, without the reflected inertia's;
- friction that is not the same forwards and backwards: factory calibrations of UR5e joints differ
  by a few percent. This is even in the speed, as weight is, and would pass for it;
- compliance: a gear that twists by torque/K turns its rotor faster, which takes J/K times the
  torque's second derivative; rotors on their gears' springs resonate from about 20 Hz on
  (stiffness by the Harmonic Drive catalogue);
- a delay between currents and motion, links that are bodies where the controller computes with
  point masses, and rotors that are not quite the controller's.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.friction.terms import SMOOTHING
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array

BODY = 10
"""Inertial parameters of a body: mass, first moments, tensor about its frame's origin."""
STATIC = 4
"""Those of them that weight shows: mass and first moments."""

_TYPICAL_SPEED = 0.5
"""Joint speed whose friction is the scale of friction's changes [rad/s]."""
_LEAST_FRICTION = 0.1
"""Smallest such scale [N m]."""
_FADES = (0.1, 0.5)
"""Speeds over which low-speed friction fades [rad/s]."""
_COMPLIANCE = (2 * np.pi * 20.0) ** -2
"""Rotor inertia over gear stiffness at a resonance of 20 Hz [s^2]."""
_UNEVEN = 0.016
"""Half the difference of friction between both ways, RMS over the joints and speeds of a UR5e's
factory calibration."""
_REPEATABLE = 0.01
"""Change of friction from one recording to the next at the same temperature, assumed."""
_WARMING = 0.035
"""Change of friction with temperature [1/K] (Raviola et al. 2021: viscous friction, by up to 35 %
in ten kelvin)."""
_UNKNOWN_WARMTH = 0.2
"""Change of friction where no temperatures were recorded."""
_OWN: dict[str, float] = {
    "inertia": 0.03,  # of the reflected inertia
    "load": 0.01,  # of the transmitted torque
    "coulomb": 1.0,  # of the change of friction, as the next four
    "viscous": 1.0,
    "root": 1.0,
    "fast_fade": 1.0,
    "slow_fade": 1.0,
    "uneven_viscous": _UNEVEN,
    "delay": 0.002,  # s
    "compliance": _COMPLIANCE,  # s^2
    "uneven": _UNEVEN,
}
"""Standard deviations of what the model leaves out at each joint; the last one is a constant."""
_CHANGING = ("coulomb", "viscous", "root", "fast_fade", "slow_fade")
_JOINT_SIZE = 0.05
"""What a link reaches beyond its joints [m]."""
_TENSOR_ERROR = 0.05
"""Relative error of link tensors where the robot file has them."""
_POSSIBLE = 1e-6
"""Smallest principal moment of a tensor that says anything [kg m^2]."""


class PayloadColumns:
    """Columns of the joint torques of one arm, and what is believed of their coefficients.

    A row is [bodies 10 n, bare, own 10, drive, 1]: torques per unit inertial parameter of each
    moving body, the payload being part of the last one; torque of the bare links and rotors; what
    the model leaves out; and the drives' torque less friction, which the others make up.

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
        self._scale = np.maximum(np.abs(friction), _LEAST_FRICTION)

    @property
    def bare(self) -> int:
        """Place of the bare arm's torque in a row."""
        return BODY * self.dof

    @property
    def drive(self) -> int:
        """Place of the drives' torque in a row."""
        return self.bare + len(_OWN)

    @property
    def own(self) -> list[int]:
        """Places of what the model leaves out."""
        return [*range(self.bare + 1, self.drive), self.drive + 1]

    @property
    def width(self) -> int:
        """Length of a row with its closing 1."""
        return self.drive + 2

    def rows(self, motion: FilteredMotion, payload: Array) -> Array:
        """Columns [samples, n, width - 1] of a motion, without the closing 1.

        Args:
            motion: of the arm.
            payload: its ten parameters about the flange, for friction that depends on load.
        """
        q, qd, qdd = motion.q, motion.qd, motion.qdd
        bodies = self._dynamics.regressor(q, qd, qdd)
        links = self._dynamics.inverse_dynamics(q, qd, qdd)
        transmitted = links + bodies[:, :, -BODY:] @ payload
        friction = self._ratio * self._friction.torque(qd, transmitted, motion.temperature)
        drive = self._ratio * self.torque_constant * motion.current - friction
        rest = np.stack(
            [links + self._inertia * qdd, *self._left_out(motion, transmitted), drive], axis=2
        )
        return np.concatenate([bodies, rest], axis=2)

    def _left_out(self, motion: FilteredMotion, transmitted: Array) -> list[Array]:
        """Columns of `_OWN` but for its constant [samples, n] each."""
        qd, scale = motion.qd, self._scale
        way, pace = np.tanh(qd / SMOOTHING), np.abs(qd)
        slope = np.gradient(transmitted, motion.time, axis=0)
        columns = {
            "inertia": self._inertia * motion.qdd,
            "load": way * np.abs(transmitted),
            "coulomb": scale * way,
            "viscous": scale * qd,
            "root": scale * way * np.sqrt(pace),
            "fast_fade": scale * way * np.exp(-pace / _FADES[0]),
            "slow_fade": scale * way * np.exp(-pace / _FADES[1]),
            "uneven_viscous": scale * pace,
            "delay": slope,
            "compliance": np.gradient(slope, motion.time, axis=0),
        }
        return [columns[name] for name in _OWN if name in columns]

    def own_std(self, joint: int, friction_change: float) -> Array:
        """Standard deviations of what the model leaves out at a joint, in the order of `own`.

        Args:
            joint: which one.
            friction_change: of that joint, see `friction_change`.
        """
        std = np.array(
            [
                value * (friction_change if name in _CHANGING else 1.0)
                for name, value in _OWN.items()
            ]
        )
        std[-1] *= self._scale[joint]
        return std

    def friction_change(self, temperature: Array) -> Array:
        """How much friction may differ from the model's [n], as a share of it.

        Args:
            temperature: mean joint temperatures of the recording [n], degC; NaN if unknown.
        """
        ranges = [joint.friction.temperature_range for joint in self._joints]
        middle = np.array([np.nan if span is None else np.mean(span) for span in ranges])
        change = np.hypot(_REPEATABLE, _WARMING * (temperature - middle))
        return np.where(np.isnan(change), _UNKNOWN_WARMTH, change)

    @property
    def typical_friction(self) -> Array:
        """Friction at a typical speed [n], N m, joint side."""
        return np.asarray(self._scale)

    @property
    def masses(self) -> Array:
        """Masses of the moving bodies [n], kg."""
        return np.array([body.mass for body in self._bodies])

    @property
    def tensor_errors(self) -> tuple[Array, Array]:
        """What the links' tensors have on the diagonal beyond the robot file's, and the standard
        deviation of that and of the other entries [n], kg m^2.

        Where the robot file has no tensors, a link may be any body between its two joints: about
        a diagonal entry of half a rod's of its mass, as uncertain as it is large.
        """  # noqa: D205
        q = np.zeros(self.dof)
        flange = self._dynamics.flange_pose(q[None])[:, :3, 3]
        places = np.concatenate([self._dynamics.joint_positions(q), flange])
        length = np.linalg.norm(np.diff(places, axis=0), axis=1) + _JOINT_SIZE
        rod = self.masses * length**2 / 12
        known = np.array([np.linalg.eigvalsh(b.inertia)[0] > _POSSIBLE for b in self._bodies])
        return np.where(known, 0.0, 0.5 * rod), np.where(known, _TENSOR_ERROR, 0.5) * rod

    @property
    def _bodies(self) -> list[pin.Inertia]:
        return list(self._dynamics.bare.inertias)[1:]
