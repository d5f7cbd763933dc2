# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The log of an arm's work: rests, pauses and cycles of powers that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.simulation.simulated_cell import (
    ABOVE_PICK,
    PICK,
    SimulatedCell,
    movej,
    program,
)
from test.truth import first_fast
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.work_log import LOG_FIELDS, WorkLog
from ur_energy_model.model.generic import generic_model
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.samples import equal_runs

CB3: dict[str, Any] = {"robot": "ur5", "version": (3, 15, 8)}
"""An arm whose controller computes four times less often than that of a UR5e."""


@pytest.mark.parametrize("rate", first_fast([25.0, 125.0]))
def test_powers_at_rest_are_those_that_were_measured(rate: float, tmp_path: Path) -> None:
    cell = SimulatedCell(**CB3)
    cell.run(program(movej(PICK), "sleep(2)", movej(ABOVE_PICK, 1.0), "sleep(1)"))
    recorded = cell.record(tmp_path / "bag", 25.0, rate=rate)
    log = WorkLog()
    summary = estimate_energy(
        generic_model("ur5"), recorded.bag, fields=LOG_FIELDS, observe=log.add
    )
    log.finish()
    assert log.seconds == pytest.approx(summary.duration)
    assert log.total_source == ("measured", 1.0)
    assert log.pauses.number == 0
    # The same from the file: means over the rests at the end of each move, without their
    # begin.
    bag = read_bag(recorded.bag)
    power = bag["actual_robot_voltage"] * bag["actual_robot_current"]
    still = np.abs(bag["target_qd"]).max(axis=1) < 1e-6
    for pose in (PICK, ABOVE_PICK):
        there = still & (np.abs(bag["target_q"] - np.array(pose)).max(axis=1) < 1e-3)
        place = log.place_at(np.array(pose))
        assert place is not None
        runs = [rows for rows in equal_runs(there) if there[rows.start]]
        means = [
            power[rows][bag.time[rows] - bag.time[rows.start] > 0.3].mean()
            for rows in runs
            if np.ptp(bag.time[rows]) > 0.5
        ]
        assert place.count == pytest.approx(len(means), abs=1)
        assert place.power == pytest.approx(np.mean(means), abs=0.7)
    assert log.place_at(np.zeros(6)) is None
    assert log.program is not None
    lines = {part.line: spent.energy for part, spent in log.program.spent().items()}
    assert sum(lines.values()) == pytest.approx(summary.supply)
    assert len(log.cycles) >= 2
    assert np.ptp([cycle.motion_time for cycle in log.cycles]) < 4.0 / rate
    assert log.moving_seconds < log.seconds


def test_a_long_rest_is_a_pause(tmp_path: Path) -> None:
    cell = SimulatedCell(**CB3, rate=25.0)
    recorded = cell.record(tmp_path / "bag", 70.0, rate=12.5)
    log = WorkLog()
    estimate_energy(
        generic_model("ur5"), recorded.bag, fields=LOG_FIELDS, observe=log.add
    )
    assert log.pauses.number == 0, "it goes on"
    log.finish()
    assert log.pauses.number == 1
    assert log.pauses.seconds == pytest.approx(70.0, abs=0.3)
    assert log.pauses.energy == pytest.approx(recorded.energy, rel=0.01)
    assert log.places == []
    assert log.off_power is None
