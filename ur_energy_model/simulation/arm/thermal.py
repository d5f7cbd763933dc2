"""Joint temperatures: heating by losses, cooling to ambient."""

from __future__ import annotations

import numpy as np

from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.typing import Array


class ThermalState:
    """First-order thermal model with one heat capacity per joint.

    Args:
        parameters: of the arm, n joints.
        ambient: ambient temperature [degC].
        warmth: initial temperature: 0 ambient, 1 settled while powered at rest, linear between
            and beyond.

    Attributes:
        temperature: [n], degC.
    """

    def __init__(self, parameters: ArmParameters, ambient: float, warmth: float = 1.0) -> None:
        self._parameters = parameters
        self.ambient = ambient
        self.temperature = self.resting(warmth)

    def resting(self, warmth: float = 1.0) -> Array:
        """Temperatures [n], degC, at which a powered arm at rest settles.

        Args:
            warmth: factor on the difference to ambient.
        """
        p = self._parameters
        return np.asarray(self.ambient + warmth * p.thermal_resistance * p.standby_heat)

    def advance(self, dt: float, losses: Array, powered: bool) -> None:
        """Heat by losses [n], W, for `dt` s; electronics add heat while powered."""
        p = self._parameters
        heat = losses + p.standby_heat if powered else losses
        cooling = (self.temperature - self.ambient) / p.thermal_resistance
        self.temperature = self.temperature + dt * (heat - cooling) / p.thermal_capacity
