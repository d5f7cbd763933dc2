"""The estimator process on a full disk: it starts, measures, answers and ends as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test.energy.known_arm import known_model, motion
from test.nodes.conftest import Cell
from test.small_disk import SmallDisk, small_disk
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.bag.writer import BagWriter

ENERGY = "/energy/total/energy"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 512) as disk_:
        yield disk_


@pytest.fixture
def parameters(tmp_path: Path, disk: SmallDisk) -> dict[str, Any]:
    telemetry = motion(3.0)
    with BagWriter(tmp_path / "bag", telemetry.info, tuple(telemetry.columns)) as bag:
        bag.write(telemetry)
    save_model(known_model(), tmp_path / "model.yaml")
    return {
        "source": "bag",
        "bag": str(tmp_path / "bag"),
        "loop": True,
        "model_file": str(tmp_path / "model.yaml"),
        "state_file": str(disk.path / "state.json"),
        "cycle_log": str(disk.path / "cycles.csv"),
    }


def counters(cell: Cell, level: str) -> dict[str, str]:
    observer = cell.observer
    return observer.wait(
        lambda: (
            (s := observer.status("/diagnostics", "estimator: counters"))["level"] == level and s
        ),
        f"level {level}",
    )


def test_a_full_disk_ends_nothing(cell: Cell, disk: SmallDisk, parameters: dict[str, Any]) -> None:
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    observer.subscribe(ENERGY, "std_msgs/Float64")
    disk.fill()
    child = cell.start_process("estimator", **parameters)
    assert "No space left" in counters(cell, "2")["message"]
    for service in ("reset_energy", "start_cycle", "start_cycle", "read_interval"):
        response = observer.call(f"/estimator/{service}")
        assert response.success
        assert service != "reset_energy" or "not saved" in response.message
        observer.wait_for_messages(ENERGY, 3)
    disk.empty()
    counters(cell, "0")
    assert (disk.path / "state.json").stat().st_size > 0
    code, output = cell.stop(child)
    assert code == 0
    assert "Traceback" not in output
    assert "counters saved" in output
