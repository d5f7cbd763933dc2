"""The Coulomb-viscous law closest to a friction law of any form."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.model.friction.law import Friction


def coulomb_viscous_fit(friction: Friction, gear_ratio: float, fastest: float) -> dict[str, float]:
    """Coulomb and viscous friction closest to a law of any form, without load (least squares).

    Args:
        friction: of one joint.
        gear_ratio: motor turns per joint turn.
        fastest: the line is fitted from 5 to 100 % of this speed, joint side [rad/s].

    Returns:
        "coulomb" [N m] and "viscous" [N m s/rad], motor side.
    """
    speed = np.linspace(0.05 * fastest, fastest, 40)[:, None]
    bank = FrictionBank([friction], np.array([gear_ratio]))
    torque = bank.torque(speed, np.zeros_like(speed))[:, 0]
    viscous, coulomb = np.polyfit(gear_ratio * speed[:, 0], torque, 1)
    return {"coulomb": float(coulomb), "viscous": float(viscous)}
