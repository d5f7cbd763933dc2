# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measures: their order, what is left out and why, and a year; against arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.work_log import LoggedCycle, WorkLog
from ur_energy_model.model.wall import generic_wall, wall_from_vector
from ur_energy_model.optimization.cycle import Dwell, Move, WorkCycle
from ur_energy_model.optimization.measures.cold_start import cold_start_measures
from ur_energy_model.optimization.measures.find import cycles_in
from ur_energy_model.optimization.measures.measure import (
    KINDS,
    Kind,
    Measure,
    Omitted,
    Saving,
    saving_of_terms,
    saving_while_running,
)
from ur_energy_model.optimization.measures.ranking import Measures
from ur_energy_model.optimization.measures.words import no_measure, text_lines

WALL = wall_from_vector(
    np.array([10.0, 20.0, 40.0, 1.1, 1e-4]), np.zeros((5, 5)), "meter"
)


def measure(kind: Kind, energy: float, std: float, cycles: float = 10.0) -> Measure:
    return Measure(kind, "found", "do it", Saving(energy, std, energy, std), cycles)


def test_the_best_comes_first_and_what_is_unsure_is_left_out() -> None:
    found = [
        measure("pose", 10.0, 1.0),
        measure("moves", 50.0, 10.0),
        measure("line", 3.0, 10.0),
        Measure("payload", "wrong", "set it", Saving(0.0, 1.0, 0.0, 1.0), certainty=0.99),
    ]
    ranked = Measures.ranked(found, [Omitted("pause", "none")], 100.0)
    assert [each.kind for each in ranked.measures] == ["payload", "moves", "pose"]
    assert [each.kind for each in ranked.omitted] == ["pause", "line"]
    assert "uncertainty" in ranked.omitted[1].reason
    assert ranked.measures[1].sure == "sure"
    assert measure("pose", 1.0, 0.9).sure == "likely"


@pytest.mark.parametrize("hours", [8760.0, 4000.0, 1.0])
def test_a_year_repeats_the_recording(hours: float) -> None:
    ranked = Measures.ranked([measure("moves", 50.0, 10.0)], [], 100.0)
    tariff = Tariff(price=0.25, co2=0.4, hours_per_year=hours)
    (entry,) = ranked.as_json(tariff)["measures"]
    joules = 50.0 * hours * 36.0
    assert entry["per_cycle"]["energy"] == pytest.approx(5.0)
    assert entry["per_cycle"]["interval"] == pytest.approx(
        [5.0 - 1.96, 5.0 + 1.96], abs=1e-3
    )
    assert entry["per_year"]["wall_energy"] == pytest.approx(joules)
    assert entry["per_year"]["cost"] == pytest.approx(0.25 * joules / 3.6e6)
    assert entry["per_year"]["co2"] == pytest.approx(0.4 * joules / 3.6e6)
    assert f"{hours:.0f} h" in entry["year"]
    (plain,) = ranked.as_json(Tariff())["measures"]
    assert plain["per_year"]["cost"] is None
    assert plain["per_year"]["cost_interval"] is None


def test_the_bus_alone_is_paid_where_its_share_is_stated() -> None:
    ranked = Measures.ranked([measure("moves", 36.0, 1.0)], [], 3600.0)
    tariff = Tariff(price=1.0, supply_efficiency=0.5, hours_per_year=1.0)
    (entry,) = ranked.as_json(tariff)["measures"]
    assert entry["per_year"]["cost"] == pytest.approx(2.0 * 36.0 / 3.6e6)


def test_recordings_together_are_one_after_another() -> None:
    parts = [
        Measures.ranked([measure("moves", 50.0, 1.0)], [Omitted("pause", "none")], 100.0),
        Measures.ranked([measure("pause", 500.0, 1.0, 0.0)], [], 300.0),
    ]
    together = Measures.together(parts)
    assert [each.kind for each in together.measures] == ["pause", "moves"]
    assert together.omitted == ()
    year = together.per_year(together.measures[1], Tariff())
    assert year.energy == pytest.approx(50.0 * 8760.0 * 3600.0 / 400.0)


def test_alike_measures_of_several_recordings_are_one() -> None:
    """Three recordings of one program, and one of another: savings and errors are summed."""
    alike = [
        Measures.ranked(
            [measure("moves", 50.0 * cycles, 5.0 * cycles, cycles)], [], 100.0
        )
        for cycles in (4.0, 8.0, 6.0)
    ]
    other = Measures.ranked([measure("moves", 900.0, 9.0, 9.0)], [], 100.0)
    found = Measures.together([*alike, other]).measures
    assert {each.cycles for each in found} == {9.0, 18.0}
    (one,) = [each for each in found if each.cycles == 18.0]
    assert one.saving.energy == pytest.approx(50.0 * 18.0)
    assert one.saving.std == pytest.approx(5.0 * 18.0)
    assert "3 recordings" in one.title


def test_every_kind_has_words() -> None:
    none = Measures.ranked([], [Omitted(kind, "nothing repeats") for kind in KINDS], 0.0)
    (line,) = text_lines(none, Tariff())
    assert line == no_measure(none)
    assert line.count("nothing repeats") == 1
    every = Measures.ranked([measure(kind, 10.0, 1.0) for kind in KINDS], [], 10.0)
    assert len(
        [line for line in text_lines(every, Tariff()) if line[0].isdigit()]
    ) == len(KINDS)


