# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from ordinary production, with intervals that cover it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.optimization.simulated_cycle import bag_of, pick_and_place, recorded
from ur_energy_model.cli.main import main
from ur_energy_model.optimization.before_after import Production, compare

STANDBY, PERIOD = 30.0, 10.0  # W, s
POINT = np.zeros(6)


def session(
    random: np.random.Generator, motion: float, *, cycles: int, rests: bool = True
) -> Production:
    """A session of an arm: its standby, friction and noise are drawn."""
    standby = STANDBY + 1.8 * random.standard_normal()
    motion *= 1.0 + 0.05 * random.standard_normal()
    duration = PERIOD + 0.01 * random.standard_normal(cycles)
    energy = standby * duration + motion + 1.0 * random.standard_normal(cycles)
    at_rest = ((POINT, standby + 0.05 * random.standard_normal()),) if rests else ()
    return Production("day", energy, duration, rests=at_rest, idle=standby)


@pytest.mark.parametrize(("count", "rests"), [(1, False), (4, True)])
def test_the_interval_covers_the_saving(count: int, rests: bool) -> None:
    """Each recording is another session; with more of them the interval gets narrower."""
    random, inside, widths = np.random.default_rng(5), 0, []
    for _ in range(300):
        before = [session(random, 150.0, cycles=6, rests=rests) for _ in range(count)]
        after = [session(random, 120.0, cycles=8, rests=rests) for _ in range(count)]
        low, high = compare(before, after).interval
        inside += low < 30.0 < high
        widths.append(high - low)
    assert 0.93 <= inside / 300 <= 0.998
    assert np.mean(widths) < 1.2 * 2 * 2.3 * np.sqrt(2 / count) * (9.0 if rests else 22.0)


def test_other_changes_are_reported_and_another_arm_proves_nothing() -> None:
    random = np.random.default_rng(3)
    usual = replace(
        session(random, 150.0, cycles=5),
        serial="20195500001",
        points=np.zeros((6, 6)),
        payload=(0.0, 1.5),
        temperature=28.0,
        scaling=1.0,
    )
    changed: dict[str, Any] = {
        "serial": "20195500002",
        "points": np.zeros((7, 6)),
        "payload": (0.0, 2.5),
        "temperature": 35.0,
        "scaling": 0.8,
        "duration": usual.duration + 1.0,
    }
    assert compare([usual], [usual]).differences == ()
    for name, value in changed.items():
        assert len(compare([usual], [replace(usual, **{name: value})]).differences) == 1
    points = np.arange(18.0).reshape(3, 6)
    turned = [replace(usual, points=np.roll(points, turn, axis=0)) for turn in range(3)]
    assert all(compare([turned[0]], [each]).differences == () for each in turned)
    cheap = replace(usual, energy=usual.energy - 150.0)
    assert compare([usual], [cheap]).proven
    assert not compare([usual], [replace(cheap, serial="20195500002")]).proven


def test_recordings_before_and_after_give_the_saving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second session has 2 W more standby, which is no change of the program."""
    bags, truth = [], []
    for name, speed, standby in (("before", 2.5, 30.0), ("after", 1.2, 32.0)):
        chain = pick_and_place(speed, wait=1.0)
        made = recorded(chain, 3.4 * chain.duration, 125.0)
        watts = standby + 12.0 * (made["target_qd"] ** 2).sum(axis=1)
        voltage = np.full(len(made), 48.0)
        bus = {"actual_robot_voltage": voltage, "actual_robot_current": watts / voltage}
        (tmp_path / name).mkdir()
        bags.append(bag_of(tmp_path / name, made, **bus))
        time = np.linspace(0.0, chain.duration, 20000)
        work = np.trapezoid(12.0 * (chain.sample(time)[1] ** 2).sum(axis=1), time)
        truth.append(30.0 * chain.duration + work)
    options = ["--before", str(bags[0]), "--after", str(bags[1])]
    assert main(["optimize", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["saving"] == pytest.approx(truth[0] - truth[1], abs=1.0)
    assert found["interval"][0] < found["saving"] < found["interval"][1]
    assert found["before"][0]["cycles"] == 3
    assert found["standby_corrected"]
    assert any("cycle time" in text for text in found["differences"])
