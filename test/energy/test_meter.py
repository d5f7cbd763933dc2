"""Steps, gaps and integrals of power, against integrals known in closed form."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ur_energy_model.energy.meter import (
    EnergyCorrection,
    EnergyMeter,
    GapRule,
    bridged_steps,
    efficiency,
    integrate,
)
from ur_energy_model.telemetry.samples import Gap

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


@given(st.lists(st.floats(-500.0, 500.0), min_size=2, max_size=50))
def test_consumed_energy_never_decreases(samples: list[float]) -> None:
    meter = EnergyMeter(1)
    previous = 0.0
    for i, power in enumerate(samples):
        meter.integrate(np.array([i * PERIOD]), np.array([[power]]))
        assert meter.reading.consumed[0] >= previous
        previous = meter.reading.consumed[0]


def test_efficiency_is_unknown_without_electrical_energy() -> None:
    ratio = efficiency(np.array([50.0, 0.0, 1.0]), np.array([100.0, 0.0, -1.0]))
    assert ratio[0] == pytest.approx(0.5)
    assert np.isnan(ratio[1:]).all()


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


@pytest.mark.parametrize("rate", [4.0, 5.0, 8.0, 10.0, 94.0, 500.0])
def test_a_recording_without_gaps_is_bridged_throughout(rate: float) -> None:
    time = 1e5 + np.arange(200) / rate  # large times, so that steps are not exactly equal
    assert bridged_steps(time).sum() == pytest.approx(time[-1] - time[0], rel=1e-12)


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 500.0])
def test_an_outage_is_a_gap_at_any_rate(rate: float) -> None:
    time = np.arange(300) / rate
    time[150:] += 3.0
    steps = GapRule()(time)
    assert np.flatnonzero(steps.lost).tolist() == [150]
    assert steps.lost.sum() == pytest.approx(3.0 + 1.0 / rate)
    assert steps.bridged.sum() == pytest.approx(298 / rate)


@pytest.mark.parametrize("size", [1, 3, 17])
def test_batches_give_the_same_as_the_whole(size: int) -> None:
    random = np.random.default_rng(4)
    steps = random.choice([0.2, 0.2, 0.2, 0.41, 0.7, 0.0, 2.0, -50.0], 400)
    time = 1000.0 + np.cumsum(steps)
    whole, rule = GapRule()(time), GapRule()
    parts = [rule(time[k : k + size]) for k in range(0, len(time), size)]
    for name in ("bridged", "lost", "back"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def stamps_of(*seconds: float) -> NDArray[np.int64]:
    return 1_700_000_000_000_000_000 + np.rint(np.array(seconds) * 1e9).astype(np.int64)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_hosts_stamps_tell_how_long_a_restart_took(size: int) -> None:
    time = np.array([100.0, 100.1, 3.0, 3.1, 9.1])
    stamp = stamps_of(50.0, 50.1, 66.1, 66.2, 72.2)
    rule = GapRule()
    parts = [rule(time[i : i + size], stamp[i : i + size]) for i in range(0, len(time), size)]
    lost = np.concatenate([part.lost for part in parts])
    assert lost == pytest.approx([0.0, 0.0, 16.0, 0.0, 6.0])
    assert np.concatenate([part.bridged for part in parts]) == pytest.approx(
        [0.0, 0.1, 0.0, 0.1, 0.0]
    )
    assert (
        np.concatenate([part.back for part in parts]).tolist() == [False, False, True] + [False] * 2
    )


def test_a_recorded_gap_tells_how_long_samples_were_missing() -> None:
    time = np.array([100.0, 100.1, 130.0, 130.1, 130.15, 130.2])
    restarts = (
        Gap(0, 0.0, 100.0, 7, "before the recording", 5.0),
        Gap(2, 100.1, 130.0, 999, "controller restarted", 199.9),
        Gap(4, 130.1, 130.15, 999, "controller restarted", 60.0),
        Gap(6, 130.2, 144.2, 7000, "connection lost", 14.0),
    )
    steps = GapRule()(time, gaps=restarts)
    assert steps.lost == pytest.approx([0.0, 0.0, 199.9, 0.0, 60.0, 14.0])
    assert steps.bridged == pytest.approx([0.0, 0.1, 0.0, 0.1, 0.0, 0.05])
