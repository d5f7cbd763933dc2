"""Standby power at standstill, friction scales of a session, and the mean of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.conftest import smooth_motion
from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.session import (
    WITHIN_SESSION,
    FrictionAnchor,
    StandbyTracker,
)
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array


def followed(
    tracker: StandbyTracker, rate: float, stretches: list[tuple[float, bool, float]], size: int
) -> np.ndarray:
    """Standby power in use [samples], W; stretches have a length, standstill or not, and power."""
    lengths = [round(seconds * rate) for seconds, _, _ in stretches]
    still = np.repeat([state for _, state, _ in stretches], lengths)
    power = np.repeat([watts for _, _, watts in stretches], lengths)
    time = 7.0 + np.arange(len(still)) / rate
    steps = bridged_steps(time)
    parts = [slice(k, k + size) for k in range(0, len(time), size)]
    return np.concatenate(
        [tracker.update(time[p], steps[p], still[p], power[p]).power for p in parts]
    )


@pytest.mark.parametrize("rate", [5.0, 500.0])
def test_a_second_of_standstill_determines_the_standby_power(rate: float) -> None:
    tracker = StandbyTracker(25.0, spread=2.5)
    power = followed(tracker, rate, [(3.0, False, 90.0), (1.2, True, 29.0)], 100)
    assert tracker.anchored
    assert power[0] == 25.0
    assert power[-1] == pytest.approx(29.0)
    assert tracker.std < 1.0
    limited = StandbyTracker(25.0, spread=2.5, limit=3.0)
    assert followed(limited, rate, [(4.0, True, 40.0)], 10)[-1] == 28.0


@pytest.mark.parametrize("size", [1, 64])
def test_errors_of_the_holding_power_are_in_the_standby_power_with_the_opposite_sign(
    size: int,
) -> None:
    still = np.repeat([False, True, False], 250)
    time = 7.0 + np.arange(len(still)) / 125.0
    steps, power = bridged_steps(time), np.full(len(time), 29.0)
    # Two errors: one of the holding power alone, one that motion has three times as much of.
    changes = np.where(still[:, None], [2.0, 0.5], [0.0, 1.5])
    tracker = StandbyTracker(25.0, spread=2.5)
    parts = [slice(k, k + size) for k in range(0, len(time), size)]
    errors = np.concatenate(
        [tracker.update(time[p], steps[p], still[p], power[p], changes[p]).errors for p in parts]
    )
    assert not errors[still.argmax()].any()  # not anchored yet
    np.testing.assert_allclose(errors[-1], [-2.0, -0.5])
    np.testing.assert_allclose((changes + errors)[-1], [-2.0, 1.0])


N = 6
ROBOT = load_robot("ur5e")
TRUTH = np.array([1.1, 0.92, 1.05, 0.95, 1.0, 1.08])


def arm(law: str = "load_dependent") -> EnergyModel:
    values = {"viscous": 4e-4, "coulomb": 0.05, "load": 0.05, "load_asymmetry": 0.01}
    friction = Friction(LAWS[law], {name: values[name] for name in LAWS[law].parameters})
    joints = tuple(
        JointModel(name, float(ratio), 1.0, 0.1, 0.3, 0.1, friction)
        for name, ratio in zip(ROBOT.joint_names, ROBOT.gear_ratio, strict=True)
    )
    bus = BusModel("physical", 25.0, np.zeros(N), np.zeros(N))
    return EnergyModel("ur5e", Setup(), "given", joints, bus)


Motion = tuple[Array, ...]


def anchored(model: EnergyModel, *motions: Motion) -> Session:
    anchor, dynamics = FrictionAnchor(model), model.dynamics()
    for each in motions:
        anchor.observe(dynamics, *each)
    return anchor.session()


def motion(
    model: EnergyModel, *, seconds: float = 10.0, noise: float = 0.05, still: tuple[int, ...] = ()
) -> Motion:
    time = np.arange(0.0, seconds, 0.01)
    q, qd, qdd = smooth_motion(ROBOT, time, 3, still)
    truth = replace(
        model,
        joints=tuple(
            joint.with_friction_scaled(float(scale))
            for joint, scale in zip(model.joints, TRUTH, strict=True)
        ),
    )
    random = np.random.default_rng(0)
    current = truth.predict(q, qd, qdd, std=False).current
    return time, q, qd, qdd, current + noise * random.standard_normal(q.shape)


@pytest.mark.parametrize("law", ["coulomb_viscous", "load_dependent"])
def test_the_first_seconds_show_how_much_friction_has_changed(law: str) -> None:
    model = arm(law)
    time, *early, current = motion(model)
    session = anchored(model, (time, *early, current), (time + 100.0, *early, 2 * current))
    np.testing.assert_allclose(session.friction_scale, TRUTH, atol=0.02)
    assert session.moving_seconds == pytest.approx(3.0, abs=0.02)
    spread = model.sessions.friction_of(N)
    assert (session.friction_std < 0.6 * spread).all()
    assert (session.friction_std >= WITHIN_SESSION).all()
    assert (session.standby, session.still_seconds) == (25.0, 0.0)


def test_a_session_that_is_known_makes_no_difference() -> None:
    model = arm()
    whole = motion(model)
    expected = anchored(model, whole)
    # scales stay over the identified friction
    again = anchored(model.in_session(expected), whole)
    np.testing.assert_allclose(again.friction_scale, expected.friction_scale, rtol=1e-3)


def test_a_joint_that_does_not_move_stays_unknown() -> None:
    session = anchored(arm(), motion(arm(), still=(2,)))
    assert session.friction_scale[2] == 1.0
    assert session.friction_std[2] == arm().sessions.friction_of(N)[2]
