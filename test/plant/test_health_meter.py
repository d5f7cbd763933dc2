"""Rows of health say what the telemetry was made with, whatever its batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.learning.made_up_motion import ROBOT, N, generic, smooth_motion
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.model.sessions import Session
from ur_energy_model.plant.rows import HealthMeter, HealthRow
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

BEGIN = 1_767_225_600.0
SCALE = np.array([1.0, 1.0, 1.18, 1.0, 0.9, 1.0])


def telemetry(
    scale: np.ndarray, seconds: float = 150.0, *, constant: np.ndarray | None = None
) -> Telemetry:
    """Motion of the generic arm whose friction, and torque per ampere, have factors."""
    time = 60.0 + np.arange(round(125 * seconds)) / 125.0
    q, qd, qdd = smooth_motion(ROBOT, time, 3)
    model = generic()
    model = model.in_session(Session(model.bus.standby, 0.0, scale, np.zeros(N)))
    warmth = np.full_like(q, 31.0)
    current = model.predict(q, qd, qdd, temperature=warmth, std=False).current
    current = current / (np.ones(N) if constant is None else constant)
    current = current + 0.02 * np.random.default_rng(1).standard_normal(q.shape)
    columns = {
        "actual_q": q,
        "actual_qd": qd,
        "target_q": q,
        "target_qd": qd,
        "target_qdd": qdd,
        "actual_current": current,
        "joint_temperatures": warmth,
        "robot_mode": np.full(len(time), 7.0),
        "safety_mode": np.ones(len(time)),
    }
    return Telemetry(time, columns, RecordingInfo(rate=125.0))


def rows(samples: Telemetry, batch: int) -> list[HealthRow]:
    """All rows."""
    calculator = EnergyCalculator(generic(), ROBOT)
    meter, out = HealthMeter(calculator), []
    for start in range(0, len(samples), batch):
        table = calculator(samples.cut(slice(start, start + batch)))
        assert table is not None
        out += meter.observe(table, BEGIN + table.samples.time)
    return [*out, *meter.finish()]


def test_friction_of_each_joint_by_the_minute():
    found = rows(telemetry(SCALE), 5000)
    assert [row.minute - BEGIN for row in found] == [60.0, 120.0, 180.0]
    for row in found[:2]:
        np.testing.assert_allclose(row.friction, SCALE, atol=0.03)
        assert (row.friction_std < 0.05).all()
        np.testing.assert_allclose(row.temperature, 31.0)
        assert (row.moving > 20.0).all()
        assert row.standby is None


def test_torque_constants():
    constant = np.ones(N)
    constant[1] = 0.93
    model = np.array([joint.torque_constant for joint in generic().joints])
    (row, *_) = rows(telemetry(np.ones(N), constant=constant), 5000)
    error = row.torque_constant / model - constant
    assert (np.abs(error) < 3.0 * row.torque_constant_std / model).all()
    assert abs(error[1]) < 0.02
    assert row.torque_constant_std[1] / model[1] < 0.03


def test_batches_do_not_matter():
    samples = telemetry(SCALE, 70.0)
    for first, second in zip(rows(samples, 12), rows(samples, 8000), strict=True):
        np.testing.assert_allclose(first.friction, second.friction, rtol=1e-9)
        assert first.minute == pytest.approx(second.minute)


@pytest.mark.parametrize("batch", [5, 1000])
def test_standby_of_an_arm_that_rests(batch: int):
    model = generic()
    time = 60.0 + np.arange(6500) / 50.0
    zero = np.zeros((len(time), N))
    columns = {
        "actual_qd": zero,
        "actual_current": zero,
        "actual_robot_voltage": np.full(len(time), 48.0),
        "actual_robot_current": np.full(len(time), (model.bus.standby + 3.0) / 48.0),
        "robot_mode": np.full(len(time), 7.0),
    }
    found = rows(Telemetry(time, columns, RecordingInfo(rate=50.0)), batch)
    assert len(found) == 3
    for row in found:
        assert row.standby == pytest.approx(model.bus.standby + 3.0, abs=0.2)
        assert row.standby_std is not None
        assert 0.1 < row.standby_std < 1.5
        assert np.isnan(row.friction).all()


def test_a_restarted_controller_begins_anew():
    samples = telemetry(SCALE, 70.0)
    again = replace(samples, time=samples.time - 30.0)
    calculator = EnergyCalculator(generic(), ROBOT)
    meter = HealthMeter(calculator)
    out = []
    for number, part in enumerate((samples, again)):
        table = calculator(part)
        assert table is not None
        out += meter.observe(table, BEGIN + 3600.0 * number + table.samples.time)
    out += meter.finish()
    minutes = np.array([row.minute for row in out])
    assert (np.diff(minutes) > 0).all()
    assert minutes[-1] > BEGIN + 3600.0
