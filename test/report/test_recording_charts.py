# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Figures of a recording that the model explains exactly: their arrays, gaps, shift and files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.report.conftest import MakeBag
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.meter import MeterReading, integrate
from ur_energy_model.energy.powers import ArmState
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.energy.wall import WallEnergy
from ur_energy_model.errors import InputError, MissingFieldError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report import figures
from ur_energy_model.report.analysis import Analysis, analyse, recording_powers
from ur_energy_model.report.chart import Line, LineChart
from ur_energy_model.report.recording_charts import (
    bus_chart,
    energy_split_chart,
    joint_power_chart,
    recording_charts,
    stack_chart,
)
from ur_energy_model.report.recording_tables import energy_table, joint_power_table
from ur_energy_model.report.shift import (
    cycle_table,
    kinds_of_cycles,
    read_shift,
    shift_charts,
    shift_table,
)
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

PAPER_FIGURES = {
    "motion", "path", "torque", "torque_error", "current", "current_error", "power", "energy",
    "bus_power", "friction", "temperature", "energy_split", "power_stack",
}  # fmt: skip


def without(telemetry: Telemetry, *fields: str) -> Telemetry:
    columns = {
        name: each for name, each in telemetry.columns.items() if name not in fields
    }
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
    assert analysis.powers.measured.all()
    assert np.allclose(analysis.powers.model, analysis.powers.total)
    assert analysis.focus is None
    assert not analysis.cut


