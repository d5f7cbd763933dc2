# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Slow levels are followed, a step of the arm is reported once, and friction is predicted."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from test.identification.made_up_motion import N, generic
from test.learning.surrogate_work import DAY, SurrogateWork
from test.truth import first_fast
from ur_energy_model.energy.friction_follower import WITHIN_SESSION
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.drift_filter import DriftNoise
from ur_energy_model.learning.level_detector import LevelChange, LevelDetector
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

NOISE = DriftNoise(
    usual=0.1,
    wear=0.006,
    session=0.05,
    common=0.05,
    wander=0.015,
    slope=0.01,
    least=0.005,
)
C = 4
WARM = np.full(C, 35.0)


def watch() -> LevelDetector:
    return LevelDetector(NOISE, 0.095, C)


def run(
    follower: LevelDetector, level: np.ndarray, minutes: int, seed: int = 0
) -> list[tuple[int, LevelChange]]:
    """Minutes of noisy levels after the last ones; (minute, change) of what is reported."""
    random = np.random.default_rng(seed)
    begin = follower.saved()["time"]
    start = 0.0 if np.isnan(begin) else float(begin)
    out = []
    for k in range(1, minutes + 1):
        value = level + 0.004 * random.standard_normal(C)
        found = follower.observe(start + 60.0 * k, value, 1e-5 * np.eye(C), WARM)
        out += [(k, change) for change in found]
    return out


def test_a_step_is_reported_once_with_size_and_onset_also_after_a_restart():
    size = -0.15
    kept = watch()
    restarted = watch()
    assert run(kept, np.zeros(C), 40) == []
    onset = float(kept.saved()["time"])
    level = np.array([0.0, size, 0.0, 0.0])
    assert run(kept, level, 2, seed=1) == []
    restarted.restore(kept.saved())
    found = run(kept, level, 120, seed=2)
    assert run(restarted, level, 120, seed=2) == found
    ((minute, change),) = found
    assert minute <= 3
    assert (change.channel, change.time) == (1, onset)
    assert abs(change.size - size) < min(0.02, 4 * change.std)
    assert kept.changed.tolist() == [False, True, False, False]


def test_the_usual_scatter_of_sessions_is_no_change():
    follower = watch()
    random = np.random.default_rng(4)
    for day in range(30):
        follower.start_session(86400.0 * day, 1.0)
        level = 0.05 * random.uniform(-1.5, 1.5) + 0.05 * random.uniform(-1.5, 1.5, C)
        assert run(follower, level, 15, seed=day) == []


def window(time: float, temperature: Array) -> Telemetry:
    """Samples of an arm that does not move."""
    columns = {
        "actual_qd": np.zeros((2, N)),
        "joint_temperatures": np.tile(temperature, (2, 1)),
    }
    return Telemetry(np.array([time, time + 1.0]), columns)


def test_a_cold_start_is_expected_from_earlier_sessions_until_it_is_measured(known):
    """In sessions kept apart from those that were followed, against the surrogate's friction."""
    arm = SurrogateWork(SEED)
    for number in range(1, 6):
        list(arm.session(number, number * DAY, 30))
    errors = []
    before = []
    after = []
    for number in range(6, 12):
        known.start_session(number * DAY, 1.0)
        work = list(arm.session(number, number * DAY, 12))
        for k, each in enumerate(work):
            known.observe(window(each.minute.time - 50.0, each.minute.temperature), [])
            friction = known.friction_now()
            error = (np.log(friction.scale) - each.minute.level) / (
                friction.std / friction.scale
            )
            errors.append(error)
            if k in (0, 11):
                (before if k == 0 else after).append(friction)
            known.observe_minute(each.minute)
    assert all(friction.moving_seconds == 0.0 for friction in before)
    assert all(friction.moving_seconds > 300.0 for friction in after)
    first, last = (
        np.mean([each.std / each.scale for each in group]) for group in (before, after)
    )
    assert first > 0.05
    assert WITHIN_SESSION < last < 0.05
    assert np.mean(np.abs(errors) < 1.96) > 0.9


SEED = 41


@pytest.fixture
def known() -> ChangeMonitor:
    """A monitor that has followed an arm for some sessions, without a change."""
    monitor = ChangeMonitor(generic())
    arm = SurrogateWork(SEED)
    for number in range(1, 6):
        monitor.start_session(number * DAY, 1.0)
        for work in arm.session(number, number * DAY, 40):
            monitor.observe_minute(work.minute)
            power = monitor.model.bus.standby + work.standby
            monitor.observe_standby(work.minute.time, power, 0.4)
        assert monitor.take() == ()
    return monitor


@pytest.mark.parametrize(
    ("what", "size", "error", "words"),
    first_fast(
        [
            ("friction", 0.15, 0.04, "wrist_1_joint friction .* N m instead of"),
            (
                "payload",
                0.8,
                0.15,
                "undeclared payload.*set the payload in the controller",
            ),
            ("mounting", math.radians(4.0), 0.012, "undeclared mounting"),
            ("standby", 5.0, 1.5, "standby power .* above its usual"),
        ],
        2,
    ),
)
def test_a_change_is_reported_once_within_minutes(known, what, size, error, words):
    """The arm warms up meanwhile; the change comes after half an hour of the session."""
    arm = SurrogateWork(SEED)
    start = 6 * DAY
    for number in range(1, 6):
        list(arm.session(number, number * DAY, 40))
    known.start_session(start, 1.0)
    found = []
    for k, each in enumerate(arm.session(6, start, 90)):
        extra = size if what == "standby" and k >= 30 else 0.0
        if k >= 30 and what == "friction":
            arm.friction[3] = math.log(1.0 + size)
        elif k >= 30 and what != "standby":
            arm.setup[0 if what == "payload" else 2] = size
        if k == 30:
            continue  # the minute in which it happens has both
        known.observe_minute(each.minute)
        known.observe_standby(
            each.minute.time, known.model.bus.standby + each.standby + extra, 0.4
        )
        found += [(k - 29, change) for change in known.take()]
    ((minutes, change),) = found
    assert minutes <= (20 if what == "standby" else 10)
    assert change.what == what
    assert abs(abs(change.size) - size) < error
    assert change.interval[0] < change.size < change.interval[1]
    assert re.search(words, change.words)
