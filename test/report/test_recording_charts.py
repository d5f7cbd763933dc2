"""Figures of a recording that the model explains exactly: their arrays, gaps, shift and files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from test.report.conftest import MakeBag, explained_recording
from ur_energy_model.energy.meter import integrate
from ur_energy_model.energy.powers import ArmState
from ur_energy_model.energy.session import ANCHORED_STD
from ur_energy_model.errors import InputError, MissingFieldError
from ur_energy_model.identification import filtered_motion as motion_stream
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.report import figures
from ur_energy_model.report.analysis import FOCUS_SECONDS, Analysis, analyse, recording_powers
from ur_energy_model.report.chart import LineChart, decimate
from ur_energy_model.report.model_charts import temperature_law_chart
from ur_energy_model.report.recording_charts import (
    energy_split_chart,
    recording_charts,
    stack_chart,
)
from ur_energy_model.report.shift import cycle_table, read_shift, shift_charts, shift_table
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.telemetry.samples import Telemetry, find_gaps

PAPER_FIGURES = {
    "motion", "path", "torque", "torque_error", "current", "current_error", "power", "energy",
    "bus_power", "friction", "temperature", "energy_split", "power_stack",
}  # fmt: skip


def without(telemetry: Telemetry, *fields: str) -> Telemetry:
    columns = {name: each for name, each in telemetry.columns.items() if name not in fields}
    return replace(telemetry, columns=columns)


def with_gap(telemetry: Telemetry, begin: float, end: float) -> Telemetry:
    since = telemetry.time - telemetry.time[0]
    kept = telemetry.select((since <= begin) | (since >= end))
    return replace(kept, gaps=find_gaps(kept.time, float(np.diff(telemetry.time[:2])[0])))


def test_an_exact_model_has_no_errors(analysis: Analysis) -> None:
    assert analysis.label == "monday"
    assert analysis.torque is not None
    assert np.allclose(analysis.torque.modelled, analysis.torque.recorded, atol=0.01)
    current = analysis.current
    residual = (current.modelled - current.measured)[current.moving]
    assert np.sqrt(np.mean(residual**2)) < 0.05 * current.measured.std()
    friction = (current.friction_modelled - current.friction_measured)[current.moving]
    assert np.abs(friction).mean() < 0.05 * np.abs(current.friction_measured).mean()
    assert analysis.powers.bus is not None
    assert np.allclose(analysis.powers.total, analysis.powers.bus)
    assert analysis.focus is None
    assert not analysis.cut


def test_a_long_recording_is_cut_and_focused_on_most_energy(
    model: EnergyModel, make_bag: MakeBag
) -> None:
    bag = make_bag(explained_recording(model, seconds=120.0, rate=25.0))
    found = analyse(model, bag, seconds=100.0)
    assert found.cut
    assert found.powers.time[-1] == pytest.approx(100.0, abs=2.0)
    assert found.focus is not None
    start, end = found.focus
    assert end - start == FOCUS_SECONDS
    assert 30.0 < (start + end) / 2 < 90.0  # the middle moves most


def test_energies_agree_with_the_meter(model: EnergyModel, telemetry: Telemetry) -> None:
    powers = recording_powers(model, telemetry)
    expected = model.joint_power(telemetry["actual_qd"], telemetry["actual_current"])
    reading = integrate(telemetry.time, expected.electrical_power)
    assert np.allclose(powers.electrical_energy, reading.net)
    assert np.allclose(powers.energy[-1], reading.net)
    assert powers.bus_energy is not None
    assert powers.total_energy[-1] == pytest.approx(powers.bus_energy[-1])
    assert powers.duration == pytest.approx(telemetry.duration)


def test_half_widths_follow_the_models_uncertainty(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    bus = replace(model.bus, errors=np.eye(1, model.bus.errors.shape[1]) * 0.5)
    standby_only = replace(model, bus=bus, sessions=replace(model.sessions, standby=0.0))
    narrow = recording_powers(standby_only, telemetry).total_energy_half_width
    # The error of the model's standby power does not remain once it is measured.
    alone = 1.96 * ANCHORED_STD * telemetry.duration
    assert 0.99 * alone < narrow < 1.5 * alone  # what anchoring leaves open
    assert recording_powers(model, telemetry).total_energy_half_width > narrow


def test_gaps_are_neither_drawn_nor_integrated_over(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    powers = recording_powers(model, with_gap(telemetry, 999.5 / 125, 1499.5 / 125))
    assert powers.breaks.tolist() == [1000]
    assert powers.duration == pytest.approx(telemetry.duration - 501 / 125)
    assert powers.total_energy[1000] == powers.total_energy[999]


def test_speed_of_the_flange_is_the_slope_of_its_path(analysis: Analysis) -> None:
    steps = np.linalg.norm(np.diff(analysis.flange, axis=0), axis=1) / np.diff(analysis.flange_time)
    middle = 0.5 * (analysis.flange_speed[1:] + analysis.flange_speed[:-1])
    assert middle.max() > 0.1
    np.testing.assert_allclose(steps, middle, atol=0.05 * middle.max())


@pytest.mark.parametrize(
    ("rate", "chunk", "missing"),
    [(25.0, 30.0, None), (125.0, 7.5, (17.0, 18.3))],
)
def test_pictures_have_the_gaps_of_the_data_and_no_others(
    model: EnergyModel,
    make_bag: MakeBag,
    monkeypatch: pytest.MonkeyPatch,
    rate: float,
    chunk: float,
    missing: tuple[float, float] | None,
) -> None:
    """Whatever the parts in which a recording is filtered; curves are the same in all."""
    made = explained_recording(model, seconds=40.0, rate=rate)
    bag = make_bag(made if missing is None else with_gap(made, *missing))
    drawn = []
    for seconds in (chunk, 1e6):
        monkeypatch.setattr(motion_stream, "_CHUNK", seconds)
        found = analyse(model, bag)
        drawn.append(found.current)
        for chart in recording_charts(found):
            if not isinstance(chart, LineChart) or chart.x_label != "time [s]" or not chart.group:
                continue
            for line in (line for panel in chart.panels for line in panel.lines):
                shown = line.x[np.isfinite(line.y)]
                wide = np.flatnonzero(np.diff(shown) > 0.15)
                # What is missing is not bridged by a straight line.
                assert np.isnan(line.y).sum() == len(wide), chart.key
                assert len(wide) <= (missing is not None), chart.key
                for k in wide:
                    assert missing is not None
                    assert missing[0] - 0.5 <= shown[k] <= missing[0] + 0.05, chart.key
                    assert missing[1] - 0.05 <= shown[k + 1] <= missing[1] + 0.5, chart.key
    parts, whole = drawn
    assert parts.time == pytest.approx(whole.time)
    for mine, its in ((parts.modelled, whole.modelled), (parts.measured, whole.measured)):
        assert np.abs(mine - its).max() < 2e-3 * np.abs(its).max()


# Charts and their files.


def test_every_figure_is_drawn_and_named_after_its_chart(
    model: EnergyModel,
    monday: Path,
    analysis: Analysis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    charts = recording_charts(analysis)
    assert {chart.key for chart in charts} == PAPER_FIGURES
    assert all(figures.draw_chart(chart).axes for chart in charts)
    monkeypatch.setattr(figures, "recording_charts", lambda *_, **__: charts[1:2])
    once, again = (
        figures.save_figures(model, monday, tmp_path / name, formats=("png", "svg"))
        for name in ("once", "again")
    )
    assert [path.name for path in once] == ["energy_split.png", "energy_split.svg"]
    assert [a.read_bytes() for a in once] == [b.read_bytes() for b in again]


def test_a_recording_without_a_channel_lacks_its_figures_only(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    fields = ("target_moment", "actual_robot_current", "joint_temperatures")
    charts = recording_charts(analyse(model, make_bag(without(telemetry, *fields))))
    missing = {"torque", "torque_error", "bus_power", "temperature"}
    assert {chart.key for chart in charts} == PAPER_FIGURES - missing
    with pytest.raises(MissingFieldError, match="actual_current"):
        analyse(model, make_bag(without(telemetry, "actual_current"), "tuesday"))


def test_layers_and_bars_add_up_to_the_total(analysis: Analysis) -> None:
    layers = [line for line in stack_chart(analysis).panels[0].lines if line.base is not None]
    powers = analysis.powers
    taken = powers.standby + powers.driver + np.maximum(powers.electrical, 0).sum(axis=1)
    assert np.allclose(layers[-1].y, taken)
    assert all(np.allclose(np.asarray(upper.base), lower.y) for lower, upper in pairwise(layers))
    truth = powers.electrical_energy * 1.01  # shown beside the estimate
    bars = {bar.label: bar.values for bar in energy_split_chart(analysis, truth).bars}
    assert np.allclose(bars["true electrical"][:6], truth)
    assert bars["electrical"].sum() == pytest.approx(powers.total_energy[-1], rel=0.02)


def test_names_are_not_parsed_as_mathematics(analysis: Analysis, tmp_path: Path) -> None:
    hostile = replace(analysis, label=r"$\frac{", joint_names=(r"$\undefined_joint", *["b"] * 5))
    assert figures.save_chart(energy_split_chart(hostile), tmp_path)


VALUES = arrays(
    float,
    st.integers(1, 400),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))),
)


@settings(max_examples=40)
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


def test_friction_against_temperature_for_every_law(model: EnergyModel) -> None:
    for law in (law for law in LAWS.values() if law.uses_temperature):
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


# The shift: states, cycles, cost and CO2.


def test_energy_is_that_of_the_bus_and_split_by_state(
    model: EnergyModel, telemetry: Telemetry, monday: Path
) -> None:
    shift = read_shift(model, [monday, monday])
    assert shift.seconds == pytest.approx(2 * telemetry.duration, rel=1e-6)
    assert shift.bus_energy is not None
    assert shift.energy == pytest.approx(shift.bus_energy, rel=1e-3)
    assert sum(shift.state_energy.values()) == pytest.approx(shift.energy)
    assert 8.0 <= shift.state_time[ArmState.STANDSTILL] <= 14.0
    assert shift.idle_share == pytest.approx(shift.state_energy[ArmState.STANDSTILL] / shift.energy)
    assert shift.starts.size == 1


def test_cycles_cost_and_co2(model: EnergyModel, monday: Path) -> None:
    shift = read_shift(model, [monday], trigger="program")
    assert [round(cycle.duration) for cycle in shift.cycles] == [10]
    assert cycle_table(shift) is not None
    assert {chart.key for chart in shift_charts(shift)} == {"shift_power", "cycles"}
    kwh = shift.energy / 3.6e6 / 0.8
    table = shift_table(shift, Tariff(price=0.5, currency="EUR", co2=0.4, supply_efficiency=0.8))
    assert table.rows[-1][-2:] == pytest.approx((0.5 * kwh, 400 * kwh))
    assert table.columns[-2:] == ("cost [EUR]", "CO2 [g]")
    assert len(shift_table(shift, Tariff()).columns) == 5
    for share in (0.0, -1.0, 1.2, float("nan")):
        with pytest.raises(InputError, match="supply-efficiency"):
            Tariff(supply_efficiency=share)


def test_power_over_the_shift_has_the_gaps_of_the_data(
    model: EnergyModel, telemetry: Telemetry, monday: Path, make_bag: MakeBag
) -> None:
    gap = (8.0, 19.0)
    for bag, gaps in ((monday, []), (make_bag(with_gap(telemetry, *gap)), [gap])):
        chart = shift_charts(read_shift(model, [bag]))[0]
        assert isinstance(chart, LineChart)
        for line in chart.panels[0].lines:
            shown = 60.0 * line.x[np.isfinite(line.y)]
            wide = [(shown[k], shown[k + 1]) for k in np.flatnonzero(np.diff(shown) > 2.5)]
            assert wide == [pytest.approx(each, abs=1.5) for each in gaps]
            assert np.isnan(line.y[1:]).any() == bool(gaps)
