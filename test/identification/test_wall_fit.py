# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The wall of cells whose truth is not in the fit: control box, supply and meter.

Ten minutes of work with a meter of 1 s and 1 W give the energy of another hour, and
without a meter there is the generic wall.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import changed
from test.identification.exact_arm import ExactArm, write_bag
from test.identification.wall_cells import RUNNING, Work, fit_of, irregular
from test.truth import first_fast
from ur_energy_model.cli.identify import identification_json
from ur_energy_model.energy.energy_summary import totals_json
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.wall_fit import fit_wall
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.wall import STATES, WallModel, generic_wall
from ur_energy_model.simulation.wall import SimulatedWall, draw_wall

WALL = SimulatedWall((30.0, 38.0, 42.0), 1.12, 1.5e-4, delay=0.7, noise=0.3)


def fitted(work: Work) -> WallModel:
    found = fit_wall([fit_of(work.time, work.columns)], "e-series")
    assert found is not None
    return found


def straight_line(work: Work) -> np.ndarray:
    """Null model: a constant and a slope through the readings as they come."""
    columns = work.columns
    known = np.isfinite(columns["wall_power"])
    return np.polyfit(work.bus[known], columns["wall_power"][known], 1)


@pytest.mark.truth
@pytest.mark.parametrize(("switched_off", "cells"), [(0.1, 30), (0.0, 30)])
def test_ten_minutes_give_the_energy_of_another_hour(
    switched_off: float, cells: int
) -> None:
    errors = []
    nulls = []
    covered = []
    claimed = []
    for seed in range(cells):
        wall = draw_wall(seed)
        work = Work(wall, 2 * seed, 600.0, switched_off)
        hour = Work(wall, 2 * seed + 1, 3600.0)
        model = fitted(work)
        value = model.value(hour.terms)
        std = model.deviation(hour.terms, 0.0)
        line = np.polyval(straight_line(work), hour.bus).mean()
        errors.append(value / hour.truth - 1.0)
        nulls.append(line / hour.truth - 1.0)
        covered.append(abs(value - hour.truth) < CONFIDENCE * std)
        claimed.append(model.held_out_error_percent or 0.0)
    assert np.abs(errors).max() < 0.01
    assert np.mean(covered) >= 0.9
    assert np.std(errors) < 0.2 * np.std(nulls)  # 0.06 and 2.5 %
    assert np.median(claimed) < 2.0  # with times whose state no other time has


@pytest.mark.truth
@pytest.mark.parametrize("late", [0.25, 1.0])
def test_irregular_delays_do_not_flatten_the_slope(late: float) -> None:
    """Standstill shows it best: a slope too small makes it too dear."""
    still = np.array([0.0, 0.0, 1.0, 33.0, 33.0**2])
    scores = []
    for seed in range(8):
        wall = draw_wall(seed)
        work = Work(wall, 2 * seed, 600.0)
        model = fit_wall(
            [fit_of(work.time, irregular(work.time, work.columns, late, seed))],
            "e-series",
        )
        assert model is not None
        truth = float(wall.power(np.array([RUNNING]), np.array([33.0]))[0])
        scores.append((model.value(still) - truth) / model.deviation(still, 0.0))
    assert np.mean(np.abs(scores) < CONFIDENCE) >= 0.85  # else a half
    assert np.sqrt(np.mean(np.square(scores))) < 1.2  # else 2.7


def test_what_the_meter_shows_is_in_the_model() -> None:
    found = fitted(Work(WALL, 1, 1200.0, 0.2))
    values = [*WALL.box, WALL.proportional, WALL.quadratic]
    assert (np.abs(found.coefficients - values) < 3.0 * found.std).all()
    assert (found.std[:3] < 1.0).all()
    assert found.source == "meter"


def test_a_state_without_readings_follows_the_others_as_in_any_cell() -> None:
    found = fitted(Work(WALL, 1, 600.0))
    generic = generic_wall("e-series")
    assert 2.0 < found.std[0] < 0.6 * generic.std[0]
    assert abs(found.box["off"] - WALL.box[0]) < CONFIDENCE * found.std[0]


