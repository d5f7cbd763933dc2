"""Energy that the bus capacitor holds, identified from the power at the supply."""

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
"""Candidate energies [J], in steps of a quarter."""
TYPICAL = 3.0
"""Energy assumed where the recordings do not determine it [J]: 10 mF charged from 48 V to the
voltage at which the braking resistor switches on."""
_FACTOR = 3.0
"""One standard deviation of the prior, as a factor of TYPICAL."""
_ZERO_PENALTY = 4.0
"""Squared standard deviations between the prior mean and a bus without capacitor."""
_CORRELATED = 10.0
"""Consecutive samples with correlated errors that count as one."""


def with_capacitor_energy(model: EnergyModel, recordings: Sequence[Recording]) -> EnergyModel:
    """The model with the capacitor energy that best explains bus power during regeneration.

    Without sufficient regeneration in the recordings the prior, TYPICAL, applies.

    Args:
        model: all other parameters identified.
        recordings: those it was identified from.
    """
    if model.bus.kind != "physical":
        return model
    errors = np.zeros(len(CAPACITIES))
    for recording in recordings:
        if not recording.power.supply_rested:
            continue
        powers, gaps = MeasuredPowers(model), GapRule()
        buses = [BusCapacitor(float(capacity), model.bus.floor) for capacity in CAPACITIES]
        for time, speed, current, watts in recording.supply():
            steps = gaps(time).bridged
            demand = powers(steps, speed, current).demand
            errors += [np.square(bus(steps, demand) - watts).sum() for bus in buses]
    deviations = np.log(CAPACITIES[1:] / TYPICAL) / np.log(_FACTOR)
    penalty = np.append(_ZERO_PENALTY, np.square(deviations))
    residual = model.bus.residual
    weight = 1.0 / (_CORRELATED * residual**2) if residual > 0 else 0.0
    best = int(np.argmin(weight * errors + penalty))
    return replace(model, bus=replace(model.bus, capacitor_energy=float(CAPACITIES[best])))
