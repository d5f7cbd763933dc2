# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capsules that enclose the collision shapes of a URDF: boxes, cylinders, spheres, meshes.

Coal, the collision library of pinocchio, reads the meshes (STL, DAE, OBJ). A mesh becomes
one capsule, or up to four where these enclose less space together. Every triangle lies in
one of them, so no point of the mesh is outside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

import coal
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from ur_energy_model.model.capsules import ArmShape, Capsule
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.urdf_import import SerialArm, end_of, pose_of, serial_arm
from ur_energy_model.typing import Array, Mask
from ur_energy_model.yaml_nodes import excerpt

_RIM = 24  # corners of the polygon around the rim of a cylinder
_LARGEST_MESH = 200_000_000  # largest file of a mesh [bytes]
_FEW = 50  # points that are used without their convex hull
_CIRCLE_STEPS = 60  # steps towards the smallest circle around points
_WIDER = (1.0, 1.1, 1.25, 1.5)
"""Radii that are tried, over the smallest one: a wider capsule may be much shorter."""
_LEVELS = 2  # times that a mesh is divided
_CUTS = (0.3, 0.5, 0.7)  # places at which a mesh is divided, as part of its length
_SAVING = 0.85
"""Volume of all parts, over the volume of the whole, from which a division is worth it."""
_COMPARED = 500  # triangles with which divisions of a mesh are compared
_THIN = 1e-3  # smallest radius [m]


class Segment(NamedTuple):
    """A capsule in the frame of its points.

    Attributes:
        start: one end [3], m.
        end: the other end [3], m.
        radius: radius [m].
    """

    start: Array
    end: Array
    radius: float

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        length = float(np.linalg.norm(self.end - self.start))
        return float(np.pi * self.radius**2 * (length + 4 / 3 * self.radius))


def urdf_shape(robot: RobotDescription, path: str | Path) -> ArmShape:
    """Capsules around the collision shapes of a URDF, in the frames of the links.

    Shapes that cannot be read are in the remarks.

    Args:
        robot: the arm, as loaded from the URDF.
        path: the URDF.

    Raises:
        RobotFileError: the URDF cannot be read.
    """
    path = Path(path).resolve()
    at_zero = _shape_at_zero(path, path.stat().st_mtime_ns)
    frames, _ = ArmDynamics(robot).frames(np.zeros((1, robot.dof)))
    to_link = np.linalg.inv(frames[0])
    capsules = []
    for capsule in at_zero.capsules:
        own = to_link[capsule.link]
        start = own[:3, :3] @ capsule.start + own[:3, 3]
        end = own[:3, :3] @ capsule.end + own[:3, 3]
        capsules.append(replace(capsule, start=start, end=end))
    return replace(at_zero, capsules=tuple(capsules))


@lru_cache(maxsize=8)
def _shape_at_zero(path: Path, modified: int) -> ArmShape:
    """Capsules in the base frame at zero positions, which take seconds for large meshes.

    Args:
        path: the URDF.
        modified: time of its last change, which makes it another file.
    """
    del modified
    arm = serial_arm(path)
    capsules: list[Capsule] = []
    remarks: list[str] = []
    for link, name, pose in _links(arm):
        for collision in arm.links[name].findall("collision"):
            try:
                segments = _segments(collision, path)
                own = pose @ _pose(collision)
            except ValueError as error:
                text = excerpt(str(error))
                remarks.append(f"{path.name}: collision shape of {name} left out: {text}")
                continue
            for segment in segments:
                ends = np.stack([segment.start, segment.end]) @ own[:3, :3].T + own[:3, 3]
                capsules.append(Capsule(link, ends[0], ends[1], segment.radius))
    source = f"collision shapes of {path}"
    return ArmShape(tuple(capsules), None, source, tuple(remarks))


def _links(arm: SerialArm) -> Iterator[tuple[int, str, Array]]:
    """Number of the moving link, name and pose at zero [4, 4] of every link of the URDF.

    A link on a fixed joint belongs to the moving link before it.
    """
    waiting = [(0, arm.base, np.eye(4))]
    while waiting:
        number, name, pose = waiting.pop()
        yield number, name, pose
        for joint in arm.after.get(name, []):
            moved = number + int(joint in arm.moving)
            waiting.append((moved, end_of(joint, "child"), pose @ _pose(joint)))


