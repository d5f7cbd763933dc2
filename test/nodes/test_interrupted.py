"""Ctrl-C at any time from the start of a node; ros2 launch delivers it at least twice."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from test.interrupting import assert_quiet, interrupted
from test.nodes.conftest import Cell

PHASES = 8


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
