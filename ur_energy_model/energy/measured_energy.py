# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The measured energy of a whole recording, between any two of its samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.found_cycles import FoundCycles
from ur_energy_model.energy.meter import StepRule
from ur_energy_model.energy.supply import BusMeter
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices


@dataclass(frozen=True)
class MeasuredEnergy:
    """Measured energy of a recording, by the rules of every other total of this package.

    Voltage times current is integrated by trapezoids on the controller's clock; across an
    outage, and where either is not finite, nothing is known.

    Attributes:
        energy: up to each sample [samples], J.
        unknown: number of steps up to each sample whose energy is not measured [samples].
    """

    energy: Array
    unknown: Indices

    @classmethod
    def of(cls, telemetry: Telemetry) -> MeasuredEnergy:
        """The measured energy of all samples of a recording."""
        steps = StepRule()(
            telemetry.time, telemetry.stamp, telemetry.gaps, telemetry.info.rate
        )
        modes = telemetry.columns.get("robot_mode")
        released = np.ones(len(telemetry), dtype=bool)
        if modes is not None:
            released = np.isin(modes, BRAKES_RELEASED) | np.isnan(modes)
        bus = BusMeter().step(telemetry, steps.bridged, released)[1]
        mean = 0.5 * (bus.watts[1:] + bus.watts[:-1])
        known = (
            bus.measured[1:]
            & bus.measured[:-1]
            & (steps.lost[1:] == 0.0)
            & ~steps.back[1:]
        )
        energy = np.cumsum(mean * steps.bridged[1:])
        return cls(
            np.concatenate(([0.0], energy)),
            np.concatenate(([0], np.cumsum(~known))),
        )

    def between(self, first: Indices, last: Indices) -> Array:
        """Energy from samples to later ones [...], J; NaN where not all of it is measured."""
        energy = self.energy[last] - self.energy[first]
        return np.where(self.unknown[last] == self.unknown[first], energy, np.nan)

    def of_cycles(self, found: FoundCycles) -> Array:
        """Energy of each complete cycle [cycles], J; NaN where not all of it is measured."""
        firsts = np.array([moves[0].first for moves in found.moves], dtype=np.intp)
        return self.between(firsts, np.array(found.ends, dtype=np.intp))
