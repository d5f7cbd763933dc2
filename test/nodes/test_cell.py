"""Logger and estimator in one process."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rclpy.parameter import Parameter
from rosbags.rosbag2 import Reader

from test.conftest import Simulate
from test.energy.known_arm import known_model
from test.nodes.conftest import PATIENCE, Cell
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.cell import nodes as cell_nodes
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.node_process import begin
from ur_energy_model.telemetry.bag.reader import read_bag


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


STARTS = 20


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
