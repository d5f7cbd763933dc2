# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Standby power at standstill, friction scales of a session, and the mean of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.energy import known_arm
from test.identification.conftest import smooth_motion
from test.truth import first_fast
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.friction_follower import (
    ANCHOR_BLOCK,
    TILT_SPREAD,
    WITHIN_SESSION,
    FrictionFollower,
)
from ur_energy_model.energy.meter import EnergyMeter, bridged_steps
from ur_energy_model.energy.standby import DRIFT, StandbyFollower, StandbySeries
from ur_energy_model.model.drives import (
    MOTION_OF_SESSION,
    MOTION_STD,
    MOTION_TIME,
    BusModel,
    JointModel,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array

Stretch = tuple[float, bool, float]
"""Length [s], whether the arm stands still, and bus power less motors and drivers [W]."""


def followed(
    follower: StandbyFollower,
    rate: float,
    stretches: list[Stretch],
    size: int,
    changes: Array | None = None,
) -> StandbySeries:
    """Standby power in use at samples of stretches, in batches of a size."""
    lengths = [round(seconds * rate) for seconds, _, _ in stretches]
    still = np.repeat([state for _, state, _ in stretches], lengths)
    power = np.repeat([watts for _, _, watts in stretches], lengths)
    time = 7.0 + np.arange(len(still)) / rate
    steps = bridged_steps(time)
    released = np.ones(len(time), dtype=bool)
    errors = np.zeros((len(time), 0)) if changes is None else changes
    found = []
    for start in range(0, len(time), size):
        part = slice(start, start + size)
        columns = (
            time[part],
            steps[part],
            still[part],
            released[part],
            power[part],
            errors[part],
        )
        found.append(follower.update(*columns))
    return StandbySeries(*map(np.concatenate, zip(*found, strict=True)))


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 125.0, 500.0])
@pytest.mark.parametrize("size", [1, 100])
def test_a_second_of_standstill_determines_the_standby_power(
    rate: float, size: int
) -> None:
    follower = StandbyFollower(25.0, spread=2.5, motion_variance=0.72)
    power = followed(follower, rate, [(0.4, False, 25.0), (1.6, True, 29.0)], size).power
    assert follower.anchored
    assert power[0] == 25.0
    assert power[-1] == pytest.approx(29.0, abs=0.4)
    assert follower.std < 1.0
    limited = StandbyFollower(25.0, spread=2.5, limit=3.0)
    assert followed(limited, rate, [(4.0, True, 40.0)], 10).power[-1] == 28.0


@pytest.mark.parametrize("rate", [10.0, 500.0])
def test_a_program_that_never_stands_still_shows_its_standby_power(rate: float) -> None:
    follower = StandbyFollower(25.0, spread=2.5, motion_std=0.6, motion_variance=0.72)
    found = followed(follower, rate, [(60.0, False, 28.0)], 100)
    assert follower.anchored
    assert found.power[-1] == pytest.approx(28.0, abs=0.3)
    assert 0.1 < found.std[-1] < 0.6


@pytest.mark.parametrize("still", [True, False])
@pytest.mark.parametrize("rate", [10.0, 125.0])
def test_a_tool_that_is_switched_is_followed_within_seconds(
    rate: float, still: bool
) -> None:
    follower = StandbyFollower(25.0, spread=2.5, motion_std=0.6, motion_variance=0.72)
    stretches = [(30.0, still, 25.0), (6.0, still, 33.0), (5.0, still, 25.0)]
    power = followed(follower, rate, stretches, 100).power
    assert power[int(32.9 * rate)] == pytest.approx(33.0, abs=0.8)
    assert power[-1] == pytest.approx(25.0, abs=0.8)


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_noise_is_no_jump(noise: float) -> None:
    random = np.random.default_rng(3)
    count = 125 * 120
    time = np.arange(count) / 125.0
    always = np.ones(count, dtype=bool)
    watts = 25.0 + noise * random.standard_normal(count)
    follower = StandbyFollower(25.0, spread=2.5)
    nothing = np.zeros((count, 0))
    found = follower.update(time, bridged_steps(time), always, always, watts, nothing)
    late = time > 60.0
    assert np.abs(found.power[late] - 25.0).max() < 0.4
    assert np.mean(np.abs(found.power[late] - 25.0) < 1.96 * found.std[late]) > 0.9


