# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health of arms: rows from telemetry, levels at equal temperature, changes and words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from test.identification.made_up_motion import ROBOT, N, generic, resting, smooth_motion
from test.plant.surrogate_health import (
    CONSTANT,
    ELBOW,
    JOINTS,
    REFERENCE,
    elbow,
    health_table,
)
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.model.sessions import Session
from ur_energy_model.plant.health_rows import BLOCK, HealthRows, thinned_motions
from ur_energy_model.plant.level_changes import (
    FRICTION,
    MOST_UNITS,
    STANDBY,
    TORQUE_CONSTANT,
    LevelCourse,
    MinuteLevels,
    follow,
    levels,
)
from ur_energy_model.plant.plant_health import ArmHealth, arm_health, minute_levels
from ur_energy_model.plant.schema import SourceKeys
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

BEGIN = 1_767_225_600.0
DAYS = 150
SINCE = 100
DAY = 86400.0
SCALE = np.array([1.0, 1.0, 1.18, 1.0, 0.9, 1.0])


# Motion thinned to means over short blocks


def sine(rate: float, seconds: float = 4.0, *, targets: bool = True) -> Telemetry:
    time = 10.0 + np.arange(round(seconds * rate)) / rate
    w = np.array([2.0, 3.0])
    phase = time[:, None] * w
    motion = (np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase))
    names = (
        ("target_q", "target_qd", "target_qdd") if targets else ("actual_q", "actual_qd")
    )
    columns = dict(zip(names, motion, strict=False))
    return Telemetry(time, {**columns, "actual_current": 0.5 * motion[1]})


@pytest.mark.parametrize(("rate", "targets"), [(500.0, False), (125.0, True)])
def test_thinned_motion_is_the_motion(rate: float, targets: bool) -> None:
    (motion,) = thinned_motions(sine(rate, targets=targets))
    assert motion.period == pytest.approx(BLOCK)
    assert len(motion) >= 4.0 / BLOCK - 3
    np.testing.assert_allclose(motion.current, 0.5 * motion.qd, atol=1e-9)
    middle = motion.time - 0.5 / rate
    inner = slice(1, -1)
    np.testing.assert_allclose(motion.q[:, 0], np.sin(2.0 * middle), atol=2e-3)
    np.testing.assert_allclose(
        motion.qdd[inner, 0], -4.0 * np.sin(2.0 * middle)[inner], atol=2e-2
    )


# Rows of health from telemetry


def telemetry(
    scale: Array, seconds: float = 150.0, constant: Array | float = 1.0
) -> Telemetry:
    time = 60.0 + np.arange(round(125 * seconds)) / 125.0
    q, qd, qdd = smooth_motion(ROBOT, time, 3)
    model = generic()
    model = model.in_session(Session(model.bus.standby, 0.0, scale, np.zeros(N)))
    warmth = np.full_like(q, 31.0)
    current = model.predict(q, qd, qdd, temperature=warmth, std=False).current / constant
    columns = {
        "actual_q": q,
        "actual_qd": qd,
        "target_q": q,
        "target_qd": qd,
        "target_qdd": qdd,
        "actual_current": current
        + 0.02 * np.random.default_rng(1).standard_normal(q.shape),
        "joint_temperatures": warmth,
        "robot_mode": np.full(len(time), 7.0),
        "safety_mode": np.ones(len(time)),
    }
    return Telemetry(time, columns, RecordingInfo(rate=125.0))


def rows_of(samples: Telemetry, batch: int = 10**6) -> dict[str, Array]:
    calculator = EnergyCalculator(generic(), ROBOT)
    rows = HealthRows(calculator)
    stamp = np.round((BEGIN + samples.time) * 1e9).astype(np.int64)
    for start in range(0, len(samples), batch):
        powers = calculator(
            replace(samples, stamp=stamp).cut(slice(start, start + batch))
        )
        assert powers is not None
        rows.update(powers)
    found = rows.rows(SourceKeys("s", "ur5e", "m"), last=True).to_pydict()
    found["minute"] = [each.timestamp() - BEGIN for each in found["minute"]]
    numeric = (n for n in found if n not in ("source", "robot", "model", "joints"))
    return {name: np.array(found[name], dtype=float) for name in numeric}


