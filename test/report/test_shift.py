"""Energy of a shift: states, cycles, cost and CO2 on a recording with known power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.report.conftest import MakeBag, explained_recording
from ur_energy_model.energy.powers import ArmState
from ur_energy_model.errors import InputError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.chart import LineChart
from ur_energy_model.report.shift import cycle_table, read_shift, shift_charts, shift_table
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


def test_energy_is_that_of_the_bus_and_split_by_state(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    bag = make_bag(telemetry)
    shift = read_shift(model, [bag, bag])
    assert shift.seconds == pytest.approx(2 * telemetry.duration, rel=1e-6)
    assert shift.bus_energy is not None
    assert shift.energy == pytest.approx(shift.bus_energy, rel=1e-3)
    assert sum(shift.state_energy.values()) == pytest.approx(shift.energy)
    assert 8.0 <= shift.state_time[ArmState.STANDSTILL] <= 14.0
    assert shift.idle_share == pytest.approx(shift.state_energy[ArmState.STANDSTILL] / shift.energy)
    assert shift.starts.size == 1


def test_cycles_start_with_the_program(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    shift = read_shift(model, [make_bag(telemetry)], trigger="program")
    assert [round(cycle.duration) for cycle in shift.cycles] == [10]
    table = cycle_table(shift)
    assert table is not None
    assert {chart.key for chart in shift_charts(shift)} == {"shift_power", "cycles"}


def test_cost_and_co2_are_proportional_to_energy(model: EnergyModel, make_bag: MakeBag) -> None:
    shift = read_shift(model, [make_bag(explained_recording(model, seconds=12.0))])
    tariff = Tariff(price=0.5, currency="EUR", co2=0.4, supply_efficiency=0.8)
    kwh = shift.energy / 3.6e6 / 0.8
    assert tariff.cost(shift.energy) == pytest.approx(0.5 * kwh)
    assert tariff.emission(shift.energy) == pytest.approx(0.4 * kwh)
    table = shift_table(shift, tariff)
    assert table.rows[-1][-2:] == pytest.approx((0.5 * kwh, 400 * kwh))
    assert table.columns[-2:] == ("cost [EUR]", "CO2 [g]")
    assert len(shift_table(shift, Tariff()).columns) == 5


@pytest.mark.parametrize("share", [0.0, -1.0, 1.2, float("nan")])
def test_an_impossible_efficiency_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="supply-efficiency"):
        Tariff(supply_efficiency=share)


@pytest.mark.parametrize("gap", [None, (8.0, 19.0)])
def test_power_over_the_shift_has_the_gaps_of_the_data(
    model: EnergyModel, make_bag: MakeBag, gap: tuple[float, float] | None
) -> None:
    telemetry = explained_recording(model, seconds=30.0)
    since = telemetry.time - telemetry.time[0]
    if gap is not None:
        telemetry = telemetry.select((since < gap[0]) | (since > gap[1]))
        telemetry = replace(telemetry, gaps=find_gaps(telemetry.time, 1 / 125.0))
    chart = shift_charts(read_shift(model, [make_bag(telemetry)]))[0]
    assert isinstance(chart, LineChart)
    for line in chart.panels[0].lines:
        shown = 60.0 * line.x[np.isfinite(line.y)]
        wide = [(shown[k], shown[k + 1]) for k in np.flatnonzero(np.diff(shown) > 2.5)]
        assert wide == ([] if gap is None else [pytest.approx(gap, abs=1.5)])
        assert np.isnan(line.y[1:]).any() == (gap is not None)
