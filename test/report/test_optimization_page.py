"""The page of an optimized cycle: figures agree with the result, and a browser shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.optimization.hand_made import hand_made_cycle
from test.optimization.simulated_cycle import arm_model
from test.report.browser import Browser, find_browser
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.optimization.optimized_cycle import MeasuredSaving, OptimizedCycle
from ur_energy_model.optimization.plan_optimization import plan_at, recorded_motion
from ur_energy_model.report.figures import draw_chart
from ur_energy_model.report.optimization import (
    OptimizationReport,
    cycle_time_chart,
    make_optimization_report,
    optimization_charts,
    optimization_page,
    saving_table,
)
from ur_energy_model.report.page import render
from ur_energy_model.report.tariff import Tariff

MEASURED = MeasuredSaving(410.0, 350.0, 14.6, (13.9, 15.3), 6, np.full((2, 6), 33.3))


def with_curve(optimized: OptimizedCycle) -> OptimizedCycle:
    time = np.linspace(0.5, 2.0, 9) * optimized.duration
    return replace(optimized, pareto=np.column_stack([time, 200.0 + 30.0 * time]))


@pytest.fixture(scope="module")
def report() -> OptimizationReport:
    return make_optimization_report(
        arm_model(), with_curve(hand_made_cycle()), tariff=Tariff(0.3, "EUR", 0.4, 0.9)
    )


def test_powers_are_those_that_are_predicted(report: OptimizationReport) -> None:
    optimized = report.optimized
    plan = plan_at(recorded_motion(optimized.cycle), 500.0, "cycle")
    truth = predict_energy(arm_model(), plan)
    assert report.after.time[-1] == pytest.approx(optimized.typed_duration)
    before = report.before
    assert before.time[-1] == pytest.approx(optimized.cycle.duration)
    assert np.trapezoid(before.total, before.time) == pytest.approx(truth.total, rel=5e-3)


def test_speed_scaling_starts_at_full_speed_without_slack(report: OptimizationReport) -> None:
    assert report.scaled is not None
    moving = sum(move.duration for move in report.optimized.cycle.moves)
    assert report.scaled[0, 0] == pytest.approx(moving)
    assert report.scaled[-1, 0] == pytest.approx(2.0 * report.optimized.duration)
    chart = cycle_time_chart(report)
    assert chart is not None
    labels = [line.label for line in chart.panels[0].lines]
    assert labels[:2] == ["least energy", "speed scaling"]


def test_savings_of_day_and_year() -> None:
    """From the measured saving, where there is one; at the wall with 90 % efficiency."""
    optimized = replace(hand_made_cycle(), measured=MEASURED)
    cycle, day, year = saving_table(optimized, Tariff(0.3, "EUR", 0.4, 0.9)).rows
    assert cycle[2] == "60.0 J"
    kwh = 60.0 * 86400.0 / optimized.duration / 3.6e6 / 0.9
    assert day[2] == f"{kwh:.2f} kWh"
    assert year[3] == f"{365 * kwh * 0.3:.4g}"
    assert year[4] == f"{365 * kwh * 0.4:.4g}"


def test_the_headline_is_the_measured_saving_where_there_is_one() -> None:
    optimized = hand_made_cycle()
    for measured, word in ((None, "predicted"), (MEASURED, "measured")):
        found = replace(optimized, measured=measured)
        page = optimization_page(make_optimization_report(arm_model(), found))
        assert page.verdict is not None
        assert word in page.verdict.headline
        assert page.verdict.grade == "good"


def test_every_chart_can_be_drawn(report: OptimizationReport) -> None:
    for chart in optimization_charts(report):
        assert draw_chart(chart).axes


def test_a_browser_shows_it_without_errors(report: OptimizationReport, tmp_path: Path) -> None:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    file = tmp_path / "page.html"
    file.write_text(render(optimization_page(report)), encoding="utf-8")
    browser = Browser(program)
    try:
        browser.resize(1280, 900)
        browser.open(file)
        assert browser.evaluate("document.querySelectorAll('figure .panel svg').length") == 9
        assert browser.complaints == []
    finally:
        browser.close()
