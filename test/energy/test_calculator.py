"""Speeds at the instants of the currents; power at the supply while drives give back."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.calculator import BusCapacitor, SpeedAlignment, backward_difference
from ur_energy_model.energy.meter import DEFAULT_GAP_LIMIT, bridged_steps

STEP = 0.002
TIME = 50.0 + STEP * np.arange(1.0, 1001.0)
STEPS = bridged_steps(TIME)


def braking_arm() -> np.ndarray:
    """Demand that falls to -200 W twice [samples], W."""
    return 40.0 + 240.0 * np.sin(2 * np.pi * TIME)


def test_without_a_capacitor_regenerated_energy_is_dissipated() -> None:
    demand = braking_arm()
    np.testing.assert_array_equal(BusCapacitor(0.0)(STEPS, demand), np.maximum(demand, 0.0))


def test_a_large_capacitor_loses_nothing() -> None:
    demand = braking_arm()
    store = BusCapacitor(1e6)
    power = store(STEPS, demand)
    assert (power >= 0.0).all()
    given = STEP * (power - demand).sum()
    assert given == pytest.approx(store.stored, abs=STEP * np.abs(demand).max())


@pytest.mark.parametrize("capacity", [1.0, 5.0])
def test_the_capacity_is_saved_each_time_the_arm_brakes(capacity: float) -> None:
    demand = np.where(np.arange(len(TIME)) % 500 < 100, -200.0, 30.0)  # 40 J back, then 24 J
    burned = BusCapacitor(0.0)(STEPS, demand).sum() * STEP
    kept = BusCapacitor(capacity)(STEPS, demand).sum() * STEP
    assert burned - kept == pytest.approx(2 * capacity, rel=1e-6)


def test_batches_give_the_same_as_the_whole() -> None:
    demand, store = braking_arm(), BusCapacitor(4.0)
    whole = BusCapacitor(4.0)(STEPS, demand)
    parts = [store(STEPS[k : k + 11], demand[k : k + 11]) for k in range(0, len(TIME), 11)]
    np.testing.assert_allclose(np.concatenate(parts), whole)


def test_the_capacitor_is_discharged_after_a_gap() -> None:
    store = BusCapacitor(10.0)
    store(np.array([0.0, 0.002]), np.array([-100.0, -100.0]))
    assert store.stored > 0.0
    power = store(np.array([0.0]), np.array([50.0]))
    assert store.stored == 0.0
    assert power[0] == 50.0


def speeds(time: np.ndarray) -> np.ndarray:
    """Two joints [samples, 2], rad/s."""
    return np.column_stack([np.sin(5 * time), 0.5 * np.cos(3 * time)])


@pytest.mark.parametrize("delay", [1e-3, -2e-3, 5e-3])
def test_speed_at_the_earlier_instant(delay: float) -> None:
    aligned = SpeedAlignment(delay)(STEPS, speeds(TIME))
    np.testing.assert_allclose(aligned[1:], speeds(TIME - delay)[1:], atol=5e-4)
    assert np.abs(speeds(TIME) - speeds(TIME - delay)).max() > 4e-3


def test_speeds_do_not_depend_on_batches() -> None:
    whole = SpeedAlignment(1e-3)(STEPS, speeds(TIME))
    align = SpeedAlignment(1e-3)
    parts = [align(STEPS[k : k + 7], speeds(TIME[k : k + 7])) for k in range(0, len(TIME), 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_speeds_are_not_shifted_across_gaps() -> None:
    time = TIME.copy()
    time[500:] += 2 * DEFAULT_GAP_LIMIT
    rate = backward_difference(time, speeds(TIME))
    np.testing.assert_array_equal(rate[500], 0.0)
    np.testing.assert_array_equal(rate[0], 0.0)
    assert (rate[499] != 0.0).all()
