# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch files: their arguments, and the nodes that they start with which parameters."""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from test.absent_rooms import absent_rooms
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import PACKAGE, config_file, share_directory
from ur_energy_model.nodes import launch_checks, launch_files
from ur_energy_model.nodes.launch_files import (
    EXECUTABLES,
    default_parameter_file,
)
from ur_energy_model.nodes.parameters import NODES, parameter

LAUNCH_FILES = launch_files.launch_files()
NEEDED = {
    "energy": {"model_file": "m.yaml", "robot_ip": "10.0.0.7"},
    "ur_driver": {
        "model_file": "m.yaml",
        "robot_ip": "10.0.0.7",
        "source": "joint_states",
    },
    "identify": {"bags": "a, b"},
}


@pytest.fixture(autouse=True)
def installed_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    """rviz2 and robot_state_publisher seem to be installed."""
    monkeypatch.setattr(launch_checks, "get_package_prefix", lambda package: "/opt/ros")


class Node(NamedTuple):
    """A node that is started, with its values of parameters and the files before them."""

    executable: str
    parameters: dict[str, object]
    files: tuple[str, ...]
    arguments: tuple[str, ...]


def actions(name: str, **values: str) -> tuple[dict[str, Node], list[str]]:
    """Nodes by name, and lines, of a launch file with these arguments."""
    given = {
        each.name: values.get(each.name, each.default)
        for each in LAUNCH_FILES[name].arguments
    }
    assert values.keys() <= given.keys()
    assert None not in given.values()
    nodes = {}
    lines = []
    for each in LAUNCH_FILES[name].start(given):  # type: ignore[arg-type]
        if isinstance(each, str):
            lines.append(each)
            continue
        kinds = [isinstance(source, dict) for source in each.parameters]
        assert kinds == sorted(kinds), "files come first: later parameters win"
        files = tuple(
            source for source in each.parameters if not isinstance(source, dict)
        )
        merged = {
            key: v for part in each.parameters[len(files) :] for key, v in part.items()
        }
        key = each.nodes[0] if len(each.nodes) == 1 else each.executable
        nodes[key] = Node(each.executable, merged, files, each.arguments)
    return nodes, lines


def started(name: str, **values: str) -> dict[str, Node]:
    return actions(name, **NEEDED[name] | values)[0]


def test_executables_are_installed_where_launch_looks() -> None:
    folder = share_directory() / "launch"
    found = {path.name.removesuffix(".launch.py") for path in folder.glob("*.launch.py")}
    assert set(LAUNCH_FILES) <= found
    assert found == set(LAUNCH_FILES) or absent_rooms()
    for node in NODES:
        assert os.access(Path(sys.prefix) / "lib" / PACKAGE / EXECUTABLES[node], os.X_OK)


