"""Charts: what they show of a recording, what decimation keeps, and their static figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from test.report.conftest import MakeBag, explained_recording
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.report.analysis import Analysis, analyse
from ur_energy_model.report.chart import break_at, decimate
from ur_energy_model.report.figures import save_chart, save_figures
from ur_energy_model.report.model_charts import temperature_law_chart
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


VALUES = arrays(
    float,
    st.integers(1, 400),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))),
)


@given(y=VALUES, buckets=st.integers(1, 50))
def test_extremes_of_every_bucket_are_kept(y: np.ndarray, buckets: int) -> None:
    x = np.arange(len(y), dtype=float)
    kept_x, kept_y = decimate(x, y, buckets)
    assert len(kept_x) <= max(2 * buckets, 3 * buckets + 2)
    assert np.array_equal(y[kept_x.astype(int)], kept_y, equal_nan=True)
    edges = np.linspace(0, len(y), buckets + 1).astype(int) if len(y) > 2 * buckets else [0, len(y)]
    for start, stop in pairwise(edges):
        inside = kept_y[(kept_x >= start) & (kept_x < stop)]
        part = y[start:stop]
        assert np.isnan(part).any() == np.isnan(inside).any()
        if np.isfinite(part).any():
            assert np.nanmin(inside) == np.nanmin(part)
            assert np.nanmax(inside) == np.nanmax(part)


@pytest.mark.filterwarnings("error")
def test_a_single_spike_in_ten_minutes_is_kept() -> None:
    y = np.zeros(300_000)
    y[123_456] = 1.0
    _, kept = decimate(np.arange(len(y)) / 500, y, 500)
    assert len(kept) <= 1502
    assert kept.max() == 1.0


def test_a_curve_is_broken_at_gaps_only() -> None:
    time, values = np.array([0.0, 1.0, 9.0, 10.0]), np.arange(4.0)
    x, y = break_at(time, values, np.array([2]))
    assert np.array_equal(x, [0, 1, 9, 9, 10])
    assert np.array_equal(y, [0, 1, np.nan, 2, 3], equal_nan=True)


WARM_LAWS = sorted(name for name, law in LAWS.items() if law.uses_temperature)


@pytest.mark.parametrize("name", WARM_LAWS)
def test_friction_against_temperature_for_every_law(model: EnergyModel, name: str) -> None:
    law = LAWS[name]
    friction = Friction(
        law,
        dict.fromkeys(law.parameters, 0.01),
        law.default_shape,
        temperature_model=(0.402, -0.09083, 0.9553, -0.01831),
        temperature_range=(20.0, 40.0),
    )
    joints = (replace(model.joints[0], friction=friction), *model.joints[1:])
    chart = temperature_law_chart(replace(model, joints=joints))
    assert chart is not None
    (line,) = chart.panels[0].lines
    assert line.x[[0, -1]] == pytest.approx([20.0, 40.0])
    assert np.isfinite(line.y).all()
    assert np.ptp(line.y) > 0.0
