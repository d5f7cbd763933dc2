# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capsule geometry of an arm: distances between its links, and to table and walls.

`arm_shape` finds the capsules that enclose the links. `ArmGeometry.distances` and
`gradients` work on arrays and are fast enough for a search; `ArmGeometry.clearance`
checks a trajectory with coal, the collision library of pinocchio, for the values in
reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import coal
import numpy as np
import pinocchio as pin

from ur_energy_model.model.arm_shape import shape_of
from ur_energy_model.model.capsules import Capsule, closest_points, own_ends, segment_ends
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

# Walls, and the arm among them.


@dataclass(frozen=True)
class Wall:
    """A half-space that the arm must not enter: points with normal . x < offset (base frame).

    Attributes:
        name: name of the half-space, such as "table".
        normal: unit vector towards the free side [3].
        offset: offset of the plane from the origin of the base frame, along the normal
            [m].
    """

    name: str
    normal: Array
    offset: float


TABLE = Wall("table", np.array([0.0, 0.0, 1.0]), 0.0)
"""The plane of the base flange; a pedestal is a table with a negative offset."""


LINK_NAMES = ("base", "shoulder", "upper arm", "forearm", "wrist 1", "wrist 2", "wrist 3")
_NEARLY = 0.005
"""Samples whose distance exceeds the smallest one by less are checked with coal, too [m]."""
_SPARSE = 10  # coal also checks every tenth sample
FIRST_FREE_LINK = 2
"""Links from this one on must keep clear of walls; base and shoulder stand on the
mounting."""


@dataclass(frozen=True)
class Clearance:
    """Smallest distance of a trajectory.

    Attributes:
        distance: distance [m]; negative is the depth of a collision.
        pair: names of the two bodies.
        sample: index of the sample where it occurs.
    """

    distance: float
    pair: tuple[str, str]
    sample: int


