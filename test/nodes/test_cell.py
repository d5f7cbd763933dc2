"""Logger and estimator in one process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

from rosbags.rosbag2 import Reader

from test.energy.known_arm import known_model
from test.nodes.conftest import Cell
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.telemetry.bag.reader import read_bag


def test_logger_and_estimator_share_a_connection(cell: Cell, fresh_host: Callable[[], str]) -> None:
    observer, host = cell.observer, fresh_host()
    save_model(known_model(), cell.folder / "model.yaml")
    for topic in ("/energy/total/power", "/energy/total/energy"):
        observer.subscribe(topic, "std_msgs/Float64")
    observer.subscribe("/joint_states", "sensor_msgs/JointState")
    cell.start_process("simulated_robot", host=host, motion="hold")
    command = cell_command(robot_ip=host, model_file="model.yaml", bag_directory="bags")
    child = cell.run_command(command)
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
    assert len(read_bag(cell.folder / bag)) > 300
    with Reader(cell.folder / bag) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
    assert counts["/energy/stamped"] > 10


def cell_command(**parameters: str) -> list[str]:
    words = [f"{name}:='{value}'" for name, value in parameters.items()]
    path = Path(sys.executable).parent / "cell_node"
    return [str(path), "--ros-args", *(part for word in words for part in ("-p", word))]
