# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The history that the estimator node writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import motion
from test.nodes.conftest import LEARNING_OFF, Cell, cell, model
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes import managed_node
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.process import begin
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import RecordingInfo

__all__ = ["cell", "model"]  # fixtures
SECONDS = 2.5


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Some seconds of the known arm."""
    telemetry = motion(SECONDS)
    stamp = ((1_700_000_000 + telemetry.time) * 1e9).astype(np.int64)
    info = RecordingInfo(robot="ur5e", rate=500.0)
    path = tmp_path / "bag"
    with BagWriter(path, info, tuple(telemetry.columns)) as writer:
        writer.write(replace(telemetry, info=info, stamp=stamp))
    return path


def test_an_estimator_writes_the_energies_of_a_bag_into_a_history(
    cell: Cell, bag: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_node, "REPORT_PERIOD", 0.1)
    parquet = pytest.importorskip("pyarrow.parquet")
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    store = cell.folder / "store"
    node = cell.start_node(
        EstimatorNode,
        source="bag",
        bag=str(bag),
        model_file=str(model),
        history_store=str(store),
        **LEARNING_OFF,
    )
    over = "the bag has ended"
    observer.status_that("estimator: source", lambda s: s["message"] == over, over)
    status = observer.status("/diagnostics", "estimator: history")
    assert status["history_store"] == str(store)
    node.end()
    expected = estimate_energy(load_model(model), bag)
    rows = parquet.read_table(store / "seconds")
    energy = sum(rows["total_energy"].to_pylist())
    assert energy == pytest.approx(expected.supply, rel=1e-6)
    accounted = sum(rows["accounted"].to_pylist())
    assert accounted == pytest.approx(expected.duration, rel=1e-9)


def test_a_script_that_cannot_be_read_is_refused_and_the_state_file_is_free_again(
    cell: Cell, model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = {
        "source": "joint_states",
        "model_file": str(model),
        "state_file": str(cell.folder / "energy.db"),
        "history_store": str(cell.folder / "store"),
    }
    script = str(cell.folder / "missing.script")
    assert not begin([cell.make_node(EstimatorNode, **given, script=script)])
    assert script in capfd.readouterr().err
    assert begin([cell.make_node(EstimatorNode, **given, namespace="/again")])
