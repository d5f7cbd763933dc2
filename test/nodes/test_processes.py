# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Processes of nodes: parameters, command lines, errors, Ctrl-C, logger and estimator in one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rclpy.parameter import Parameter
from rclpy.validate_full_topic_name import validate_full_topic_name

from test.absent_rooms import absent_rooms
from test.conftest import Simulate
from test.interrupting import assert_quiet, interrupted
from test.nodes.conftest import LEARNING_OFF, Cell
from tools.generated_files import files
from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import share_directory
from ur_energy_model.interrupts import END_SIGNALS
from ur_energy_model.model.friction import LAWS
from ur_energy_model.nodes.cell import nodes as cell_nodes
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.process import begin
from ur_energy_model.options import Value
from ur_energy_model.simulation.node import SimulatedRobotNode
from ur_energy_model.telemetry.bag.reader import read_bag


def test_generated_files_are_up_to_date() -> None:
    if absent_rooms():
        pytest.skip("the files in the checkout have the options of every room")
    for name, text in files().items():
        path = share_directory() / name
        assert path.read_text() == text, f"{name}: run python -m tools.generated_files"


def test_nodes_of_the_same_names_are_a_warning_of_both(cell: Cell, model: Path) -> None:
    """Two estimators of one namespace, the second with another name, then with the same."""
    observer = cell.observer
    topic = "/diagnostics"
    given: dict[str, Any] = {
        "robot_ip": "127.0.0.1",
        "model_file": str(model),
        **LEARNING_OFF,
    }
    observer.subscribe(topic, "diagnostic_msgs/DiagnosticArray")
    cell.start_node(EstimatorNode, **given)

    def warned(name: str, level: int) -> str:
        """Message about the names of a node, once it has a level."""

        def find() -> str | None:
            for message in observer.history.get(topic, [])[-10:]:
                for status in message.status:
                    if (status.name, status.level) == (f"{name}: graph", bytes([level])):
                        return str(status.message)
            return None

        observer.history[topic] = []
        return str(observer.wait(find, f"level {level} of {name}"))

    cell.start_node(EstimatorNode, namespace="/left", **given)
    warned("left/estimator", 0)
    warned("estimator", 0)
    renamed = cell.run_command(
        [*node_command("estimator", given), "-r", "__node:=second"]
    )
    assert "/energy is published by another node, too: /second" in warned("estimator", 1)
    assert "/energy is published by another node, too: /estimator" in warned("second", 1)
    code, output = cell.stop(renamed)
    assert code == 0, output
    assert "/energy is published by another node, too: /estimator" in output
    warned("estimator", 0)
    cell.start_node(EstimatorNode, **given)
    assert "another node is named /estimator, too" in warned("estimator", 1)


def test_names_of_topics_are_valid_with_every_prefix() -> None:
    for prefix in ("left_", "left/", "1_", "/a b//", "\u00e4", "-", "~{a}"):
        names = [
            topic.name
            for topic in number_topics([prefix + joint for joint in ("a", "b")])
        ]
        assert len(set(names)) == len(names)
        for name in names:
            validate_full_topic_name(f"/{name}")


