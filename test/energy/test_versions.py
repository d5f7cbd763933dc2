# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Two versions of a program, line by line, beside trapezoids of voltage and current."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from ur_energy_model.energy.difference import sources_json
from ur_energy_model.energy.profile import ProgramProfile, profile_program
from ur_energy_model.energy.program import parse_script
from ur_energy_model.energy.versions import compare_programs
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Chain, move

HERE = np.array([0.0, -1.6, 1.6, -1.6, -1.6, 0.0])
AWAY = HERE + 0.5
SCRIPT = parse_script(
    'def cell():\n  $ 1 "There"\n  movej(a)\n  $ 2 "Back"\n  movej(b)\nend\n'
)
LINES = {"There": 3.0, "Back": 5.0}
CYCLES = 6
BUS = ("actual_robot_voltage", "actual_robot_current")


class Version(NamedTuple):
    telemetry: Telemetry
    duration: float  # of a cycle [s]


@cache
def version(speed: float) -> Version:
    """An arm that goes there always alike, and back with a speed [rad/s]."""
    there = move(HERE, AWAY, 1.5, 4.0, 0.5)
    cycle = Chain([there, move(AWAY, HERE, speed, 4.0, 0.5)])
    robot = replace(load_robot("ur5e"), rate=125.0)
    arm = SimulatedArm(robot, motion=cycle, seed=5)
    telemetry = record_arm(arm, CYCLES * cycle.duration + 0.1)
    phase = (telemetry.time - telemetry.time[0]) % cycle.duration
    line = np.where(phase < there.duration + 0.5, LINES["There"], LINES["Back"])
    columns = {**telemetry.columns, "script_control_line": line}
    return Version(replace(telemetry, columns=columns), cycle.duration)


def profile(folder: Path, speed: float, *, bus: bool = True) -> ProgramProfile:
    telemetry = version(speed).telemetry
    columns = {k: v for k, v in telemetry.columns.items() if bus or k not in BUS}
    bag = write_bag(folder / f"{speed} {bus}", replace(telemetry, columns=columns))
    return profile_program(generic_model("ur5e"), bag, SCRIPT)


def per_cycle(speed: float, line: float) -> float:
    """Energy of a line in a cycle, from voltage and current alone [J]."""
    telemetry, duration = version(speed)
    watts = (
        telemetry[BUS[0]] * telemetry[BUS[1]] * (telemetry["script_control_line"] == line)
    )
    return (
        float(np.trapezoid(watts, telemetry.time))
        * duration
        / float(np.ptp(telemetry.time))
    )


def by_label(before: ProgramProfile, after: ProgramProfile) -> dict[str, dict[str, Any]]:
    return {row["label"]: row for row in compare_programs(before, after)}


def test_measured_differences_are_those_of_the_cycles(tmp_path: Path) -> None:
    before = profile(tmp_path, 2.0)
    after = profile(tmp_path, 1.0)
    rows = by_label(before, after)
    for name, line in LINES.items():
        row = rows[name]
        alone = per_cycle(1.0, line) - per_cycle(2.0, line)
        assert row["compared"] == "measured"
        assert row["difference"] == pytest.approx(row["other"] - row["energy"], rel=1e-12)
        assert row["difference"] == pytest.approx(alone, abs=0.5)
    changed = rows["Back"]["interval"]
    assert changed[0] > 0.0 or changed[1] < 0.0
    assert max(np.ptp(row["interval"]) for row in rows.values()) < 2.0
    assert sources_json(before.total_source, after.total_source)["total_source"] == {
        "before": "measured",
        "after": "measured",
    }


@pytest.mark.parametrize(
    "bus", [(True, False), pytest.param((False, False), marks=pytest.mark.truth)]
)
def test_without_bus_power_the_model_is_compared(
    tmp_path: Path, bus: tuple[bool, bool]
) -> None:
    before = profile(tmp_path, 2.0, bus=bus[0])
    after = profile(tmp_path, 1.0, bus=bus[1])
    measured = by_label(profile(tmp_path / "with", 2.0), profile(tmp_path / "with", 1.0))
    for name, row in by_label(before, after).items():
        assert row["compared"] == "modelled"
        assert row["total_source"] == ("measured" if bus[0] else "modelled")
        assert row["other_total_source"] == "modelled"
        assert row["interval"][0] < measured[name]["difference"] < row["interval"][1]
        assert np.ptp(row["interval"]) > np.ptp(measured[name]["interval"])


def test_a_measured_part_without_cycles_has_no_known_interval(tmp_path: Path) -> None:
    """One time there and back shows no scatter, whatever the noise of the meter is."""
    telemetry, duration = version(2.0)
    once = telemetry.select(telemetry.time - telemetry.time[0] < duration)
    bag = write_bag(tmp_path / "once", once)
    found = profile_program(generic_model("ur5e"), bag, SCRIPT)
    assert not found.counted.cycles
    for row in compare_programs(found, found):
        assert row["difference"] == 0.0
        assert np.isnan(row["interval"]).all()
