"""What switching an arm off and on again takes."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.optimization.cycle import Switching, recorded_switching
from ur_energy_model.telemetry.samples import Telemetry


def switched(bus: bool = True, back: bool = True) -> Telemetry:
    """Running at 40 W, 1 s of change at 60 W, 10 s off at 8 W, 2 s of change at 70 W, running."""
    time = np.arange(3000) / 100.0
    modes, power = np.full(3000, 7.0), np.full(3000, 40.0)
    for first, last, mode, watt in (
        (5.0, 6.0, 5.0, 60.0),
        (6.0, 16.0, 3.0, 8.0),
        (16.0, 18.0 if back else 30.0, 5.0, 70.0),
    ):
        rows = (time >= first) & (time < last)
        modes[rows], power[rows] = mode, watt
    columns = {"robot_mode": modes}
    if bus:
        columns |= {
            "actual_robot_voltage": np.full(3000, 48.0),
            "actual_robot_current": power / 48.0,
        }
    return Telemetry(time, columns)


def test_time_energy_and_power_are_read_from_the_recording() -> None:
    found = recorded_switching(switched())
    assert found is not None
    assert found.time == pytest.approx(3.0, abs=0.05)
    assert found.power == pytest.approx(8.0)
    assert found.energy == pytest.approx(60.0 + 140.0, rel=0.03)


def test_without_a_complete_switching_or_bus_power_nothing_is_known() -> None:
    assert recorded_switching(switched(back=False)) is None
    assert recorded_switching(switched(bus=False)) is None


def test_a_wait_shorter_than_the_change_cannot_be_spent_off() -> None:
    found = Switching(time=3.0, energy=200.0, power=8.0)
    assert found.wait_energy(2.0) == np.inf
    assert found.wait_energy(13.0) == pytest.approx(280.0)
