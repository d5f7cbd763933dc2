"""Power at the supply, which only delivers power, from the demand of the arm.

Regenerated power feeds the rest of the arm first, then charges the bus capacitor up to the voltage
at which a braking resistor dissipates the surplus (Heredia et al.: power at the supply is never
negative). While the capacitor is above the supply's voltage it feeds the arm and the supply rests.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array


class BusCapacitor:
    """Computes the power at the supply, batch by batch.

    Args:
        capacity: energy that the capacitor holds above the supply's voltage [J]; with 0 all
            regenerated energy is dissipated.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held at present [J].
    """

    def __init__(self, capacity: float, floor: float = 0.0) -> None:
        self.capacity = capacity
        self.floor = floor
        self.stored = 0.0

    def __call__(self, steps: Array, demand: Array) -> Array:
        """Power at the supply [samples], W.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s; a sample's demand
                holds since the one before.
            demand: of the whole arm, negative where it regenerates [samples], W.
        """
        out = np.maximum(demand, self.floor)
        if self.capacity <= 0 or not len(demand):
            return out
        below = np.flatnonzero(demand < self.floor)
        k = 0 if self.stored > 0 else int(below[0]) if len(below) else len(demand)
        if k == len(demand):
            return out
        # Numbers of Python are several times faster than elements of arrays.
        each_step, each_demand = steps.tolist(), demand.tolist()
        while k < len(demand):
            k = self._discharge(k, each_step, each_demand, out)
            later = below[np.searchsorted(below, k) :]
            k = int(later[0]) if len(later) else len(demand)
        return out

    def _discharge(self, k: int, steps: list[float], demand: list[float], out: Array) -> int:
        """Discharge the capacitor from sample k on; returns the sample after it is empty.

        Writes the power at the supply into `out`.
        """
        floor, capacity, stored = self.floor, self.capacity, self.stored
        for i in range(k, len(steps)):
            step = steps[i]
            if step == 0.0:  # a gap: discharged by now
                out[k:i] = floor
                self.stored = 0.0
                return i + 1
            stored -= step * (demand[i] - floor)
            if stored <= 0.0:
                out[k:i] = floor
                out[i] = floor - stored / step  # the supply delivers the rest
                self.stored = 0.0
                return i + 1
            if stored > capacity:
                stored = capacity
        out[k:] = floor
        self.stored = stored
        return len(steps)
