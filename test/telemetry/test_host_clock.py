"""The clock of a process: steps of the system's clock are noticed, and wait for recordings."""

from __future__ import annotations

import time

import numpy as np
import pytest

from test.telemetry.conftest import make_telemetry
from test.telemetry.system_clock import SystemClock
from ur_energy_model.telemetry.clock import HostClock

HOUR = 3600.0


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    return SystemClock(monkeypatch)


def error(clock: HostClock, system: SystemClock) -> float:
    """Corrected time minus the system's clock [s]."""
    return (clock.stamp() - system.time_ns()) * 1e-9


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_takes_effect_at_once_where_nobody_holds_the_clock(
    system: SystemClock, step: float
) -> None:
    clock = HostClock()
    base = clock.now()
    system.step(step)
    assert abs(error(clock, system) + step) < 0.5
    assert clock.check() == 1
    assert abs(error(clock, system)) < 0.5
    assert clock.last_step == pytest.approx(step, abs=0.5)
    assert abs(clock.now() - base) < 10e9  # the uncorrected time never steps


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_waits_while_the_clock_is_held(system: SystemClock, step: float) -> None:
    clock = HostClock()
    with clock.held(), clock.held():
        system.step(step)
        assert clock.check() == 1
        assert clock.correction == 0
        assert "next recording" in clock.describe_step()
    clock.check()
    assert abs(error(clock, system)) < 0.5
    assert "next" not in clock.describe_step()


def test_holding_begins_with_the_present_time(system: SystemClock) -> None:
    clock = HostClock()
    system.step(HOUR)
    with clock.held():
        assert abs(error(clock, system)) < 0.5


def test_small_steps_add_up(system: SystemClock) -> None:
    clock = HostClock()
    for _ in range(5):
        system.step(0.3)
        clock.check()
    assert clock.steps == 1


def test_no_step_is_seen_without_one() -> None:
    clock = HostClock()
    for _ in range(1000):
        assert clock.check() == 0
    assert abs(clock.stamp() - time.time_ns()) < 0.5e9


def test_stamps_of_a_batch_are_corrected(system: SystemClock) -> None:
    clock = HostClock()
    batch = make_telemetry(5)
    assert clock.corrected(batch) is batch
    system.step(HOUR)
    clock.check()
    assert batch.stamp is not None
    shifted = clock.corrected(batch).stamp
    assert shifted is not None
    assert np.abs((shifted - batch.stamp) * 1e-9 - HOUR).max() < 0.5
