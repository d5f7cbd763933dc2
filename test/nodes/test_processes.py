"""Processes of nodes: parameters, command lines, errors, Ctrl-C, logger and estimator in one."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.parameter import Parameter as RosParameter
from rclpy.validate_full_topic_name import validate_full_topic_name
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from test.conftest import Simulate
from test.energy.known_arm import known_model
from test.interrupting import assert_quiet, interrupted
from test.nodes.conftest import PATIENCE, Cell
from tools.generated_files import files
from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import share_directory
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.cell import nodes as cell_nodes
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.launch_arguments import node_command
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.managed_node import ManagedNode, explain
from ur_energy_model.nodes.node_process import begin
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.nodes.ros import has_subscribers
from ur_energy_model.nodes.simulated_robot import SimulatedRobotNode
from ur_energy_model.telemetry.bag.reader import read_bag


@pytest.mark.parametrize("name", files())
def test_generated_files_are_up_to_date(name: str) -> None:
    path = share_directory() / name
    assert path.read_text() == files()[name], "run python -m tools.generated_files"


@pytest.mark.parametrize(
    "prefix", ["", "left_", "left/", "left-", "1_", "/a b//", "\u00e4", "-", "<x>", "~{a}", "9/1"]
)
def test_names_of_topics_are_valid_with_every_prefix(prefix: str) -> None:
    names = [topic.name for topic in number_topics([prefix + joint for joint in ("a", "b")])]
    assert len(set(names)) == len(names)
    for name in names:
        validate_full_topic_name(f"/{name}")
    if prefix in ("", "left_", "left/"):
        assert f"energy/{prefix}a/power" in names


def test_a_node_takes_whole_numbers_and_refuses_other_values_in_every_state(cell: Cell) -> None:
    node = cell.make_node(IdentificationNode)
    estimator = cell.make_node(EstimatorNode, publish_rate=20, gap_limit=1)
    for name, value in (("publish_rate", 20.0), ("gap_limit", 1.0)):
        assert repr(getattr(estimator.parameters, name)) == repr(
            estimator.get_parameter(name).value
        )
        assert repr(getattr(estimator.parameters, name)) == repr(value)

    def set_(node: ManagedNode, name: str, value: object) -> str:
        return str(node.set_parameters([RosParameter(name, value=value)])[0].reason)

    assert set_(estimator, "gap_limit", 2) == ""
    assert repr(estimator.get_parameter("gap_limit").value) == repr(2.0)
    assert "0.002" in set_(estimator, "gap_limit", 100)
    assert "a number" in set_(estimator, "gap_limit", "fast")
    assert isinstance(estimator.parameters, EstimatorParameters)
    assert estimator.parameters.gap_limit == 2.0
    for law in ("nonsense", "", "AUTO"):
        reason = set_(node, "friction", law)
        assert all(known in reason for known in ("auto", *LAWS))
    assert set_(node, "friction", "stribeck") == ""
    for wrong in ({"gap_limit": "fast"}, {"publish_rate": 501}, {"learn": 3}, {"mqtt": [1]}):
        with pytest.raises(UrEnergyError, match=f"estimator: {next(iter(wrong))} must be"):
            cell.make_node(EstimatorNode, **wrong)


@pytest.mark.parametrize(
    ("text", "node", "wanted"),
    [
        ("--friction: unknown law", "identification", "friction: unknown law"),
        ("check --robot and the address", "logger", "check robot_model and the address"),
        ("check --host; or --wait longer", "logger", "check robot_ip; or --wait longer"),
        (
            "use a model (identify: --robot ur5e)",
            "estimator",
            "use a model (identify: --robot ur5e)",
        ),
        (
            "try ur_energy record --host X, or --host Y",
            "logger",
            "try ur_energy record --host X, or robot_ip Y",
        ),
        ("set --friction", "logger", "set --friction"),
        ("free address with --host", "simulated_robot", "free address with host"),
        (
            "--mqtt: permit it with --allow-network",
            "estimator",
            "mqtt: permit it with allow_network",
        ),
        ("a -- b --no c--robot", "logger", "a -- b --no c--robot"),
    ],
)
def test_options_become_parameters(text: str, node: str, wanted: str) -> None:
    assert explain(text, node) == wanted


def test_values_are_written_as_yaml() -> None:
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


def test_unknown_parameters_and_values_are_refused() -> None:
    with pytest.raises(KeyError, match="no parameter"):
        node_command("logger", {"robot": "x"})
    with pytest.raises(ValueError, match="source must be one of"):
        node_command("estimator", {"source": "serial"})


def test_a_simulated_robot_serves_loopback_only(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not cell.make_node(SimulatedRobotNode, host="192.0.2.1").begin()
    assert "loopback" in capfd.readouterr().err


def test_nobody_listens_once_ros_is_shut_down(fresh_domain):
    context = Context()
    rclpy.init(context=context, domain_id=fresh_domain())
    node = rclpy.create_node("talker", context=context)
    publisher = node.create_publisher(String, "words", 1)
    node.create_subscription(String, "words", lambda _: None, 1)
    assert has_subscribers(publisher)
    rclpy.try_shutdown(context=context)
    assert not has_subscribers(publisher)
    node.destroy_node()


PROGRAM = """
import sys, threading
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.node_process import run_nodes