def test_the_wall_of_what_is_saved() -> None:
    """A power of 60 W that becomes 50 W for 20 s, and one of 50 W that is switched off."""
    saved = saving_while_running(WALL, 200.0, 10.0, power=55.0)
    before, after = (1.1 * power + 1e-4 * power**2 for power in (60.0, 50.0))
    assert saved.wall_energy == pytest.approx(20.0 * (before - after))
    assert saved.wall_std == pytest.approx(10.0 * (1.1 + 2e-4 * 55.0))
    terms = np.array([-20.0, 0.0, 20.0, 20.0 * 50.0, 20.0 * 50.0**2])
    off = saving_of_terms(WALL, terms, 0.0, power=50.0)
    assert off.wall_energy == pytest.approx(
        20.0 * (40.0 + 1.1 * 50.0 + 1e-4 * 50.0**2 - 10.0)
    )
    unsure = saving_of_terms(generic_wall("e-series"), terms, 0.0, power=50.0)
    assert unsure.wall_std > 0.0


# Cold starts: cycles whose energy falls as known, with noise.


def logged(energy: np.ndarray, warming: float) -> WorkLog:
    log = WorkLog()
    rise = 1.0 - np.exp(-np.arange(len(energy)) / (0.2 * len(energy)))
    for joules, share in zip(energy, rise, strict=True):
        log.cycles.append(
            LoggedCycle(10.0, 400.0 + joules, 5.0, joules, 25.0 + warming * share)
        )
    log.seconds = 10.0 * len(energy)
    return log


def test_intervals_of_cold_starts_contain_the_truth() -> None:
    """The truth is what as many cycles take that follow at once; the model errs by 5 %."""
    random = np.random.default_rng(4)
    inside = 0
    for _ in range(200):
        count = int(random.integers(30, 300))
        scale = random.uniform(15.0, 60.0)
        constant = random.uniform(0.1, 1.5) * count
        cold = scale * np.exp(-np.arange(2 * count) / constant)
        truth = cold[:count].sum() - cold[count:].sum()
        noise = random.normal(0.0, 1.5, count)
        measured = 200.0 + cold[:count] * random.normal(1.0, 0.05) + noise
        (found,) = cold_start_measures(logged(measured, 10.0), WALL)
        assert isinstance(found, Measure)
        inside += abs(found.saving.energy - truth) <= 1.96 * found.saving.std
    assert inside >= 185


@pytest.mark.parametrize(
    ("count", "warming", "cold", "reason"),
    [
        (8, 10.0, 30.0, "fewer than"),
        (100, 0.5, 30.0, "warmed up by"),
        (100, np.nan, 30.0, "temperatures"),
        (100, 10.0, 0.0, "hardly"),
    ],
)
def test_no_cold_start_where_none_shows(
    count: int, warming: float, cold: float, reason: str
) -> None:
    energy = 200.0 + cold * np.exp(-np.arange(count) / 10.0)
    (found,) = cold_start_measures(logged(energy, warming), WALL)
    assert isinstance(found, Omitted)
    assert reason in found.reason


# How many cycles a recording contains: 5 s of motion and 5 s of rest each.


def work_cycle(
    motion: float, duration: float, count: int, found_by: str = "program"
) -> WorkCycle:
    zero = np.zeros((2, 6))
    move = Move(0.0, np.array([0.0, motion]), zero, zero, rest=Dwell(duration - motion))
    return WorkCycle("bag", "ur5e", found_by, duration, (move,), count, None, 0.0, None)


@pytest.mark.parametrize(
    ("cycle", "logged_cycles", "moving", "seconds", "pause", "expected"),
    [
        # only its begin was read
        (work_cycle(5.0, 10.0, 30), 100, 500.0, 1000.0, 0.0, 100.0),
        (work_cycle(5.0, 10.0, 6), 6, 34.0, 68.0, 0.0, 6.8),  # with parts at both ends
        (work_cycle(5.0, 10.0, 6), 6, 30.0, 660.0, 600.0, 6.0),
        (work_cycle(5.0, 10.0, 6), 6, 90.0, 180.0, 0.0, 8.0),  # and other work
        # slow samples: five loops
        (work_cycle(25.0, 50.0, 6), 100, 500.0, 1000.0, 0.0, 20.0),
        (work_cycle(2.5, 5.0, 12), 100, 500.0, 1000.0, 0.0, 200.0),
        (work_cycle(5.0, 10.0, 4), 0, 22.0, 44.0, 0.0, 4.4),
        (work_cycle(5.0, 10.0, 1, "whole"), 0, 5.0, 10.0, 0.0, 1.0),
    ],
)
def test_cycles_of_a_recording(
    cycle: WorkCycle,
    logged_cycles: int,
    moving: float,
    seconds: float,
    pause: float,
    expected: float,
) -> None:
    log = WorkLog()
    log.cycles.extend([LoggedCycle(10.0, 500.0, 5.0, 300.0, 30.0)] * logged_cycles)
    log.moving_seconds = moving
    log.seconds = seconds
    log.pauses.seconds = pause
    assert cycles_in(log, cycle) == pytest.approx(expected)
