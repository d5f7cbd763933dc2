"""Sinks and history of the estimator node: the same numbers as its topics."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from test.nodes.conftest import Cell
from test.nodes.test_estimator import bag, ended
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes.estimator import EstimatorNode

__all__ = ["bag"]


def test_sinks_and_history_get_the_energies_of_the_topics(
    cell: Cell, model: Path, bag: Path
) -> None:
    pytest.importorskip("foxglove")
    parquet = pytest.importorskip("pyarrow.parquet")
    reader = pytest.importorskip("mcap.reader")
    observer = cell.observer
    observer.subscribe("/energy/total/energy", "std_msgs/Float64")
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    live, store = cell.folder / "live.mcap", cell.folder / "store"
    node = cell.start_node(
        EstimatorNode,
        source="bag",
        bag=str(bag),
        model_file=str(model),
        mcap=[str(live)],
        history_store=str(store),
        learn="off",
    )
    last = ended(cell, "/energy/total/energy")
    expected = estimate_energy(load_model(model), bag)
    assert last == pytest.approx(expected.supply, rel=1e-6)
    sink: dict[str, Any] = observer.wait(
        lambda: (
            found
            if int((found := observer.status("/diagnostics", "live.mcap"))["delivered"]) >= 30
            else None
        ),
        "readings in the sink",
    )
    assert sink["dropped"] == "0"
    assert sink["message"] == "works"
    assert observer.status("/diagnostics", "estimator: history")["history_store"] == str(store)
    node.end()
    with live.open("rb") as file:
        messages = reader.make_reader(file).iter_messages(topics=["/energy/total/energy"])
        *_, (_, _, message) = messages
    assert _number(message.data) == pytest.approx(last, rel=1e-9)
    seconds = parquet.read_table(store / "seconds")
    assert sum(seconds["total_energy"].to_pylist()) == pytest.approx(expected.supply, rel=1e-6)
    assert sum(seconds["accounted"].to_pylist()) == pytest.approx(expected.duration, rel=1e-9)


def _number(data: bytes) -> float:
    return float(struct.unpack("<d", data[4:])[0])  # std_msgs/Float64 in CDR


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"prometheus": ["0.0.0.0:9464"]}, "allow_network"),
        ({"mqtt": ["mqtt://user:secret@127.0.0.1"]}, "mqtt"),
        ({"foxglove": ["127.0.0.1:99999"]}, "no valid port"),
    ],
)
def test_unusable_sinks_are_refused_in_one_line(
    cell: Cell,
    model: Path,
    bag: Path,
    parameters: dict[str, list[str]],
    problem: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    made = cell.make_node(
        EstimatorNode, model_file=str(model), source="bag", bag=str(bag), **parameters
    )
    assert not made.begin()
    errors = [line for line in capfd.readouterr().err.splitlines() if "INFO" not in line]
    assert len(errors) == 1
    assert problem in errors[0]
    assert "secret" not in errors[0]
