"""The power model of the whole arm at the supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class BusModel:
    """From motors to the supply.

    Attributes:
        kind: "physical" or "ecbot".
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: of the windings [n], H (EcBot's L I dI/dt; zero in the physical model).
        storage: energy given back that the bus keeps for later [J] (supply.py).
        floor: lowest power the supply can show [W]; it cannot take power back.
        std: standard deviations of "standby" and, in common, "driver".
        errors: independent parameter errors of one standard deviation each [k, 1 + 3 n]: changes
            of standby, winding resistances, back-EMF constants and driver losses that go together.
        mode_power: mean power in robot modes other than running, where recorded, by mode name [W].
        residual: RMS of measured minus modelled power [W], NaN where no bus power was recorded.
        source: "bus_power" or "prior".
        reason: which terms entered, and why.
    """

    kind: str
    standby: float
    driver: Array
    inductance: Array
    storage: float = 0.0
    floor: float = 0.0
    std: Mapping[str, float] = field(default_factory=dict)
    errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mode_power: Mapping[str, float] = field(default_factory=dict)
    residual: float = float("nan")
    source: str = "prior"
    reason: str = ""
