# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch files with the real launch and launch_ros, where they are installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from test.energy.known_arm import known_model
from test.nodes.conftest import Cell
from ur_energy_model.files import share_directory
from ur_energy_model.model.model_file import save_model

launch_ros = pytest.importorskip("launch_ros", reason="launch_ros is not installed here")

_RUN = """
import json
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription([
    GroupAction([IncludeLaunchDescription(
        PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments.items()
    )])
    for arguments in json.loads(sys.argv[2])
]))
sys.exit(service.run())
"""
"""Includes a launch file once for each object of arguments."""


@pytest.fixture
def cell(tmp_path: Path, fresh_domain: Callable[[], int]) -> Iterator[Cell]:
    """A ROS domain of its own."""
    made = Cell(tmp_path, fresh_domain())
    yield made
    made.close()


def launched(
    cell: Cell, name: str, *more: dict[str, str], **given: str
) -> subprocess.Popen[str]:
    """Start a launch file, in a session of its own; `more` are arguments for it once more."""
    arguments = json.dumps([each for each in (given, *more) if each])
    command = [
        sys.executable,
        "-c",
        _RUN,
        str(share_directory() / "launch" / f"{name}.launch.py"),
        arguments,
    ]
    return cell.run_command(command, AMENT_PREFIX_PATH=sys.prefix)


def ended(child: subprocess.Popen[str], timeout: float = 240.0) -> str:
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        pytest.fail(f"launch did not end\n{output}")
    return output


def test_the_demo_runs_until_ctrl_c(
    cell: Cell, tmp_path: Path, fresh_host: Callable[[], str]
) -> None:
    save_model(known_model(), tmp_path / "model.yaml")
    cell.observer.subscribe("/cell_1/energy/total/power", "std_msgs/Float64")
    given = {
        "model_file": str(tmp_path / "model.yaml"),
        "bag_directory": str(tmp_path / "bags"),
    }
    child = launched(
        cell, "demo", host=fresh_host(), record="true", namespace="cell_1", **given
    )
    cell.observer.next_message("/cell_1/energy/total/power")
    cell.observer.wait(lambda: list(tmp_path.glob("bags/*/*.mcap")), "a bag")
    child.send_signal(signal.SIGINT)
    output = ended(child)
    assert list(tmp_path.glob("bags/*/metadata.yaml"))
    assert output.count("process has finished cleanly") == 3, output
    assert "Traceback" not in output


def test_two_arms_in_two_namespaces(
    cell: Cell, tmp_path: Path, fresh_host: Callable[[], str]
) -> None:
    """From one launch description; arguments override the file of parameters."""
    save_model(known_model(), tmp_path / "model.yaml")
    content = {"/**": {"ros__parameters": {"publish_rate": 20.0, "tf_prefix": "file_"}}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    hosts = {name: fresh_host() for name in ("left", "right")}
    for host in hosts.values():
        cell.start_process("simulated_robot", host=host, motion="hold")
    arms = [
        {
            "namespace": name,
            "tf_prefix": f"{name}_",
            "robot_ip": host,
            "model_file": str(tmp_path / "model.yaml"),
            "params_file": str(tmp_path / "mine.yaml"),
            "bag_directory": str(tmp_path / f"bags_{name}"),
            "record": "false",
        }
        for name, host in hosts.items()
    ]
    child = launched(cell, "energy", *arms)
    topics = {
        f"/{name}/energy/{name}_elbow_joint/power": "std_msgs/Float64" for name in hosts
    }
    topics |= {f"/{name}/joint_states": "sensor_msgs/JointState" for name in hosts}
    for topic, kind in topics.items():
        cell.observer.subscribe(topic, kind)
    cell.observer.wait(lambda: set(topics) <= set(cell.observer.latest), "both arms")
    for name in hosts:
        names = cell.observer.latest[f"/{name}/joint_states"].name
        assert all(joint.startswith(f"{name}_") for joint in names)
        assert cell.observer.call(f"/{name}/logger/start_recording").success
    child.send_signal(signal.SIGINT)
    output = ended(child)
    assert output.count("process has finished cleanly") == 4, output
    for name in hosts:
        assert len(list(tmp_path.glob(f"bags_{name}/*/metadata.yaml"))) == 1


@pytest.mark.parametrize("respawn", ["true", "false"])
def test_a_killed_node_is_started_again_or_is_a_failure(
    cell: Cell, tmp_path: Path, fresh_host: Callable[[], str], respawn: str
) -> None:
    """Without respawn the logger goes on alone, and launch returns 1 at its end."""
    save_model(known_model(), tmp_path / "model.yaml")
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    given = {"robot_ip": fresh_host(), "model_file": str(tmp_path / "model.yaml")}
    child = launched(cell, "energy", **given, respawn=respawn, respawn_delay="0.5")
    cell.observer.status("/diagnostics", "estimator: source")
    cell.observer.status("/diagnostics", "logger: connection")
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    (estimator,) = (
        int(pid)
        for pid in children
        if "estimator" in Path(f"/proc/{pid}/cmdline").read_text()
    )
    os.kill(estimator, signal.SIGKILL)
    cell.observer.drain("/diagnostics")
    cell.observer.latest.clear()
    part = "estimator: source" if respawn == "true" else "logger: connection"
    cell.observer.status("/diagnostics", part)
    child.send_signal(signal.SIGINT)
    output = ended(child)
    assert child.returncode == (0 if respawn == "true" else 1)
    assert output.count("process started with pid") == (3 if respawn == "true" else 2)
    assert output.count("process has finished cleanly") == (2 if respawn == "true" else 1)
    assert "Traceback" not in output