@pytest.mark.parametrize(
    ("delay", "averaging", "period", "resolution"),
    [
        (0.5, 1.0, 1.0, 1.0),
        (1.93, 1.0, 1.0, 1.0),
        (0.3, 0.5, 0.5, 0.1),
        (2.0, 10.0, 10.0, 0.1),
    ],
)
def test_delay_averaging_and_resolution_are_found(
    delay: float, averaging: float, period: float, resolution: float
) -> None:
    meter = replace(WALL, delay=delay, averaging=averaging, period=period)
    work = Work(replace(meter, resolution=resolution, noise=resolution), 5, 1200.0)
    found = fitted(work)
    assert found.delay == pytest.approx(delay, abs=0.05 * max(1.0, period))
    assert found.averaging == pytest.approx(averaging)
    assert found.resolution == pytest.approx(resolution)
    assert found.value(work.terms) == pytest.approx(work.truth, rel=2e-3)


@pytest.mark.parametrize("what", ["frozen", "no new number", "silent", "bus unknown"])
def test_readings_that_are_none_are_left_out(what: str) -> None:
    work = Work(replace(WALL, delay=1.0), 4, 900.0)
    columns = work.columns
    gone = slice(20_000, 30_000)
    if what == "frozen":
        columns["wall_power"][gone] = columns["wall_power"][gone.start]
    elif what == "no new number":
        columns["wall_power"][gone] = 500.0
        columns["wall_reading"][gone] = columns["wall_reading"][gone.start - 1]
    elif what == "silent":
        columns["wall_power"][gone] = columns["wall_reading"][gone] = np.nan
    else:
        columns["actual_robot_current"][gone] = np.nan
    found = fit_wall([fit_of(work.time, columns)], "e-series")
    assert found is not None
    assert found.value(work.terms) == pytest.approx(work.truth, rel=2e-3)


def test_several_recordings_are_one_fit_and_batches_do_not_matter() -> None:
    works = [Work(WALL, 1, 300.0), Work(WALL, 2, 300.0)]
    parts = [fit_of(each.time, each.columns) for each in works]
    both = fit_wall(parts, "cb3")
    one = fit_wall(parts[:1], "cb3")
    assert both is not None
    assert one is not None
    assert both.std[-1] < one.std[-1]
    again = fit_wall([fit_of(works[0].time, works[0].columns, batch=50)], "cb3")
    assert again is not None
    np.testing.assert_allclose(again.coefficients, one.coefficients, rtol=1e-3)


@pytest.mark.parametrize(
    ("missing", "seconds"),
    [("wall_power", 60.0), ("actual_robot_current", 60.0), ("none", 10.0)],
)
def test_without_readings_there_is_no_model(missing: str, seconds: float) -> None:
    work = Work(WALL, 1, seconds)
    columns = {name: each for name, each in work.columns.items() if name != missing}
    assert fit_wall([fit_of(work.time, columns)], "e-series") is None


def test_a_metered_bag_gives_the_wall_of_others(tmp_path: Path) -> None:
    arm = ExactArm(power_noise=0.5)
    wall = SimulatedWall((20.0, 30.0, 36.0), 1.15, 1.2e-4)

    def bag(seed: int, *, metered: bool) -> tuple[Path, float]:
        """A recording, and its energy at the wall [J]."""
        telemetry = arm.record(40.0, seed=seed)
        power = wall.power(np.full(len(telemetry), 7), np.asarray(telemetry.bus_power))
        columns = wall.readings(telemetry.time, power) if metered else {}
        made = changed(telemetry, **columns)
        return write_bag(tmp_path / str(seed), made), float(
            np.trapezoid(power, made.time)
        )

    metered, energy = bag(1, metered=True)
    result = identify([metered], "ur5e")
    model = result.model
    content = identification_json(result)["wall"]
    for state, watts, std in zip(
        STATES, wall.box, content["box_std"].values(), strict=True
    ):
        assert content["box"][state] == pytest.approx(watts, abs=3.0 * std)
    assert content["efficiency"]["proportional"] == pytest.approx(
        wall.proportional, rel=0.05
    )
    assert content["held_out_error_percent"] < 1.0
    save_model(model, tmp_path / "model.yaml")
    model = load_model(tmp_path / "model.yaml")
    other, truth = bag(2, metered=False)
    cases = [(model, metered, energy, "meter"), (model, other, truth, "model"),
             (generic_model("ur5e"), other, truth, "generic")]  # fmt: skip
    for used, path, expected, source in cases:
        found = estimate_energy(used, path)
        low, high = found.as_json()["wall_interval"]
        assert low < expected < high
        assert found.as_json()["wall_source"] == source
        if source != "generic":
            assert found.wall.energy == pytest.approx(expected, rel=0.01)
    with_other = totals_json(
        [estimate_energy(model, metered), estimate_energy(model, other)]
    )
    assert with_other["wall_source"] == "model"
    assert with_other["wall_energy"] == pytest.approx(energy + truth, rel=0.01)


