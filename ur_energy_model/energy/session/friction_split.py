"""The part of measured currents that friction explains, for estimates of its scale."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.bank import FrictionBank
from ur_energy_model.typing import Array


class FrictionSplit:
    """Splits currents into friction that varies between sessions and everything else.

    Args:
        model: of the arm, n joints; friction scales are relative to its friction.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.ratio = np.array([joint.gear_ratio for joint in model.joints])
        self.constant = np.array([joint.torque_constant for joint in model.joints])
        self.inertia = np.array([joint.reflected_inertia for joint in model.joints])
        self._whole = FrictionBank([joint.friction for joint in model.joints], self.ratio)
        fixed = [joint.with_friction_scaled(0.0).friction for joint in model.joints]
        self._fixed = FrictionBank(fixed, self.ratio)

    def __call__(
        self, qd: Array, load: Array, current: Array, temperature: Array | None
    ) -> tuple[Array, Array]:
        """Current of the varying friction at scale 1, and the current left for it.

        Args:
            qd: joint velocities [samples, n], rad/s.
            load: torque of links, payload and rotors, joint side [samples, n], N m.
            current: measured [samples, n], A.
            temperature: of the joints [n] or [samples, n], degC, NaN where unknown; or None.

        Returns:
            both [samples, n], A.
        """
        whole = self._whole.torque(qd, load, temperature)
        fixed = self._fixed.torque(qd, load, temperature)
        left = current - (load / self.ratio + fixed) / self.constant
        return (whole - fixed) / self.constant, left
