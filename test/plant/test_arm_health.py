"""Changes are found where there are some, with their size; unchanged arms are silent."""

from __future__ import annotations

import numpy as np
import pytest

from test.plant.surrogate_health import (
    ELBOW,
    elbow,
    friction_of,
    health_table,
    minutes_of,
)
from ur_energy_model.plant.arm_health import FRICTION, STANDBY, TORQUE_CONSTANT, follow

DAYS, SINCE = 150, 100


@pytest.mark.parametrize("seed", range(7000, 7010))
def test_an_unchanged_arm_is_silent(seed):
    made = minutes_of(health_table(seed, DAYS))
    for minutes, quantity in (
        (made.friction, FRICTION),
        (made.torque_constant, TORQUE_CONSTANT),
        (made.standby, STANDBY),
    ):
        assert follow(minutes, quantity).changes == ()


@pytest.mark.parametrize(("size", "until"), [(0.18, None), (-0.2, None), (0.25, SINCE + 30.0)])
def test_a_change_of_friction_is_found(size, until):
    made = health_table(7101, DAYS, friction=elbow(size, SINCE, until))
    (change,) = follow(friction_of(made), FRICTION).changes
    assert change.channel == ELBOW
    assert abs(change.found.size - np.log1p(size)) < 3.0 * change.found.std
    assert change.found.std < 0.05


def test_a_change_of_all_joints_is_one_change():
    made = health_table(7102, DAYS, friction=lambda day: np.full(6, 0.2 * (day >= SINCE)))
    (change,) = follow(friction_of(made), FRICTION).changes
    assert change.channel is None
    assert abs(change.found.size - 0.2) < 3.0 * change.found.std


def test_another_model_of_the_arm_is_no_change():
    """The next model states 30 % more friction; that of the arm in N m is the same."""
    made = health_table(7103, DAYS, model=lambda day: ("b", 0.26) if day > 80 else ("a", 0.0))
    assert follow(friction_of(made), FRICTION).changes == ()


def test_a_winter_is_no_change():
    """Levels are stated at equal temperature: 15 K less make 15 % more friction."""
    random = np.random.default_rng(5)
    made = friction_of(health_table(7104, DAYS))
    day = (made.time - made.time[0]) / 86400.0
    cooler = np.where(day > SINCE, -12.0, 0.0) + random.uniform(-1.0, 1.0, len(day))
    temperature = made.temperature + cooler[:, None]
    value = made.value - 0.01 * cooler[:, None]
    colder = type(made)(made.time, value, made.std, temperature, made.model)
    for change in follow(colder, FRICTION).changes:
        pytest.fail(f"said {change}")


def test_few_days_say_nothing():
    made = friction_of(health_table(7105, 4, friction=elbow(0.5, 2.0)))
    found = follow(made, FRICTION)
    assert found.changes == ()
    assert np.isfinite(found.now).all()


def test_the_level_now_has_an_interval_that_holds():
    covered = []
    for seed in range(7200, 7210):
        course = follow(friction_of(health_table(seed, 60)), FRICTION)
        longer = follow(friction_of(health_table(seed, DAYS)), FRICTION)
        covered.append(np.abs(course.now - longer.now) < 2.5 * course.now_std)
    assert np.mean(covered) > 0.85
