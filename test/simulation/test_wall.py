"""The simulated wall: its power, and what its meter reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.simulation.wall import SimulatedWall, draw_wall

PERFECT = SimulatedWall((30.0, 40.0, 45.0), 1.1, 1e-4, delay=0.7, resolution=0.0)


@pytest.mark.parametrize(
    ("mode", "bus", "expected"),
    [(-1, 0.0, 30.0), (3, 0.0, 30.0), (4, 20.0, 62.04), (5, 20.0, 62.04), (7, 200.0, 269.0)],
)
def test_power_of_modes(mode: int, bus: float, expected: float) -> None:
    assert PERFECT.power([mode], [bus]) == pytest.approx([expected])


def test_a_reading_is_a_delayed_mean() -> None:
    time = 100.0 + np.arange(0.0, 60.0, 0.002)
    power = 100.0 + 10.0 * (time - 100.0)  # a ramp: its mean over 1 s is the value 0.5 s ago
    columns = PERFECT.readings(time, power)
    new = np.flatnonzero(np.diff(columns["wall_reading"], prepend=0.0))[4:]
    expected = power[new] - 10.0 * (0.7 + 0.5)
    np.testing.assert_allclose(columns["wall_power"][new], expected, atol=0.1)
    np.testing.assert_allclose(np.diff(time[new]), 1.0, atol=0.003)
    rises, seconds = np.diff(columns["wall_energy"][new]), np.diff(time[new])
    np.testing.assert_allclose(rises / seconds, power[new][:-1], rtol=0.1)


def test_dropouts_are_gaps_and_the_mean_remains() -> None:
    wall = replace(draw_wall(3), silences_per_hour=20.0)
    time = np.arange(0.0, 3600.0, 0.02)
    power = 120.0 + 30.0 * np.sin(time)
    columns = wall.readings(time, power)
    silent = np.isnan(columns["wall_power"])
    assert 0.05 < silent.mean() < 0.4
    assert np.array_equal(silent, np.isnan(columns["wall_energy"]))
    assert np.nanmean(columns["wall_power"]) == pytest.approx(120.0, rel=0.01)
    assert (np.diff(columns["wall_reading"]) >= 0.0).all()
    again = wall.readings(time, power)["wall_power"]
    np.testing.assert_array_equal(columns["wall_power"], again)


def test_a_meter_without_readings_is_silent() -> None:
    time = np.arange(0.0, 20.0, 0.1)
    columns = replace(PERFECT, missed=1.0).readings(time, np.ones_like(time))
    assert np.isnan(columns["wall_power"]).all()
    assert not columns["wall_reading"].any()
