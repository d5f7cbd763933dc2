# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of a plant: its figures are those of the store, and a browser shows it at any width."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from test.plant.synthetic_plant import Arm, Work, write_plant
from test.report.browser import Browser
from ur_energy_model.energy.tariff import JOULES_PER_KWH, Tariff
from ur_energy_model.plant.database import HistoryDatabase, Period
from ur_energy_model.plant.page import PlantReport, make_plant_report, plant_page
from ur_energy_model.plant.plant_charts import arm_charts, plant_charts
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.report.chart import BarChart, HeatMap, LineChart
from ur_energy_model.report.render import render

HOSTILE = "<script>alert(1)</script>"


def report_of(store: Path, period: Period | None = None) -> PlantReport:
    with HistoryDatabase(HistoryStore(store), period) as database:
        return make_plant_report(database, str(store), Tariff(0.3, "EUR", 0.4))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> PlantReport:
    """Three arms from December to January; one is left on in the evening, one has a heavy day."""
    store = tmp_path_factory.mktemp("plant")
    arms = [
        Arm("A1", programs=("weld", HOSTILE)),
        Arm("A2", bus=False),
        Arm("A3", programs=("",)),
    ]
    write_plant(
        store, arms, Work(first=date(2025, 12, 22), days=16, seconds=900, weekend=False)
    )
    evening = Work(first=date(2025, 12, 22), days=3, hour=20, seconds=900)
    write_plant(store, [Arm("A2", cycle=1, programs=("",))], evening)
    heavy = Arm("A3", motion_power=400.0, programs=("",))
    write_plant(
        store, [heavy], Work(first=date(2026, 1, 5), days=1, hour=12, seconds=3000)
    )
    return report_of(store)


def test_charts_show_all_of_the_energy(report: PlantReport) -> None:
    total = report.fleet.total("energy") / JOULES_PER_KWH
    daily, compared, calendar, week = plant_charts(report.fleet)
    assert isinstance(daily, LineChart)
    top = daily.panels[0].lines[-1].y
    assert top[::2].sum() == pytest.approx(total, rel=1e-12)
    assert isinstance(compared, LineChart)
    (measured, modelled), (unexplained,) = (panel.lines for panel in compared.panels)
    own = "SELECT sum(total_energy) AS total, sum(model_energy) AS model FROM seconds"
    with HistoryDatabase(HistoryStore(report.store)) as database:
        (sums,) = database.rows(f"{own} WHERE measured > 0")
    assert measured.y.sum() == pytest.approx(sums["total"] / JOULES_PER_KWH)
    assert modelled.y.sum() == pytest.approx(sums["model"] / JOULES_PER_KWH)
    assert unexplained.y == pytest.approx(100 * (1 - modelled.y / measured.y), abs=1e-9)
    assert isinstance(calendar, HeatMap)
    assert [panel.title for panel in calendar.panels] == ["2025", "2026"]
    assert sum(np.nansum(panel.values) for panel in calendar.panels) == pytest.approx(
        total
    )
    assert calendar.panels[0].cells[0][1] == "Mon 29 Dec 2025"
    assert isinstance(week, HeatMap)
    # working days, evenings, 5 Jan
    assert np.isfinite(week.panels[0].values).sum() == 5 + 3 + 1
    ranking, days = arm_charts(report.fleet)
    assert isinstance(ranking, BarChart)
    assert isinstance(days, HeatMap)
    assert np.nansum(days.panels[0].values) == pytest.approx(total)


def test_page_says_what_matters_and_a_browser_shows_it(
    report: PlantReport, tmp_path: Path, browser: Browser
) -> None:
    page = plant_page(report)
    verdict = report.verdict
    assert verdict.headline.startswith("3 arms used ")
    assert "EUR" in verdict.headline
    assert any("without any motion" in item.text for item in verdict.statements)
    assert any(
        "explain 100.0 % of the measured" in item.text for item in verdict.statements
    )
    assert any("mixed, measured for " in item.text for item in verdict.statements)
    assert any(item.text.startswith("A3, 2026-01-05: energy per cycle") for item in
               verdict.statements)  # fmt: skip
    html = render(page)
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html
    assert "default-src 'none'" in html  # it needs no network
    file = tmp_path / "plant.html"
    file.write_text(render(page), encoding="utf-8")
    for width, phone in ((1280, False), (390, True)):
        browser.resize(width, 900, phone=phone)
        browser.open(file)
        drawn = (
            "[...document.querySelectorAll('figure.chart')]"
            ".map(f => f.querySelectorAll('.plot svg *').length)"
        )
        assert min(browser.evaluate(drawn)) > 5
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints == []
    assert {url.split(":")[0] for url in browser.requests} == {"file"}
    empty = report_of(Path(report.store), Period.from_text("2031-01-01"))
    assert "no energy of this time" in render(plant_page(empty))
