# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steps, gaps, integrals, capacitor and delay, against what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ur_energy_model.energy.meter import (
    DEFAULT_GAP_LIMIT,
    StepRule,
    bridged_steps,
    integrate,
)
from ur_energy_model.energy.motor_powers import backward_difference
from ur_energy_model.energy.supply import BusCapacitor
from ur_energy_model.telemetry.gaps import Gap

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


@pytest.mark.parametrize("rate", [5.0, 94.0, 500.0])
def test_an_outage_is_a_gap_at_any_rate(rate: float) -> None:
    time = 1e5 + np.arange(300) / rate  # large times, so that steps are not exactly equal
    time[150:] += 3.0
    steps = StepRule()(time)
    assert np.flatnonzero(steps.lost).tolist() == [150]
    assert steps.lost.sum() == pytest.approx(3.0 + 1.0 / rate)
    assert steps.bridged.sum() == pytest.approx(298 / rate)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 3.0])
def test_the_first_steps_of_slow_recordings_count(rate: float) -> None:
    time = 1e5 + np.arange(20) / rate
    assert StepRule()(time, rate=rate).bridged.sum() == pytest.approx(19 / rate)
    # Without a stated rate one step at most is lost, that of more than 2.5 s.
    unknown = StepRule()(time)
    assert np.flatnonzero(unknown.lost).tolist() == ([1] if rate < 0.4 else [])
    paused = time.copy()
    paused[3:] += 10.0 / rate
    assert np.flatnonzero(StepRule()(paused, rate=rate).lost).tolist() == [3]


@pytest.mark.parametrize("size", [1, 17])
def test_batches_give_the_same_as_the_whole(size: int) -> None:
    random = np.random.default_rng(4)
    steps = random.choice([0.2, 0.2, 0.2, 0.41, 0.7, 0.0, 2.0, -50.0], 400)
    time = 1000.0 + np.cumsum(steps)
    whole = StepRule()(time)
    rule = StepRule()
    parts = [rule(time[k : k + size]) for k in range(0, len(time), size)]
    for name in ("bridged", "lost", "back"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def stamps_of(*seconds: float) -> NDArray[np.int64]:
    return 1_700_000_000_000_000_000 + np.rint(np.array(seconds) * 1e9).astype(np.int64)


@pytest.mark.parametrize("size", [1, 5])
def test_the_hosts_stamps_tell_how_long_a_restart_took(size: int) -> None:
    time = np.array([100.0, 100.1, 3.0, 3.1, 9.1])
    stamp = stamps_of(50.0, 50.1, 66.1, 66.2, 72.2)
    rule = StepRule()
    parts = [
        rule(time[i : i + size], stamp[i : i + size]) for i in range(0, len(time), size)
    ]
    lost = np.concatenate([part.lost for part in parts])
    assert lost == pytest.approx([0.0, 0.0, 16.0, 0.0, 6.0])
    assert np.concatenate([part.bridged for part in parts]) == pytest.approx(
        [0.0, 0.1, 0.0, 0.1, 0.0]
    )
    assert (
        np.concatenate([part.back for part in parts]).tolist()
        == [False, False, True] + [False] * 2
    )


def test_a_recorded_gap_tells_how_long_samples_were_missing() -> None:
    time = np.array([100.0, 100.1, 130.0, 130.1, 130.15, 130.2])
    restarts = (
        Gap(0, 0.0, 100.0, 7, "before the recording", 5.0),
        Gap(2, 100.1, 130.0, 999, "controller restarted", 199.9),
        Gap(4, 130.1, 130.15, 999, "controller restarted", 60.0),
        Gap(6, 130.2, 144.2, 7000, "connection lost", 14.0),
    )
    steps = StepRule()(time, gaps=restarts)
    assert steps.lost == pytest.approx([0.0, 0.0, 199.9, 0.0, 60.0, 14.0])
    assert steps.bridged == pytest.approx([0.0, 0.1, 0.0, 0.1, 0.0, 0.05])


STEP = 0.002
TIME = 50.0 + STEP * np.arange(1.0, 1001.0)
STEPS = bridged_steps(TIME)


def braking_arm() -> np.ndarray:
    """Demand that falls to -200 W twice [samples], W."""
    return 40.0 + 240.0 * np.sin(2 * np.pi * TIME)


def test_a_large_capacitor_loses_nothing() -> None:
    demand = braking_arm()
    store = BusCapacitor(1e6)
    power = store(STEPS, demand)
    assert (power >= 0.0).all()
    given = STEP * (power - demand).sum()
    assert given == pytest.approx(store.stored, abs=STEP * np.abs(demand).max())


def test_the_capacity_is_saved_each_time_the_arm_brakes() -> None:
    # 40 J back, then 24 J
    demand = np.where(np.arange(len(TIME)) % 500 < 100, -200.0, 30.0)
    burned = BusCapacitor(0.0)(STEPS, demand).sum() * STEP
    assert burned == pytest.approx(np.maximum(demand, 0.0).sum() * STEP)
    kept = BusCapacitor(5.0)(STEPS, demand).sum() * STEP
    assert burned - kept == pytest.approx(10.0, rel=1e-6)


def speeds(time: np.ndarray) -> np.ndarray:
    """Two joints [samples, 2], rad/s."""
    return np.column_stack([np.sin(5 * time), 0.5 * np.cos(3 * time)])


def test_speeds_are_not_shifted_across_gaps() -> None:
    time = TIME.copy()
    time[500:] += 2 * DEFAULT_GAP_LIMIT
    rate = backward_difference(time, speeds(TIME))
    np.testing.assert_array_equal(rate[500], 0.0)
    np.testing.assert_array_equal(rate[0], 0.0)
    assert (rate[499] != 0.0).all()
