"""FrictionCurve: friction over speed with its standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class FrictionCurve:
    """Friction of one unloaded joint, joint side.

    Attributes:
        speed: [k], rad/s.
        torque: [k], N m.
        std_this_session: standard deviation in the fitted sessions [k], N m.
        std: standard deviation in another session [k], N m.
    """

    speed: Array
    torque: Array
    std_this_session: Array
    std: Array


def friction_curve(joint: JointModel, spread: float, speed: Array) -> FrictionCurve:
    """Friction of a joint over speed [k], rad/s, without load.

    Args:
        joint: the joint; its current_covariance gives the deviation in the fitted sessions.
        spread: relative standard deviation of friction in another session.
        speed: joint side [k], rad/s.
    """
    ratio = np.array([joint.gear_ratio])
    bank = FrictionBank([joint.friction], ratio)
    terms = bank.regressors(speed[:, None], np.zeros((len(speed), 1)))[0]
    values = joint.friction.values
    torque = terms @ values
    # Torque is terms @ (c[1:] / c[0]) with the coefficients c of current_covariance.
    slopes = joint.torque_constant * np.column_stack([-torque, terms])
    own = np.linalg.norm(slopes @ joint.current_root, axis=1)
    varying = terms @ np.where(scaled_parameters(joint.friction.law.parameters), values, 0.0)
    return FrictionCurve(
        speed=speed,
        torque=joint.gear_ratio * torque,
        std_this_session=joint.gear_ratio * own,
        std=joint.gear_ratio * np.hypot(own, spread * varying),
    )
