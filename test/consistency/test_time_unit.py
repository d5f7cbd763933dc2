# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Times against motion: right ones are never doubted, wrong ones are named."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.time_unit import TimeCheck, time_contradictions
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.time_scale import TimeScaleFit

RECORDINGS = {
    "ur10e_excitation_50s": (1, 5, 20, 100),
    "ur10e_point_to_point_57s": (1, 5, 20, 100),
    "ur10e_other_days_2020_02_06": (1, 5, 20, 100),
    "ur3e_moves_payload_1.07kg_25hz_36s": (1, 5, 20, 100),
    "ur5e_other_arm_125hz_11s": (1, 5, 20, 100),
    "ur5e_other_day_10hz_21s": (1, 5, 20),
    "ur5e_pick_place_50hz_24s": (1, 5, 20),
    "ur5e_streamed_move_500hz_6s": (1, 5, 20, 100),
}
"""Recordings of real arms, and how much they are thinned out."""


def found(telemetry: Telemetry, batch: int = 700) -> list[Contradiction]:
    check = TimeCheck()
    for start in range(0, len(telemetry), batch):
        check.observe(telemetry.cut(slice(start, start + batch)))
    return list(check.contradictions())


def thinned(telemetry: Telemetry, step: int) -> Telemetry:
    keep = np.zeros(len(telemetry), dtype=bool)
    keep[::step] = True
    return replace(telemetry, gaps=()).select(keep)


def scaled(telemetry: Telemetry, factor: float) -> Telemetry:
    return replace(
        telemetry, time=telemetry.time[0] + factor * (telemetry.time - telemetry.time[0])
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_times_of_real_arms_are_right_and_wrong_units_are_named(
    recordings: Path, name: str
) -> None:
    whole = read_csv([recordings / f"{name}.csv.gz"], None).distinct()
    for step in RECORDINGS[name]:
        part = thinned(whole, step)
        assert found(part) == [], step
        for factor, unit in ((1e3, "ms"), (1e6, "us"), (1e-3, None)):
            (contradiction,) = found(scaled(part, factor))
            assert contradiction.refused
            assert unit is None or f"times in {unit}" in contradiction.shown
    (contradiction,) = found(scaled(whole, 0.5))  # such as 125 Hz stated for 62.5 Hz
    ratio = re.search(r"they are (\S+) times too short", contradiction.shown)
    assert ratio is not None
    assert float(ratio[1]) == pytest.approx(2.0, rel=0.01)
    for field, factor, word in (
        ("actual_q", 180.0 / math.pi, "positions are in degrees"),
        ("actual_qd", 180.0 / math.pi, "speeds are in degrees"),
        ("actual_qd", 30.0 / math.pi, "revolutions per minute"),
    ):
        columns = {
            field: each for field, each in whole.columns.items() if "target" not in field
        }
        columns[field] = factor * columns[field]
        (contradiction,) = found(replace(whole, columns=columns))
        assert word in contradiction.shown


def arm(rate: float, seconds: float, seed: int) -> Telemetry:
    """Random point-to-point motions with pauses, noise of encoders and of speeds."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / rate)
    knots = np.cumsum(random.uniform(0.3, 3.0, 200))
    # rest, move, rest ...
    goals = np.repeat(random.uniform(-2.0, 2.0, (101, 6)), 2, axis=0)[:200]
    position, speed = np.empty((2, len(time), 6))
    for joint in range(6):
        place = np.clip(np.searchsorted(knots, time) - 1, 0, 198)
        span = knots[place + 1] - knots[place]
        phase = np.clip((time - knots[place]) / span, 0.0, 1.0)
        way = goals[place + 1, joint] - goals[place, joint]
        position[:, joint] = goals[place, joint] + way * phase**2 * (3 - 2 * phase)
        inside = (phase > 0.0) & (phase < 1.0)
        speed[:, joint] = inside * way * 6 * phase * (1 - phase) / span
    position += random.normal(0.0, 3e-5, position.shape)
    speed += random.normal(0.0, 0.005, speed.shape)
    return Telemetry(time, {"actual_q": position, "actual_qd": speed})


@pytest.mark.parametrize(
    "rate",
    [
        0.5,
        1.0,
        2.0,
        5.0,
        10.0,
        50.0,
        pytest.param(125.0, marks=pytest.mark.truth),
        pytest.param(500.0, marks=pytest.mark.truth),
    ],
)
def test_right_times_of_any_rate_are_not_doubted(rate: float) -> None:
    """100 arms a rate: no false alarm, and a thousandfold error is found wherever it moved."""
    missed = 0
    for seed in range(100):
        samples = arm(rate, max(10.0, 60.0 / rate), seed)
        assert found(samples) == [], seed
        fit = TimeScaleFit()
        fit.update(samples)
        moved = fit.result is not None and fit.result.is_evidence
        for factor in (1e-3, 1e3):
            missed += moved and not found(scaled(samples, factor))
    assert missed == 0


def test_an_arm_at_rest_shows_nothing() -> None:
    columns = {"actual_q": np.zeros((500, 6)), "actual_qd": np.full((500, 6), 1e-3)}
    samples = Telemetry(2.0 * np.arange(500.0), columns)
    assert found(samples) == []
    columns["actual_q"][:, 0] = np.nan
    assert found(samples) == []
    assert (
        found(Telemetry(2.0 * np.arange(500.0), {"actual_q": columns["actual_q"]})) == []
    )


def test_batches_give_the_same_as_the_whole() -> None:
    samples = arm(50.0, 30.0, 3)
    whole = TimeScaleFit()
    parts = TimeScaleFit()
    whole.update(samples)
    for start in range(len(samples)):
        parts.update(samples.cut(slice(start, start + 1)))
    assert whole.result is not None
    assert parts.result is not None
    assert parts.result.factor == pytest.approx(whole.result.factor)
    assert parts.result.steps == whole.result.steps


def test_a_wrong_rate_is_answered_with_the_right_one() -> None:
    fit = TimeScaleFit()
    fit.update(scaled(arm(125.0, 30.0, 3), 0.25))
    (contradiction,) = time_contradictions(
        fit.result, stated="500 Hz as stated", remedy="import with {options}", rate=500.0
    )
    assert contradiction.subject == "time"
    rate = float(contradiction.remedy.rpartition(" ")[2])
    assert rate == pytest.approx(125.0, rel=0.01)
