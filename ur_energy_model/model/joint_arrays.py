"""The constants of all joints as arrays, which the equations of a model work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class JointArrays:
    """Constants of n joints; units and sides as in `JointModel`.

    Attributes:
        gear_ratio, reflected_inertia, torque_constant, winding_resistance, back_emf_constant: [n].
        presliding: travel within which Coulomb friction turns around [n], rad; 0 if unknown.
        friction: of all joints.
    """

    gear_ratio: Array
    reflected_inertia: Array
    torque_constant: Array
    winding_resistance: Array
    back_emf_constant: Array
    presliding: Array
    friction: FrictionBank

    @classmethod
    def from_joints(cls, joints: Sequence[JointModel]) -> JointArrays:
        """Collect the constants of joint models."""
        gear_ratio = np.array([joint.gear_ratio for joint in joints])
        return cls(
            gear_ratio=gear_ratio,
            reflected_inertia=np.array([joint.reflected_inertia for joint in joints]),
            torque_constant=np.array([joint.torque_constant for joint in joints]),
            winding_resistance=np.array([joint.winding_resistance for joint in joints]),
            back_emf_constant=np.array([joint.back_emf_constant for joint in joints]),
            presliding=np.array([joint.friction.presliding for joint in joints]),
            friction=FrictionBank([joint.friction for joint in joints], gear_ratio),
        )
