"""Mean difference between modelled and measured bus power, with a drift alarm."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.energy.session.running_mean import RunningMean

_STANDSTILL = int(ArmState.STANDSTILL)


@dataclass
class ResidualMonitor:
    """Model minus measured bus power, with a drift alarm on its mean.

    Attributes:
        alarm: mean residual that raises the alarm [W].
        time_constant: of the mean [s].
    """

    alarm: float = 5.0
    time_constant: float = 60.0
    statistics: RunningMean = field(init=False)

    def __post_init__(self) -> None:
        self.statistics = RunningMean(self.time_constant)

    def update(self, duration: float, residual: float) -> None:
        """Include the mean residual [W] of samples that last `duration` [s]."""
        self.statistics.update(duration, residual)

    def compare(self, table: PowerTable, channels: Channels) -> None:
        """Include powers while brakes are released, if the bus power is measured."""
        if not table.bus_measured:
            return
        seconds = np.where(table.states >= _STANDSTILL, table.steps.bridged, 0.0)
        passed = float(seconds.sum())
        if passed > 0.0:
            columns = channels.arm
            residual = table.power[:, columns["total"]] - table.power[:, columns["bus"]]
            self.update(passed, float(seconds @ residual) / passed)

    @property
    def drifting(self) -> bool:
        """Whether the mean residual exceeds the alarm, after at least one time constant."""
        settled = self.statistics.elapsed >= self.time_constant
        return settled and abs(self.statistics.mean) > self.alarm
