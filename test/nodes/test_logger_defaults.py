"""The logger with its defaults: it records, and where its bags go."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from test.nodes.conftest import Cell
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.telemetry.bag.files import stored_files
from ur_energy_model.telemetry.bag.reader import read_bag


@pytest.mark.parametrize(
    ("given", "data", "expected"),
    [
        ("bags", "/tmp/user/data", "/tmp/user/data/ur_energy/bags"),
        ("cell/1", "", "/tmp/user/.local/share/ur_energy/cell/1"),
        ("bags", "relative", "/tmp/user/.local/share/ur_energy/bags"),
        ("/tmp/user/mine", "/tmp/user/data", "/tmp/user/mine"),
        ("~/mine", "/tmp/user/data", "/tmp/user/mine"),
    ],
)
def test_bags_go_to_the_folder_that_is_said(
    cell: Cell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    given: str,
    data: str,
    expected: str,
) -> None:
    """Under systemd the working directory is /."""
    monkeypatch.chdir("/")
    home = tmp_path / "user"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", data.replace("/tmp/user", str(home)))
    directory = given.replace("/tmp/user", str(home))
    cell.start_node(LoggerNode, robot_ip="127.0.9.9", bag_directory=directory)
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "recording to" in line]
    assert f"recording to {expected.replace('/tmp/user', str(home))}; at most 20 GB" in line
    assert "record:=false" in line


def test_it_records_under_a_budget_unless_switched_off(
    cell: Cell, data_folder: Path, fresh_host: Callable[[], str]
) -> None:
    host = fresh_host()
    cell.start_process("simulated_robot", host=host, motion="hold")
    folder = data_folder / "ur_energy" / "of_this_test"
    silent = cell.start_process("logger", namespace="/silent", robot_ip=host, record=False)
    child = cell.start_process("logger", robot_ip=host, bag_directory=folder.name)
    cell.observer.subscribe("/joint_states", "sensor_msgs/JointState")
    cell.observer.wait(lambda: list(folder.glob("*/*.mcap")), "a bag")
    cell.observer.wait_for_messages("/joint_states", 20)
    code, output = cell.stop(child, signal.SIGINT)
    assert code == 0
    assert f"finished {folder}/" in output
    (bag,) = folder.iterdir()
    assert len(read_bag(bag)) > 100
    assert [file.path.parent for file in stored_files(folder, {})] == [bag]
    _, output = cell.stop(silent, signal.SIGINT)
    bags = data_folder / "ur_energy" / "bags"
    assert f"not recording; the service start_recording records to {bags}" in output
    assert not bags.exists()
