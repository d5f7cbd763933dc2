# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions: derivatives belong together, limits hold, named motions stay clear and repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.motions import repeats
from ur_energy_model.trajectory.named_motions import (
    MOTIONS,
    TOOL_SPEED,
    TORQUE_SHARE,
    MotionLimits,
    Planner,
    named_motion,
)


def sampled(motion, rate=1000.0):
    t = np.arange(0.0, min(motion.duration, 30.0), 1.0 / rate)
    return t, *motion.sample(t)


MOVING = pytest.mark.parametrize("name", [name for name in MOTIONS if name != "hold"])


@MOVING
def test_velocity_and_acceleration_are_derivatives(name):
    t, q, qd, qdd = sampled(named_motion(name, load_robot("ur5e")))
    dt = t[1] - t[0]
    # Steps of the acceleration make the difference quotient wrong by dt qdd at single
    # samples.
    assert np.abs(np.gradient(q, dt, axis=0) - qd)[2:-2].max() < 6.5 * dt
    error = np.abs(np.gradient(qd, dt, axis=0) - qdd)[2:-2].max(axis=1)
    assert np.quantile(error, 0.95) < 0.02


@MOVING
@pytest.mark.parametrize("arm", ["ur3", "ur20"])
def test_named_motions_respect_the_limits_of_every_arm(name, arm):
    robot = load_robot(arm)
    motion = named_motion(name, robot)
    limits = MotionLimits.for_robot(robot)
    _, q, qd, qdd = sampled(motion, 200.0)
    assert np.all(np.abs(qd) <= limits.speed * 1.001)
    assert np.all(np.abs(qdd) <= limits.acceleration * 1.001)
    assert np.all(np.abs(q) <= robot.max_position)
    dynamics = ArmDynamics(robot)
    assert np.linalg.norm(dynamics.flange_speed(q, qd), axis=1).max() <= TOOL_SPEED * 1.02
    torque = (
        dynamics.inverse_dynamics(q, qd, qdd)
        + np.nan_to_num(robot.reflected_inertia) * qdd
    )
    assert np.all(np.abs(torque) <= TORQUE_SHARE * robot.max_torque * 1.02)
    assert dynamics.flange_pose(q[::20])[:, 2, 3].min() > 0.0
    assert repeats(motion)


@pytest.mark.parametrize("name", ["ur3e", "ur30"])
def test_every_motion_is_clear_of_arm_and_table(name):
    robot = load_robot(name)
    geometry = ArmGeometry(robot)
    for motion in MOTIONS:
        _, q, _, _ = sampled(named_motion(motion, robot), 10.0)
        assert geometry.clearance(q).distance > 0.0, motion


def test_arms_without_geometry_have_derived_capsules():
    planner = Planner(replace(load_robot("fr3"), name="an arm without geometry"))
    # to the table
    assert not planner.is_clear(np.array([[0.0, 1.9, 0.0, -0.2, 0.0, 0.0, 0.0]]))
    assert planner.is_clear(planner.random_points(5))
