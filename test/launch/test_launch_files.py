"""The launch files: their arguments, and the nodes that they start with which parameters."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from test.launch.stand_in import (
    DeclareLaunchArgument,
    StartedNode,
    actions,
    launch_description,
    launch_file,
)
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import PACKAGE, config_file, share_directory
from ur_energy_model.nodes import launch_arguments as launch_checks
from ur_energy_model.nodes.launch_arguments import (
    EXECUTABLES,
    LAUNCH_FILES,
    LaunchArgument,
    default_parameter_file,
)
from ur_energy_model.nodes.parameters import NODES, parameter

NEEDED = {
    "energy": {"model_file": "m.yaml", "robot_ip": "10.0.0.7"},
    "ur_driver": {"model_file": "m.yaml", "robot_ip": "10.0.0.7", "source": "joint_states"},
    "demo": {},
    "identify": {"bags": "a, b"},
}
NODES_STARTED = {
    "energy": ["estimator", "logger"],
    "ur_driver": ["estimator", "logger"],
    "demo": ["estimator", "logger", "simulated_robot"],
    "identify": ["identification"],
}


@pytest.fixture(autouse=True)
def installed_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    """rviz2 and robot_state_publisher seem to be installed."""
    monkeypatch.setattr(launch_checks, "get_package_prefix", lambda package: "/opt/ros")


def started_by(path: Path, **values: str) -> list[StartedNode]:
    return actions(path, **values)[0]


def started(name: str, **values: str) -> dict[str, StartedNode]:
    nodes = started_by(launch_file(name), **NEEDED[name] | values)
    return {node.name: node for node in nodes}


def test_all_launch_files_are_listed_and_executables_installed_where_launch_looks() -> None:
    folder = share_directory() / "launch"
    assert {path.name for path in folder.glob("*.launch.py")} == {
        f"{name}.launch.py" for name in LAUNCH_FILES
    }
    for node in NODES:
        assert os.access(Path(sys.prefix) / "lib" / PACKAGE / EXECUTABLES[node], os.X_OK)


@pytest.mark.parametrize("name", LAUNCH_FILES)
def test_launch_declares_the_table_and_nodes_get_parameters_that_they_have(name: str) -> None:
    declared = [
        LaunchArgument(each.name, each.default_value, each.description, tuple(each.choices or ()))
        for each in launch_description(launch_file(name)).entities
        if isinstance(each, DeclareLaunchArgument)
    ]
    assert declared == list(LAUNCH_FILES[name])
    nodes = started(name, **({"model_file": "m.yaml"} if name == "demo" else {}))
    assert sorted(nodes) == NODES_STARTED[name]
    for node in nodes.values():
        assert (node.package, node.executable) == (PACKAGE, EXECUTABLES[node.name])
        assert node.parameter_files == (default_parameter_file(node.name),)
        assert node.ros_arguments == ("--log-level", f"{node.name}:=info")
        assert node.output == "screen"
        for key, value in node.parameters.items():
            entry = parameter(node.name, key)
            assert type(value) is type(entry.parameter)
            assert entry.problem(value) is None


ADDRESS, MODEL = {"robot_ip": "10.0.0.7"}, {"model_file": "m.yaml"}


BESIDE = {"publish_joint_states": False, **ADDRESS}
PARAMETERS: tuple[tuple[str, dict[str, str], dict[str, dict[str, object]]], ...] = (
    ("energy", {"record": "false", "tf_prefix": "a_"},
     {"estimator": {**ADDRESS, **MODEL, "tf_prefix": "a_"},
      "logger": {**ADDRESS, "record": False, "tf_prefix": "a_"}}),
    ("energy", {"model_file": "", "robot_model": "ur10e", "learn": "off", "logger": "false"},
     {"estimator": {**ADDRESS, "robot_model": "ur10e", "learn": "off"}}),
    ("ur_driver", {"tf_prefix": "left_", "effort_unit": "newton_metre"},
     {"estimator": {"source": "joint_states", "effort_unit": "newton_metre", "tf_prefix": "left_",
                    **ADDRESS, **MODEL},
      "logger": {**BESIDE, "tf_prefix": "left_"}}),
    ("ur_driver", {"source": "rtde"}, {"": {**BESIDE, **MODEL}}),
    ("identify", {"validation_bags": "c"},
     {"identification": {"identify_on_start": True, "exit_when_done": True, "bags": ["a", "b"],
                         "validation_bags": ["c"]}}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expected"), PARAMETERS)
def test_nodes_and_their_parameters(
    name: str, given: dict[str, str], expected: dict[str, dict[str, object]]
) -> None:
    nodes = started(name, namespace="left", **given)
    assert {key: node.parameters for key, node in nodes.items()} == expected
    assert {node.namespace for node in nodes.values()} == {"left"}
    assert {key: node.executable for key, node in nodes.items()} == {
        key: EXECUTABLES.get(key, "cell_node") for key in expected
    }


def test_composed_nodes_share_a_process_and_its_parameter_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("cell:\n  logger:\n    ros__parameters: {robot_ip: a.b}\n")
    given = {"params_file": "~/mine.yaml", "record": "false"}
    (cell,) = started_by(launch_file("energy"), composed="true", log_level="debug", **given)
    assert (cell.executable, cell.name) == ("cell_node", "")
    assert cell.parameters == {"record": False}  # others are left to the file
    assert cell.parameter_files == (tmp_path / "mine.yaml",)
    assert cell.ros_arguments == ("--log-level", "estimator:=debug", "--log-level", "logger:=debug")
    with pytest.raises(UrEnergyError, match="robot_ip is missing"):
        started_by(launch_file("energy"), record="false")
    assert started_by(launch_file("energy"), source="bag", bag="b")


def test_viewers_need_the_robot_model_and_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = started(
        "energy", robot_model="ur5e", robot_description="true", tf_prefix="a_", rviz="true"
    )
    assert list(nodes) == ["estimator", "logger", "robot_state_publisher", "rviz2"]
    assert 'name="a_elbow_joint"' in nodes["robot_state_publisher"].parameters["robot_description"]
    assert nodes["rviz2"].arguments == ("-d", str(config_file("rviz", "energy.rviz")))
    with pytest.raises(UrEnergyError, match="robot_description:=true needs robot_model"):
        started("energy", model_file="", robot_description="true")

    def missing(package: str) -> str:
        raise LookupError(package)

    monkeypatch.setattr(launch_checks, "get_package_prefix", missing)
    for name, packages in (("energy", "rviz2"), ("demo", "rviz2 and robot_state_publisher")):
        with pytest.raises(UrEnergyError, match=f"rviz:=true needs {packages}, which is not"):
            started(name, rviz="true")
        assert started(name)


def test_arguments_without_effect_are_reported() -> None:
    other = {"source": "joint_states", "composed": "true", "bag_directory": "x"}
    for name, arguments, expected in (
        ("energy", other, ["nothing is recorded", "bag_directory:=x", "composed:=true"]),
        ("energy", {"logger": "false", "record": "false"}, []),
        ("ur_driver", {"logger": "false"}, ["nothing is recorded"]),
    ):
        _, lines = actions(launch_file(name), **NEEDED[name] | arguments)
        assert [re.split(" has no effect|: ", line)[0] for line in lines] == expected


def test_values_are_taken_as_they_are_typed() -> None:
    given = {"foxglove": "['a:1', b]", "publish_rate": "25", "respawn_delay": "2.5"}
    nodes = started("energy", respawn="true", **given)
    assert {(node.respawn, node.respawn_delay) for node in nodes.values()} == {(True, 2.5)}
    assert nodes["estimator"].parameters["foxglove"] == ["a:1", "b"]
    assert repr(nodes["estimator"].parameters["publish_rate"]) == "25.0"
    nodes = started("energy", foxglove="'a,1', b:2")
    assert nodes["estimator"].parameters["foxglove"] == ["a,1", "b:2"]
    assert not nodes["estimator"].respawn


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("estimator: {ros__parameters: {drift_time: 0}}", "drift_time must be between"),
        ("/a: {logger: {ros__parameters: {record: 1}}}", "record must be true or false"),
        ("/**: {ros__parameters: {foxglove: [1]}}", "foxglove must be a list"),
        ("/**: {ros__parameters: {friction: nonsense}}", "friction must be one of auto, coul"),
        ("a: [", "cannot be read"),
        (None, "cannot be read"),
        ("/**: {ros__parameters: {publish_rate: 50, learn: off, gap_limit: 1}}", ""),
        ("camera: {ros__parameters: {publish_rate: fast}}", ""),
        ("estimator:", ""),
        ("estimator: 3", "estimator is not the name of a node"),
        ("/a: {estimator: {publish_rate: 50}}", "publish_rate is not the name of a node"),
    ],
)
def test_parameter_files_are_checked_before_anything_starts(
    content: str | None, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_text(content)
    if not problem:
        assert started("energy", params_file=str(path))
        return
    with pytest.raises(UrEnergyError, match=problem):
        started("energy", params_file=str(path))


def test_wrong_and_unknown_arguments_are_refused() -> None:
    for name, values in (
        ("energy", {"source": "serial"}),
        ("energy", {"record": "maybe"}),
        ("energy", {"respawn_delay": "soon"}),
        ("demo", {"seed": "-1"}),
    ):
        with pytest.raises(ValueError, match=next(iter(values))):
            started(name, **values)
    command = ["ros2", "launch", "ur_energy_model", "energy.launch.py", "robot_ip:=1.2.3.4"]
    launch_checks.check_names("energy", [*command, "record:=true", "--debug"])
    launch_checks.check_names("demo", [*command, "mine:=3"])  # included
    with pytest.raises(UrEnergyError, match="mean robot_ip"):
        launch_checks.check_names("energy", [*command, "robotip:=1"])
