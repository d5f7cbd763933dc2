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
    ("energy", {"model_file": ""}, {"estimator": {**ADDRESS}, "logger": {**ADDRESS}}),
    ("energy", {"model_file": "", "robot_model": "ur10e", "learn": "off", "logger": "false"},
     {"estimator": {**ADDRESS, "robot_model": "ur10e", "learn": "off"}}),
    ("energy", {"use_sim_time": "true", "publish_joint_states": "false"},
     {"estimator": {**ADDRESS, **MODEL, "use_sim_time": True},
      "logger": {**BESIDE, "use_sim_time": True}}),
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


def test_composed_nodes_share_a_process_without_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("cell:\n  logger:\n    ros__parameters: {robot_ip: a.b}\n")
    (cell,) = started_by(
        launch_file("energy"),
        model_file="m.yaml",
        composed="true",
        record="false",
        params_file=str(tmp_path / "mine.yaml"),
        log_level="debug",
    )
    assert (cell.executable, cell.name) == ("cell_node", "")
    assert cell.parameters == {"model_file": "m.yaml", "record": False}
    assert cell.parameter_files == (tmp_path / "mine.yaml",)
    assert cell.ros_arguments == ("--log-level", "estimator:=debug", "--log-level", "logger:=debug")


def test_arguments_at_their_default_leave_a_parameter_to_params_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("/**: {ros__parameters: {robot_ip: 10.0.0.8}}")
    node, *_ = started_by(launch_file("energy"), params_file="~/mine.yaml")
    assert "robot_ip" not in node.parameters
    assert node.parameter_files == (default_parameter_file("estimator"), tmp_path / "mine.yaml")
    for other in ({}, {"params_file": ""}, {"record": "false"}):
        with pytest.raises(UrEnergyError, match="robot_ip is missing"):
            started_by(launch_file("energy"), **other)
    assert started_by(launch_file("energy"), source="bag", bag="b")


def test_viewers_get_the_robot_model_with_the_prefix() -> None:
    nodes = started(
        "energy", robot_model="ur5e", robot_description="true", tf_prefix="a_", rviz="true"
    )
    assert list(nodes) == ["estimator", "logger", "robot_state_publisher", "rviz2"]
    assert 'name="a_elbow_joint"' in nodes["robot_state_publisher"].parameters["robot_description"]
    assert nodes["rviz2"].arguments == ("-d", str(config_file("rviz", "energy.rviz")))
    with pytest.raises(UrEnergyError, match="robot_description:=true needs robot_model"):
        started("energy", model_file="", robot_description="true")


def test_wrong_arguments_are_refused() -> None:
    for name, values in (
        ("energy", {"source": "serial"}),
        ("energy", {"record": "maybe"}),
        ("energy", {"respawn_delay": "soon"}),
        ("demo", {"seed": "x"}),
        ("demo", {"seed": "-1"}),
    ):
        with pytest.raises(ValueError, match=next(iter(values))):
            started(name, **values)


def test_a_missing_package_is_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise LookupError(package)

    monkeypatch.setattr(launch_checks, "get_package_prefix", missing)
    both = "rviz2 and robot_state_publisher"
    for name, switches, packages in (
        ("energy", ("rviz",), "rviz2"),
        ("energy", ("rviz", "robot_description"), both),
        ("ur_driver", ("rviz",), "rviz2"),
        ("demo", ("rviz",), both),
    ):
        with pytest.raises(UrEnergyError) as caught:
            started(name, **dict.fromkeys(switches, "true"))
        line, words = str(caught.value), " ".join(f"{each}:=true" for each in switches)
        assert f"{words} needs {packages}, which is not installed" in line
        assert "-rviz2" in line
        assert line.endswith(f"or leave out {words}")
        assert started(name)


def test_arguments_without_effect_are_reported() -> None:
    other = {"source": "joint_states", "composed": "true", "bag_directory": "x"}
    cases: tuple[tuple[str, dict[str, str], list[str]], ...] = (
        ("energy", {"source": "bag", "bag": "b"}, ["nothing is recorded"]),
        ("energy", other, ["nothing is recorded", "bag_directory:=x", "composed:=true"]),
        ("energy", {"logger": "false"}, ["nothing is recorded"]),
        ("energy", {"logger": "false", "record": "false"}, []),
        ("energy", {"composed": "true"}, []),
        ("ur_driver", {"logger": "false"}, ["nothing is recorded"]),
        ("ur_driver", {}, []),
    )
    for name, arguments, expected in cases:
        _, lines = actions(launch_file(name), **NEEDED[name] | arguments)
        assert [re.split(" has no effect|: ", line)[0] for line in lines] == expected


def test_nodes_are_started_again_where_it_is_wanted() -> None:
    for name in ("energy", "ur_driver"):
        assert not any(node.respawn for node in started(name).values())
        nodes = started(name, respawn="true", respawn_delay="2.5").values()
        assert {(node.respawn, node.respawn_delay) for node in nodes} == {(True, 2.5)}


def test_lists_and_whole_numbers_are_taken_as_they_are_typed() -> None:
    for given, values in (
        ("a:1, b:2", ["a:1", "b:2"]),
        ("['a:1', \"b:2\"]", ["a:1", "b:2"]),
        ("'a,1', b", ["a,1", "b"]),
        ("[1e3, on]", ["1e3", "on"]),
    ):
        nodes = started("energy", foxglove=given, publish_rate="25", retention_gb="7")
        assert nodes["estimator"].parameters["foxglove"] == values
    assert repr(nodes["estimator"].parameters["publish_rate"]) == "25.0"
    assert repr(nodes["logger"].parameters["retention_gb"]) == "7.0"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("/**: {ros__parameters: {publish_rate: fast}}", "publish_rate must be a number"),
        ("estimator: {ros__parameters: {drift_time: 0}}", "drift_time must be between"),
        ("/a: {logger: {ros__parameters: {record: 1}}}", "record must be true or false"),
        ("/**: {ros__parameters: {foxglove: a}}", "foxglove must be a list"),
        ("/**: {ros__parameters: {foxglove: [1]}}", "foxglove must be a list"),
        ("/**: {ros__parameters: {friction: nonsense}}", "friction must be one of auto, coul"),
        ("a: [", "cannot be read"),
        (None, "cannot be read"),
        ("/**: {ros__parameters: {publish_rate: 50, learn: off, gap_limit: 1}}", ""),
        ("camera: {ros__parameters: {publish_rate: fast}}", ""),
        ("", ""),
        ("estimator:", ""),
        ("- 1", "no parameters"),
        ("estimator: 3", "estimator is not the name of a node"),
        ("/a: {estimator: {publish_rate: 50}}", "publish_rate is not the name of a node"),
        ("estimator: {ros__parameters: 3}", "ros__parameters are not"),
    ],
)
def test_parameter_files_are_checked_before_anything_starts(
    content: str | None, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_text(content)
    for name in ("energy", "demo", "identify"):
        if problem:
            with pytest.raises(UrEnergyError, match=problem):
                started(name, params_file=str(path))
        else:
            assert started(name, params_file=str(path))


def test_unknown_arguments_are_refused_on_the_command_line_only() -> None:
    command = ["ros2", "launch", "ur_energy_model", "energy.launch.py", "robot_ip:=1.2.3.4"]
    launch_checks.check_names("energy", [*command, "record:=true", "--debug"])
    launch_checks.check_names("demo", [*command, "mine:=3"])  # included
    for typed, text in (("robotip:=1", "mean robot_ip"), ("mine:=3", "no argument mine")):
        with pytest.raises(UrEnergyError, match=text):
            launch_checks.check_names("energy", [*command, typed])
