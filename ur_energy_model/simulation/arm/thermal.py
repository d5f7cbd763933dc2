"""Temperatures of the joints: losses heat them, ambient cools them."""

from __future__ import annotations

import numpy as np

from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.typing import Array


class ThermalState:
    """One heat capacity a joint.

    Args:
        parameters: of the arm, n joints.
        ambient: temperature around it [degC].
        warmth: of the joints at the start: 0 for the ambient temperature, 1 for that of an arm
            switched on long ago and not moved, in proportion between and beyond.

    Attributes:
        temperature: [n], degC.
    """

    def __init__(self, parameters: ArmParameters, ambient: float, warmth: float = 1.0) -> None:
        self._parameters = parameters
        self.ambient = ambient
        self.temperature = self.resting(warmth)

    def resting(self, warmth: float = 1.0) -> Array:
        """Temperatures [n], degC, to which a powered arm at rest settles.

        Args:
            warmth: share of the way there from the ambient temperature.
        """
        p = self._parameters
        return np.asarray(self.ambient + warmth * p.thermal_resistance * p.standby_heat)

    def advance(self, dt: float, losses: Array, powered: bool) -> None:
        """Heat by losses [n], W, for `dt` s; electronics add theirs while powered."""
        p = self._parameters
        heat = losses + p.standby_heat if powered else losses
        cooling = (self.temperature - self.ambient) / p.thermal_resistance
        self.temperature = self.temperature + dt * (heat - cooling) / p.thermal_capacity
