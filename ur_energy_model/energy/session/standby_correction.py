"""Correction of the energy counted before the session's standby power was known."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.power_table import EnergyCorrection
from ur_energy_model.energy.session.standby_tracker import Standby
from ur_energy_model.typing import Array, Indices


class StandbyCorrection:
    """Corrects energies that were counted with the model's standby power, once.

    Args:
        channels: of the correction.
        nominal: the model's standby power [W].
        spread: its standard deviation between sessions [W].
    """

    def __init__(self, channels: Channels, nominal: float, spread: float) -> None:
        self._channels, self._nominal, self._spread = channels, nominal, spread
        self._seconds = np.zeros(len(ArmState))
        self._done = False

    def __call__(self, steps: Array, states: Indices, standby: Standby) -> EnergyCorrection | None:
        """The correction, when the session's standby becomes known; else None.

        Args:
            steps: bridged steps to the samples [samples], s.
            states: ArmState of the samples [samples].
            standby: of the samples.
        """
        if self._done:
            return None
        anchor = standby.anchor
        self._seconds += np.bincount(states[:anchor], steps[:anchor], len(ArmState))
        if anchor is None:
            return None
        self._done = True
        columns, seconds = self._channels, self._seconds
        seconds[: ArmState.STANDSTILL] = 0.0  # brakes engaged: counted without standby power
        shift = float(standby.power[anchor]) - self._nominal
        energy = np.zeros(len(columns))
        energy[columns.arm["standby"]] = energy[columns.arm["total"]] = shift * seconds.sum()
        energy[columns.state_energy : columns.state_time] = shift * seconds
        deviation = np.zeros(len(columns))
        deviation[columns.shared_errors] = standby.errors[anchor] * seconds.sum()
        deviation[-1] = (float(standby.std[anchor]) - self._spread) * seconds.sum()
        deducted_from = (columns.arm["total"], columns.arm["standby"])
        return EnergyCorrection(anchor, deducted_from, energy, deviation)
