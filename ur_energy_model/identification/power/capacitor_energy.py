"""How much of what the drives give back the bus keeps for later, from what the supply gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.energy.gaps import GapRule
from ur_energy_model.energy.powers.bus_capacitor import BusCapacitor
from ur_energy_model.energy.powers.measured_powers import MeasuredPowers
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.energy_model import EnergyModel

CAPACITIES = np.concatenate([[0.0], np.geomspace(0.1, 100.0, 31)])
"""Capacities to choose from [J]: a quarter of its size between one and the next."""
TYPICAL = 3.0
"""What an arm's bus is taken to keep where recordings do not show it [J]: 10 mF charged from 48 V
to the voltage at which braking resistors switch in."""
_FACTOR = 3.0
"""One deviation of the prior, as a factor of TYPICAL."""
_NONE = 4.0
"""Squared deviations by which a bus that keeps nothing is unlikely beforehand."""
_ALIKE = 10.0
"""Samples in a row whose errors are alike and count as one."""


def with_capacitor_energy(model: EnergyModel, recordings: Sequence[Recording]) -> EnergyModel:
    """The model with the capacity that explains bus power best while and after drives give back.

    Where no drive gave back so much that it shows, the bus is taken to keep TYPICAL energy.

    Args:
        model: with everything else fitted.
        recordings: those it was fitted to.
    """
    if model.bus.kind != "physical":
        return model
    errors = np.zeros(len(CAPACITIES))
    for recording in recordings:
        if not recording.power.supply_rested:
            continue
        powers, gaps = MeasuredPowers(model), GapRule()
        stores = [BusCapacitor(float(capacity), model.bus.floor) for capacity in CAPACITIES]
        for time, speed, current, watts in recording.supply():
            steps = gaps(time).bridged
            demand = powers(steps, speed, current).demand
            errors += [np.square(store(steps, demand) - watts).sum() for store in stores]
    unlikely = np.append(_NONE, np.square(np.log(CAPACITIES[1:] / TYPICAL) / np.log(_FACTOR)))
    residual = model.bus.residual
    weight = 1.0 / (_ALIKE * residual**2) if residual > 0 else 0.0
    best = int(np.argmin(weight * errors + unlikely))
    return replace(model, bus=replace(model.bus, capacitor_energy=float(CAPACITIES[best])))