class StandIn(SimpleNamespace):
    """Any class of launch or launch_ros; keeps what it was made with."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(words=words, **named)


def test_launch_gets_the_table_and_a_node_for_each_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classes = "LaunchDescription DeclareLaunchArgument LogInfo OpaqueFunction Node"
    for name in ("launch", "launch.actions", "launch_ros", "launch_ros.actions"):
        module = ModuleType(name)
        vars(module).update(
            {each: type(each, (StandIn,), {}) for each in classes.split()}
        )
        monkeypatch.setitem(sys.modules, name, module)
    for name, described in LAUNCH_FILES.items():
        path = share_directory() / "launch" / f"{name}.launch.py"
        ((*declared, function),) = runpy.run_path(str(path))[
            "generate_launch_description"
        ]().words
        for each, argument in zip(declared, described.arguments, strict=True):
            assert each.words == (argument.name,)
            assert (each.default_value, each.description) == (
                argument.default,
                argument.help,
            )
            assert each.choices == (list(argument.choices) or None)
    values = {
        each.name: each.default for each in LAUNCH_FILES["energy"].arguments
    } | NEEDED["energy"]
    more = {
        "rviz": "true",
        "respawn": "true",
        "respawn_delay": "2.5",
        "log_level": "debug",
    }
    context = SimpleNamespace(launch_configurations=values | more | {"namespace": "left"})
    path = share_directory() / "launch" / "energy.launch.py"
    ((*_, function),) = runpy.run_path(str(path))["generate_launch_description"]().words
    estimator, logger, rviz = function.function(context)
    assert (estimator.package, estimator.executable) == (PACKAGE, "estimator_node")
    assert (logger.name, logger.namespace, logger.output) == ("logger", "left", "screen")
    assert logger.ros_arguments == ["--log-level", "logger:=debug"]
    assert (logger.respawn, logger.respawn_delay, logger.on_exit) == (True, 2.5, None)
    assert logger.parameters[0] == str(default_parameter_file("logger"))
    assert (rviz.package, rviz.executable, rviz.name) == ("rviz2",) * 3
    assert rviz.arguments == ["-d", str(config_file("rviz", "energy.rviz"))]
    context.launch_configurations |= {
        "respawn": "false",
        "composed": "true",
        "rviz": "false",
    }
    (cell,) = function.function(context)
    assert (cell.executable, cell.name) == ("cell_node", None)
    reported: list[dict[str, str]] = []
    loop = SimpleNamespace(call_exception_handler=reported.append)
    for code in (0, 7):
        event = SimpleNamespace(returncode=code, process_name="cell_node-1")
        cell.on_exit(event, SimpleNamespace(asyncio_loop=loop))
    assert reported == [{"message": "cell_node-1 ended with exit code 7"}]
    context.launch_configurations |= {"respawn_delay": "soon"}
    with pytest.raises(ValueError, match="respawn_delay:=soon is not a number"):
        function.function(context)


@pytest.mark.parametrize("name", NEEDED)
def test_nodes_get_parameters_that_they_have(name: str) -> None:
    nodes = started(name)
    for key, node in nodes.items():
        assert node.executable == EXECUTABLES[key]
        assert node.files == (str(default_parameter_file(key)),)
        for each, value in node.parameters.items():
            entry = parameter(key, each)
            assert type(value) is type(entry.parameter)
            assert entry.problem(value) is None


ADDRESS = {"robot_ip": "10.0.0.7"}
MODEL = {"model_file": "m.yaml"}


BESIDE = {"publish_joint_states": False, **ADDRESS}
PARAMETERS: tuple[tuple[str, dict[str, str], dict[str, dict[str, object]]], ...] = (
    ("energy", {"record": "false", "tf_prefix": "a_"},
     {"estimator": {**ADDRESS, **MODEL, "tf_prefix": "a_"},
      "logger": {**ADDRESS, "record": False, "tf_prefix": "a_"}}),
    ("energy", {"model_file": "", "robot_model": "ur10e", "logger": "false"},
     {"estimator": {**ADDRESS, "robot_model": "ur10e"}}),
    ("ur_driver", {"tf_prefix": "left_", "effort_unit": "newton_metre"},
     {"estimator": {"source": "joint_states", "effort_unit": "newton_metre", "tf_prefix": "left_",
                    **ADDRESS, **MODEL},
      "logger": {**BESIDE, "tf_prefix": "left_"}}),
    ("ur_driver", {"source": "rtde"}, {"cell_node": {**BESIDE, **MODEL}}),
    ("identify", {"validation_bags": "c"},
     {"identification": {"identify_on_start": True, "exit_when_done": True, "bags": ["a", "b"],
                         "validation_bags": ["c"]}}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expected"), PARAMETERS)
def test_nodes_and_their_parameters(
    name: str, given: dict[str, str], expected: dict[str, dict[str, object]]
) -> None:
    assert {
        key: node.parameters for key, node in started(name, **given).items()
    } == expected


def test_composed_nodes_share_a_process_and_its_parameter_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text(
        "cell:\n  logger:\n    ros__parameters: {robot_ip: a.b}\n"
    )
    given = {"params_file": "~/mine.yaml", "record": "false"}
    nodes, _ = actions("energy", composed="true", **given)
    cell = nodes["cell_node"]
    assert cell.parameters == {"record": False}  # others are left to the file
    assert cell.files == (str(tmp_path / "mine.yaml"),)
    with pytest.raises(UrEnergyError, match="robot_ip is missing"):
        actions("energy", record="false")
    assert actions("energy", source="bag", bag="b")


def test_viewers_need_the_robot_model_and_their_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = started(
        "energy",
        robot_model="ur5e",
        robot_description="true",
        tf_prefix="a_",
        rviz="true",
    )
    assert list(nodes) == ["estimator", "logger", "robot_state_publisher", "rviz2"]
    description = str(nodes["robot_state_publisher"].parameters["robot_description"])
    assert 'name="a_elbow_joint"' in description
    with pytest.raises(UrEnergyError, match="robot_description:=true needs robot_model"):
        started("energy", model_file="", robot_description="true")

    def missing(package: str) -> str:
        raise LookupError(package)

    monkeypatch.setattr(launch_checks, "get_package_prefix", missing)
    with pytest.raises(UrEnergyError, match="rviz:=true needs rviz2, which is not"):
        started("energy", rviz="true")
    assert started("energy")


def test_arguments_without_effect_are_reported() -> None:
    other = {"source": "joint_states", "composed": "true", "bag_directory": "x"}
    for name, arguments, expected in (
        ("energy", other, ["nothing is recorded", "bag_directory:=x", "composed:=true"]),
        ("energy", {"logger": "false", "record": "false"}, []),
        ("ur_driver", {"logger": "false"}, ["nothing is recorded"]),
    ):
        _, lines = actions(name, **NEEDED[name] | arguments)
        assert [re.split(" has no effect|: ", line)[0] for line in lines] == expected


def test_values_are_taken_as_they_are_typed() -> None:
    nodes = started("identify", bags="['a:1', b]")
    assert nodes["identification"].parameters["bags"] == ["a:1", "b"]
    nodes = started("identify", bags="'a,1', b:2")
    assert nodes["identification"].parameters["bags"] == ["a,1", "b:2"]
    nodes = started("energy", publish_rate="25")
    assert repr(nodes["estimator"].parameters["publish_rate"]) == "25.0"


def test_a_parameter_file_that_is_not_there_starts_nothing(tmp_path: Path) -> None:
    missing = tmp_path / "mine.yaml"
    for name in NEEDED:
        with pytest.raises(UrEnergyError, match="is no file, nothing is started"):
            started(name, params_file=str(missing))


@pytest.mark.parametrize("content", ["a: [", "- 1\n- 2", "estimator: 3", "", "\0"])
def test_a_file_without_an_address_is_no_address(content: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(UrEnergyError, match="nothing is started"):
        started("energy", params_file=str(path), robot_ip="")
    nodes = started(
        "energy", params_file=str(path)
    )  # which check it, and nothing hides it
    assert [node.files for node in nodes.values()] == [(str(path),)] * 2


def test_wrong_and_unknown_arguments_are_refused() -> None:
    for name, value in (("record", "maybe"), ("publish_rate", "-1")):
        with pytest.raises(ValueError, match=name):
            started("energy", **{name: value})
    command = [
        "ros2",
        "launch",
        "ur_energy_model",
        "energy.launch.py",
        "robot_ip:=1.2.3.4",
    ]
    declared = ["robot_ip", "record"]
    check_names = launch_checks.check_names
    check_names("energy", declared, [*command, "record:=true", "--debug"])
    check_names("identify", declared, [*command, "mine:=3"])  # included
    with pytest.raises(UrEnergyError, match="mean robot_ip"):
        check_names("energy", declared, [*command, "robotip:=1"])
