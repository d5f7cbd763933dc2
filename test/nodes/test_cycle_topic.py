# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""energy/cycle: what subscribers, bags and the next start of the estimator get of cycles."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from test.energy.known_arm import changed, motion, packets, total
from test.nodes.conftest import LEARNING_OFF, Cell, seconds_of
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "/energy/cycle"
KIND = "diagnostic_msgs/DiagnosticArray"
BEGAN = 1_700_000_000  # host time of the recording, beside the controller's [s]
STARTS = (100, 600, 1600, 2100)  # samples at which cycles start
MISSING = slice(900, 1250)  # samples that are missing, in the second cycle


def work(*, host_time: bool = True) -> Telemetry:
    """Three cycles, the second with an outage; a register counts them."""
    telemetry = motion(5.0)
    info = RecordingInfo(robot="ur5e", rate=500.0)
    register = np.searchsorted(STARTS, np.arange(len(telemetry)), side="right")
    telemetry = changed(telemetry, output_int_register_0=register.astype(float))
    stamp = BEGAN * 10**9 + np.round(1e9 * telemetry.time).astype(np.int64)
    telemetry = replace(telemetry, info=info, stamp=stamp if host_time else None)
    kept = np.ones(len(telemetry), dtype=bool)
    kept[MISSING] = False
    return telemetry.select(kept)


def write(path: Path, telemetry: Telemetry) -> Path:
    with BagWriter(path, telemetry.info, tuple(telemetry.columns)) as writer:
        for part in packets(telemetry, 100):
            writer.write(part)
    return path


@pytest.fixture
def played(tmp_path: Path, model: Path) -> dict[str, Any]:
    """Parameters of an estimator of the bag."""
    bag = write(tmp_path / "bag", work())
    given = {"source": "bag", "bag": str(bag), "model_file": str(model), **LEARNING_OFF}
    return {**given, "cycle_trigger": "int_register"}


def values_of(message: Any) -> dict[str, str]:
    (status,) = message.status
    return {each.key: each.value for each in status.values}


def cycles(cell: Cell, count: int) -> list[Any]:
    """All messages, once there are so many."""
    history = cell.observer.history
    cell.observer.wait(lambda: len(history.get(TOPIC, [])) >= count, f"{count} cycles")
    return history[TOPIC]


def test_a_late_subscriber_gets_cycles_with_their_times_and_what_is_missing(
    cell: Cell, played: dict[str, Any]
) -> None:
    log = cell.folder / "cycles.csv"
    cell.observer.subscribe("/diagnostics", KIND)
    cell.start_node(EstimatorNode, **played, cycle_log=str(log))
    over = "the bag has ended"
    cell.observer.status_that("estimator: source", lambda s: s["message"] == over, over)
    cell.observer.subscribe(TOPIC, KIND, latched=True)
    messages = cycles(cell, 3)
    telemetry = work()
    assert [values_of(each)["cycle"] for each in messages] == ["1", "2", "3"]
    whole = motion(5.0)
    for message, start, stop in zip(messages, STARTS[:-1], STARTS[1:], strict=True):
        values, (status,) = values_of(message), message.status
        # From the last sample before the cycle to its own last one.
        begin, end = (BEGAN + float(whole.time[place - 1]) for place in (start, stop))
        assert seconds_of(message.header.stamp) == pytest.approx(end, abs=1e-6)
        assert float(values["start"]) == pytest.approx(begin, abs=1e-6)
        assert float(values["duration_s"]) == pytest.approx(end - begin, abs=1e-3)
        inside = (telemetry.time > begin - BEGAN - 1e-6) & (
            telemetry.time < end - BEGAN + 1e-6
        )
        time = telemetry.time[inside]
        power = total(telemetry)[inside]
        seen = np.diff(time) < 0.1
        energy = float((0.5 * (power[1:] + power[:-1]) * np.diff(time))[seen].sum())
        assert float(values["total_energy_J"]) == pytest.approx(energy, rel=1e-4)
        missing = float(np.diff(time)[~seen].sum())
        assert float(values["unaccounted_s"]) == pytest.approx(missing, abs=1e-4)
        assert status.level == (DiagnosticStatus.WARN if missing else DiagnosticStatus.OK)
    with log.open(newline="") as file:
        logged = [float(row["unaccounted_s"]) for row in csv.DictReader(file)]
    assert logged == pytest.approx([0.0, 0.702, 0.0], abs=1e-3)


def test_numbers_go_on_after_a_restart_and_times_are_of_now_without_host_time(
    cell: Cell, played: dict[str, Any]
) -> None:
    bag = write(cell.folder / "undated", work(host_time=False))
    state = cell.folder / "state"
    cell.observer.subscribe(TOPIC, KIND)
    before = cell.observer.node.get_clock().now().nanoseconds * 1e-9
    for number in (1, 4):
        given = {**played, "bag": str(bag), "state_file": str(state)}
        node = cell.start_node(EstimatorNode, **given)
        messages = cycles(cell, number + 2)
        node.end()
    now = cell.observer.node.get_clock().now().nanoseconds * 1e-9
    assert [values_of(each)["cycle"] for each in messages] == [
        str(n) for n in range(1, 7)
    ]
    times = [seconds_of(message.header.stamp) for message in messages]
    assert before < times[0] < times[-1] < now
    assert times == sorted(times)
    starts = [float(values_of(message)["start"]) for message in messages]
    assert all(start < time for start, time in zip(starts, times, strict=True))


def test_the_logger_subscribes_to_events_reliably(cell: Cell) -> None:
    given = {"robot_ip": "127.0.0.1", "bag_directory": str(cell.folder), "record": False}
    cell.start_node(LoggerNode, **given)
    node = cell.observer.node
    for topic, reliable in (
        (TOPIC, True),
        ("/energy/prediction", True),
        ("/energy", False),
    ):
        look = node.get_subscriptions_info_by_topic
        (found,) = cell.observer.wait(lambda: look(topic), topic)  # noqa: B023
        assert (found.qos_profile.reliability.name == "RELIABLE") == reliable


def test_the_example_prints_what_cycles_took(cell: Cell, played: dict[str, Any]) -> None:
    """It is written from the README alone."""
    cell.observer.subscribe(TOPIC, KIND)
    cell.start_node(EstimatorNode, **played)
    messages = cycles(cell, 3)
    child = cell.run_command(
        [sys.executable, str(ROOT / "examples" / "cycle_energies.py")]
    )
    shown = list[str]()
    assert child.stdout is not None
    while len(shown) < 3:
        cell.observer.spin(0.05)
        shown.append(child.stdout.readline())
    for line, message in zip(shown, messages, strict=True):
        values = values_of(message)
        (number, energy) = re.findall(r"cycle (\d+): ([\d.]+) J", line)[0]
        assert number == values["cycle"]
        assert float(energy) == pytest.approx(float(values["total_energy_J"]), abs=0.06)
        assert ("without samples" in line) == (values["unaccounted_s"] != "0")
