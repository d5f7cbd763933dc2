"""How much of what the drives give back the bus keeps for later, from what the supply gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.gaps import GapRule
from ur_energy_model.energy.measured_powers import MeasuredPowers
from ur_energy_model.energy.supply import SupplyStore
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.energy_model import EnergyModel

Array = NDArray[np.float64]

CAPACITIES = np.concatenate([[0.0], np.geomspace(0.1, 100.0, 31)])
"""Capacities to choose from [J]: a quarter of its size between one and the next."""
EVIDENCE = 25.0
"""Squared error that a store must save, in squared residuals: as much as five deviations."""


def with_storage(model: EnergyModel, recordings: Sequence[Recording]) -> EnergyModel:
    """The model with the capacity that explains bus power best while and after drives give back.

    All that is given back counts as burned where the recordings do not show otherwise.

    Args:
        model: with everything else fitted.
        recordings: those it was fitted to.
    """
    recordings = [recording for recording in recordings if recording.power.rests]
    if not recordings or model.bus.kind != "physical":
        return model
    errors = np.zeros(len(CAPACITIES))
    for recording in recordings:
        powers, gaps = MeasuredPowers(model), GapRule()
        stores = [SupplyStore(float(capacity), model.bus.floor) for capacity in CAPACITIES]
        for time, speed, current, watts in recording.supply():
            steps = gaps(time).bridged
            demand = powers(steps, speed, current).demand
            errors += [np.square(store(steps, demand) - watts).sum() for store in stores]
    best = int(np.argmin(errors))
    if errors[0] - errors[best] < EVIDENCE * model.bus.residual**2:
        return model
    return replace(model, bus=replace(model.bus, storage=float(CAPACITIES[best])))