@pytest.mark.truth
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_the_interval_of_a_measured_energy_covers(tmp_path: Path, late: float) -> None:
    arm = ExactArm(power_noise=0.5)
    scores = []
    for seed in range(8):
        telemetry = arm.record(60.0, seed=seed)
        wall = draw_wall(seed)
        power = wall.power(
            np.full(len(telemetry), RUNNING), np.asarray(telemetry.bus_power)
        )
        columns = wall.readings(telemetry.time, power)
        made = changed(telemetry, **irregular(telemetry.time, columns, late, seed))
        found = estimate_energy(
            generic_model("ur5e"), write_bag(tmp_path / str(seed), made)
        ).wall
        assert found.source == "meter"
        scores.append((found.energy - float(np.trapezoid(power, made.time))) / found.std)
    assert np.mean(np.abs(scores) < CONFIDENCE) >= 0.85


@pytest.mark.parametrize("generation", first_fast(["e-series", "cb3", "other"]))
def test_the_generic_interval_covers(generation: str) -> None:
    generic = generic_wall(generation)
    covered = []
    for seed in range(100):
        hour = Work(draw_wall(seed), seed, 600.0, 0.1 * (seed % 3))
        error = abs(generic.value(hour.terms) - hour.truth)
        covered.append(error < CONFIDENCE * generic.deviation(hour.terms, 0.0))
    assert np.mean(covered) >= 0.9
    assert generic.source == "generic"
    boxes = [generic.box[state] for state in STATES]
    assert boxes == sorted(boxes)


def reversed_and_right(folder: Path, seconds: float) -> list[Path]:
    """Recordings of a cell, the first with a reversed clamp."""
    arm = ExactArm(power_noise=0.5)
    wall = SimulatedWall((20.0, 30.0, 36.0), 1.15, 1.2e-4)
    bags = []
    for seed, factor in ((1, -1.0), (2, 1.0)):
        telemetry = arm.record(seconds, seed=seed)
        power = wall.power(np.full(len(telemetry), 7), np.asarray(telemetry.bus_power))
        columns = wall.readings(telemetry.time, power)
        columns["wall_power"] = factor * columns["wall_power"]
        bags.append(write_bag(folder / str(seed), changed(telemetry, **columns)))
    return bags


def test_a_meter_that_cannot_be_right_is_neither_used_nor_fitted(tmp_path: Path) -> None:
    """The energy at the wall is the model's, and an identified model has no wall."""
    bags = reversed_and_right(tmp_path, 30.0)
    reversed_clamp, right = (estimate_energy(generic_model("ur5e"), bag) for bag in bags)
    assert right.wall.source == "meter"
    assert reversed_clamp.wall.source == "generic"
    assert reversed_clamp.wall.energy == pytest.approx(right.wall.energy, rel=0.5)
    (contradiction,) = reversed_clamp.contradictions
    assert contradiction.subject == "wall_meter"
    assert "clamp" in contradiction.remedy
    assert contradiction.words() in reversed_clamp.warnings
    assert not right.contradictions
    both = totals_json([reversed_clamp, right])
    assert [each["subject"] for each in both["contradictions"]] == ["wall_meter"]
    assert both["wall_source"] == "generic"
    alone = identify(bags[:1], "ur5e")
    assert alone.model.wall is None
    assert [each.subject for each in alone.contradictions] == ["wall_meter"]
    assert contradiction.words() in alone.warnings
    save_model(alone.model, tmp_path / "model.yaml")  # and not "more motion"


@pytest.mark.truth
def test_recordings_with_a_right_meter_give_the_wall_beside_one_with_a_wrong_meter(
    tmp_path: Path,
) -> None:
    together = identify(reversed_and_right(tmp_path, 60.0), "ur5e")
    assert together.model.wall is not None
    assert together.model.wall.box["running"] == pytest.approx(36.0, abs=10.0)
    assert len(identification_json(together)["contradictions"]) == 1