def _pose(element: Xml.Element) -> Array:
    """The pose [4, 4] in the element "origin" of an element of the URDF."""
    place, rotation = pose_of(element.find("origin"))
    pose = np.eye(4)
    pose[:3, :3] = rotation.as_matrix()
    pose[:3, 3] = place
    return pose


def _segments(collision: Xml.Element, path: Path) -> list[Segment]:
    """Capsules around one collision element, in its own frame.

    Args:
        collision: the element.
        path: the URDF, near which meshes are searched.

    Raises:
        ValueError: the shape cannot be read; the text has the reason.
    """
    shapes = list(collision.findall("geometry/*"))
    if not shapes:
        raise ValueError("has no geometry")
    shape = shapes[0]
    if shape.tag == "sphere":
        return [Segment(np.zeros(3), np.zeros(3), _size(shape, "radius"))]
    if shape.tag == "box":
        half = np.array([float(size) for size in shape.get("size", "").split()]) / 2
        if half.shape != (3,) or not (half > 0).all():
            raise ValueError("a box needs three sizes above zero")
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return [enclosing_capsule(signs * half)]
    if shape.tag in ("cylinder", "capsule"):
        radius = _size(shape, "radius")
        up = np.array([0.0, 0.0, _size(shape, "length") / 2])
        if shape.tag == "capsule":
            return [Segment(-up, up, radius)]
        angle = 2 * np.pi * np.arange(_RIM) / _RIM
        # The polygon encloses the rim.
        rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
        rim *= radius / np.cos(np.pi / _RIM)
        return [enclosing_capsule(np.concatenate([rim - up, rim + up]))]
    if shape.tag == "mesh":
        return capsules_of_mesh(_triangles(shape, path))
    raise ValueError(f"'{excerpt(shape.tag)}' is none of box, cylinder, sphere and mesh")


def _size(shape: Xml.Element, name: str) -> float:
    """A size of a shape [m]."""
    size = float(shape.get(name, "nan"))
    if not 0 < size < np.inf:
        raise ValueError(f"{shape.tag} needs a {name} above zero")
    return size


# Meshes.


def _triangles(mesh: Xml.Element, path: Path) -> Array:
    """Corners of the triangles of a mesh [k, 3, 3], m.

    Raises:
        ValueError: the mesh is not found, or cannot be read.
    """
    name = mesh.get("filename", "")
    file = find_mesh(name, path)
    if file is None:
        raise ValueError(f"mesh {name} is not found")
    if file.stat().st_size > _LARGEST_MESH:
        raise ValueError(f"mesh {file.name} is larger than {_LARGEST_MESH:.0e} bytes")
    scale = np.array([float(part) for part in mesh.get("scale", "1 1 1").split()])
    if scale.shape != (3,):
        raise ValueError(f"mesh {file.name} needs three scales")
    try:
        model = coal.MeshLoader().load(str(file), scale)
    except (ValueError, RuntimeError):
        raise ValueError(f"mesh {file.name} is no STL, DAE or OBJ file") from None
    vertices = np.array(model.vertices(), dtype=float)
    corners = np.zeros((model.num_tris, 3), dtype=int)
    for number in range(model.num_tris):
        triangle = model.tri_indices(number)
        corners[number] = (triangle[0], triangle[1], triangle[2])
    if not len(corners) or not np.isfinite(vertices).all():
        raise ValueError(f"mesh {file.name} has no triangles")
    return np.asarray(vertices[corners])


def find_mesh(name: str, urdf: Path) -> Path | None:
    """The file of a mesh; None if it is not found.

    A `package://` is searched in the folders above the URDF and beside them, and in the
    folders that ROS_PACKAGE_PATH and AMENT_PREFIX_PATH name.

    Args:
        name: name in the URDF: a path, `file://` or `package://`.
        urdf: the URDF; other paths are relative to its folder.
    """
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        candidates = [folder / rest for folder in _packages(package, urdf)]
    else:
        candidates = [urdf.parent / name.removeprefix("file://")]
    return next((file for file in candidates if file.is_file()), None)


