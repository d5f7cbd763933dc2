"""PowerFitResult: what the power stage finds."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PowerFitResult:
    """Result of the power stage.

    Attributes:
        bus: model of the supply.
        winding_resistance, back_emf_constant: effective constants [n], ohm and V s/rad.
        resistance_std, back_emf_std: [n].
        torque_constant, torque_constant_std: from currents and bus power together [n], N m/A.
        current_delay: of the currents behind the speeds [s].
        source: of resistances and back-EMF constants: "bus_power", "prior" or "catalogue".
        comparison: held-out RMSE by structure [W].
        factors: estimate and standard deviation of each parameter, by name.
        coefficients: of the power columns [4 n + 3].
    """

    bus: BusModel
    winding_resistance: Array
    back_emf_constant: Array
    resistance_std: Array
    back_emf_std: Array
    torque_constant: Array
    torque_constant_std: Array
    current_delay: float
    source: str
    comparison: dict[str, float]
    factors: dict[str, tuple[float, float]]
    coefficients: Array