class ArmGeometry:
    """Distances between the links of an arm, and between them and walls.

    Args:
        robot: the arm, n joints.
        walls: half-spaces that the arm must not enter, in the base frame.
        tool: further capsules on the last link, in the flange frame.

    Raises:
        RobotFileError: the geometry file of the arm is damaged.
    """

    def __init__(
        self,
        robot: RobotDescription,
        walls: Sequence[Wall] = (TABLE,),
        tool: Sequence[Capsule] = (),
    ) -> None:
        shape = shape_of(robot)
        ignored = shape.never_touching or frozenset()
        self.robot = replace(robot, shape=shape)
        self.tool = tuple(tool)
        self.walls = tuple(walls)
        self.capsules = (*shape.capsules, *tool)
        self._dynamics = ArmDynamics(robot)
        carriers = [capsule.link for capsule in self.capsules]
        pairs = []
        for i, j in combinations(range(len(carriers)), 2):
            low, high = sorted((carriers[i], carriers[j]))
            if low != high and (low, high) not in ignored:
                pairs.append((i, j))
        self._pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._link = np.array(carriers)
        self._ends = own_ends(self.capsules)
        self._free = np.flatnonzero(self._link >= FIRST_FREE_LINK)
        self._radius = np.array([capsule.radius for capsule in self.capsules])

    def distances(self, q: Array) -> Array:
        """Distance of every checked pair [samples, pairs], m, at positions q [samples, n], rad."""
        ends, _, _ = self._place(q)
        _, _, distance = self._nearest(ends)
        walls = [self._wall_heights(wall, ends)[0] for wall in self.walls]
        return np.concatenate([distance, *walls], axis=1)

    def gradients(self, q: Array) -> tuple[Array, Array]:
        """`distances` and their gradients with respect to the joints [samples, pairs, n], m/rad."""
        ends, axes, origins = self._place(q)
        first, second = self._link[self._pairs].T
        near_a, near_b, of_pairs = self._nearest(ends)
        normal = near_a - near_b
        normal /= np.maximum(np.linalg.norm(normal, axis=-1), 1e-12)[..., None]
        distance = [of_pairs]
        speed_a = _point_speeds(near_a, first, normal, axes, origins)
        speed_b = _point_speeds(near_b, second, normal, axes, origins)
        gradient = [speed_a - speed_b]
        free = self._link[self._free]
        for wall in self.walls:
            height, near = self._wall_heights(wall, ends)
            distance.append(height)
            towards = np.broadcast_to(wall.normal, near.shape)
            gradient.append(_point_speeds(near, free, towards, axes, origins))
        return np.concatenate(distance, axis=1), np.concatenate(gradient, axis=1)

    def wall_distances(self, q: Array) -> Array:
        """Distances to the walls alone [samples, pairs], m, for joint positions [samples, n]."""
        return self.distances(q)[:, len(self._pairs) :]

    def clearance(self, q: Array) -> Clearance:
        """Smallest distance over joint positions [samples, n], computed with coal.

        Coal checks every tenth sample, and those whose `distances` nearly equal the
        smallest.
        """
        fast = self.distances(q).min(axis=1)
        near = fast < fast.min() + _NEARLY
        near[::_SPARSE] = True
        links, _ = self._dynamics.frames(q)
        bodies = [_collision_body(capsule) for capsule in self.capsules]
        shapes = [body.shape for body in bodies]
        shapes += [coal.Halfspace(wall.normal, wall.offset) for wall in self.walls]
        places = np.array([body.place for body in bodies])
        names = [_link_name(link) for link in self._link.tolist()]
        names += [wall.name for wall in self.walls]
        pairs = self._pairs.tolist()
        # The walls are behind the capsules.
        for wall in range(len(bodies), len(shapes)):
            pairs += [[body, wall] for body in self._free.tolist()]
        request = coal.DistanceRequest()
        result = coal.DistanceResult()
        best = Clearance(np.inf, ("", ""), 0)
        for sample in np.flatnonzero(near).tolist():
            poses = links[sample, self._link] @ places
            where = [coal.Transform3s(pose[:3, :3], pose[:3, 3]) for pose in poses]
            where += [coal.Transform3s.Identity()] * len(self.walls)
            for i, j in pairs:
                result.clear()
                value = coal.distance(
                    shapes[i], where[i], shapes[j], where[j], request, result
                )
                if value < best.distance:
                    best = Clearance(float(value), (names[i], names[j]), sample)
        return best

    def fastest_point(self, q: Array, qd: Array) -> Array:
        """Upper bound of the speed of any point of the arm [samples], m/s.

        Args:
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
        """
        ends, axes, origins = self._place(q)
        spin = axes * qd[..., None]
        reach = np.zeros(len(q))
        for c, link in enumerate(self._link):
            turning = spin[:, :link].sum(axis=1)
            offset = np.cross(spin[:, :link], origins[:, :link]).sum(axis=1)
            velocity = np.cross(turning[:, None], ends[:, c]) - offset[:, None]
            speed = np.linalg.norm(velocity, axis=-1)
            own = self._radius[c] * np.linalg.norm(turning, axis=-1)
            reach = np.maximum(reach, speed.max(axis=-1) + own)
        return reach

    def _nearest(self, ends: Array) -> tuple[Array, Array, Array]:
        """Closest points of the axes of every pair [samples, pairs, 3], and the pair's distance."""
        first, second = self._pairs.T
        near_a, near_b = closest_points(
            ends[:, first, 0], ends[:, first, 1], ends[:, second, 0], ends[:, second, 1]
        )
        radii = self._radius[first] + self._radius[second]
        return near_a, near_b, np.linalg.norm(near_a - near_b, axis=-1) - radii

    def _wall_heights(self, wall: Wall, ends: Array) -> tuple[Array, Array]:
        """Height of bodies above a wall [samples, bodies], and their lower end [..., 3]."""
        height = ends[:, self._free] @ wall.normal - wall.offset
        lower = np.argmin(height, axis=-1)[..., None]
        near = np.take_along_axis(ends[:, self._free], lower[..., None], axis=2)[:, :, 0]
        lowest = np.take_along_axis(height, lower, axis=-1)[..., 0]
        return lowest - self._radius[self._free], near

    def _place(self, q: Array) -> tuple[Array, Array, Array]:
        """Capsule ends [samples, capsules, 2, 3], joint axes and origins [samples, n, 3]."""
        links, joints = self._dynamics.frames(q)
        ends = segment_ends(self._ends, links[:, self._link])
        return ends, joints[..., :3, 2], joints[..., :3, 3]


class _Body(NamedTuple):
    """A capsule as coal takes it.

    Attributes:
        shape: capsule along the z axis, its middle at the origin.
        place: pose of this capsule in the frame of its link [4, 4].
    """

    shape: coal.Capsule
    place: Array


def _collision_body(capsule: Capsule) -> _Body:
    """The body of a capsule."""
    along = capsule.end - capsule.start
    length = float(np.linalg.norm(along))
    turn = np.eye(3)
    if length > 0:
        z_axis = np.array([0.0, 0.0, 1.0])
        turn = pin.Quaternion.FromTwoVectors(z_axis, along).matrix()
    middle = (capsule.start + capsule.end) / 2
    place = pin.SE3(turn, middle).homogeneous
    return _Body(coal.Capsule(capsule.radius, length), place)


def _link_name(link: int) -> str:
    """Name of a link, by its number; links of longer arms have no names."""
    return LINK_NAMES[link] if link < len(LINK_NAMES) else f"link {link}"


def _point_speeds(
    point: Array, link: Array, normal: Array, axes: Array, origins: Array
) -> Array:
    """Speed of points along normals per joint velocity [samples, pairs, n], m/rad.

    Joint k moves a point p of the links after it with axis_k x (p - origin_k).

    Args:
        point: points in the base frame [samples, pairs, 3], m.
        link: links that the points are fixed to [pairs].
        normal: unit vectors [samples, pairs, 3].
        axes: axes of the joints in the base frame [samples, n, 3].
        origins: points on these axes [samples, n, 3], m.
    """
    arm = point[:, :, None] - origins[:, None]
    speed = np.einsum("kpji,kpi->kpj", np.cross(axes[:, None], arm), normal)
    carried = np.arange(axes.shape[1]) < link[:, None]
    return np.asarray(speed * carried)
