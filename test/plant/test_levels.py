"""Levels by unit of work: mean value, temperature, and what units show of its effect."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.plant.arm_health import MOST_UNITS, MinuteLevels, levels

DAY = 86400.0


def minutes(value, temperature, starts, count=60) -> MinuteLevels:
    """Sessions of so many minutes with functions of session and minute."""
    time = np.concatenate([start + 60.0 * np.arange(count) for start in starts])
    session = np.repeat(np.arange(len(starts)), count)
    minute = np.tile(np.arange(count), len(starts))
    warmth = temperature(session, minute)[:, None]
    level = value(session, warmth[:, 0])[:, None]
    return MinuteLevels(time, level, np.full_like(level, 0.01), warmth, np.zeros(len(time), int))


def test_units_are_sessions_and_days():
    starts = [8 * 3600.0, DAY + 8 * 3600.0, DAY + 15 * 3600.0, 2 * DAY - 1800.0]
    made = minutes(lambda s, t: 1.0 * s, lambda s, m: 30.0 + 0.0 * m, starts)
    found = levels(made, 0.01)
    assert found.session.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_allclose(found.value[:, 0], [0.0, 1.0, 2.0, 3.0, 3.0])
    assert found.slope_precision[0] == 0.0


def test_warming_up_shows_the_effect_of_temperature():
    starts = [DAY * k for k in range(4)]
    made = minutes(
        lambda s, t: 0.1 * s - 0.008 * (t - 30.0), lambda s, m: 25.0 + 10.0 * m / 60, starts
    )
    found = levels(made, 0.01)
    assert found.slope[0] == pytest.approx(-0.008, abs=1e-9)
    assert found.slope_precision[0] ** -0.5 < 0.002


def test_what_was_not_measured_is_missing():
    made = minutes(
        lambda s, t: np.where(s == 1, np.nan, 0.0), lambda s, m: 30.0 + 0.0 * m, [0, DAY]
    )
    found = levels(made, 0.01)
    assert np.isnan(found.value[1, 0])
    assert np.isnan(found.std[1, 0])
    assert found.value[0, 0] == 0.0


def test_a_store_of_any_length_takes_bounded_memory():
    starts = [DAY * k for k in range(MOST_UNITS + 50)]
    made = minutes(lambda s, t: 1.0 * s, lambda s, m: 30.0 + 0.0 * m, starts, count=2)
    found = levels(made, 0.01)
    assert len(found.time) == MOST_UNITS
    assert found.value[-1, 0] == MOST_UNITS + 49
