"""What the launch files start exists, and takes what it is given."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
import yaml

from ur_energy_model.launching import ARGUMENTS, NODE_TABLE, Start, node_command, starts
from ur_energy_model.nodes.parameters import NODES, parameter
from ur_energy_model.resources import PACKAGE, share_directory

LAUNCH = share_directory() / "launch"
NEEDED = {"energy": {"model_file": "m.yaml"}, "demo": {}, "identify": {"bags": "a, b"}}


def started(name: str, **values: str) -> dict[str, Start]:
    arguments = {entry.name: entry.default or "" for entry in ARGUMENTS[name]}
    unknown = set(values) - set(arguments)
    assert not unknown
    return {start.name: start for start in starts(name, arguments | NEEDED[name] | values)}


def test_every_launch_file_has_its_arguments_and_the_other_way_round() -> None:
    files = {path.name.removesuffix(".launch.py") for path in LAUNCH.glob("*.launch.py")}
    assert files == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_launch_files_are_python_with_the_entry_point(name: str) -> None:
    tree = ast.parse((LAUNCH / f"{name}.launch.py").read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names == ["generate_launch_description"]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_documented_and_unique(name: str) -> None:
    names = [entry.name for entry in ARGUMENTS[name]]
    assert len(names) == len(set(names))
    for entry in ARGUMENTS[name]:
        assert entry.description, entry.name
        assert entry.default is None or not entry.choices or entry.default in entry.choices


@pytest.mark.parametrize("node", NODE_TABLE)
def test_executables_are_installed_where_launch_looks(node: str) -> None:
    path = Path(sys.prefix) / "lib" / PACKAGE / NODE_TABLE[node].executable
    assert os.access(path, os.X_OK)


@pytest.mark.parametrize("node", NODE_TABLE)
def test_parameter_files_hold_every_parameter_and_its_default(node: str) -> None:
    content = yaml.safe_load(NODE_TABLE[node].parameter_file.read_text())
    values = content["/**"]["ros__parameters"]
    assert values == {entry.name: entry.default for entry in NODES[node]}
    for entry in NODES[node]:
        assert type(values[entry.name]) is type(entry.default)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_parameters_of_what_is_started_are_in_the_table(name: str) -> None:
    for start in started(name).values():
        assert start.executable == NODE_TABLE[start.name].executable
        for path in start.parameter_files:
            assert path.is_file()
        for key, value in start.parameters.items():
            entry = parameter(start.name, key)
            assert type(value) is type(entry.default)
            assert entry.problem(value) is None


def test_a_cell_has_estimator_and_logger() -> None:
    nodes = started("energy", robot_ip="10.0.0.7", record="true", tf_prefix="a_")
    assert set(nodes) == {"estimator", "logger"}
    assert nodes["estimator"].parameters == {
        "robot_ip": "10.0.0.7",
        "model_file": "m.yaml",
        "tf_prefix": "a_",
    }
    assert nodes["logger"].parameters == {"robot_ip": "10.0.0.7", "record": True, "tf_prefix": "a_"}


def test_only_rtde_needs_a_logger() -> None:
    assert set(started("energy", source="bag", bag="b")) == {"estimator"}
    assert set(started("energy", logger="false")) == {"estimator"}


def test_arguments_at_their_default_leave_the_parameter_file_its_say(tmp_path: Path) -> None:
    start = started("energy", params_file=str(tmp_path / "mine.yaml"))["estimator"]
    assert "robot_ip" not in start.parameters
    assert start.parameter_files == (NODE_TABLE["estimator"].parameter_file, tmp_path / "mine.yaml")


def test_a_viewer_gets_the_robot_model_with_the_prefix() -> None:
    nodes = started("energy", robot_description="true", tf_prefix="a_", rviz="true")
    description = nodes["robot_state_publisher"].parameters["robot_description"]
    assert 'name="a_elbow_joint"' in str(description)
    assert Path(nodes["rviz2"].arguments[1]).is_file()


def test_the_demo_starts_an_estimator_where_there_is_a_model() -> None:
    assert set(started("demo")) == {"simulated_robot", "logger"}
    nodes = started("demo", model_file="m.yaml", host="127.0.0.9")
    assert nodes["simulated_robot"].parameters == {"host": "127.0.0.9"}
    assert nodes["estimator"].parameters["robot_ip"] == "127.0.0.9"
    assert nodes["logger"].parameters["robot_ip"] == "127.0.0.9"


def test_identification_gets_lists_of_bags() -> None:
    values = started("identify", validation_bags="c")["identification"].parameters
    assert values["bags"] == ["a", "b"]
    assert values["validation_bags"] == ["c"]
    assert values["identify_on_start"] is True


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("energy", {"source": "serial"}),
        ("energy", {"record": "maybe"}),
        ("demo", {"seed": "x"}),
        ("demo", {"seed": "-1"}),
    ],
)
def test_wrong_arguments_are_refused(name: str, values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        started(name, **values)


def test_commands_of_the_demo_runner() -> None:
    command = node_command(
        "logger",
        {"robot_ip": "127.0.0.2", "record": True, "fields": ["actual_q", "it's"]},
        namespace="/cell",
    )
    assert Path(command[0]).is_file()
    assert "robot_ip:='127.0.0.2'" in command
    assert "record:=true" in command
    assert "fields:=['actual_q', 'it''s']" in command
    assert "__ns:=/cell" in command
    with pytest.raises(KeyError, match="no parameter"):
        node_command("logger", {"robot": "x"})
    with pytest.raises(ValueError, match="source must be one of"):
        node_command("estimator", {"source": "serial"})
