"""The bus: energy is conserved, the supply never absorbs power."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.simulation.parameters import constants
from ur_energy_model.simulation.supply import Bus


def test_a_steady_load_is_supplied_behind_the_source_resistance():
    bus = Bus()
    bus.advance(0.002, 100.0)
    table = constants()["bus"]
    assert bus.voltage * bus.current == pytest.approx(100.0)
    assert bus.voltage == pytest.approx(
        table["open_voltage"] - table["source_resistance"] * bus.current
    )
    assert bus.supplied == pytest.approx(0.2)


def test_energy_is_conserved_for_any_power():
    bus = Bus()
    power = 40.0 + 260.0 * np.sin(np.linspace(0.0, 60.0, 5000))
    voltage, current = [], []
    for value in power:
        bus.advance(0.002, float(value))
        voltage.append(bus.voltage)
        current.append(bus.current)
    assert bus.supplied == pytest.approx(0.002 * power.sum() + bus.braked + bus.surplus)
    assert bus.braked > 0.0
    assert min(current) == 0.0
    assert max(voltage) > constants()["bus"]["brake_voltage"]
    assert max(voltage) < constants()["bus"]["brake_voltage"] + 6.0


def test_stored_regenerated_energy_is_used_before_the_supply():
    bus = Bus()
    bus.advance(0.01, -100.0)
    assert bus.braked == 0.0
    assert bus.current == 0.0
    bus.advance(0.005, 100.0)
    assert bus.supplied == 0.0
    bus.advance(0.02, 100.0)
    assert bus.supplied == pytest.approx(1.5)


def test_switched_off_it_stores_nothing():
    bus = Bus()
    bus.advance(0.01, -100.0)
    bus.switch_off()
    assert (bus.voltage, bus.current, bus.surplus) == (0.0, 0.0, 0.0)
    assert bus.braked == pytest.approx(1.0)
