# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The power stage: the power model over several sessions, and the energy of the bus capacitor.

Sessions share the motors' constants and differ in standby power. The capacitor of the bus
stores the energy that braking joints give back; the arm uses this energy before it takes power
from the supply again (energy/supply.py). The energy that the capacitor can store is searched
on a grid, by the least error of the power at the supply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.energy.meter import StepRule
from ur_energy_model.energy.motor_powers import MeasuredPowers
from ur_energy_model.energy.supply import BusCapacitor
from ur_energy_model.identification.power_fit import PowerFit, PowerFitResult
from ur_energy_model.identification.power_structures import PHYSICAL, JointPowerEvidence
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.identification.torque_constants import (
    JointEstimate,
    with_torque_constant,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.typing import Array, Mask

_DEVIATION_SHARE = 0.8
"""A torque constant is updated where bus power lowers its standard deviation at least to this
share."""
_ROUNDS = 4  # number of rounds in which power model and standby powers are fitted in turn
CAPACITIES = np.concatenate([[0.0], np.geomspace(0.1, 100.0, 31)])
"""Candidates of the energy of the capacitor [J], each a quarter larger than the one before."""
TYPICAL = 3.0
"""Energy assumed where the recordings do not determine it [J]: 10 mF charged from 48 V to
the voltage at which the braking resistor switches on."""
_FACTOR = 3.0  # factor on TYPICAL that is one standard deviation of the prior
_ZERO_PENALTY = 4.0
"""Penalty of a bus without a capacitor, whose logarithm is not finite: two standard deviations of
the prior, squared."""
_CORRELATED = 10.0
"""Number of consecutive samples that count as one: their errors correlate."""


def fit_sessions(
    powers: Sequence[PowerFit],
    kind: str,
    joints: tuple[JointEstimate, ...],
    *,
    stated: Mask | None = None,
    meter: JointPowerEvidence | None = None,
) -> tuple[tuple[JointEstimate, ...], PowerFitResult, Array]:
    """The power stage over several sessions, each with a separate standby power.

    Args:
        powers: accumulated power data of each session.
        kind: kind of the power model.
        joints: results of the current regression, with the torque constants.
        stated: joints [n] whose torque constants the controller states; None for none.
        meter: converted powers by meters at the joints, over all sessions; None without
            meters.

    Returns:
        The joints, with torque constants that bus power determines better; the power fit,
        with the mean standby power of the sessions; the standby power of each session
        with bus power [W].
    """
    constant = np.array([joint.torque_constant for joint in joints])
    std = np.array([joint.torque_constant_std for joint in joints])
    known = [power for power in powers if power.samples]
    shifts = np.zeros(len(known))  # standby power of each session less the mean [W]

    def merged() -> PowerFit:
        """Data of all sessions, shifted to a common standby power."""
        total = PowerFit(powers[0].robot, powers[0].known)
        for power in powers:
            if power not in known:
                total.merge(power)
        for power, shift in zip(known, shifts.tolist(), strict=True):
            total.merge(power, shift)
        return total

    everything = merged()
    result = everything.fit(kind, constant, std, stated=stated, meter=meter)
    for _ in range(_ROUNDS if len(known) > 1 else 0):
        shifts = np.array([power.standby_shift(result) for power in known])
        shifts -= shifts.mean()
        result = merged().fit(kind, constant, std, stated=stated, meter=meter)
    standby = result.bus.standby + shifts
    if kind != PHYSICAL or result.source != "bus_power":
        return joints, result, standby
    # Torque constants that bus power determines clearly better than currents do.
    updated = list(joints)
    omitted = everything.conversion_error(result.torque_constant)
    for j, joint in enumerate(joints):
        value = float(result.torque_constant[j])
        value_std = float(result.torque_constant_std[j])
        whole = float(np.hypot(value_std, omitted[j] * value))
        if 0.0 < value_std < _DEVIATION_SHARE * std[j]:
            updated[j] = with_torque_constant(
                joint, value, whole, "current and bus_power"
            )
    return tuple(updated), result, standby


def with_capacitor_energy(
    model: EnergyModel, recordings: Sequence[SessionData]
) -> EnergyModel:
    """The model with the capacitor energy that best explains bus power during regeneration.

    Without sufficient regeneration in the recordings the prior, TYPICAL, applies.

    Args:
        model: all other parameters identified.
        recordings: recordings from which the model was identified.
    """
    if model.bus.kind != PHYSICAL:
        return model
    fit = CapacitorFit(model)
    for recording in recordings:
        if recording.power.supply_rested:
            fit.start_recording()
            for block in recording.supply():
                fit.accumulate(*block)
    return with_capacitor(model, fit.errors)


class CapacitorFit:
    """Accumulates the errors of bus power for every candidate of the capacitor's energy.

    Args:
        model: model whose other parameters are identified.

    Attributes:
        model: model as given.
        errors: sums of squared errors by candidate, as CAPACITIES [candidates], W^2.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self.errors = np.zeros(len(CAPACITIES))
        self.start_recording()

    def start_recording(self) -> None:
        """Start another recording, with an empty capacitor."""
        floor = self.model.bus.floor
        self._gaps = StepRule()
        self._powers = MeasuredPowers(self.model)
        self._buses = [BusCapacitor(float(capacity), floor) for capacity in CAPACITIES]

    def accumulate(self, time: Array, speed: Array, current: Array, watts: Array) -> None:
        """Add consecutive samples, see `Recording.supply`.

        Args:
            time: controller timestamps [samples], s.
            speed: speeds of the joints [samples, n], rad/s.
            current: currents of the motors [samples, n], A.
            watts: power at the supply [samples], W.
        """
        steps = self._gaps(time).bridged
        motion = self._powers.motion(steps, speed, current)
        demand = self._powers.powers(motion).demand + self.model.bus.standby
        for k, bus in enumerate(self._buses):
            self.errors[k] += np.square(bus(steps, demand) - watts).sum()


def with_capacitor(model: EnergyModel, errors: Array) -> EnergyModel:
    """The model with the most probable energy of the capacitor.

    Args:
        model: model whose other parameters are identified.
        errors: sums of squared errors by candidate [candidates], W^2.
    """
    deviations = np.log(CAPACITIES[1:] / TYPICAL) / np.log(_FACTOR)
    penalty = np.append(_ZERO_PENALTY, np.square(deviations))
    residual = model.bus.residual
    weight = 1.0 / (_CORRELATED * residual**2) if residual > 0 else 0.0
    best = int(np.argmin(weight * errors + penalty))
    return replace(
        model, bus=replace(model.bus, capacitor_energy=float(CAPACITIES[best]))
    )
