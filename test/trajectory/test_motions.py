"""Motions: derivatives belong together, limits hold, named motions stay clear and repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.trajectory.motions import Chain, Sampled, Trapezoid, move, repeats
from ur_energy_model.trajectory.named_motions import (
    MOTIONS,
    TEST_ACCELERATION,
    TEST_SPEED,
    TOOL_SPEED,
    TORQUE_SHARE,
    MotionLimits,
    Planner,
    named_motion,
)


def sampled(motion, rate=1000.0):
    t = np.arange(0.0, min(motion.duration, 30.0), 1.0 / rate)
    return t, *motion.sample(t)


@pytest.fixture(scope="module", params=["ur3", "ur5e", "ur20"])
def robot(request):
    return load_robot(request.param)


@pytest.mark.parametrize("name", [name for name in MOTIONS if name != "hold"])
def test_velocity_and_acceleration_are_derivatives(name):
    t, q, qd, qdd = sampled(named_motion(name, load_robot("ur5e")))
    dt = t[1] - t[0]
    # Steps of the acceleration make the difference quotient wrong by dt qdd at single samples.
    assert np.abs(np.gradient(q, dt, axis=0) - qd)[2:-2].max() < 6.5 * dt
    error = np.abs(np.gradient(qd, dt, axis=0) - qdd)[2:-2].max(axis=1)
    assert np.quantile(error, 0.95) < 0.02


@pytest.mark.parametrize("name", [name for name in MOTIONS if name != "hold"])
def test_named_motions_respect_the_limits_of_every_arm(name, robot):
    motion = named_motion(name, robot)
    limits = MotionLimits.for_robot(robot)
    _, q, qd, qdd = sampled(motion, 200.0)
    assert np.all(np.abs(qd) <= limits.speed * 1.001)
    assert np.all(np.abs(qdd) <= limits.acceleration * 1.001)
    assert np.all(np.abs(q) <= robot.max_position)
    dynamics = ArmDynamics(robot)
    assert np.linalg.norm(dynamics.flange_speed(q, qd), axis=1).max() <= TOOL_SPEED * 1.02
    torque = dynamics.inverse_dynamics(q, qd, qdd) + np.nan_to_num(robot.reflected_inertia) * qdd
    assert np.all(np.abs(torque) <= TORQUE_SHARE * robot.max_torque * 1.02)
    assert dynamics.flange_pose(q[::20])[:, 2, 3].min() > 0.0
    assert repeats(motion)


def test_trajectories_a_and_b_have_six_points_each_and_differ():
    robot = load_robot("ur5e")
    a, b, again = (named_motion(f"trajectory_{name}", robot) for name in "aba")
    assert isinstance(a, Chain)
    assert isinstance(b, Chain)
    assert isinstance(again, Chain)
    assert len(a.moves) == len(b.moves) == 6
    q, other, same = (motion.sample(motion.starts)[0] for motion in (a, b, again))
    assert np.abs(q - other).max() > 0.5
    assert np.array_equal(q, same)


def test_a_move_is_as_fast_as_its_slowest_joint_allows():
    start, end = np.zeros(3), np.array([1.0, -2.0, 0.5])
    _, _, qd, qdd = sampled(move(start, end, TEST_SPEED, TEST_ACCELERATION))
    assert np.abs(qd).max() == pytest.approx(TEST_SPEED, rel=1e-3)
    assert np.abs(qdd).max() == pytest.approx(TEST_ACCELERATION)
    assert np.allclose(np.abs(qd).max(axis=0), 0.5 * TEST_SPEED * np.array([1.0, 2.0, 0.5]))


def test_tool_speed_is_re_planned_and_heavier_loads_move_slower():
    robot = load_robot("ur5e")
    start = np.array([0.0, -0.3, 0.2, 0.0, 0.0, 0.0])
    end = start + np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    quick = replace(MotionLimits.for_robot(robot), tool_speed=100.0)
    fast = Planner(robot, limits=quick).move(start, end)
    planned = Planner(robot).move(start, end)
    assert planned.duration > 1.3 * fast.duration
    # Upwards from outstretched takes more torque with a load than the joints should give.
    up = start + np.array([0.0, -1.2, 0.0, 0.0, 0.0, 0.0])
    weak = replace(quick, torque=0.55 * robot.max_torque)
    loaded = Setup(payload=Payload(3.0, np.array([0.0, 0.0, 0.1])))
    assert (
        Planner(robot, loaded, limits=weak).move(start, up).duration
        > Planner(robot, limits=weak).move(start, up).duration
    )


@pytest.mark.parametrize("name", ["ur3e", "ur5", "ur10e", "ur30"])
def test_every_motion_is_clear_of_arm_and_table(name):
    robot = load_robot(name)
    geometry = ArmGeometry(robot)
    for motion in MOTIONS:
        _, q, _, _ = sampled(named_motion(motion, robot), 10.0)
        assert geometry.clearance(q).distance > 0.0, motion


def test_arms_without_geometry_are_clear_of_table_and_column():
    planner = Planner(replace(load_robot("fr3"), name="an arm without geometry"))
    assert not planner.is_clear(
        np.array([[0.0, 1.9, 0.0, -0.2, 0.0, 0.0, 0.0]])
    )  # bent to the table
    assert not planner.is_clear(np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))  # over the column
    assert planner.is_clear(planner.random_points(5))


def test_a_sampled_motion_passes_through_its_samples():
    original = named_motion("sinusoids", load_robot("ur5e"))
    t = np.arange(0.0, 20.0, 0.02)
    motion = Sampled(t + 7.0, *original.sample(t))
    fine = np.arange(0.0, 19.9, 0.002)
    tolerance = (1e-6, 1e-4, 2e-3)
    for mine, true, most in zip(motion.sample(fine), original.sample(fine), tolerance, strict=True):
        assert np.abs(mine - true).max() < most
    _, qd, qdd = motion.sample(np.array([motion.duration + 1.0]))
    assert not qd.any()
    assert not qdd.any()


@pytest.mark.parametrize(
    ("distance", "speed", "acceleration"), [(0.1, 3.0, 6.0), (5.0, 0.5, 4.0), (2.0, 2.0, 2.0)]
)
def test_it_covers_the_distance_within_its_limits_from_rest_to_rest(distance, speed, acceleration):
    profile = Trapezoid(distance, speed, acceleration)
    way, pace, rate = profile.sample(np.linspace(0.0, profile.duration, 400))
    assert way[0] == pytest.approx(0.0)
    assert way[-1] == pytest.approx(distance)
    assert pace[[0, -1]] == pytest.approx(0.0, abs=1e-9)
    assert pace.max() <= speed * (1 + 1e-9)
    assert np.abs(rate).max() <= acceleration * (1 + 1e-9)
    assert np.all(np.diff(way) >= -1e-12)
