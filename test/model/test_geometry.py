# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Distances of capsules: two methods agree, gradients are right, known poses are classified."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.arm_shape import shape_of
from ur_energy_model.model.capsules import Capsule
from ur_energy_model.model.geometry import TABLE, ArmGeometry, Wall
from ur_energy_model.model.robots import load_robot

UPRIGHT = np.array([[0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0]])
ARMS = (
    "ur3", "ur5", "ur10", "ur3e", "ur5e", "ur7e", "ur10e", "ur12e", "ur16e",
    "ur8long", "ur15", "ur18", "ur20", "ur30",
)  # fmt: skip


@pytest.fixture(scope="module")
def geometry():
    return ArmGeometry(load_robot("ur5e"))


def random_positions(count: int) -> np.ndarray:
    return np.random.default_rng(4).uniform(-np.pi, np.pi, (count, 6))


@pytest.mark.parametrize("arm", ["ur5e", "ur20"])
def test_array_wise_distances_agree_with_coal(arm):
    geometry = ArmGeometry(
        load_robot(arm), (TABLE, Wall("wall", np.array([0.0, 1.0, 0.0]), -0.4))
    )
    q = random_positions(60)
    ours = geometry.distances(q)
    for k in range(len(q)):
        judged = geometry.clearance(q[k : k + 1])
        assert judged.distance == pytest.approx(ours[k].min(), abs=1e-6)


def test_gradient_of_distances(geometry):
    q = random_positions(40)
    gradient = geometry.gradients(q)[1]
    step = 1e-6
    for joint, move in enumerate(step * np.eye(6)):
        numeric = (geometry.distances(q + move) - geometry.distances(q - move)) / (
            2 * step
        )
        # Parallel segments switch closest points; they are rare among random positions.
        wrong = np.abs(numeric - gradient[:, :, joint]) > 1e-4
        assert wrong.mean() < 1e-3


FOLDED = [0.0, -np.pi / 2, 2.9, -np.pi / 2, 0.0, 0.0]
DOWN = [0.0, 0.4, 0.0, -np.pi / 2, 0.0, 0.0]
STRETCHED = [0.0, -0.3, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("pose", "options", "meets"),
    [
        (FOLDED, {}, None),
        (DOWN, {}, "table"),
        (
            STRETCHED,
            {"walls": (TABLE, Wall("wall", np.array([1.0, 0.0, 0.0]), -0.5))},
            "wall",
        ),
    ],
)
def test_known_poses(pose, options, meets):
    found = ArmGeometry(load_robot("ur5e"), **options).clearance(np.array([pose]))
    assert found.distance < 0
    assert meets in found.pair if meets else "table" not in found.pair


def test_a_tool_needs_room(geometry):
    low = np.array([[0.0, -1.2, 2.0, -2.37, -np.pi / 2, 0.0]])
    tool = Capsule(6, np.zeros(3), np.array([0.0, 0.0, 0.25]), 0.04)
    with_tool = ArmGeometry(load_robot("ur5e"), tool=(tool,)).clearance(low)
    assert with_tool.distance < geometry.clearance(low).distance


def test_fastest_point_bounds_the_change_of_distances(geometry):
    q = random_positions(200)
    qd = np.random.default_rng(5).uniform(-3, 3, q.shape)
    step = 1e-3
    change = np.abs(geometry.distances(q + step * qd) - geometry.distances(q)).max(axis=1)
    assert (change <= 2 * geometry.fastest_point(q, qd) * step * 1.01).all()


@pytest.mark.parametrize("arm", ARMS)
def test_capsules_reach_from_joint_to_joint(arm):
    robot = load_robot(arm)
    assert ArmGeometry(robot).clearance(UPRIGHT).distance > 0.03
    capsules = shape_of(robot).capsules
    for link in (2, 3):
        own = [c for c in capsules if c.link == link]
        low = min(min(c.start[0], c.end[0]) - c.radius for c in own)
        high = max(max(c.start[0], c.end[0]) + c.radius for c in own)
        assert low < 0 < -robot.a[link - 1] - 0.02 < high
