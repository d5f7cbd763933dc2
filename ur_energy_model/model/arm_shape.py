# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The capsules of an arm: from its files, from its URDF, or derived from its kinematics.

Of several sources the first one counts: the geometry file that the user names, the section
`geometry` of the robot file, the collision shapes of the URDF, the file of the package for
an arm of this name. An arm without any of them gets capsules around the lines between its
joints. They are a guess, and every use of them is to be reported with `ArmShape.remarks`.

The radii of the guess follow a rule that was fitted to the capsules of the fourteen UR
arms. Of the collisions at random positions that the true capsules of UR3e, UR5e, UR10e,
UR20, Gen3 and FR3 show, the derived ones show 90 to 100 %.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from ur_energy_model.files import config_file
from ur_energy_model.model.capsules import (
    ArmShape,
    Capsule,
    LinkPairs,
    closest_points,
    load_shape,
    own_ends,
    segment_ends,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import (
    RobotDescription,
    available_robots,
    link_transforms,
    load_robot,
)
from ur_energy_model.typing import Array

_ALIKE = 0.01
"""Difference of kinematic parameters up to which an arm has the shape of the package's arm of
its name: calibrated parameters are off by millimetres [m, rad]."""
_POSITIONS = 1000  # random positions at which the distance of links is compared
_NEAR = 0.04
"""Distance of two links that leaves no room for the usual clearance [m]."""
_ALWAYS = 0.95
"""Share of the positions at which two links are near each other because of their capsules."""
_BEHIND = 3  # largest difference of the numbers of links that meet at a wrist
_SAME = 1e-6  # distance below which two points are one [m]
_BASE_RADIUS = (0.04, 0.04)
_TIP_RADIUS = (0.035, 0.013)
"""Derived radii of the first and the last link: a constant [m], and a part of the reach."""
_DERIVED = (
    "no file has the shape of {robot} ({links}): capsules around the lines between its "
    "joints are a guess; keep a larger --clearance, and see docs/generic_models.md, "
    "Another arm"
)


def with_shape(
    robot: RobotDescription, geometry: str | Path | None = None
) -> RobotDescription:
    """The arm with its shape, which is found once.

    Args:
        robot: the arm, n joints.
        geometry: geometry file of the user; None for the usual sources.

    Raises:
        RobotFileError: a geometry file cannot be used.
    """
    if geometry is None:
        return replace(robot, shape=shape_of(robot))
    shape = load_shape(geometry, robot.name, robot.dof)
    return replace(robot, shape=_complete(robot, shape))


def shape_of(robot: RobotDescription) -> ArmShape:
    """The capsules of an arm, for every link and with the pairs that need no check.

    Args:
        robot: the arm, n joints.

    Raises:
        RobotFileError: a geometry file of the package is damaged.
    """
    shape = robot.shape
    if shape is None and Path(robot.source).suffix == ".urdf":
        from ur_energy_model.model.urdf_shapes import urdf_shape  # slow to import

        shape = urdf_shape(robot, robot.source)
    if shape is None and _is_of_package(robot):
        path = config_file("geometry", f"{robot.name}.yaml")
        shape = load_shape(path, robot.name, robot.dof)
    return _complete(robot, ArmShape(()) if shape is None else shape)


def _is_of_package(robot: RobotDescription) -> bool:
    """Whether the package has capsules for an arm of this name with these kinematics."""
    path = config_file("geometry", f"{robot.name}.yaml")
    if robot.name not in available_robots() or not path.is_file():
        return False
    known = load_robot(robot.name)
    if (robot.convention, robot.dof) != (known.convention, known.dof):
        return False
    for name in ("d", "a", "alpha", "theta"):
        own = getattr(robot, name)
        published = getattr(known, name)
        if own.shape != published.shape or np.abs(own - published).max() > _ALIKE:
            return False
    return True


def _complete(robot: RobotDescription, shape: ArmShape) -> ArmShape:
    """A shape with capsules for all links, and with the pairs that need no check."""
    present = {capsule.link for capsule in shape.capsules}
    missing = [link for link in range(robot.dof + 1) if link not in present]
    # The mounting is described by the table and by walls; a base has few ways to be hit.
    if missing == [0]:
        missing = []
    capsules = shape.capsules
    remarks = shape.remarks
    if missing:
        derived = derived_capsules(robot)
        capsules += tuple(capsule for capsule in derived if capsule.link in missing)
        remarks = (*remarks, _remark(robot, missing))
    pairs = shape.never_touching
    if pairs is None or missing:
        near = inseparable_links(robot, capsules)
        remarks = (*remarks, *_unchecked(robot, near - (pairs or frozenset())))
        pairs = (pairs or frozenset()) | near
    return ArmShape(capsules, pairs, shape.source or "derived", remarks)


def _remark(robot: RobotDescription, missing: list[int]) -> str:
    """The warning about links whose capsules are derived."""
    links = "links " + ", ".join(map(str, missing))
    return _DERIVED.format(links=links, robot=robot.name)


def _unchecked(robot: RobotDescription, near: LinkPairs) -> list[str]:
    """The warning about links that are not checked, although they are not behind each other."""
    far = [pair for pair in sorted(near) if pair[1] - pair[0] > _BEHIND]
    if not far:
        return []
    names = ", ".join(f"{low} and {high}" for low, high in far)
    return [
        f"{robot.name}: the capsules of links {names} are near each other at all positions, "
        "so their distance is not checked"
    ]


def derived_capsules(robot: RobotDescription) -> tuple[Capsule, ...]:
    """Capsules around the lines between the joints of an arm.

    A link of Denavit-Hartenberg parameters has two lines: along the joint's axis, and
    along the common normal to the next axis. The radius decreases from the base to the
    flange.

    Args:
        robot: the arm, n joints.
    """
    lines = _lines(robot)
    lengths = np.zeros(robot.dof + 1)
    for link, start, end in lines:
        lengths[link] += np.linalg.norm(end - start)
    reach = float(lengths[2:].sum())
    base = _BASE_RADIUS[0] + _BASE_RADIUS[1] * reach
    tip = _TIP_RADIUS[0] + _TIP_RADIUS[1] * reach
    radii = np.interp(np.arange(robot.dof + 1), (1, max(robot.dof, 2)), (base, tip))
    capsules = []
    for link, start, end in lines:
        if np.linalg.norm(end - start) > _SAME:
            capsules.append(Capsule(link, start, end, float(radii[link])))
    with_length = {capsule.link for capsule in capsules}
    for link in range(robot.dof + 1):
        if link not in with_length:
            here = np.zeros(3)
            capsules.append(Capsule(link, here, here, float(radii[link])))
    return tuple(sorted(capsules, key=lambda capsule: capsule.link))


def _lines(robot: RobotDescription) -> list[tuple[int, Array, Array]]:
    """Number of the link, start and end [3], m, of every line, in the frame of the link."""
    links, _ = ArmDynamics(robot).frames(np.zeros((1, robot.dof)))
    to_link = np.linalg.inv(links[0])
    lines = []
    pose = np.eye(4)
    moved = 0
    for number, is_fixed in enumerate(robot.fixed):
        before, after = link_transforms(robot, number)
        carriers = [moved] * len(before)
        moved += int(not is_fixed)
        carriers += [moved] * len(after)
        for link, transform in zip(carriers, (*before, *after), strict=True):
            start = to_link[link] @ pose[:, 3]
            pose = pose @ transform
            end = to_link[link] @ pose[:, 3]
            lines.append((link, start[:3], end[:3]))
    return lines


def inseparable_links(
    robot: RobotDescription, capsules: tuple[Capsule, ...]
) -> LinkPairs:
    """Pairs of links that need no check: neighbours, and links that are always near.

    Links behind each other at a wrist are near each other at all positions, because
    their capsules are rounder than they are.

    Args:
        robot: the arm, n joints.
        capsules: capsules of its links.
    """
    width = np.minimum(np.pi, robot.max_position)
    random = np.random.default_rng(0)
    q = robot.middle_position + width * random.uniform(-1.0, 1.0, (_POSITIONS, robot.dof))
    links, _ = ArmDynamics(robot).frames(q)
    carriers = np.array([capsule.link for capsule in capsules])
    ends = segment_ends(own_ends(capsules), links[:, carriers])
    nearest: dict[tuple[int, int], Array] = {}
    for i, j in combinations(range(len(capsules)), 2):
        low, high = sorted((capsules[i].link, capsules[j].link))
        if high - low < 2:
            continue
        near_i, near_j = closest_points(
            ends[:, i, 0], ends[:, i, 1], ends[:, j, 0], ends[:, j, 1]
        )
        distance = np.linalg.norm(near_i - near_j, axis=-1)
        distance -= capsules[i].radius + capsules[j].radius
        other = nearest.get((low, high), distance)
        nearest[low, high] = np.minimum(other, distance)
    pairs = {(link, link + 1) for link in range(robot.dof)}
    for pair, distance in nearest.items():
        if np.mean(distance < _NEAR) >= _ALWAYS:
            pairs.add(pair)
    return frozenset(pairs)