def test_a_node_takes_whole_numbers_and_refuses_other_values(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    estimator = cell.make_node(EstimatorNode, publish_rate=20, gap_limit=1)

    def set_(node: ManagedNode, name: str, value: object) -> str:
        return str(node.set_parameters([Parameter(name, value=value)])[0].reason)

    assert set_(estimator, "gap_limit", 2) == ""
    for name, value in (("publish_rate", 20.0), ("gap_limit", 2.0)):
        for found in (
            getattr(estimator.parameters, name),
            estimator.get_parameter(name).value,
        ):
            assert repr(found) == repr(value)
    assert "0.002" in set_(estimator, "gap_limit", 100)
    assert "a number" in set_(estimator, "gap_limit", "fast")
    node = cell.make_node(IdentificationNode)
    assert all(known in set_(node, "friction", "nonsense") for known in ("auto", *LAWS))
    assert set_(node, "friction", "stribeck") == ""
    refused: tuple[tuple[type[ManagedNode], str, str, Any], ...] = (
        (EstimatorNode, "estimator", "gap_limit", "fast"),
        (EstimatorNode, "estimator", "publish_rate", 501),
        (IdentificationNode, "identification", "bags", [1]),
    )
    for kind, title, name, value in refused:
        with pytest.raises(UrEnergyError, match=f"{title}: {name} must be"):
            cell.make_node(kind, **{name: value})
    assert not begin([cell.make_node(SimulatedRobotNode, host="192.0.2.1")])
    assert "loopback" in capfd.readouterr().err


def test_command_lines_and_messages_name_parameters() -> None:
    values: dict[str, Value] = {"robot_ip": "127.0.0.2", "fields": ["actual_q", "it's"]}
    command = node_command("logger", values, namespace="/cell")
    assert Path(command[0]).is_file()
    wanted = {"robot_ip:='127.0.0.2'", "fields:=['actual_q', 'it''s']", "__ns:=/cell"}
    assert wanted <= set(command)
    with pytest.raises(KeyError, match="no parameter"):
        node_command("logger", {"robot": "x"})
    with pytest.raises(ValueError, match="source must be one of"):
        node_command("estimator", {"source": "serial"})


PROGRAM = """
import sys, threading
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.process import run_nodes

class Faulty(ManagedNode):
    def __init__(self, place):
        self.place = place
        super().__init__("simulated_robot")
    def fail(self):
        raise RuntimeError(f"the {self.place} is\\nbroken")
    def open(self):
        if self.place == "configuration":
            self.fail()
        if self.place == "timer":
            self.add_report(self.fail)
    def start(self):
        if self.place == "thread":
            for _ in range(3):
                threading.Thread(target=self.fail, name="some work").start()
        if self.place == "end":
            threading.Timer(0.3, lambda: self.finish(0)).start()
    def stop(self):
        if self.place == "end":
            self.fail()

for place in ("configuration", "timer", "thread", "end"):
    print(run_nodes(lambda: [Faulty(place)]), flush=True)
for arguments in (["-r", "__ns:=cell1"], ["-p", "a"], ["--nope"]):
    sys.argv = ["some_node", "--ros-args", *arguments]
    print(run_nodes(lambda: []), flush=True)
"""


def test_errors_end_a_process_with_one_line(cell: Cell) -> None:
    """Unexpected ones anywhere, and arguments that ROS cannot parse."""
    child = cell.run_command([sys.executable, "-c", PROGRAM])
    output, _ = child.communicate(timeout=240.0)
    lines = [line for line in output.splitlines() if line.strip()]
    (file,) = (cell.folder / "ros_log").glob("*_errors.txt")
    assert file.read_text().count("Traceback") >= 4
    for place, named in (
        ("configuration", "simulated_robot: configure"),
        ("timer", "a callback"),
        ("thread", "thread 'some work'"),
        ("end", "the end of simulated_robot"),
    ):
        line, code, *lines = lines
        assert f"unexpected error in {named}: RuntimeError: the {place} is broken" in line
        assert str(file) in line
        assert code == "1"
    assert lines.count("1") == 3
    assert sum("]: ROS cannot be started: " in line for line in lines) == 3
    assert "Traceback" not in output


@pytest.mark.parametrize(("name", "phases"), [("estimator_node", 2), ("logger_node", 2)])
def test_a_node_ends_cleanly_whenever_it_is_interrupted(
    name: str, phases: int, cell: Cell, model: Path, tmp_path: Path, fresh_host
) -> None:
    arguments = {
        "estimator_node": ["-p", "source:=joint_states", "-p", f"model_file:={model}"],
        "logger_node": [
            "-p",
            f"robot_ip:={fresh_host()}",
            "-p",
            f"bag_directory:={tmp_path}",
        ],
    }[name]
    delays = [4.0 * k / (phases - 1) for k in range(phases)]
    ends = interrupted(
        name,
        ["--ros-args", *arguments],
        delays,
        tmp_path,
        code=0,
        environment=cell.environment,
    )
    assert_quiet(ends, 0)


# With a controller, which runs until the end of the module: these tests come last.


@pytest.fixture(scope="module")
def controller(simulate_of_module: Simulate, fresh_host: Callable[[], str]) -> str:
    """Address of a simulated controller."""
    host = fresh_host()
    simulate_of_module(host)
    return host


def test_no_sample_is_lost_at_the_end_of_a_logger(cell: Cell, controller: str) -> None:
    """What waits is still written when a signal has shut ROS down, energies of others as well."""
    observer = cell.observer
    loggers = {}
    for number in END_SIGNALS:
        name = f"signal_{int(number)}"
        observer.subscribe(f"/{name}/joint_states", "sensor_msgs/JointState")
        given = {"robot_ip": controller, "bag_directory": str(cell.folder / name)}
        loggers[number] = cell.start_process("logger", namespace=f"/{name}", **given)
    for number, logger in loggers.items():
        name = f"signal_{int(number)}"
        observer.wait_for_messages(f"/{name}/joint_states", 50)
        code, output = cell.stop(logger, number)
        assert code == 0, output
        (bag,) = (cell.folder / name).iterdir()
        samples = len(read_bag(bag))
        assert samples > 100
        assert f"{samples:,} samples, 0 lost" in output


def test_every_start_of_a_cell_records(cell: Cell, model: Path, controller: str) -> None:
    """With a controller that sends already, by itself and by a lifecycle manager."""
    values = {
        "robot_ip": controller,
        "model_file": str(model),
        "bag_directory": str(cell.folder / "bags"),
        **LEARNING_OFF,
    }
    for own_start in (True, False):
        given = {**values, "autostart": own_start}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        made = cell_nodes(context=cell.observer.context, parameter_overrides=overrides)
        logger, estimator = made
        assert isinstance(logger, LoggerNode)
        assert isinstance(estimator, EstimatorNode)
        assert begin(made)
        for node in () if own_start else made:  # the logger first
            node.trigger_configure()
            node.trigger_activate()
            cell.observer.wait(lambda: logger._session.status.samples, "samples")  # noqa: B023
        cell.observer.wait(lambda: logger._session.status.samples, "samples")  # noqa: B023
        cell.observer.wait(estimator._estimator().snapshot, "samples of the estimator")
        for node in made:
            node.end()
            node.destroy_node()
    bags = sorted((cell.folder / "bags").iterdir())
    assert len(bags) == 2
    assert all(len(read_bag(bag)) > 0 for bag in bags)