def test_friction_torque_constants_and_standby_of_each_minute() -> None:
    constant = np.ones(N)
    constant[1] = 0.93
    found = rows_of(telemetry(SCALE), batch=5000)
    assert found["minute"].tolist() == [60.0, 120.0, 180.0]
    np.testing.assert_allclose(
        found["joint_friction"][:2], SCALE[None].repeat(2, 0), atol=0.03
    )
    assert (found["joint_friction_std"][:2] < 0.05).all()
    np.testing.assert_allclose(found["joint_temperature"], 31.0)
    # whatever the batches
    for name, values in rows_of(telemetry(SCALE), batch=50).items():
        np.testing.assert_allclose(values, found[name], rtol=1e-9)

    found = rows_of(telemetry(np.ones(N), 70.0, constant))
    model = np.array([joint.torque_constant for joint in generic().joints])
    std = found["joint_torque_constant_std"][0] / model
    error = found["joint_torque_constant"][0] / model - constant
    assert (np.abs(error) < 3.0 * std).all()
    assert abs(error[1]) < 0.02
    assert std[1] < 0.03

    standby = generic().bus.standby + 3.0
    found = rows_of(resting(standby), batch=25)
    np.testing.assert_allclose(found["standby"], np.full(3, standby), atol=0.2)
    assert ((found["standby_std"] > 0.1) & (found["standby_std"] < 1.5)).all()
    assert np.isnan(found["joint_friction"]).all()


# Minutes of an arm from the rows of a store


def test_minutes_are_those_of_the_rows() -> None:
    table = health_table(7400, 10)
    first = table.slice(0, 1).to_pylist()[0]
    robot, joints, found = minute_levels(table)
    friction = found[FRICTION]
    constant = found[TORQUE_CONSTANT]
    assert (robot, joints) == ("ur5e", JOINTS)
    expected = np.array(first["joint_friction"]) * REFERENCE
    np.testing.assert_allclose(np.exp(friction.value[0]), expected)
    np.testing.assert_allclose(np.exp(constant.value[0]), first["joint_torque_constant"])
    np.testing.assert_allclose(
        constant.std[0], 0.02 * CONSTANT / np.exp(constant.value[0])
    )

    rows = table.to_pylist()
    rows[3]["joint_friction"][2] = -1.0
    rows[4]["joint_temperature"] = [float("nan")] * 6
    rows[5]["standby"] = None
    mixed = pa.Table.from_pylist(rows[40:] + rows[:60], schema=table.schema)
    found = minute_levels(mixed)[2]
    np.testing.assert_array_equal(friction.time, found[FRICTION].time)
    assert np.flatnonzero(np.isnan(found[FRICTION].value[3])).tolist() == [2]
    assert np.isnan(found[STANDBY].temperature[4, 0])
    assert np.isnan(found[STANDBY].value[5, 0])
    assert arm_health("x", table.slice(0, 0)) is None


# Levels by unit of work


def sessions(
    value: Callable[[Any, Any], Array],
    starts: list[float],
    temperature: Callable[[Any], Array] = lambda minute: 30.0 + 0.0 * minute,
    count: int = 60,
) -> MinuteLevels:
    """Sessions of so many minutes; the value is a function of session and temperature."""
    time = np.concatenate([start + 60.0 * np.arange(count) for start in starts])
    session = np.repeat(np.arange(len(starts)), count)
    warmth = temperature(np.tile(np.arange(float(count)), len(starts)))
    level = value(session, warmth)[:, None]
    return MinuteLevels(
        time, level, np.full_like(level, 0.01), warmth[:, None], np.zeros(len(time), int)
    )


