# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capsules around collision shapes enclose them, where pinocchio's own URDF reader places these."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from test.model.test_urdf import text
from test.properties import examples
from ur_energy_model.model import urdf_import
from ur_energy_model.model.arm_shape import shape_of
from ur_energy_model.model.capsules import Capsule
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_shapes import (
    Segment,
    capsules_of_mesh,
    enclosing_capsule,
    urdf_shape,
)

SLACK = 1e-6  # rounding of the meshes [m]


def outside(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Distances of points [k, 3] from a segment [k]."""
    along = end - start
    length = float(along @ along)
    share = np.zeros(len(points))
    if length > 0:
        share = np.clip((points - start) @ along / length, 0, 1)
    return np.asarray(np.linalg.norm(points - start - share[:, None] * along, axis=1))


def depth(points: np.ndarray, segments: list[Segment]) -> np.ndarray:
    """How far points are outside the nearest capsule [k], m; negative inside."""
    each = [outside(points, s.start, s.end) - s.radius for s in segments]
    return np.asarray(np.min(each, axis=0))


def box(low: tuple[float, ...], high: tuple[float, ...]) -> np.ndarray:
    """Triangles [12, 3, 3] of a box."""
    corners = np.array(
        [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float
    )
    corners = np.array(low) + corners * (np.array(high) - np.array(low))
    return np.asarray(corners[ConvexHull(corners).simplices])


# An elbow: two bars at a right angle, in one mesh.
ELBOW = np.concatenate(
    [box((0, 0, 0), (0.06, 0.06, 0.5)), box((0, 0, 0), (0.4, 0.06, 0.06))]
)


def write_stl(path: Path, triangles: np.ndarray) -> Path:
    """A binary STL file."""
    body = b"".join(
        struct.pack("<12fH", 0, 0, 0, *corners.ravel(), 0) for corners in triangles
    )
    path.write_bytes(bytes(80) + struct.pack("<I", len(triangles)) + body)
    return path


def write_arm(folder: Path, mesh: str = "elbow.stl") -> Path:
    """Three joints about odd axes, a fixed link in the middle, and every kind of shape."""
    random = np.random.default_rng(3)
    shapes = (
        '<box size="0.2 0.1 0.3"/>',
        '<cylinder radius="0.05" length="0.4"/>',
        f'<mesh filename="{mesh}" scale="1 1.5 1"/>',
        '<sphere radius="0.07"/>',
    )
    axes = ("0 1 0", "fixed", "0.6 0 0.8", "0 0 -1")
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    parts = ['<link name="link0"/>']
    for k, (axis, shape) in enumerate(zip(axes, shapes, strict=True), 1):
        xyz, at = random.uniform(-0.2, 0.2, (2, 3))
        rpy, turn = random.uniform(-1.4, 1.4, (2, 3))
        kind = "fixed" if axis == "fixed" else "revolute"
        about = "" if axis == "fixed" else f'<axis xyz="{axis}"/>'
        parts.append(
            f'<link name="link{k}"><inertial><mass value="1"/>{inertia}</inertial><collision>'
            f'<origin xyz="{text(at)}" rpy="{text(turn)}"/>'
            f"<geometry>{shape}</geometry></collision></link>"
            f'<joint name="joint{k}" type="{kind}"><parent link="link{k - 1}"/>'
            f'<child link="link{k}"/><origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>{about}'
            f'<limit lower="-2" upper="2.5" velocity="1.5" effort="40"/></joint>'
        )
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="arm">{"".join(parts)}</robot>')
    return path


def surface(shape: pin.GeometryObject) -> np.ndarray:
    """Points on a shape that pinocchio has read [k, 3], in its own frame."""
    geometry = shape.geometry
    name = type(geometry).__name__
    ball = np.random.default_rng(0).normal(size=(500, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    if name == "Sphere":
        return np.asarray(ball * geometry.radius)
    if name == "Cylinder":
        angle = np.linspace(0, 2 * np.pi, 100)
        rim = geometry.radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
        up = np.array([0, 0, geometry.halfLength])
        return np.concatenate([rim + up, rim - up])
    if name == "Box":
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return np.asarray(signs * geometry.halfSide)
    return np.array(geometry.vertices())  # scaled by the loader


def test_capsules_enclose_what_pinocchio_reads(tmp_path: Path) -> None:
    write_stl(tmp_path / "elbow.stl", ELBOW)
    path = write_arm(tmp_path)
    robot = load_robot(path)
    shape = urdf_shape(robot, path)
    assert shape.remarks == ()
    model = pin.buildModelFromUrdf(str(path))
    shapes = pin.buildGeomFromUrdf(
        model, str(path), pin.GeometryType.COLLISION, package_dirs=[str(tmp_path)]
    )
    assert len(shapes.geometryObjects) == 4
    data = model.createData()
    placed = shapes.createData()
    arm = ArmDynamics(robot)
    for q in np.random.default_rng(0).uniform(-2, 2, (5, 3)):
        pin.updateGeometryPlacements(model, data, shapes, placed, q)
        frames, _ = arm.frames(q[None])
        segments = [in_base(capsule, frames[0]) for capsule in shape.capsules]
        for body, pose in zip(shapes.geometryObjects, placed.oMg, strict=True):
            points = surface(body) @ pose.rotation.T + pose.translation
            assert depth(points, segments).max() < SLACK, body.name


def in_base(capsule: Capsule, frames: np.ndarray) -> Segment:
    """A capsule in the base frame, at poses of the links [n + 1, 4, 4]."""
    pose = frames[capsule.link]
    start, end = (pose[:3, :3] @ p + pose[:3, 3] for p in (capsule.start, capsule.end))
    return Segment(start, end, capsule.radius)


def test_an_elbow_becomes_several_capsules_without_a_gap() -> None:
    whole = enclosing_capsule(ELBOW.reshape(-1, 3))
    parts = capsules_of_mesh(ELBOW)
    assert 2 <= len(parts) <= 4
    assert sum(part.volume for part in parts) < 0.5 * whole.volume
    mix = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    inside = (mix @ ELBOW).reshape(-1, 3)  # points on every triangle
    assert depth(inside, parts).max() < SLACK


@examples(25)
@given(
    st.lists(
        st.tuples(*3 * [st.floats(-1, 1, allow_subnormal=False)]), min_size=1, max_size=60
    )
)
def test_any_points_are_enclosed(points: list[tuple[float, float, float]]) -> None:
    given_points = np.array(points)
    capsule = enclosing_capsule(given_points)
    assert depth(given_points, [capsule]).max() < SLACK
    size = np.ptp(given_points, axis=0).max()
    assert capsule.radius <= max(0.9 * np.sqrt(3) * size, 1e-3)


def test_packages_are_found_above_the_urdf(tmp_path: Path) -> None:
    package = tmp_path / "my_description"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    write_stl(package / "meshes" / "elbow.stl", ELBOW)
    path = write_arm(package / "urdf", "package://my_description/meshes/elbow.stl")
    assert urdf_shape(load_robot(path), path).remarks == ()


@pytest.mark.parametrize(
    ("mesh", "content", "problem"),
    [
        ("nowhere.stl", None, "mesh nowhere.stl is not found"),
        ("package://other/x.stl", None, "is not found"),
        ("junk.stl", b"junk", "no STL, DAE or OBJ file"),
        ("nan.stl", None, "has no triangles"),
    ],
)
def test_a_shape_that_cannot_be_read_is_replaced_with_a_warning(
    tmp_path: Path, mesh: str, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / mesh).write_bytes(content)
    if mesh == "nan.stl":
        write_stl(tmp_path / mesh, np.full((2, 3, 3), np.nan))
    robot = load_robot(write_arm(tmp_path, mesh))
    shape = shape_of(robot)
    about_mesh, about_link = shape.remarks
    assert "collision shape of link3 left out" in about_mesh
    assert problem in about_mesh
    assert "(links 0, 2)" in about_link  # the base has none either
    assert {c.link for c in shape.capsules} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "shape",
    [
        "",
        '<box size="1 1"/>',
        '<box size="0 1 1"/>',
        '<cylinder radius="x" length="1"/>',
        '<sphere radius="inf"/>',
        '<cone radius="1"/>',
        '<mesh filename="elbow.stl" scale="1 1"/>',
    ],
)
def test_impossible_shapes_are_left_out(tmp_path: Path, shape: str) -> None:
    write_stl(tmp_path / "elbow.stl", ELBOW)
    path = write_arm(tmp_path)
    path.write_text(path.read_text().replace('<sphere radius="0.07"/>', shape))
    found = urdf_shape(load_robot(path), path)
    (remark,) = found.remarks
    assert "link4 left out" in remark
    assert {capsule.link for capsule in found.capsules} == {1, 2}


def test_the_printed_robot_file_has_the_capsules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stl(tmp_path / "elbow.stl", ELBOW)
    path = write_arm(tmp_path)
    monkeypatch.setattr("sys.argv", ["urdf", str(path)])
    assert urdf_import.main() == 0
    printed = tmp_path / "arm.yaml"
    printed.write_text(capsys.readouterr().out)
    own = load_robot(printed).shape
    assert own is not None
    first = urdf_shape(load_robot(path), path).capsules
    for written, read in zip(first, own.capsules, strict=True):
        assert written.link == read.link
        assert written.radius == pytest.approx(read.radius, rel=1e-4)
        assert written.start == pytest.approx(read.start, abs=1e-4)


def test_a_ball_of_many_triangles_becomes_one_capsule(tmp_path: Path) -> None:
    """A ball of 7,200 triangles, which the arm stretches."""
    angle = np.linspace(0, 2 * np.pi, 61)
    height = np.linspace(-1, 1, 61)
    ring = np.sqrt(1 - height**2)
    grid = np.stack(
        [
            np.outer(ring, np.cos(angle)),
            np.outer(ring, np.sin(angle)),
            np.outer(height, 0 * angle + 1),
        ],
        axis=-1,
    )
    corners = (grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:])
    first = np.stack([corners[0], corners[1], corners[2]], axis=2).reshape(-1, 3, 3)
    second = np.stack([corners[0], corners[2], corners[3]], axis=2).reshape(-1, 3, 3)
    triangles = 0.2 * np.concatenate([first, second]) + 0.1
    write_stl(tmp_path / "ball.stl", triangles)
    robot = load_robot(write_arm(tmp_path, "ball.stl"))
    shape = shape_of(robot)
    (of_ball,) = (c for c in shape.capsules if c.link == 2)
    assert of_ball.radius == pytest.approx(0.2, rel=0.05)  # longer in y