def _packages(package: str, urdf: Path) -> Iterator[Path]:
    """Folders that a ROS package of this name may have."""
    for folder in urdf.resolve().parents:
        if folder.name == package:
            yield folder
        yield folder / package
    for variable, below in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry) / below / package


def capsules_of_mesh(triangles: Array, levels: int = _LEVELS) -> list[Segment]:
    """Capsules that enclose every triangle of a mesh.

    Args:
        triangles: corners [k, 3, 3], m.
        levels: times that the mesh may still be divided.
    """
    whole = enclosing_capsule(triangles.reshape(-1, 3))
    if levels == 0:
        return [whole]
    is_low = _best_division(triangles)
    if not is_low.any() or is_low.all():
        return [whole]
    parts = [
        *capsules_of_mesh(triangles[is_low], levels - 1),
        *capsules_of_mesh(triangles[~is_low], levels - 1),
    ]
    volume = sum(part.volume for part in parts)
    return parts if volume < _SAVING * whole.volume else [whole]


def _best_division(triangles: Array) -> Mask:
    """The triangles on one side of the plane whose two sides need the smallest capsules [k].

    Planes are compared with a part of the triangles of a large mesh.

    Args:
        triangles: corners [k, 3, 3], m.
    """
    few = triangles[:: max(1, len(triangles) // _COMPARED)]
    least = np.inf
    best = np.zeros(len(triangles), dtype=bool)
    for axis in _principal_axes(few.reshape(-1, 3)):
        along = few.mean(axis=1) @ axis
        for cut in _CUTS:
            place = along.min() + cut * np.ptp(along)
            is_low = along < place
            if not is_low.any() or is_low.all():
                continue
            volume = 0.0
            for part in (few[is_low], few[~is_low]):
                volume += enclosing_capsule(part.reshape(-1, 3)).volume
            if volume < least:
                least = volume
                best = triangles.mean(axis=1) @ axis < place
    return best


def enclosing_capsule(points: Array) -> Segment:
    """A small capsule around points.

    Its axis is the best of the principal axes of the points and of the axes of their
    frame.

    Args:
        points: points [k, 3], m.
    """
    points = _hull(points)
    directions = np.concatenate([_principal_axes(points), np.eye(3)])
    candidates = []
    for direction in directions:
        candidates += list(_around(points, direction))
    return min(candidates, key=lambda segment: segment.volume)


def _around(points: Array, direction: Array) -> Iterator[Segment]:
    """Capsules around points along a direction, with several radii."""
    along = points @ direction
    across = points - along[:, None] * direction
    centre = _circle_centre(across)
    offset = np.linalg.norm(across - centre, axis=1)
    for wider in _WIDER:
        radius = max(wider * float(offset.max()) * (1 + 1e-9), _THIN)
        cap = np.sqrt(np.maximum(radius**2 - offset**2, 0.0))
        # An end may be as far inside as its cap reaches the outermost points.
        low = float((along + cap).min())
        high = float((along - cap).max())
        if low > high:
            low = (low + high) / 2
            high = low
        yield Segment(centre + low * direction, centre + high * direction, radius)


def _circle_centre(points: Array) -> Array:
    """About the centre of the smallest circle around points [k, 3] of a plane.

    Badoiu and Clarkson: steps towards the farthest point, shorter and shorter.
    """
    centre = points.mean(axis=0)  # in their plane, as all steps are
    for step in range(1, _CIRCLE_STEPS):
        farthest = points[np.argmax(np.linalg.norm(points - centre, axis=1))]
        centre = centre + (farthest - centre) / (step + 1)
    return np.asarray(centre)


def _principal_axes(points: Array) -> Array:
    """Principal axes of points as rows [3, 3], the longest first."""
    centred = points - points.mean(axis=0)
    return np.asarray(np.linalg.svd(centred.T @ centred)[2])


def _hull(points: Array) -> Array:
    """Corners of the convex hull of points, where these are many and not in a plane."""
    if len(points) < _FEW:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:
        return points
