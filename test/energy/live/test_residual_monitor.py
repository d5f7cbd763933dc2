"""The drift alarm of the residual."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.live import ResidualMonitor


@pytest.mark.parametrize(("residual", "drifting"), [(6.0, True), (-6.0, True), (4.0, False)])
def test_the_alarm_depends_on_the_mean(residual: float, drifting: bool) -> None:
    monitor = ResidualMonitor(alarm=5.0, time_constant=10.0)
    noise = np.random.default_rng(1).normal(0.0, 3.0, 2000)
    for value in noise:
        monitor.update(0.02, residual + value)
    assert bool(monitor.drifting) == drifting
