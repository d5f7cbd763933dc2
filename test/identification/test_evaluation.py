"""Errors, intervals and the energy of motion."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.meter import GapRule
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable
from ur_energy_model.identification.error_statistics import ErrorStatistics, PowerStatistics
from ur_energy_model.telemetry.samples import Telemetry

CHANNELS = Channels(("a",))


def test_batches_agree_with_the_definitions() -> None:
    random = np.random.default_rng(0)
    measured = random.normal(5.0, 2.0, (1000, 2))
    model = measured + random.normal(0.1, 0.5, measured.shape)
    mask = random.random(measured.shape) < 0.7
    statistics = ErrorStatistics(2)
    for start in range(0, 1000, 130):
        rows = slice(start, start + 130)
        statistics.accumulate(measured[rows], model[rows], mask[rows])
    for j, entry in enumerate(statistics.entries()):
        y, e = measured[mask[:, j], j], (model - measured)[mask[:, j], j]
        assert entry["mean"] == pytest.approx(np.abs(e).mean())
        assert entry["max"] == pytest.approx(np.abs(e).max())
        assert entry["rms"] == pytest.approx(np.sqrt((e**2).mean()))
        assert entry["r2"] == pytest.approx(1 - (e**2).sum() / ((y - y.mean()) ** 2).sum())


def table(rows: np.ndarray) -> PowerTable:
    """Samples of time [s], state, bus and total power [W]."""
    time, states = rows[:, 0], rows[:, 1].astype(np.intp)
    power = np.zeros((len(rows), len(CHANNELS)))
    power[:, CHANNELS.arm["bus"]], power[:, CHANNELS.arm["total"]] = rows[:, 2], rows[:, 3]
    return PowerTable(Telemetry(time, {}), GapRule()(time), states, power, True)


def test_power_and_its_energy() -> None:
    time = np.concatenate([np.arange(0, 5, 0.02), np.arange(10, 15, 0.02)])
    measured = 30.0 + 10.0 * np.sin(time)
    statistics = PowerStatistics(CHANNELS)
    moving = np.full(len(time), float(ArmState.MOVING))
    rows = np.column_stack([time, moving, measured, measured * 1.02])
    for part in np.array_split(rows, 7):
        statistics.accumulate(table(part))
    entry = statistics.entry()
    assert entry["energy_error_percent"] == pytest.approx(2.0)
    assert entry["rmse"] == pytest.approx(0.02 * np.sqrt(np.mean(measured**2)))
    span = measured.max() - measured.min()
    assert entry["rmse_percent"] == pytest.approx(100 * (entry["rmse"] or 0) / span)
    assert statistics.motion_energy_error_percent is None  # no standstill to compare with


def test_motion_counts_above_standstill_and_an_arm_that_is_off_does_not() -> None:
    time = 0.02 * np.arange(1500)
    states = np.repeat([ArmState.STANDSTILL, ArmState.MOVING, ArmState.OFF], 500).astype(float)
    bus = np.repeat([40.0, 60.0, 0.0], 500)
    total = np.repeat([43.0, 65.0, 500.0], 500)  # standby 3 W too high, motion 22 W for 20 W
    statistics = PowerStatistics(CHANNELS)
    statistics.accumulate(table(np.column_stack([time, states, bus, total])))
    entry = statistics.entry()
    assert statistics.motion_energy_error_percent == pytest.approx(10.0)
    assert entry["energy_error_percent"] == pytest.approx(8.0, rel=0.01)
    assert statistics.samples == 1000


def test_power_errors_within_their_intervals() -> None:
    random = np.random.default_rng(8)
    time = 0.02 * np.arange(5000)
    statistics = PowerStatistics(CHANNELS, noise=2.0)
    bus = 40.0 + 10.0 * np.sin(time)
    total = bus + 2.0 * random.standard_normal(len(time))
    moving = np.full(len(time), float(ArmState.MOVING))
    statistics.accumulate(table(np.column_stack([time, moving, bus, total])))
    entry = statistics.entry()
    assert entry["std"] == pytest.approx(2.0)
    assert entry["coverage"] == pytest.approx(0.95, abs=0.02)
    low, rmse, high = (entry[key] or 0.0 for key in ("rmse_low", "rmse", "rmse_high"))
    assert low < 2.0 < high
    # The mean of N squares of normal errors is uncertain by sqrt(2 / N) of itself.
    assert high - low == pytest.approx(2 * 1.96 * 0.5 * rmse * np.sqrt(2 / len(time)), rel=0.3)
