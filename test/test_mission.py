# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the core of the package is for, without any removable room: from telemetry to /energy.

A scripted controller is recorded, recordings are imported, a model is identified, judged
and used for energies, and the estimator node publishes them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.contracts.surface import FIXTURES, ur_energy
from test.energy.known_arm import ROBOT, known_model, motion, total
from test.telemetry.rtde_peer import PacedPeer, PeerBehaviour, value_of
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.typing import Array

WORK = FIXTURES / "work"
EXCITATION = FIXTURES / "excitation"
SECONDS = 3.0


def done(*words: object) -> Any:
    """JSON of a command that ends without an error."""
    return ur_energy(*words, "--json").json


class KnownArm:
    """The known arm as a scripted controller: each tick has the columns of its motion."""

    def __init__(self) -> None:
        self.telemetry = motion(2.0 * SECONDS)

    def value(self, name: str, tick: int) -> Array | float:
        """Value of a field; fields that the motion lacks are as those of any peer."""
        column = self.telemetry.columns.get(name)
        if column is None:
            return value_of(name, tick)
        value = column[tick % len(column)]
        if name == "timestamp":
            return float(self.telemetry.time[0] + tick / 500.0)
        return value if np.ndim(value) else float(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mission")


@pytest.fixture(scope="module")
def recorded(folder: Path, fresh_host: Callable[[], str]) -> Path:
    """A bag that `ur_energy record` has made of the scripted controller."""
    arm = KnownArm()
    fields = frozenset(arm.telemetry.columns)
    asked = ",".join(sorted(fields))
    with PacedPeer(
        PeerBehaviour(), host=fresh_host(), port=30004, values=arm.value
    ) as peer:
        words = ("--robot", "ur5e", "--fields", asked, "--duration", SECONDS)
        found = done("record", "--host", peer.host, *words, "-o", folder / "recorded")
    assert found["lost"] == 0
    assert found["samples"] == len(read_bag(folder / "recorded"))
    return folder / "recorded"


@pytest.fixture(scope="module")
def known(folder: Path) -> Path:
    """File of the model that the scripted controller obeys."""
    save_model(known_model(), folder / "known.yaml")
    return folder / "known.yaml"


@pytest.fixture(scope="module")
def identified(folder: Path) -> Path:
    """A model that `ur_energy identify` has fitted to a recording of an excitation."""
    path = folder / "model.yaml"
    done("identify", EXCITATION, "--validate", WORK, "-o", path)
    return path


def test_a_recording_gives_the_energy_of_the_arm(recorded: Path, known: Path) -> None:
    """Measured and modelled energy are the integral of the power that the arm took."""
    telemetry = read_bag(recorded)
    power = total(telemetry)
    truth = float(np.sum(np.diff(telemetry.time) * (power[1:] + power[:-1]) / 2.0))
    found = done("estimate", known, recorded)["total"]
    assert found["supply_energy"] == pytest.approx(truth, rel=1e-3)
    assert found["model_energy"] == pytest.approx(truth, rel=5e-3)


def test_a_csv_file_becomes_a_bag(folder: Path) -> None:
    table = FIXTURES / "recording.csv"
    found = done("import", table, "--robot", "ur5e", "-o", folder / "imported")
    rows = len(table.read_text().splitlines()) - 1
    assert found["samples"] == rows == len(read_bag(folder / "imported"))


def test_an_identified_model_explains_another_recording(identified: Path) -> None:
    """Its energy has the measured one within its interval; currents are explained, too."""
    (judged,) = done("evaluate", identified, WORK)["results"]
    moving = [each["r2"] for each in judged["current"] if each["r2"] is not None]
    assert min(moving) > 0.99
    estimated = done("estimate", identified, WORK)
    low, high = estimated["total"]["model_energy_interval"]
    assert low < estimated["bus_energy"] < high
    assert high - low < 0.05 * estimated["bus_energy"]


def test_a_report_states_the_energies(folder: Path, identified: Path) -> None:
    page = folder / "report.html"
    done("report", identified, WORK, "-o", page)
    text = page.read_text(encoding="utf-8")
    for joint in ROBOT.joint_names:
        assert joint in text
    assert text.rstrip().endswith("</html>")


def test_the_estimator_publishes_the_energies_of_a_bag(
    folder: Path, recorded: Path, known: Path, fresh_domain: Callable[[], int]
) -> None:
    """On /energy, from a bag, and its end has what `ur_energy estimate` computes."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from test.nodes.conftest import Cell
    from ur_energy_model.nodes.estimator import EstimatorNode

    cell = Cell(folder, fresh_domain())
    try:
        observer = cell.observer
        observer.subscribe("/energy", "sensor_msgs/JointState")
        observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
        given = {"source": "bag", "bag": str(recorded), "model_file": str(known)}
        cell.start_node(EstimatorNode, **given)
        over = "the bag has ended"
        observer.status_that("estimator: source", lambda s: s["message"] == over, over)
        observer.drain("/energy")
        last = observer.latest["/energy"]
        energies = dict(zip(last.name, last.position, strict=True))
        estimated = done("estimate", known, recorded)
        assert energies["total"] == pytest.approx(estimated["bus_energy"], rel=0.02)
        parts = [
            name for name in energies if name not in ("total", "bus", "model", "wall")
        ]
        assert sum(energies[name] for name in parts) == pytest.approx(energies["total"])
    finally:
        cell.close()
