"""Errors of the power and energy at the supply.

RMSE, RMSE in percent of the range, R2 and energy error: Heredia et al., EcBot, eq. 22-26.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.identification.evaluation.error_statistics import (
    ErrorStatistics,
    finite_or_none,
)
from ur_energy_model.identification.evaluation.metrics import Statistics

SHORTEST_STANDSTILL = 0.5
"""Least standstill that determines the power at standstill [s]."""
LEAST_MOTION_POWER = 1.0
"""Least mean power above standstill that exceeds a drift of standby [W]."""


class PowerStatistics:
    """Errors of the power and energy at the supply while brakes are released.

    The energy of motion is evaluated separately: energy above the power at standstill, over the
    samples at which the arm moves. Most of an arm's energy is standby, so an error of one percent
    of the total says little about the motors.

    Args:
        channels: layout of the tables.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._errors = ErrorStatistics(1)
        self._low, self._high = np.inf, -np.inf
        self._seconds, self._measured, self._model = (np.zeros(len(ArmState)) for _ in range(3))

    def accumulate(self, table: PowerTable) -> None:
        """Accumulate the calculator's powers; tables without bus power are ignored."""
        use = table.states >= ArmState.STANDSTILL
        if not table.bus_measured or not use.any():
            return
        arm = self._channels.arm
        measured, model = (table.power[use, arm[name]] for name in ("bus", "total"))
        steps, states = table.steps.bridged[use], table.states[use]
        self._errors.accumulate(measured[:, None], model[:, None])
        count = len(ArmState)
        self._seconds += np.bincount(states, steps, count)
        self._measured += np.bincount(states, steps * measured, count)
        self._model += np.bincount(states, steps * model, count)
        self._low = min(self._low, float(measured.min()))
        self._high = max(self._high, float(measured.max()))

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self._errors.count[0])

    @property
    def motion_energy_error_percent(self) -> float | None:
        """Relative error of the energy of motion [%].

        None where the recording has no standstill or hardly any power of motion.
        """
        still, moving = ArmState.STANDSTILL, ArmState.MOVING
        seconds = self._seconds
        if seconds[still] < SHORTEST_STANDSTILL or seconds[moving] <= 0.0:
            return None
        level = self._measured[still] / seconds[still]
        modelled = self._model[still] / seconds[still]
        above = self._measured[moving] - level * seconds[moving]
        expected = self._model[moving] - modelled * seconds[moving]
        if above <= LEAST_MOTION_POWER * seconds[moving]:
            return None
        return finite_or_none(100 * float(expected - above) / float(above))

    def entry(self) -> Statistics:
        """{"rmse", "rmse_percent", "r2", "energy_error_percent"}."""
        rmse = float(self._errors.rms[0])
        span = self._high - self._low
        measured, model = self._measured.sum(), self._model.sum()
        return {
            "rmse": finite_or_none(rmse),
            "rmse_percent": finite_or_none(100 * rmse / span) if span > 0 else None,
            "r2": finite_or_none(float(self._errors.r2[0])),
            "energy_error_percent": (
                finite_or_none(100 * (model - measured) / measured) if measured else None
            ),
        }
