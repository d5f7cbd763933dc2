# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dynamics and frames against closed formulas and an independent formulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import (
    Payload,
    Setup,
    entries_of,
    gravity_of_mounting,
    inertial_parameters,
)

State = tuple[np.ndarray, np.ndarray, np.ndarray]

SETUP = Setup(
    np.array([1.0, -4.0, -8.5]),
    Payload(2.0, np.array([0.03, 0.01, 0.1]), 0.01 * np.eye(3)),
)


@pytest.fixture(params=["ur5e", "ur10e", "gen3", "fr3"])
def robot(request: pytest.FixtureRequest) -> RobotDescription:
    """Arms of both DH conventions, with a static link, all with tensors."""
    arm = load_robot(request.param)
    roots = np.random.default_rng(5).normal(0, 0.1, (len(arm.d), 3, 3))
    spread = np.einsum("kij,klj->kil", roots, roots)
    tensors = np.trace(spread, axis1=1, axis2=2)[:, None, None] * np.eye(3) - spread
    return replace(arm, inertia=tensors)


@pytest.fixture
def state(robot: RobotDescription) -> State:
    random = np.random.default_rng(1)
    shape = (8, robot.dof)
    return (
        random.uniform(-3, 3, shape),
        random.normal(0, 1, shape),
        random.normal(0, 3, shape),
    )


class Lagrangian:
    """Textbook Lagrange formulation with DH matrices, independent of pinocchio.

    Mass matrix from link Jacobians, Coriolis terms from its numerical derivatives.
    """

    def __init__(self, robot: RobotDescription, setup: Setup) -> None:
        self.robot = robot
        self.setup = setup

    def frames(self, q: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Link frames, and the frame whose z axis is the axis of the link's joint."""
        robot = self.robot
        pose = np.eye(4)
        angles = robot.theta.copy()
        angles[~robot.fixed] += q
        links = []
        axes = []
        for angle, d, a, alpha in zip(angles, robot.d, robot.a, robot.alpha, strict=True):
            c = np.cos(angle)
            s = np.sin(angle)
            ca = np.cos(alpha)
            sa = np.sin(alpha)
            turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
            bend = np.array([[1, 0, 0, a], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
            if robot.convention == "standard":
                axes.append(pose)
                pose = pose @ turn @ bend
            else:
                axes.append(pose @ bend)
                pose = pose @ bend @ turn
            links.append(pose)
        return links, axes

    def bodies(
        self, q: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
        """Mass, linear and angular Jacobian, and tensor in the base frame, per body."""
        links, axes = self.frames(q)
        moving = np.flatnonzero(~self.robot.fixed)
        robot = self.robot
        payload = self.setup.payload
        last = len(links) - 1
        each = [
            *zip(
                robot.mass,
                robot.center_of_mass,
                robot.inertia,
                range(last + 1),
                strict=True,
            )
        ]
        each.append((payload.mass, payload.center_of_mass, payload.inertia, last))
        out = []
        for mass, center, tensor, i in each:
            rotation = links[i][:3, :3]
            point = rotation @ center + links[i][:3, 3]
            linear = np.zeros((3, len(moving)))
            angular = np.zeros((3, len(moving)))
            for k, link in enumerate(moving):
                if link <= i:
                    axis = axes[link][:3, 2]
                    linear[:, k] = np.cross(axis, point - axes[link][:3, 3])
                    angular[:, k] = axis
            out.append((mass, linear, angular, rotation @ tensor @ rotation.T))
        return out

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        return sum(
            mass * linear.T @ linear + angular.T @ tensor @ angular
            for mass, linear, angular, tensor in self.bodies(q)
        )

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        step = 1e-6
        mass = self.mass_matrix
        slopes = np.array(
            [
                (mass(q + unit) - mass(q - unit)) / (2 * step)
                for unit in step * np.eye(len(q))
            ]
        )
        change = np.einsum("kij,k->ij", slopes, qd) @ qd
        energy = 0.5 * np.einsum("kij,i,j->k", slopes, qd, qd)
        weight = sum(
            -mass * linear.T @ self.setup.gravity for mass, linear, *_ in self.bodies(q)
        )
        return mass(q) @ qdd + change - energy + weight


def test_torque_and_frames_agree_with_the_lagrange_formulation(
    robot: RobotDescription, state: State
) -> None:
    arm = ArmDynamics(robot, SETUP)
    other = Lagrangian(robot, SETUP)
    (q, qd, _), step = state, 1e-6
    ahead, behind = (arm.flange_pose(q + sign * step * qd)[:, :3, 3] for sign in (1, -1))
    assert np.allclose(arm.flange_speed(q, qd), (ahead - behind) / (2 * step), atol=1e-6)
    expected = np.array([other.torque(*row) for row in zip(*state, strict=True)])
    assert np.allclose(arm.inverse_dynamics(*state), expected, rtol=1e-6, atol=1e-6)
    links, joints = arm.frames(state[0])
    expected = np.array([other.frames(q) for q in state[0]])[:, :, ~robot.fixed]
    assert np.allclose(
        arm.flange_pose(state[0]), [other.frames(q)[0][-1] for q in state[0]]
    )
    assert np.allclose(links[:, -1], arm.flange_pose(state[0]), atol=1e-12)
    assert np.allclose(joints[..., 2], expected[:, 1, :, :, 2])


def test_regressors_times_parameters_are_torques(
    robot: RobotDescription, state: State
) -> None:
    arm = ArmDynamics(robot, SETUP)
    bare = ArmDynamics(robot, Setup(SETUP.gravity))
    torque = arm.inverse_dynamics(*state)
    payload = SETUP.payload
    assert np.allclose(arm.regressor(*state) @ arm.parameters(), torque)
    tensor = entries_of(payload.inertia)
    parameters = inertial_parameters(payload.mass, payload.center_of_mass, tensor)
    extra = torque - bare.inverse_dynamics(*state)
    assert np.allclose(bare.payload_regressor(*state) @ parameters, extra)
    at_rest = arm.gravity_regressor(state[0]) @ SETUP.gravity
    assert np.allclose(at_rest, arm.gravity_torque(state[0]))
    zero = np.zeros_like(state[0])
    weight = arm.payload_regressor(state[0], zero, zero)[:, :, :4]
    in_unit_gravity = arm.flange_weight_regressor(state[0])
    assert np.allclose(np.einsum("snak,a->snk", in_unit_gravity, SETUP.gravity), weight)


HALF = 9.82 / np.sqrt(2)


@pytest.mark.parametrize(
    ("tilt", "rotation", "gravity"),
    [
        (0, 90, (0, 0, -9.82)),
        # URScript's set_gravity([0, 9.82, 0]), "mounted on the wall", is the negative of
        # gravity.
        (90, 0, (0, -9.82, 0)),
        (90, 90, (-9.82, 0, 0)),
        # As recorded on an arm on a 45 degree stand: gravity 0, 6.94, -6.94.
        (45, 180, (0, HALF, -HALF)),
    ],
)
def test_gravity_of_mountings_is_that_of_urs_controller(tilt, rotation, gravity) -> None:
    found = gravity_of_mounting(np.radians(tilt), np.radians(rotation))
    assert np.allclose(found, gravity, atol=1e-9)
