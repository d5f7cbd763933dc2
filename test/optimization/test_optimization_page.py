# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of an optimized cycle: its figures, and in a browser of any width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.work_cycles import arm_model, pick_and_place, recorded
from test.identification.exact_arm import write_bag
from test.optimization.hand_made import hand_made_cycle, sampled
from test.report.browser import Browser, energies_in_sight
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.optimization.cycle import motion_of, recorded_stretches
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import MeasuredSaving
from ur_energy_model.optimization.page import (
    OptimizationReport,
    make_optimization_report,
    optimization_page,
    saving_table,
)
from ur_energy_model.report.render import render
from ur_energy_model.trajectory.plan import Plan

MEASURED = MeasuredSaving(410.0, 350.0, 14.6, (13.9, 15.3), 6, np.full((2, 6), 33.3))


@pytest.fixture(scope="module")
def report() -> OptimizationReport:
    optimized = hand_made_cycle()
    time = np.linspace(0.5, 2.0, 9) * optimized.duration
    optimized = replace(optimized, pareto=np.column_stack([time, 200.0 + 30.0 * time]))
    return make_optimization_report(
        arm_model(), optimized, tariff=Tariff(0.3, "EUR", 0.4, 0.9)
    )


def test_powers_are_those_that_are_predicted(report: OptimizationReport) -> None:
    optimized = report.optimized
    before = report.before
    plan = Plan(*sampled(motion_of("hand", recorded_stretches(optimized.cycle))))
    truth = predict_energy(arm_model(), plan)
    assert report.after.time[-1] == pytest.approx(optimized.typed_duration)
    assert before.time[-1] == pytest.approx(optimized.cycle.duration)
    assert np.trapezoid(before.total, before.time) == pytest.approx(truth.total, rel=5e-3)


def test_savings_are_the_measured_ones_where_there_are_any(
    report: OptimizationReport,
) -> None:
    """At the wall, with 90 % efficiency or by the model of the wall."""
    for measured, word in ((None, "predicted"), (MEASURED, "measured")):
        found = replace(report.optimized, measured=measured)
        verdict = optimization_page(replace(report, optimized=found)).verdict
        assert verdict is not None
        assert word in verdict.headline
        assert verdict.grade == "good"
    cycle, day, year = saving_table(found, Tariff(0.3, "EUR", 0.4, 0.9)).rows
    assert cycle[2] == "60.0 J"
    kwh = 60.0 * 86400.0 / found.duration / 3.6e6 / 0.9
    assert day[2] == f"{kwh:.2f} kWh"
    assert year[3:] == (f"{365 * kwh * 0.3:.4g}", f"{365 * kwh * 0.4:.4g}")
    table = saving_table(found, Tariff(0.3))
    assert 1.1 < float(str(table.rows[2][2]).split()[0]) / (365 * 0.9 * kwh) < 1.25
    assert "not measured" in table.note


def test_a_browser_shows_it(
    report: OptimizationReport, tmp_path: Path, browser: Browser
) -> None:
    file = tmp_path / "page.html"
    file.write_text(render(optimization_page(report)), encoding="utf-8")
    browser.open(file)
    assert browser.evaluate("document.querySelectorAll('figure .panel svg').length") == 9
    assert browser.complaints == []


def test_energies_are_in_sight_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "cell", recorded(pick_and_place(), 20.0, 125.0))
    model = arm_model()
    made = make_optimization_report(model, optimize_cycle(model, bag), tariff=Tariff(0.3))
    file = tmp_path / "page.html"
    file.write_text(render(optimization_page(made)), encoding="utf-8")
    energies_in_sight(browser, file)
