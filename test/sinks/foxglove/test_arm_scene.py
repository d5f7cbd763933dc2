"""The arm in 3D: its frames are those of the URDF, its colours those of the powers."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("foxglove")

from foxglove import messages as fox

from test.sinks.foxglove.decoding import decode
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.sinks.foxglove_messages import SHELL, ArmScene, foxglove_type

STAMP = 1_750_000_000_250_000_000
UR5E = load_robot("ur5e")


def scene_of(
    robot: RobotDescription, q: Any, power: Any, prefix: str = ""
) -> tuple[ArmScene, list[dict[str, Any]], list[dict[str, Any]]]:
    """The scene, its transforms and its entities."""
    scene = ArmScene(robot, tuple(prefix + joint for joint in robot.joint_names))
    frames, update = scene.messages(STAMP, np.asarray(q), np.asarray(power), 123.4)
    transforms = decode(foxglove_type(fox.FrameTransforms), frames)["transforms"]
    entities = decode(foxglove_type(fox.SceneUpdate), update)["entities"]
    return scene, transforms, entities


def pose(transform: dict[str, Any]) -> np.ndarray:
    out = np.eye(4)
    place, turn = transform["translation"], transform["rotation"]
    out[:3, 3] = [place.get(axis, 0.0) for axis in "xyz"]
    out[:3, :3] = Rotation.from_quat([turn.get(axis, 0.0) for axis in "xyzw"]).as_matrix()
    return out


@pytest.mark.parametrize("name", available_robots())
def test_frames_are_those_of_the_urdf(name: str) -> None:
    """Pinocchio reads the URDF; the transforms are chained from the root."""
    robot = load_robot(name)
    q = np.random.default_rng(3).uniform(-2.0, 2.0, robot.dof)
    scene, transforms, _ = scene_of(robot, q, np.zeros(robot.dof), "left_")
    model = pin.buildModelFromXML(scene.urdf)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    world = {"left_base_link": np.eye(4)}
    for transform in transforms:
        child = transform["child_frame_id"]
        world[child] = world[transform["parent_frame_id"]] @ pose(transform)
        expected = data.oMf[model.getFrameId(child)].homogeneous
        assert world[child] == pytest.approx(expected, abs=1e-6)
    assert len(world) == robot.dof + 3


def test_every_link_has_the_colour_of_its_joint() -> None:
    power = [-150.0, 0.0, 50.0, 100.0, 900.0, 10.0]
    _, _, entities = scene_of(UR5E, np.zeros(6), power)
    base, *links = entities
    assert base["texts"][0]["text"] == "123 W"
    assert [link["id"] for link in links] == list(UR5E.joint_names)
    paints = [
        [round(link["spheres"][0]["color"].get(part, 0.0), 6) for part in "rgb"] for link in links
    ]
    assert paints[:5] == [[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]]
    for link in links:
        assert all(
            each["color"] == link["spheres"][0]["color"] for each in link.get("cylinders", [])
        )
    sizes = [link["spheres"][0]["size"]["x"] for link in links]
    assert sizes[1] < sizes[2] < sizes[3] == sizes[4]


def test_links_cover_the_shapes_of_the_urdf() -> None:
    scene, _, entities = scene_of(UR5E, np.zeros(6), np.zeros(6))
    root = Xml.fromstring(scene.urdf.partition("\n")[2])
    for entity in entities:
        link = root.find(f"link[@name='{entity['frame_id']}']")
        assert link is not None
        expected = [
            (float(each.attrib["length"]), 2.0 * SHELL * float(each.attrib["radius"]))
            for each in link.iter("cylinder")
        ]
        drawn = [(each["size"]["z"], each["size"]["x"]) for each in entity.get("cylinders", [])]
        assert np.allclose(drawn, expected)
        assert len(drawn) == len(expected)
    assert sum(len(entity.get("cylinders", [])) for entity in entities) >= 5


def test_the_text_is_above_the_highest_joint() -> None:
    upright = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
    heights = []
    for q in (np.zeros(6), upright):
        _, transforms, entities = scene_of(UR5E, q, np.zeros(6))
        world, highest = np.eye(4), 0.0
        for transform in transforms[1:-1]:
            world = world @ pose(transform)
            highest = max(highest, world[2, 3])
        heights.append(entities[0]["texts"][0]["pose"]["position"]["z"])
        assert heights[-1] > highest
    assert heights[1] > heights[0] + 0.5


def test_entities_follow_their_frames_and_vanish() -> None:
    _, _, entities = scene_of(UR5E, np.zeros(6), np.zeros(6))
    for entity in entities:
        assert entity["frame_locked"]
        assert entity["lifetime"] == "2s"
        assert entity["timestamp"].endswith("00.250Z") or ".25" in entity["timestamp"]
