"""The arrays behind the figures, on a recording that the model explains exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.report.conftest import MakeBag, explained_recording
from ur_energy_model.energy.meter import integrate
from ur_energy_model.energy.session import ANCHORED_STD
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.identification import filtered_motion as motion_stream
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import FOCUS_SECONDS, analyse, recording_powers
from ur_energy_model.report.chart import LineChart
from ur_energy_model.report.recording_charts import recording_charts
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


def test_an_exact_model_has_no_errors(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    found = analyse(model, make_bag(telemetry))
    assert found.label == "monday"
    assert found.torque is not None
    assert np.allclose(found.torque.modelled, found.torque.recorded, atol=0.01)
    current = found.current
    residual = (current.modelled - current.measured)[current.moving]
    assert np.sqrt(np.mean(residual**2)) < 0.05 * current.measured.std()
    friction = (current.friction_modelled - current.friction_measured)[current.moving]
    assert np.abs(friction).mean() < 0.05 * np.abs(current.friction_measured).mean()
    assert found.powers.bus is not None
    assert np.allclose(found.powers.total, found.powers.bus)
    assert found.focus is None
    assert not found.cut


def test_a_long_recording_is_cut_and_focused_on_most_energy(
    model: EnergyModel, make_bag: MakeBag
) -> None:
    bag = make_bag(explained_recording(model, seconds=120.0, rate=50.0))
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
    powers = recording_powers(model, telemetry)
    standby_only = replace(
        model,
        bus=replace(model.bus, errors=np.eye(1, model.bus.errors.shape[1]) * 0.5),
        sessions=replace(model.sessions, standby=0.0),
    )
    narrow = recording_powers(standby_only, telemetry)
    # The error of the model's standby power does not remain once it is measured.
    alone = 1.96 * ANCHORED_STD * telemetry.duration
    assert 0.99 * alone < narrow.total_energy_half_width < 1.5 * alone  # what anchoring leaves open
    assert powers.total_energy_half_width > narrow.total_energy_half_width


def test_gaps_are_neither_drawn_nor_integrated_over(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    keep = np.ones(len(telemetry), dtype=bool)
    keep[1000:1500] = False
    time = telemetry.time[keep]
    holed = Telemetry(
        time,
        {name: values[keep] for name, values in telemetry.columns.items()},
        telemetry.info,
        find_gaps(time, 1 / 125),
    )
    powers = recording_powers(model, holed)
    assert powers.breaks.tolist() == [1000]
    assert powers.duration == pytest.approx(telemetry.duration - 501 / 125)
    assert powers.total_energy[1000] == powers.total_energy[999]


def test_without_currents_the_error_names_them(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    columns = {k: v for k, v in telemetry.columns.items() if k != "actual_current"}
    with pytest.raises(MissingFieldError, match="actual_current"):
        analyse(model, make_bag(replace(telemetry, columns=columns)))


def test_speed_of_the_flange_is_the_slope_of_its_path(
    model: EnergyModel, telemetry: Telemetry, make_bag: MakeBag
) -> None:
    analysis = analyse(model, make_bag(telemetry))
    steps = np.linalg.norm(np.diff(analysis.flange, axis=0), axis=1) / np.diff(analysis.flange_time)
    middle = 0.5 * (analysis.flange_speed[1:] + analysis.flange_speed[:-1])
    assert middle.max() > 0.1
    np.testing.assert_allclose(steps, middle, atol=0.05 * middle.max())


def _holes(chart: LineChart) -> set[tuple[float, float]]:
    """Times between which a curve over time is not drawn, or drawn straight over missing samples"""
    found = set()
    for line in (line for panel in chart.panels for line in panel.lines):
        shown = line.x[np.isfinite(line.y)]
        steps = np.diff(shown)
        wide = np.flatnonzero(steps > 0.15)
        found |= {(round(float(shown[k]), 1), round(float(shown[k + 1]), 1)) for k in wide}
        broken = np.flatnonzero(np.isnan(line.y))
        assert len(broken) == len(wide)  # what is missing is not bridged by a straight line
    return found


@pytest.mark.parametrize(
    ("rate", "chunk", "missing"),
    [(25.0, 12.0, ((17.0, 18.3),)), (125.0, 30.0, ()), (500.0, 7.5, ((17.0, 18.3),))],
)
def test_pictures_have_the_gaps_of_the_data_and_no_others(
    model: EnergyModel,
    make_bag: MakeBag,
    monkeypatch: pytest.MonkeyPatch,
    rate: float,
    chunk: float,
    missing: tuple[tuple[float, float], ...],
) -> None:
    """Whatever the parts in which a recording is filtered; curves are the same in all."""
    made = explained_recording(model, seconds=40.0, rate=rate)
    since = made.time - made.time[0]
    there = np.ones(len(made), dtype=bool)
    for begin, end in missing:
        there &= (since <= begin) | (since >= end)
    kept = made.select(there)
    bag = make_bag(replace(kept, gaps=find_gaps(kept.time, 1.0 / rate)))
    drawn = []
    for seconds in (chunk, 1e6):
        monkeypatch.setattr(motion_stream, "_CHUNK", seconds)
        found = analyse(model, bag)
        drawn.append(found.current)
        for chart in recording_charts(found):
            if isinstance(chart, LineChart) and chart.x_label == "time [s]" and chart.group:
                holes = _holes(chart)
                assert len(holes) <= len(missing), chart.key
                for begin, end in holes:
                    assert missing[0][0] - 0.5 <= begin <= missing[0][0] + 0.05, chart.key
                    assert missing[0][1] - 0.05 <= end <= missing[0][1] + 0.5, chart.key
    parts, whole = drawn
    assert parts.time == pytest.approx(whole.time)
    for mine, its in ((parts.modelled, whole.modelled), (parts.measured, whole.measured)):
        assert np.abs(mine - its).max() < 2e-3 * np.abs(its).max()
