"""Power to energy, against integrals known in closed form."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ur_energy_model.energy.meter import EnergyMeter, MeterReading, efficiency, integrate
from ur_energy_model.energy.powers import EnergyCorrection

PERIOD = 0.002


def wave(seconds: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A constant of 30 W beside one full period of 100 W sin."""
    time = 40.0 + np.arange(0.0, seconds + PERIOD / 2, PERIOD)
    swing = 100.0 * np.sin(2 * np.pi * (time - 40.0) / seconds)
    return time, np.column_stack([np.full(len(time), 30.0), swing])


def test_net_consumed_and_regenerated_energy() -> None:
    reading = integrate(*wave())
    half = 100.0 * 10.0 / np.pi  # integral of a half wave
    assert reading.net == pytest.approx([300.0, 0.0], abs=1e-6)
    assert reading.consumed == pytest.approx([300.0, half], rel=1e-6)
    assert reading.regenerated == pytest.approx([0.0, half], rel=1e-6, abs=1e-9)
    assert reading.accounted == pytest.approx(10.0)
    assert reading.unaccounted == 0.0


@given(st.lists(st.integers(0, 5001), max_size=30))
def test_batches_make_no_difference(cuts: list[int]) -> None:
    time, power = wave()
    meter = EnergyMeter(2)
    edges = [0, *sorted(cuts), len(time)]
    for start, stop in pairwise(edges):
        meter.integrate(time[start:stop], power[start:stop])
    whole = integrate(time, power)
    assert meter.reading.net == pytest.approx(whole.net, rel=1e-9, abs=1e-9)
    assert meter.reading.regenerated == pytest.approx(whole.regenerated, rel=1e-9, abs=1e-9)
    assert meter.reading.accounted == pytest.approx(whole.accounted)


def test_a_short_gap_is_bridged_and_a_long_one_is_unaccounted() -> None:
    time = np.array([0.0, 0.01, 0.06, 0.07, 5.07, 5.08])
    reading = integrate(time, np.full(6, 50.0), gap_limit=0.1)
    assert reading.net[0] == pytest.approx(50.0 * 0.08)
    assert reading.accounted == pytest.approx(0.08)
    assert reading.unaccounted == pytest.approx(5.0)


def test_a_restarted_controller_adds_nothing() -> None:
    meter = EnergyMeter(1)
    meter.integrate(np.array([100.0, 100.01]), np.full((2, 1), 10.0))
    meter.integrate(np.array([41.0, 41.01]), np.full((2, 1), 10.0))
    assert meter.restarts == 1
    assert meter.reading.net[0] == pytest.approx(0.2)
    assert meter.reading.unaccounted == 0.0


def test_a_meter_continues_from_a_reading() -> None:
    time, power = wave()
    first = integrate(time[:2000], power[:2000])
    meter = EnergyMeter(2, start=first)
    meter.integrate(time[1999:], power[1999:])
    assert meter.reading.net == pytest.approx(integrate(time, power).net, abs=1e-6)


@given(st.lists(st.floats(-500.0, 500.0), min_size=2, max_size=50))
def test_consumed_energy_never_decreases(samples: list[float]) -> None:
    meter = EnergyMeter(1)
    previous = 0.0
    for i, power in enumerate(samples):
        meter.integrate(np.array([i * PERIOD]), np.array([[power]]))
        assert meter.reading.consumed[0] >= previous
        previous = meter.reading.consumed[0]


def test_readings_add_and_subtract() -> None:
    time, power = wave()
    whole, half = integrate(time, power), integrate(time[:2501], power[:2501])
    again = half + (whole - half)
    assert again.net == pytest.approx(whole.net)
    assert again.accounted == pytest.approx(whole.accounted)
    assert (MeterReading.zero(2) + whole).consumed == pytest.approx(whole.consumed)


def test_efficiency_is_unknown_without_electrical_energy() -> None:
    ratio = efficiency(np.array([50.0, 0.0, 1.0]), np.array([100.0, 0.0, -1.0]))
    assert ratio[0] == pytest.approx(0.5)
    assert np.isnan(ratio[1:]).all()


def test_a_gap_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="gap limit"):
        EnergyMeter(1, gap_limit=0.0)


def test_a_decrease_is_worked_off_and_its_deviation_with_it() -> None:
    """Two channels of power, and one sensitivity whose integral the correction lowers."""
    meter = EnergyMeter(3)
    time = np.arange(0.0, 1.05, 0.1)
    power = np.tile([10.0, 10.0, 4.0], (len(time), 1))
    meter.integrate(time, power)
    energy, deviation = np.array([-8.0, -8.0, 0.0]), np.array([0.0, 0.0, -3.0])
    meter.correct(EnergyCorrection(0, (0, 1), energy, deviation))
    np.testing.assert_allclose(meter.reading.net, [10.0, 10.0, 4.0])
    meter.integrate(time + 1.0, power)  # half of the 10 J that this second adds
    np.testing.assert_allclose(meter.reading.net, [15.0, 15.0, 8.0 - 3.0 * 5.0 / 8.0])
    meter.integrate(time + 2.0, power)
    np.testing.assert_allclose(meter.reading.net, [22.0, 22.0, 9.0])
    increase = EnergyCorrection(0, (0, 1), -energy, deviation)
    meter.correct(increase)
    np.testing.assert_allclose(meter.reading.net, [30.0, 30.0, 6.0])
