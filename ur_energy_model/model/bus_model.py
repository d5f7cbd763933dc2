"""BusModel: the power model of the whole arm, from its motors to the supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ur_energy_model.typing import Array


class BusErrors(NamedTuple):
    """Parameter changes of k independent errors, one standard deviation each, for n joints.

    Attributes:
        standby: [k], W.
        resistance: of the windings [k, n], ohm.
        back_emf: constants [k, n], V s/rad.
        driver: losses [k, n], W/A.
    """

    standby: Array
    resistance: Array
    back_emf: Array
    driver: Array


@dataclass(frozen=True)
class BusModel:
    """From the motors to the supply, for n joints.

    Attributes:
        kind: "physical", "ecbot" or "catalogue".
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: of the windings [n], H (EcBot's L I dI/dt; zero in the physical model).
        capacitor_energy: largest regenerated energy that the bus capacitance stores [J]
            (energy/powers/bus_capacitor.py).
        floor: lowest power that the supply delivers [W]; it cannot take power back.
        std: standard deviations of "standby" and of "driver", one for all joints.
        errors: see `split_errors` [k, 1 + 3 n].
        mode_power: mean recorded power in robot modes other than running, by mode name [W].
        residual: RMS of measured minus modelled power [W]; NaN without a recorded bus power.
        source: "bus_power" or "prior".
        reason: the terms of the model, and why they were chosen.
    """

    kind: str
    standby: float
    driver: Array
    inductance: Array
    capacitor_energy: float = 0.0
    floor: float = 0.0
    std: Mapping[str, float] = field(default_factory=dict)
    errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mode_power: Mapping[str, float] = field(default_factory=dict)
    residual: float = float("nan")
    source: str = "prior"
    reason: str = ""

    def torque_constant_errors(self, back_emf: Array) -> Array:
        """Relative errors of the torque constants that `errors` contains [k, n].

        Zeros where bus power determined the back-EMF constants; else they follow from the torque
        constants and have their errors.

        Args:
            back_emf: constants [n], V s/rad.
        """
        errors = self.split_errors(len(back_emf)).back_emf
        if self.source != "prior":
            return np.zeros_like(errors)
        return np.divide(errors, back_emf, out=np.zeros_like(errors), where=back_emf > 0)

    def split_errors(self, n: int) -> BusErrors:
        """Columns of `errors` by parameter; without rows if there are no errors.

        Args:
            n: number of joints.
        """
        errors = self.errors if self.errors.size else np.zeros((0, 1 + 3 * n))
        return BusErrors(errors[:, 0], *np.split(errors[:, 1:], 3, axis=1))
