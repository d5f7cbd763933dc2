"""Friction of the session now: unknown, expected from earlier sessions, measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.learning.made_up_motion import N, generic, motion
from test.learning.surrogate_work import DAY, SurrogateWork
from ur_energy_model.energy.session import WITHIN_SESSION
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

SEED = 4711


def window(time: float, temperature: Array) -> Telemetry:
    """Samples of an arm that does not move."""
    columns = {"actual_qd": np.zeros((2, N)), "joint_temperatures": np.tile(temperature, (2, 1))}
    return Telemetry(np.array([time, time + 1.0]), columns)


@pytest.fixture
def known() -> ChangeMonitor:
    """A monitor that has followed an arm for some sessions."""
    monitor, arm = ChangeMonitor(generic()), SurrogateWork(SEED)
    for number in range(1, 6):
        monitor.start_session(number * DAY, 1.0)
        for work in arm.session(number, number * DAY, 30):
            monitor.observe_minute(work.minute)
    return monitor


def test_friction_that_was_never_measured_is_that_of_the_model():
    model = generic()
    friction = ChangeMonitor(model).friction_now()
    assert np.isnan(friction.scale).all()
    session = friction.applied_to(model.session)
    np.testing.assert_array_equal(session.friction_scale, 1.0)
    np.testing.assert_array_equal(session.friction_std, model.session.friction_std)
    assert session.moving_seconds == 0.0


def test_a_cold_start_is_expected_from_earlier_sessions_until_it_is_measured(known):
    """In sessions kept apart from those that were followed, against the surrogate's friction."""
    arm = SurrogateWork(SEED)
    for number in range(1, 6):
        list(arm.session(number, number * DAY, 30))
    errors, before, after = [], [], []
    for number in range(6, 12):
        known.start_session(number * DAY, 1.0)
        work = list(arm.session(number, number * DAY, 12))
        for k, each in enumerate(work):
            known.observe(window(each.minute.time - 50.0, each.minute.temperature), [])
            friction = known.friction_now()
            error = (np.log(friction.scale) - each.minute.level) / (friction.std / friction.scale)
            errors.append(error)
            if k in (0, 11):
                (before if k == 0 else after).append(friction)
            known.observe_minute(each.minute)
    assert all(friction.moving_seconds == 0.0 for friction in before)
    assert all(friction.moving_seconds > 300.0 for friction in after)
    first, last = (np.mean([each.std / each.scale for each in group]) for group in (before, after))
    assert first > 0.05
    assert WITHIN_SESSION < last < 0.05
    assert np.mean(np.abs(errors) < 1.96) > 0.9


def test_after_a_restart_a_session_counts_as_measured_only_with_its_samples(known):
    again = ChangeMonitor(generic())
    again.restore(known.state())
    assert again.friction_now().moving_seconds == 0.0
    assert again.friction_now().std.min() > 0.05
    usual = known.friction.usual_scale(np.full(N, np.nan))[0]
    np.testing.assert_allclose(again.friction_now().scale, usual)


def scaled(factor: float) -> EnergyModel:
    joints = tuple(joint.with_friction_scaled(factor) for joint in generic().joints)
    return replace(generic(), joints=joints)


def test_friction_is_relative_to_the_model_in_use_at_once_and_after_the_change_over():
    """The next model has a fifth less friction, so that the same arm has 1.25 times its."""
    monitor, dynamics, found = ChangeMonitor(generic()), generic().dynamics(), []
    for k in range(12):
        if k == 6:
            before = monitor.friction_now().scale
            monitor.use_model(scaled(0.8))
            found.append(monitor.friction_now().scale / before)
        part = motion(60.0, start=60.0 * (k + 1), seed=3)
        monitor.observe(Telemetry(part.time, {"actual_qd": part.qd}), [(part, dynamics)])
    found.append(monitor.friction_now().scale / before)
    np.testing.assert_allclose(found, 1.25, atol=0.08)