class Faulty(IdentificationNode):
    def fail(self):
        raise RuntimeError("the {place} is\\nbroken")
    def open(self):
        super().open()
        if "{place}" == "configuration":
            self.fail()
        if "{place}" == "timer":
            self.add_report(self.fail)
    def start(self):
        super().start()
        if "{place}" == "thread":
            for _ in range(3):
                threading.Thread(target=self.fail, name="some work").start()
    def release(self):
        if "{place}" == "end":
            self.fail()

if "{place}" == "end":
    threading.Timer(2.0, lambda: nodes[0].finish(0)).start()
nodes = []
def make():
    nodes.append(Faulty())
    return nodes
sys.exit(run_nodes(make))
"""


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("configuration", "identification: configure"),
        ("timer", "a callback"),
        ("thread", "thread 'some work'"),
        ("end", "the end of identification"),
    ],
)
def test_an_unexpected_error_ends_the_process_with_one_line(
    place: str, named: str, cell: Cell
) -> None:
    child = cell.run_command([sys.executable, "-c", PROGRAM.format(place=place)])
    output, _ = child.communicate(timeout=60.0)
    assert child.returncode == 1, output
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1, output
    assert f"unexpected error in {named}: RuntimeError: the {place} is broken" in lines[0]
    (file,) = (cell.folder / "ros_log").glob("*_errors.txt")
    assert str(file) in lines[0]
    assert "Traceback" in file.read_text()


@pytest.mark.parametrize("arguments", [["-r", "__ns:=cell1"], ["-p", "a"], ["--nope"]])
def test_ros_arguments_that_cannot_be_parsed_end_in_one_line(
    arguments: list[str], cell: Cell
) -> None:
    program = "from ur_energy_model.nodes.logger import main; main()"
    child = cell.run_command([sys.executable, "-c", program, "--ros-args", *arguments])
    output, _ = child.communicate(timeout=60.0)
    assert child.returncode == 1, output
    assert "Traceback" not in output
    assert "]: ROS cannot be started: " in output.splitlines()[-1]


PHASES = 5


@pytest.fixture
def start_time(cell: Cell, model: Path) -> float:
    """Time from the start of an estimator process to its first message [s]."""
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    began = time.monotonic()
    child = cell.start_process("estimator", source="joint_states", model_file=str(model))
    cell.observer.next_message("/diagnostics")
    took = time.monotonic() - began
    cell.stop(child)
    return took


@pytest.mark.parametrize("name", ["estimator_node", "logger_node"])
def test_a_node_ends_cleanly_whenever_it_is_interrupted(
    name: str, cell: Cell, start_time: float, model: Path, tmp_path: Path, fresh_host
) -> None:
    arguments = {
        "estimator_node": ["-p", "source:=joint_states", "-p", f"model_file:={model}"],
        "logger_node": ["-p", f"robot_ip:={fresh_host()}", "-p", f"bag_directory:={tmp_path}"],
    }[name]
    delays = np.linspace(0.0, 1.2 * start_time, PHASES)
    ends = interrupted(
        name, ["--ros-args", *arguments], delays.tolist(), tmp_path, environment=cell.environment
    )
    assert_quiet(ends, 0)


def test_logger_and_estimator_share_a_connection(cell: Cell, fresh_host: Callable[[], str]) -> None:
    observer, host = cell.observer, fresh_host()
    save_model(known_model(), cell.folder / "model.yaml")
    for topic in ("/energy/total/power", "/energy/total/energy"):
        observer.subscribe(topic, "std_msgs/Float64")
    observer.subscribe("/joint_states", "sensor_msgs/JointState")
    cell.start_process("simulated_robot", host=host, motion="hold")
    command = cell_command(
        robot_ip=host, model_file="model.yaml", bag_directory=str(cell.folder / "bags")
    )
    child = cell.run_command([*command, "-p", "record:=false"])
    observer.wait(
        lambda: {"/energy/total/energy", "/joint_states"} <= set(observer.latest), "both nodes"
    )
    observer.wait(
        lambda: {"logger", "estimator"} <= set(observer.node.get_node_names()), "both names"
    )
    bag = Path(observer.call("/logger/start_recording").message)
    observer.wait_for_messages("/joint_states", 100)
    assert observer.call("/logger/stop_recording").success
    code, output = cell.stop(child, signal.SIGINT)
    assert code == 0, output
    assert len(read_bag(bag)) > 300
    with Reader(bag) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
    assert counts["/energy"] > 10


STARTS = 4


@pytest.mark.parametrize("own_start", [True, False])
def test_every_start_records(
    own_start: bool, cell: Cell, fresh_host: Callable[[], str], simulate: Simulate
) -> None:
    """With a controller that sends already, by itself and by a lifecycle manager."""
    host = fresh_host()
    simulate(host)
    save_model(known_model(), cell.folder / "model.yaml")
    values = {
        "robot_ip": host,
        "model_file": str(cell.folder / "model.yaml"),
        "bag_directory": str(cell.folder / "bags"),
        "record": True,
        "autostart": own_start,
    }
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    for _ in range(STARTS if own_start else 3):
        made = cell_nodes(context=cell.observer.context, parameter_overrides=overrides)
        logger, estimator = made
        assert isinstance(logger, LoggerNode)
        assert isinstance(estimator, EstimatorNode)
        assert begin(made)
        if not own_start:  # the logger is active while the estimator is not even configured
            assert logger.configure()
            assert logger.activate()
            wait_for_samples(logger)
            assert estimator.configure()
            assert estimator.activate()
        wait_for_samples(logger)
        deadline = time.monotonic() + PATIENCE
        while estimator._estimator().snapshot() is None:
            assert time.monotonic() < deadline, "the estimator gets no samples"
            time.sleep(0.01)
        for node in made:
            node.end()
            node.destroy_node()
    bags = sorted((cell.folder / "bags").iterdir())
    assert len(bags) == (STARTS if own_start else 3)
    assert all(len(read_bag(bag)) > 0 for bag in bags)


def wait_for_samples(logger: LoggerNode) -> None:
    deadline = time.monotonic() + PATIENCE
    while not logger._session.status.samples:
        assert time.monotonic() < deadline, "nothing is recorded"
        time.sleep(0.01)


def cell_command(**parameters: str) -> list[str]:
    words = [f"{name}:='{value}'" for name, value in parameters.items()]
    path = Path(sys.executable).parent / "cell_node"
    return [str(path), "--ros-args", *(part for word in words for part in ("-p", word))]
