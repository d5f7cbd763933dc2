"""Static figures: one per chart, equal for equal data, text not parsed as mathematics."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from test.report.conftest import MakeBag, explained_recording
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.report.figures import save_chart, save_figures
from ur_energy_model.report.recording_charts import (
    energy_split_chart,
    path_chart,
    recording_charts,
    stack_chart,
)
from ur_energy_model.telemetry.samples import Telemetry

PAPER_FIGURES = {
    "motion", "path", "torque", "torque_error", "current", "current_error", "power", "energy",
    "bus_power", "friction", "temperature", "energy_split", "power_stack",
}  # fmt: skip


@pytest.fixture
def analysis(model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag) -> Analysis:
    return analyse(model, make_bag(telemetry))


def test_every_figure_is_drawn_and_named_after_its_chart(
    model: EnergyModel, make_bag: MakeBag, tmp_path: Path
) -> None:
    bag = make_bag(explained_recording(model, seconds=12.0))
    paths = save_figures(model, bag, tmp_path / "figures")
    assert {path.stem for path in paths} == PAPER_FIGURES
    assert all(path.stat().st_size > 5000 for path in paths)


def test_same_chart_same_bytes_in_either_format(analysis: Analysis, tmp_path: Path) -> None:
    chart = energy_split_chart(analysis)
    once = save_chart(chart, tmp_path / "once", formats=("png", "svg"))
    again = save_chart(chart, tmp_path / "again", formats=("png", "svg"))
    assert [a.read_bytes() for a in once] == [b.read_bytes() for b in again]


def test_a_recording_without_a_channel_lacks_its_figures_only(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    columns = {
        name: values
        for name, values in telemetry.columns.items()
        if name not in {"target_moment", "actual_robot_current", "joint_temperatures"}
    }
    charts = recording_charts(analyse(model, make_bag(replace(telemetry, columns=columns))))
    missing = {"torque", "torque_error", "bus_power", "temperature"}
    assert {chart.key for chart in charts} == PAPER_FIGURES - missing


def test_layers_of_the_power_stack_add_up_to_the_total_power(analysis: Analysis) -> None:
    chart = stack_chart(analysis)
    layers = [line for line in chart.panels[0].lines if line.base is not None]
    powers = analysis.powers
    taken = powers.standby + powers.driver + np.maximum(powers.electrical, 0).sum(axis=1)
    assert np.allclose(layers[-1].y, taken)
    assert all(np.allclose(np.asarray(upper.base), lower.y) for lower, upper in pairwise(layers))


def test_truth_is_shown_beside_the_estimate(analysis: Analysis) -> None:
    truth = analysis.powers.electrical_energy * 1.01
    bars = {bar.label: bar.values for bar in energy_split_chart(analysis, truth).bars}
    assert np.allclose(bars["true electrical"][:6], truth)
    assert bars["electrical"].sum() == pytest.approx(analysis.powers.total_energy[-1], rel=0.02)


def test_names_are_not_parsed_as_mathematics(analysis: Analysis, tmp_path: Path) -> None:
    hostile = replace(analysis, label=r"$\frac{", joint_names=(r"$\undefined_joint", *["b"] * 5))
    for chart in (stack_chart(hostile), energy_split_chart(hostile), path_chart(hostile)):
        assert save_chart(chart, tmp_path)
