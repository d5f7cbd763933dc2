# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pages at the width of a phone: energies are in sight, flame graphs can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from test.report.browser import Browser, energies_in_sight
from test.report.conftest import explained_recording, write_bag
from ur_energy_model.energy.profile import profile_program
from ur_energy_model.energy.program import LINE, parse_script
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.page import Page
from ur_energy_model.report.profile import profile_page
from ur_energy_model.report.render import render
from ur_energy_model.report.report import make_report, report_page
from ur_energy_model.telemetry.samples import Telemetry

SCRIPT = """\
def a_program_with_a_rather_long_name():
  $ 1 "Robot Program"
  $ 2 "A waypoint whose label is long"
  movej([-0.7, -1.75, 1.8, -1.6, -1.6, -0.4], a=5.0, v=2.5)
  $ 3 "Wait: 0.5"
  sleep(0.5)
  movej([0.0, -0.9, 0.9, -1.2, -1.57, 0.0], a=5.0, v=2.5)
end
"""


def report(model: EnergyModel, folder: Path) -> Page:
    bag = write_bag(folder / "short", explained_recording(model, seconds=12.0, rate=25.0))
    return report_page(make_report(model, [bag], tariff=Tariff(0.3, co2=0.4)))


def profile(model: EnergyModel, folder: Path) -> Page:
    whole = explained_recording(model, seconds=12.0, rate=25.0)
    lines = np.repeat([4.0, 6.0, 7.0], len(whole) // 3 + 1)[: len(whole)]
    columns = {**whole.columns, LINE: lines, "runtime_state": np.full(len(whole), 2.0)}
    bag = write_bag(folder / "lines", Telemetry(whole.time, columns, whole.info))
    return profile_page(profile_program(model, bag, parse_script(SCRIPT)), [], "lines")


@pytest.mark.parametrize("make", [report, profile])
def test_energies_are_in_sight_on_a_phone(
    make: Callable[[EnergyModel, Path], Page],
    model: EnergyModel,
    browser: Browser,
    tmp_path: Path,
) -> None:
    file = tmp_path / "page.html"
    file.write_text(render(make(model, tmp_path)), encoding="utf-8")
    energies_in_sight(browser, file)
    letters = browser.evaluate(
        "[...document.querySelectorAll('svg.flames text')]"
        ".map(t => t.getBoundingClientRect().height)"
    )
    assert bool(letters) == (make is profile)
    assert all(height >= 10.0 for height in letters), "as high as the letters around"