@pytest.mark.truth
def test_intervals_of_the_standby_power_hold_the_truth() -> None:
    """Sessions from the prior, with noise, errors of motion, and drift within the session."""
    random = np.random.default_rng(5)
    rate = 50.0
    hits = []
    for _ in range(60):
        truth = 25.0 + 2.5 * random.standard_normal()
        follower = StandbyFollower(25.0, 2.5, motion_std=0.6, motion_variance=0.72)
        still = np.tile(np.repeat([False, True], [200, 100]), 8)
        own = 0.6 * np.repeat(random.standard_normal(24), 100)
        common = MOTION_OF_SESSION * 0.6 * random.standard_normal()
        wander = np.cumsum(np.sqrt(DRIFT / rate) * random.standard_normal(len(still)))
        noise = 2.0 * random.standard_normal(len(still))
        power = truth + wander + noise + np.where(still, 0.0, own + common)
        time = np.arange(len(still)) / rate
        nothing = np.zeros((len(still), 0))
        released = np.ones(len(still), dtype=bool)
        steps = bridged_steps(time)
        found = follower.update(time, steps, still, released, power, nothing)
        rows = np.flatnonzero(still)[::100]
        error = found.power[rows] - (truth + wander)[rows]
        hits.append(np.abs(error) < 1.96 * found.std[rows])
    assert 0.90 <= np.mean(hits) <= 0.995


@pytest.mark.parametrize("size", [1, 64])
def test_errors_of_the_holding_power_are_in_the_standby_power_with_the_opposite_sign(
    size: int,
) -> None:
    stretches = [(2.0, False, 29.0), (20.0, True, 29.0), (2.0, False, 29.0)]
    still = np.repeat([False, True, False], [250, 2500, 250])
    # Two errors: one of the holding power alone, one that motion has three times as much
    # of.
    changes = np.where(still[:, None], [2.0, 0.5], [0.0, 1.5])
    follower = StandbyFollower(25.0, spread=2.5, motion_variance=0.72)
    errors = followed(follower, 125.0, stretches, size, changes).errors
    assert not errors[0].any()  # nothing is measured yet
    np.testing.assert_allclose(errors[2749], [-2.0, -0.5], atol=0.05)
    np.testing.assert_allclose((changes + errors)[2749], [0.0, 0.0], atol=0.05)


N = 6
ROBOT = load_robot("ur5e")
SCALE = np.array([1.1, 0.92, 1.05, 0.95, 1.0, 1.08])
TILT = np.array([0.05, -0.1, 0.0, 0.15, -0.05, 0.1])


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


def truth(scale: Array = SCALE, tilt: Array = TILT) -> Session:
    return Session(25.0, 0.0, scale, np.zeros(N), moving_seconds=1.0, friction_tilt=tilt)


def anchored(model: EnergyModel, *motions: Motion) -> Session:
    anchor = FrictionFollower(model)
    dynamics = model.dynamics()
    for time, q, qd, qdd, current in motions:
        anchor.observe(dynamics, time, q, qd, qdd, current)
    return anchor.session()


def motion(
    model: EnergyModel,
    *,
    seconds: float = 10.0,
    noise: float = 0.05,
    still: tuple[int, ...] = (),
    actual: Session | None = None,
    seed: int = 3,
) -> Motion:
    time = np.arange(0.0, seconds, 0.01)
    q, qd, qdd = smooth_motion(ROBOT, time, seed, still)
    random = np.random.default_rng(seed)
    arm_now = model.in_session(truth() if actual is None else actual)
    current = arm_now.predict(q, qd, qdd, std=False).current
    return time, q, qd, qdd, current + noise * random.standard_normal(q.shape)


@pytest.mark.parametrize("law", ["coulomb_viscous", "load_dependent"])
def test_motion_shows_how_much_coulomb_and_viscous_friction_have_changed(
    law: str,
) -> None:
    model = arm(law)
    session = anchored(model, motion(model, seconds=60.0))
    true = truth()
    names = LAWS[law].parameters
    for j in range(N):
        found = session.friction_factors(j, LAWS[law])
        expected = true.friction_factors(j, LAWS[law])
        np.testing.assert_allclose(found, expected, atol=0.04)
        changed = {"coulomb": SCALE[j] - TILT[j], "viscous": SCALE[j] + 2.0 * TILT[j]}
        wanted = [changed.get(name, 1.0) for name in names]
        np.testing.assert_allclose(expected, wanted)
    spread = model.sessions.friction_of(N)
    assert (session.friction_std < 0.6 * spread).all()
    assert (session.friction_std >= WITHIN_SESSION).all()
    assert session.tilt_std is not None
    assert (session.tilt_std < 0.5 * TILT_SPREAD).all()
    assert (session.standby, session.still_seconds) == (25.0, 0.0)


def test_what_is_known_at_a_sample_depends_on_earlier_ones_alone() -> None:
    model, (time, q, qd, qdd, current) = arm(), motion(arm())
    load = model.dynamics().inverse_dynamics(q, qd, qdd) + qdd
    found = []
    for later in (1.0, 3.0):
        anchor = FrictionFollower(model)
        changed = np.where(time[:, None] < 6.0, current, later * current)
        parts = anchor.split(qd, load, changed, None)
        found.append(np.concatenate(anchor.track(time, qd, *parts), axis=1))
    before = time < 6.0 + ANCHOR_BLOCK
    np.testing.assert_allclose(found[0][before], found[1][before], rtol=1e-12)
    assert not np.allclose(found[0][~before], found[1][~before], rtol=1e-3)


