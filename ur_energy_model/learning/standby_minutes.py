"""Standby power minute by minute, from the bus power at standstill."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.arm_state import ArmState, arm_states
from ur_energy_model.energy.session.standby_tracker import StandbyTracker
from ur_energy_model.learning.minute import MINUTE
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.telemetry.samples import Telemetry

_LEAST_STILL = 2.0
"""Settled standstill in a minute from which its standby power is stated [s]."""
_FIELDS = ("actual_qd", "actual_current", "actual_robot_voltage", "actual_robot_current")
_LONGEST_STEP = 0.5


class StandbyMinutes:
    """Mean standby power of each minute with enough standstill.

    Args:
        model: of the arm.
    """

    def __init__(self, model: EnergyModel) -> None:
        self._model = model
        self._tracker = StandbyTracker(model.bus.standby, model.sessions.standby)
        self._number: float | None = None
        self._before = 0.0

    def observe(self, window: Telemetry) -> list[tuple[float, float, float]]:
        """Use samples that follow those of the last call.

        Returns:
            controller time at the end [s], power and its standard deviation [W], of each minute
            that is complete.
        """
        if any(name not in window for name in _FIELDS) or len(window) < 2:
            return []
        out = []
        for part in time_blocks(window.time, MINUTE):
            number = float(np.floor(window.time[part.start] / MINUTE))
            if self._number is not None and number != self._number:
                out += self._finished(self._number)
            self._number = number
            self._use(window.cut(part))
        return out

    def _use(self, part: Telemetry) -> None:
        qd, current = part["actual_qd"], part["actual_current"]
        still = arm_states(part, qd) == ArmState.STANDSTILL
        unexplained = np.full(len(part), np.nan)
        bus = part.bus_power
        if bus is None:
            return
        if still.any():
            powers = self._model.joint_power(qd[still], current[still], std=False)
            unexplained[still] = bus[still] - powers.demand + powers.standby_power
        steps = np.clip(np.diff(part.time, prepend=part.time[:1]), 0.0, _LONGEST_STEP)
        self._tracker.update(part.time, steps, still, unexplained)

    def _finished(self, number: float) -> list[tuple[float, float, float]]:
        gained = self._tracker.still_seconds - self._before
        self._before = self._tracker.still_seconds
        if gained < _LEAST_STILL or self._tracker.measured is None:
            return []
        return [((number + 1) * MINUTE, self._tracker.measured, self._tracker.std)]