def test_units_are_sessions_and_days_bounded_in_number_and_show_the_effect_of_warming_up() -> (
    None
):
    starts = [8 * 3600.0, DAY + 8 * 3600.0, DAY + 15 * 3600.0, 2 * DAY - 1800.0]
    found = levels(sessions(lambda s, t: np.where(s == 1, np.nan, 1.0 * s), starts), 0.01)
    assert found.session.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_allclose(found.value[:, 0], [0.0, np.nan, 2.0, 3.0, 3.0])
    many = [DAY * k for k in range(MOST_UNITS + 50)]
    found = levels(sessions(lambda s, t: 1.0 * s, many, count=2), 0.01)
    assert found.value[[0, -1], 0].tolist() == [50.0, MOST_UNITS + 49.0]
    made = sessions(
        lambda s, t: 0.1 * s - 0.008 * (t - 30.0),
        [0, DAY, 2 * DAY],
        lambda m: 25.0 + m / 6,
    )
    found = levels(made, 0.01)
    assert found.slope[0] == pytest.approx(-0.008, abs=1e-9)
    assert found.slope_precision[0] ** -0.5 < 0.002


# Changes


def friction(table: pa.Table) -> LevelCourse:
    return follow(minute_levels(table)[2][FRICTION], FRICTION)


def test_an_unchanged_arm_is_silent() -> None:
    for seed in range(7000, 7003):
        assert health("x", seed).changes == ()


@pytest.mark.parametrize(
    ("channel", "size", "injected"),
    [
        (ELBOW, np.log(1.25), elbow(0.25, SINCE, SINCE + 30.0)),
        (None, 0.2, lambda day: np.full(6, 0.2 * (day >= SINCE))),
    ],
)
def test_a_change_is_found(channel: int | None, size: float, injected: Any) -> None:
    (change,) = friction(health_table(7101, DAYS, friction=injected)).changes
    assert change.channel == channel
    assert abs(change.size - size) < 3.0 * change.std
    assert change.std < 0.05 or channel is None


def test_another_model_a_winter_and_few_days_show_no_change() -> None:
    """The next model states 30 % more friction; that of the arm in N m is the same."""
    another = health_table(
        7103, DAYS, model=lambda day: ("b", 0.26) if day > 80 else ("a", 0.0)
    )
    assert friction(another).changes == ()
    found = friction(health_table(7105, 4, friction=elbow(0.5, 2.0)))
    assert found.changes == ()
    assert np.isfinite(found.now).all()
    # Levels are stated at equal temperature: 12 K less make 12 % more friction.
    made = minute_levels(health_table(7104, DAYS))[2][FRICTION]
    day = (made.time - made.time[0]) / DAY
    cooler = np.where(day > SINCE, -12.0, 0.0)[:, None]
    cooler = cooler + np.random.default_rng(5).uniform(-1.0, 1.0, (len(day), 1))
    colder = replace(
        made, value=made.value - 0.01 * cooler, temperature=made.temperature + cooler
    )
    assert follow(colder, FRICTION).changes == ()


@pytest.mark.truth
def test_the_level_now_has_an_interval_that_holds() -> None:
    covered = []
    for seed in range(7200, 7205):
        course, longer = (friction(health_table(seed, days)) for days in (60, DAYS))
        covered.append(np.abs(course.now - longer.now) < 2.5 * course.now_std)
    assert np.mean(covered) > 0.85


# Words and figures


def health(arm: str, seed: int, days: int = DAYS, **changes: Any) -> ArmHealth:
    found = arm_health(arm, health_table(seed, days, **changes))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("arm", "changes", "what", "size", "words"),
    [
        ("arm7", {"standby": lambda day: 5.0 * (day >= 80)}, "standby power", 5.0,
         r"arm7: standby power \+\d\.\d W since \d+ \w+, at \d\d degC.*"),
        ("7", {"constant": lambda day: np.log(0.94) * (day >= 80) * np.eye(6)[1]},
         "torque constant", -0.06,
         r"shoulder_lift_joint of arm 7: torque constant -\d %.*"),
    ],
)  # fmt: skip
def test_a_change_in_words(
    arm: str, changes: dict[str, Any], what: str, size: float, words: str
) -> None:
    (change,) = health(arm, 7301, **changes).changes
    assert re.fullmatch(words, change.words), change.words
    assert change.what == what
    assert (change.joint is None) == (what == "standby power")
    assert change.since.year == 2026
    assert change.interval[0] < size < change.interval[1]