def test_friction_of_an_hour_ago_fades() -> None:
    model = arm()
    cold = truth(SCALE + 0.1, np.zeros(N))
    time, *early = motion(model, seconds=60.0, actual=cold)
    time_later, *warm = motion(model, seconds=60.0, seed=5)
    anchor = FrictionFollower(model)
    dynamics = model.dynamics()
    anchor.observe(dynamics, time, *early)
    first = anchor.session()
    aged = anchor.session(time=time[-1] + 3600.0)
    np.testing.assert_allclose(first.friction_scale, SCALE + 0.1, atol=0.03)
    assert (aged.friction_std >= first.friction_std).all()
    assert aged.tilt_std is not None
    assert first.tilt_std is not None
    assert (aged.tilt_std > 2.0 * first.tilt_std).all()
    anchor.observe(dynamics, time_later + 3600.0, *warm)
    np.testing.assert_allclose(anchor.session().friction_scale, SCALE, atol=0.03)


@pytest.mark.truth
def test_intervals_of_friction_hold_the_truth() -> None:
    """Over arms whose friction is drawn from the prior; noise as correlated as that of models."""
    model = arm()
    random = np.random.default_rng(1)
    hits = []
    spread = model.sessions.friction_of(N)
    for seed in range(12):
        scale = 1.0 + spread * random.standard_normal(N)
        tilt = TILT_SPREAD * random.standard_normal(N)
        time, q, qd, qdd, current = motion(
            model, seconds=12.0, noise=0.0, actual=truth(scale, tilt), seed=seed
        )
        slow = random.standard_normal((1 + len(time) // 30, N))
        current = current + 0.2 * np.repeat(slow, 30, axis=0)[: len(time)]
        anchor = FrictionFollower(model)
        dynamics = model.dynamics()
        for rows in np.array_split(np.arange(len(time)), 4):
            anchor.observe(
                dynamics, *(each[rows] for each in (time, q, qd, qdd, current))
            )
            found = anchor.session()
            assert found.friction_tilt is not None
            errors = np.stack(
                [found.friction_scale - scale, found.friction_tilt - tilt], axis=1
            )
            whitened = np.linalg.solve(found.friction_root, errors[..., None])[..., 0]
            hits.append(np.square(whitened).sum(axis=1) < 5.99)  # 95 % of two squares
    assert 0.90 <= np.mean(hits) <= 0.995


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


@pytest.mark.parametrize(("size", "wide"), [(0.05, False), (0.5, True)])
def test_currents_that_no_friction_explains_widen_the_intervals_that_follow(
    size: float, wide: bool
) -> None:
    model = arm()
    random = np.random.default_rng(2)
    model = replace(
        model, joints=tuple(replace(j, current_residual=0.05) for j in model.joints)
    )
    time, q, qd, qdd, current = motion(model, seconds=20.0, noise=0.0)
    slow = random.standard_normal((1 + len(time) // 30, N))
    current = current + size * np.repeat(slow, 30, axis=0)[: len(time)]
    anchor = FrictionFollower(model)
    load = model.dynamics().inverse_dynamics(q, qd, qdd) + qdd
    parts, left = anchor.split(qd, load, current, None)
    found, variance = anchor.track(time, qd, parts, left)
    late = time > 5.0
    assert (variance[late].mean() > 0.1) == wide
    within = np.abs(found - left) <= 1.96 * np.sqrt(variance + 0.05**2)
    assert 0.9 <= within[late].mean() <= 0.99


@pytest.mark.parametrize("seconds", first_fast([4.0, 20.0, 100.0]))
def test_errors_of_many_motions_cancel_but_for_what_the_session_has_in_common(
    seconds: float,
) -> None:
    """Every MOTION_TIME of motion the power is wrong by another draw, and by one of the session."""
    rest = known_arm.motion(2.0, speed=0.0)
    moves = known_arm.motion(seconds, start=102.002)
    batches = [each.select(np.arange(len(each)) % 50 == 0) for each in (rest, moves)]
    # Without bus power in motion, which would show the error that all motions have in
    # common.
    unknown = np.full(len(batches[1]), np.nan)
    columns = {**batches[1].columns, "actual_robot_current": unknown}
    batches[1] = replace(batches[1], columns=columns)
    model = known_arm.known_model()
    bus = replace(model.bus, errors=np.zeros((0, model.bus.errors.shape[1])))
    model = replace(
        model, bus=bus, joints=tuple(replace(j, std={}) for j in model.joints)
    )
    calculator = EnergyCalculator(model, ROBOT)
    meter = EnergyMeter(len(calculator.channels))
    calculator.follow_session(batches)
    for table in filter(None, map(calculator, batches)):
        table.integrate(meter)
    std = calculator.channels.deviations_of_model(meter.reading.net)
    random = np.random.default_rng(1)
    own = random.normal(0.0, MOTION_STD, (4000, round(seconds / MOTION_TIME))).mean(
        axis=1
    )
    common = random.normal(0.0, MOTION_OF_SESSION * MOTION_STD, 4000)
    assert std == pytest.approx(seconds * (own + common).std(), rel=0.15)
