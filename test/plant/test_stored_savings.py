# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from a history store, beside what is in its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.absent_rooms import needs_room
from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import HOUR, NOON, Session, add, rows
from ur_energy_model.cli.main import main

CYCLE = 1.5  # s
LOWER = -4.0  # standby power after the change less that before it [W]
CHANGED = "2026-05-04T14:00"
BUS = ("actual_robot_voltage", "actual_robot_current")


def store_of(
    folder: Path, *sessions: Session, without: tuple[str, ...] = (), outage: bool = False
) -> Path:
    """A store with bags of sessions: without some fields, the first with an outage or not."""
    for number, session in enumerate(sessions):
        telemetry = session.telemetry()
        columns = {k: v for k, v in telemetry.columns.items() if k not in without}
        telemetry = replace(telemetry, columns=columns)
        if outage and not number:
            since = telemetry.time - telemetry.time[0]
            telemetry = telemetry.select(
                (since < 2.5 * CYCLE) | (since > 2.5 * CYCLE + 0.3)
            )
        add(folder / "store", write_bag(folder / f"bag {number}", telemetry))
    return folder / "store"


def session(at: int, shift: float = 0.0) -> Session:
    return Session(at=at, moving=9.0, still=1.0, cycle=CYCLE, shift=shift)


BEFORE = session(NOON)
AFTER = session(NOON + 3 * HOUR, LOWER)


def found(store: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    needs_room("optimization")
    assert (
        main(["optimize", "--history", str(store), "--changed", CHANGED, "--json"]) == 0
    )
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_measured_totals_of_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path, BEFORE, AFTER)
    content = found(store, capsys)
    cycles = rows(
        store, "cycles", "bus_energy, start >= TIMESTAMPTZ '2026-05-04 14:00Z' AS later"
    )
    energy = [
        np.mean([row["bus_energy"] for row in cycles if row["later"] == later])
        for later in (False, True)
    ]
    assert content["saving"] == pytest.approx(energy[0] - energy[1], rel=1e-12)
    assert content["saving"] == pytest.approx(-LOWER * CYCLE, rel=1e-6)
    assert content["compared"] == "measured"
    assert content["interval"][0] < -LOWER * CYCLE < content["interval"][1]


@pytest.mark.truth
def test_days_are_what_scatters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two days on each side, whose standby differs."""
    days = [
        session(NOON - 48 * HOUR, 1.0), session(NOON - 24 * HOUR, -1.0),
        session(NOON + 24 * HOUR, 3.0), session(NOON + 48 * HOUR, -3.0),
    ]  # fmt: skip
    content = found(store_of(tmp_path, *days), capsys)
    assert content["saving"] == pytest.approx(0.0, abs=1e-6)
    # The variance of a mean of two days, pooled, is 5 W^2 on each side; t of two degrees:
    # 4.303.
    half = 4.302653 * np.sqrt(10.0 / 2.0 * 2.0) * CYCLE
    assert content["interval"][1] == pytest.approx(half, rel=1e-6)
    assert any("2 before and 2 after" in note for note in content["notes"])


def test_a_store_without_bus_power(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = found(store_of(tmp_path, BEFORE, AFTER, without=BUS), capsys)
    assert content["compared"] == "modelled"
    assert content["total_source"] == {"before": "modelled", "after": "modelled"}
    assert content["saving"] == pytest.approx(0.0, abs=1e-6)
    assert not content["proven"]


def test_a_store_without_joint_temperatures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interval is known, and nothing is stated about temperatures."""
    bags = store_of(tmp_path, BEFORE, AFTER, without=("joint_temperatures",))
    content = found(bags, capsys)
    assert content["interval"][0] < -LOWER * CYCLE < content["interval"][1]
    assert content["before"][0]["temperature"] is None
    assert not any("temperature" in text for text in content["differences"])


def test_cycles_with_an_outage_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = found(store_of(tmp_path / "whole", BEFORE, AFTER), capsys)
    less = found(store_of(tmp_path / "less", BEFORE, AFTER, outage=True), capsys)
    assert less["before"][0]["cycles"] == whole["before"][0]["cycles"] - 1