def test_energies_agree_with_the_meter_and_skip_gaps(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    gaps = recording_powers(model, with_gap(telemetry, 999.5 / 125, 1499.5 / 125))
    assert gaps.breaks.tolist() == [1000]
    assert gaps.duration == pytest.approx(telemetry.duration - 501 / 125)
    assert gaps.total_energy[1000] == gaps.total_energy[999]
    powers = recording_powers(model, telemetry)
    current = telemetry["actual_current"]
    resistance = np.array([joint.winding_resistance for joint in model.joints])
    back_emf = np.array(
        [joint.back_emf_constant * joint.gear_ratio for joint in model.joints]
    )
    electrical = resistance * current**2 + back_emf * telemetry["actual_qd"] * current
    reading = integrate(telemetry.time, electrical)
    assert np.allclose(powers.electrical_energy, reading.net)
    assert np.allclose(powers.energy[-1], reading.net)
    watts = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    measured = np.trapezoid(watts, telemetry.time)
    assert powers.total_energy[-1] == pytest.approx(measured, rel=1e-12)
    assert powers.duration == pytest.approx(telemetry.duration)


def test_pictures_have_the_gaps_of_the_data_and_no_others(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    missing = 17.0, 18.3
    for bag, gaps in (
        (make_bag(telemetry, "whole"), 0),
        (make_bag(with_gap(telemetry, *missing)), 1),
    ):
        for chart in recording_charts(analyse(model, bag)):
            if (
                not isinstance(chart, LineChart)
                or chart.x_label != "time [s]"
                or not chart.group
            ):
                continue
            for line in (line for panel in chart.panels for line in panel.lines):
                shown = line.x[np.isfinite(line.y)]
                wide = np.flatnonzero(np.diff(shown) > 0.15)
                # What is missing is not bridged by a straight line.
                assert np.isnan(line.y).sum() == len(wide) <= gaps, chart.key
                for k in wide:
                    assert shown[[k, k + 1]] == pytest.approx(missing, abs=0.5), chart.key


# Charts and their files.


def test_every_figure_is_drawn_and_named_after_its_chart(
    analysis: Analysis, tmp_path: Path
) -> None:
    charts = recording_charts(analysis)
    assert {chart.key for chart in charts} == PAPER_FIGURES
    assert all(figures.draw_chart(chart).axes for chart in charts)
    hostile = replace(
        analysis, label=r"$\frac{", joint_names=(r"$\undefined_joint", *["b"] * 5)
    )
    assert figures.save_chart(energy_split_chart(hostile), tmp_path), (
        "names are no mathematics"
    )
    once, again = (
        figures.save_chart(charts[1], tmp_path / name, formats=("png", "svg", "pdf"))
        for name in ("once", "again")
    )
    assert [path.suffix for path in once] == [".png", ".svg", ".pdf"]
    assert once[2].read_bytes().startswith(b"%PDF-")
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


def test_the_measured_energy_of_joints_is_drawn_beside_the_modelled_one(
    analysis: Analysis, tmp_path: Path
) -> None:
    measured = [3.0, 2.5, -1.0]
    joints = [
        {
            "joint": name, "modelled_J": 2.0, "modelled_std_J": 0.5, "measured_J": energy,
            "measured_std_J": 0.25, "ratio": energy / 2.0, "ratio_std": 0.125,
        }
        for name, energy in zip(("a", "b", "c"), measured, strict=True)
    ]  # fmt: skip
    chart = joint_power_chart(joints, "monday")
    assert chart is not None
    modelled, shown = chart.bars
    assert modelled.values.tolist() == [2.0, 2.0, 2.0]
    assert shown.values.tolist() == measured
    assert shown.half_width == pytest.approx(np.full(3, 1.96 * 0.25), rel=1e-3)
    assert figures.save_chart(chart, tmp_path)
    assert chart.key in {
        each.key for each in recording_charts(analysis, joint_power=joints)
    }
    table = joint_power_table({"joint_power": joints}, "monday")
    assert table is not None
    assert [row[0] for row in table.rows] == ["a", "b", "c"]
    absent = [{"joint": "a", "reason": "no actual_joint_voltage recorded"}]
    assert joint_power_chart(absent, "monday") is None
    reason = joint_power_table({"joint_power": absent}, "monday")
    assert reason is not None
    assert "actual_joint_voltage" in reason.note
    assert joint_power_table({}, "monday") is None


EXTRA = 6.0  # power on the bus, in motion only, that the model does not have [W]


@pytest.fixture(scope="module")
def unexplained(model: EnergyModel, telemetry: Telemetry) -> Telemetry:
    """A recording with EXTRA, without bus power for a while."""
    moving = np.abs(telemetry["actual_qd"]).max(axis=1) > 0.05
    watts = (
        telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
        + EXTRA * moving
    )
    since = telemetry.time - telemetry.time[0]
    watts[(since > 5.0) & (since < 8.0)] = np.nan
    return replace(
        telemetry, columns={**telemetry.columns, "actual_robot_current": watts / 48.0}
    )


def finite(line: Line) -> Array:
    return np.asarray(line.y[np.isfinite(line.y)])


def test_layers_bars_and_curves_are_measured_total_modelled_parts_and_unexplained(
    model: EnergyModel, unexplained: Telemetry, make_bag: MakeBag
) -> None:
    """Every picture of power and energy, beside the volts and amperes of the recording."""
    made = analyse(model, make_bag(unexplained))
    powers = made.powers
    watts = unexplained["actual_robot_voltage"] * unexplained["actual_robot_current"]
    known = np.isfinite(watts)
    assert (powers.measured == known).all()
    assert 0.85 < known.mean() < 0.95
    assert np.allclose(powers.total[known], watts[known], rtol=1e-12)
    parts = (
        powers.electrical.sum(axis=1)
        + powers.driver
        + powers.standby
        + powers.regeneration
    )
    assert np.allclose(parts, powers.model, atol=1e-9)
    assert np.allclose(parts + powers.unexplained, powers.total, atol=1e-9)
    assert not powers.unexplained[~known].any()

    stack, rest = stack_chart(made).panels
    layers = [line for line in stack.lines if line.base is not None]
    taken = powers.standby + powers.driver + np.maximum(powers.electrical, 0).sum(axis=1)
    assert np.allclose(layers[-1].y, taken)
    assert all(
        np.allclose(np.asarray(upper.base), lower.y) for lower, upper in pairwise(layers)
    )
    assert np.allclose(stack.lines[-1].y, powers.total)
    assert [line.label for line in rest.lines] == ["regeneration", "unexplained"]
    assert np.allclose(finite(rest.lines[1]), powers.unexplained[known])

    chart = bus_chart(made)
    assert chart is not None
    (measured, modelled), (difference,) = (panel.lines for panel in chart.panels)
    assert np.allclose(finite(measured), watts[known])
    assert np.allclose(modelled.y, powers.model)
    assert np.allclose(finite(difference), watts[known] - powers.model[known], atol=1e-9)

    truth = powers.electrical_energy * 1.01  # shown beside the estimate
    split = energy_split_chart(made, truth)
    bars = {bar.label: bar.values for bar in split.bars}
    assert np.allclose(bars["true electrical"][:6], truth)
    assert split.categories[-1] == "unexplained"
    steps = np.diff(unexplained.time)
    mixed = np.where(known, watts, powers.model)
    total = float((steps * (mixed[1:] + mixed[:-1]) / 2).sum())
    assert bars["electrical"].sum() == pytest.approx(total, abs=0.01)
    assert bars["electrical"][-1] == pytest.approx(
        float((steps * (powers.unexplained[1:] + powers.unexplained[:-1]) / 2).sum()),
        abs=0.01,
    )
    assert 0.5 < bars["electrical"][-1] < EXTRA * 30.0


def test_pictures_of_a_modelled_recording_read_naturally(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    bag = make_bag(without(telemetry, "actual_robot_current"))
    made = analyse(model, bag)
    assert not made.powers.measured.any()
    assert np.allclose(made.powers.total, made.powers.model)
    assert bus_chart(made) is None
    assert "unexplained" not in energy_split_chart(made).categories
    assert "measured" not in stack_chart(made).caption
    shift = read_shift(model, [bag])
    assert (shift.total_source, shift.explained_share) == (("modelled", 0.0), None)
    (lines,) = (panel.lines for panel in shift_charts(shift)[0].panels)  # type: ignore[attr-defined]
    assert [line.label for line in lines] == ["total, modelled"]
    table = energy_table(estimate_energy(model, bag), "monday")
    assert [row[0] for row in table.rows][-1] == "whole arm, modelled"
    assert "unexplained" not in {row[0] for row in table.rows}


# The shift: states, cycles, cost and CO2.


def test_energy_of_the_bus_is_split_by_state(
    model: EnergyModel, telemetry: Telemetry, monday: Path
) -> None:
    shift = read_shift(model, [monday, monday])
    watts = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    measured = 2 * float(np.trapezoid(watts, telemetry.time))
    assert shift.seconds == pytest.approx(2 * telemetry.duration, rel=1e-6)
    assert shift.energy == pytest.approx(measured, rel=1e-9)
    assert shift.total_source == ("measured", 1.0)
    assert shift.explained_share == pytest.approx(1.0, abs=1e-3)
    assert sum(shift.state_energy.values()) == pytest.approx(shift.energy)
    assert 8.0 <= shift.state_time[ArmState.STANDSTILL] <= 14.0


def test_the_shift_shows_total_and_model_and_the_table_all_parts(
    model: EnergyModel, unexplained: Telemetry, make_bag: MakeBag
) -> None:
    bag = make_bag(unexplained)
    shift = read_shift(model, [bag])
    summary = estimate_energy(model, bag)
    assert shift.energy == pytest.approx(summary.supply, rel=1e-12)
    assert shift.explained_share == pytest.approx(summary.explained_share, rel=1e-12)
    watts = unexplained["actual_robot_voltage"] * unexplained["actual_robot_current"]
    known = np.where(np.isfinite(watts), watts, 0.0)
    measured = float(np.trapezoid(known, unexplained.time))
    assert summary.explained_share == pytest.approx(
        1.0 - summary.unexplained / measured, rel=1e-9
    )
    assert summary.unexplained > 0.5
    assert shift.total_source == summary.total_source
    assert summary.total_source.name == "mixed"
    chart = shift_charts(shift)[0]
    assert isinstance(chart, LineChart)
    total, modelled = chart.panels[0].lines
    assert np.nanmean(total.y - modelled.y) == pytest.approx(
        summary.unexplained / summary.duration, rel=0.05
    )
    cells = {row[0]: row[2] for row in energy_table(summary, "monday").rows}
    joints = [cells[name] for name in summary.names]
    named = ["drivers", "standby", "regeneration", "unexplained"]
    parts = sum(
        float(str(cell).split()[0])
        for cell in [*joints, *(cells[each] for each in named)]
    )
    assert parts == pytest.approx(summary.supply, rel=5e-3)  # as rounded in the table


def test_cycles_cost_and_co2(model: EnergyModel, monday: Path) -> None:
    shift = read_shift(model, [monday], trigger="program")
    assert [round(cycle.duration) for cycle in shift.cycles] == [10]
    assert cycle_table(shift) is not None
    assert {chart.key for chart in shift_charts(shift)} == {"shift_power", "cycles"}
    wall = WallEnergy(3.6e6, 3.6e5, "generic")
    for share, kwh in ((0.8, shift.energy / 3.6e6 / 0.8), (None, 1.0)):
        tariff = Tariff(price=0.5, currency="EUR", co2=0.4, supply_efficiency=share)
        table = shift_table(shift, tariff, wall)
        assert table.rows[-1][-2:] == pytest.approx((0.5 * kwh, 400 * kwh))
        assert table.columns[-3:] == ["at the wall [Wh]", "cost [EUR]", "CO2 [g]"]
        paid = np.array([row[-3:] for row in table.rows], dtype=float)
        np.testing.assert_allclose(paid[:-1].sum(axis=0), paid[-1])
        assert "not measured" in table.note
    assert len(shift_table(shift, Tariff(), wall).columns) == 6
    for share in (0.0, -1.0, 1.2, float("nan")):
        with pytest.raises(InputError, match="supply-efficiency"):
            Tariff(supply_efficiency=share)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({}, 1),
        ({"waiting": 40.0}, 1),
        ({"energies": 1.1}, 1),
        ({"moving": 1.3}, 2),
        ({"energies": 2.0}, 2),
        ({"program": "another.urp"}, 2),
    ],
)
def test_only_cycles_of_the_same_work_have_a_mean(
    monday: Path, model: EnergyModel, change: dict[str, Any], kinds: int
) -> None:
    """Longer waits and cold joints are the same work; other moves, and another program, are not."""
    shift = read_shift(model, [monday])
    channels = shift.channels
    made = []
    for number in range(6):
        own = change if number % 2 else {}
        net = np.zeros(len(channels))
        net[channels.state_time + ArmState.MOVING] = 5.0 * own.get("moving", 1.0)
        net[channels.state_time + ArmState.STANDSTILL] = 4.0 + own.get("waiting", 0.0)
        joints = channels.per_joint["electrical_power"]
        net[joints] = own.get("energies", 1.0) * np.arange(
            20.0, 20.0 + len(channels.joints)
        )
        reading = MeterReading(net, net, 9.0, 0.0)
        program = own.get("program", "cell.urp")
        start = number * 10**10
        made.append(Cycle(number + 1, start, start + 9 * 10**9, reading, 100.0, program))
    found = kinds_of_cycles(made, channels)
    assert len(found) == kinds
    assert sorted(cycle.number for kind in found for cycle in kind) == list(range(1, 7))
    mixed = replace(shift, cycles=tuple(made), kinds=found)
    assert (cycle_table(mixed) is None) == (kinds > 1)
    (chart,) = (each for each in shift_charts(mixed) if each.key == "cycles")
    assert ("per cycle" in chart.title) == (kinds == 1)
