# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""R2 beside every picture of measured and modelled values, computed anew from what is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.base_parameter_fit import identify_base_parameters
from ur_energy_model.identification.base_parameters import raviola_base
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.page import side_by_side
from ur_energy_model.papers.pictures import Picture, r2_of_chart, r2_text, with_r2
from ur_energy_model.papers.protocol import ProtocolRun
from ur_energy_model.papers.published import paper
from ur_energy_model.papers.s1 import predicted_torque
from ur_energy_model.papers.stage_runs import StageResult
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel

ROBOT = load_robot("ur5")


def r2(measured: np.ndarray, modelled: np.ndarray) -> float:
    """1 less the share of the variance that the errors have."""
    used = ~(np.isnan(measured) | np.isnan(modelled))
    error = np.mean((measured - modelled)[used] ** 2)
    return float(1 - error / np.var(measured[used]))


def curves() -> LineChart:
    """Panels with a good and a bad model and gaps, constant, missing, and without a model."""
    random = np.random.default_rng(3)
    x = np.arange(500.0)
    measured = 40.0 + np.sin(x / 20) + 0.1 * random.standard_normal(500)
    good = 40.0 + np.sin(x / 20)
    good[100:103] = np.nan
    bad = 55.0 - np.sin(x / 20)
    one = Panel(
        "one",
        (
            Line("measured", x, measured, "measured"),
            Line("good", x, good, "model", 0),
            Line("bad", x, bad, "truth"),
            Line("difference", x, bad - measured, "aside"),
        ),
        note="a note",
    )
    constant = Panel(
        "constant",
        (
            Line("measured", x, np.ones(500), "measured"),
            Line("good", x, good, "model", 0),
        ),
    )
    missing = Panel(
        "missing",
        (
            Line("measured", x, np.full(500, np.nan), "measured"),
            Line("good", x, good, "model", 0),
        ),
    )
    alone = Panel("alone", (Line("speed", x, measured, "measured"),))
    return LineChart(
        key="curves",
        title="Curves",
        x_label="time [s]",
        panels=(one, constant, missing, alone),
    )


def test_r2_is_that_of_the_curves_drawn() -> None:
    chart = curves()
    found = r2_of_chart(chart)
    measured, good, bad, _ = chart.panels[0].lines
    assert r2(measured.y, good.y) > 0.97
    assert r2(measured.y, bad.y) < -7
    assert found == {
        "good": {
            "one": pytest.approx(r2(measured.y, good.y)),
            "constant": None,
            "missing": None,
        },
        "bad": {"one": pytest.approx(r2(measured.y, bad.y))},
    }
    noted = with_r2(chart)
    assert isinstance(noted, LineChart)
    notes = [panel.note for panel in noted.panels]
    assert notes[0].startswith("a note, R² 0.98")
    assert notes[3] == ""
    bars = BarChart(
        key="b", title="B", y_label="W", categories=("a",), bars=(Bars("b", np.ones(1)),)
    )
    assert (r2_of_chart(bars), with_r2(bars)) == ({}, bars)


def test_curves_over_other_places_are_a_mistake() -> None:
    x = np.arange(5.0)
    lines = (Line("measured", x, x, "measured"), Line("model", x + 1, x))
    with pytest.raises(ValueError, match="places"):
        r2_of_chart(
            LineChart(key="k", title="T", x_label="x", panels=(Panel("", lines),))
        )


def test_the_verdict_and_the_page_have_it(tmp_path: Path) -> None:
    """As a number beside the file, and in the caption of the page."""
    nothing: Any = None
    session = ProtocolRun(ROBOT, tmp_path, nothing, None, lambda *_: None)
    chart = curves()
    session.picture(chart, "Fig. 3")
    session.finish(paper("s1"), ())
    content = json.loads((tmp_path / "verdict.json").read_text())
    (picture,) = content["pictures"]
    measured, good, *_ = chart.panels[0].lines
    assert picture["r2"]["good"]["one"] == pytest.approx(r2(measured.y, good.y))
    assert (tmp_path / picture["file"]).is_file()
    result = side_by_side(paper("s1"), [StageResult("s1", "s1", content, "")])
    (entry,) = (each for item in result.items for each in item.pictures)
    assert r2_text(entry["r2"]).startswith("R² good 0.98")
    assert Picture("a.png", "Fig. 1: A").r2 == {}


def test_the_elbow_of_s1_is_predicted_in_the_columns_of_the_fit(tmp_path: Path) -> None:
    """Another motion, in the columns of the paper, with the measured torque of the fit."""
    options: dict[str, Any] = {"coulomb": 4.0, "viscous": 3.0, "noise": 0.3}
    options["reflected_inertia"] = np.full(ROBOT.dof, 0.5)  # the maker has none
    bags = []
    for seed in (1, 2):
        made = made_up_recording(ROBOT, seconds=30.0, seed=seed, **options)
        bags.append(write_bag(tmp_path / f"bag_{seed}", made))
    constant = np.full(ROBOT.dof, 0.1)
    base = identify_base_parameters(
        bags[:1], ROBOT, torque_constant=constant, choose=raviola_base
    )
    time, measured, predicted = predicted_torque(bags[1], ROBOT, base)
    assert len(time) == len(measured) > 1000
    for joint in range(ROBOT.dof):
        assert r2(measured[:, joint], predicted[:, joint]) > 0.97
