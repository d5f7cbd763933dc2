"""The arrays behind the figures, on a recording that the model explains exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.errors import MissingFieldError
from ur_energy_model.model.energy import integrate
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import analyse
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


def test_nothing_is_left_over_where_the_model_is_exact(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    found = analyse(model, telemetry)
    assert found.torque is not None
    assert np.allclose(found.torque.modelled, found.torque.recorded)
    current = found.current
    residual = (current.estimated - current.motion.current)[current.moving]
    assert np.sqrt(np.mean(residual**2)) < 0.05 * current.motion.current.std()
    assert np.allclose(found.powers.total, found.powers.bus)


def test_energies_agree_with_the_meter(model: EnergyModel, telemetry: Telemetry) -> None:
    powers = analyse(model, telemetry).powers
    expected = model.joint_power(telemetry["actual_qd"], telemetry["actual_current"])
    reading = integrate(telemetry.time, expected.electrical_power)
    assert np.allclose(powers.electrical_energy, reading.net)
    assert np.allclose(powers.energy[-1], reading.net)
    assert powers.total_energy[-1] == pytest.approx(powers.bus_energy[-1])
    assert powers.duration == pytest.approx(telemetry.duration)


def test_half_widths_follow_the_models_uncertainty(
    model: EnergyModel, telemetry: Telemetry
) -> None:
    powers = analyse(model, telemetry).powers
    standby_only = replace(
        model, bus=replace(model.bus, errors=np.eye(1, model.bus.errors.shape[1]) * 0.5)
    )
    narrow = analyse(standby_only, telemetry).powers
    assert narrow.total_energy_half_width == pytest.approx(1.96 * 0.5 * telemetry.duration)
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
    powers = analyse(model, holed).powers
    assert powers.breaks.tolist() == [1000]
    assert powers.duration == pytest.approx(telemetry.duration - 501 / 125)
    assert powers.total_energy[1000] == powers.total_energy[999]


def test_without_currents_it_says_what_to_record(model: EnergyModel, telemetry: Telemetry) -> None:
    columns = {k: v for k, v in telemetry.columns.items() if k != "actual_current"}
    with pytest.raises(MissingFieldError, match="actual_current"):
        analyse(model, replace(telemetry, columns=columns))
