"""Friction scales of a session whose friction is known to have changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.conftest import smooth_motion
from ur_energy_model.energy.session import (
    WITHIN_SESSION,
    FrictionAnchor,
    MeasuredMotion,
    anchor_friction,
)
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.setup import Setup

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


def motion(
    model: EnergyModel, *, seconds: float = 10.0, noise: float = 0.05, still: tuple[int, ...] = ()
) -> MeasuredMotion:
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
    return MeasuredMotion(time, q, qd, qdd, current + noise * random.standard_normal(q.shape))


@pytest.mark.parametrize("law", ["coulomb_viscous", "load_dependent"])
def test_finds_how_much_friction_has_changed(law: str) -> None:
    model = arm(law)
    session = anchor_friction(model, [(motion(model), model.dynamics())])
    np.testing.assert_allclose(session.friction_scale, TRUTH, atol=0.02)
    assert session.moving_seconds == pytest.approx(3.0, abs=0.02)
    spread = model.sessions.friction_of(N)
    assert (session.friction_std < 0.6 * spread).all()
    assert (session.friction_std >= WITHIN_SESSION).all()
    assert (session.standby, session.still_seconds) == (25.0, 0.0)


def test_batches_and_sessions_make_no_difference() -> None:
    model = arm()
    whole, dynamics = motion(model), model.dynamics()
    expected = anchor_friction(model, [(whole, dynamics)])
    # scales stay over the identified friction
    anchor = FrictionAnchor(model.in_session(expected))
    assert not anchor.done
    for rows in np.array_split(np.arange(len(whole.time)), 40):
        part = (whole.time, whole.q, whole.qd, whole.qdd, whole.current)
        anchor.observe(MeasuredMotion(*(values[rows] for values in part)), dynamics)
    assert anchor.done
    np.testing.assert_allclose(anchor.session().friction_scale, expected.friction_scale, rtol=1e-3)


def test_only_the_first_seconds_of_motion_count() -> None:
    model = arm()
    early, dynamics = motion(model), model.dynamics()
    late = replace(early, time=early.time + 100.0, current=2 * early.current)
    session = anchor_friction(model, [(early, dynamics), (late, dynamics)])
    np.testing.assert_allclose(session.friction_scale, TRUTH, atol=0.02)


def test_a_joint_that_does_not_move_stays_unknown() -> None:
    model = arm()
    session = anchor_friction(model, [(motion(model, still=(2,)), model.dynamics())])
    assert session.friction_scale[2] == 1.0
    assert session.friction_std[2] == model.sessions.friction_of(N)[2]


def test_without_motion_the_prior_applies() -> None:
    model = arm()
    session = anchor_friction(model, [])
    np.testing.assert_array_equal(session.friction_scale, np.ones(N))
    np.testing.assert_array_equal(session.friction_std, model.sessions.friction_of(N))
    assert session.moving_seconds == 0.0


def test_the_spread_between_sessions_limits_the_scale() -> None:
    """Currents that friction does not explain hardly move it."""
    model = arm()
    model = replace(model, sessions=SessionSpread(2.5, np.full(N, 0.01), 5))
    wild = motion(model, noise=3.0)
    session = anchor_friction(model, [(wild, model.dynamics())])
    assert (np.abs(session.friction_scale - 1.0) < 0.03).all()
    assert (session.friction_std <= 0.01).all()
