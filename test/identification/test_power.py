"""Bus power: physical structure, priors, and what the data may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.identification.power import PowerFit, PowerFitResult, current_rate
from ur_energy_model.telemetry.samples import Telemetry


def accumulated(arm: ExactArm, *recordings: Telemetry) -> PowerFit:
    fit = PowerFit(arm.robot)
    for recording in recordings:
        fit.add(recording)
    return fit


def test_finds_standby_copper_and_driver_loss() -> None:
    arm = ExactArm(current_noise=0.0)
    result = accumulated(arm, arm.record(120.0, seed=21)).fit("physical", TORQUE_CONSTANT)
    assert result.source == "bus_power"
    assert result.bus.standby == pytest.approx(arm.standby, abs=0.3)
    assert result.factors["copper"][0] == pytest.approx(arm.resistance_factor, rel=0.1)
    assert result.factors["conversion"][0] == pytest.approx(1.0, abs=0.01)
    assert result.bus.residual == pytest.approx(arm.power_noise, rel=0.05)
    np.testing.assert_allclose(result.back_emf_constant, TORQUE_CONSTANT, rtol=0.01)


def test_tells_a_torque_constant_that_was_uncertain() -> None:
    arm = ExactArm(current_noise=0.0, power_noise=0.5)
    fit = accumulated(arm, arm.record(120.0, seed=22))
    guess = TORQUE_CONSTANT.copy()
    guess[2] *= 1.08
    std = 0.002 * TORQUE_CONSTANT
    std[2] = 0.1 * TORQUE_CONSTANT[2]
    result = fit.fit("physical", guess, std)
    assert result.back_emf_constant[2] == pytest.approx(TORQUE_CONSTANT[2], rel=0.02)


def test_short_and_quiet_recordings_stay_near_the_priors() -> None:
    arm = ExactArm()
    fit = accumulated(arm, arm.record(6.0, seed=23))
    result = fit.fit("physical", TORQUE_CONSTANT, 0.02 * TORQUE_CONSTANT)
    assert 0.0 < result.factors["copper"][0] < 2.0
    assert result.factors["conversion"][0] == pytest.approx(1.0, abs=0.06)
    held_out = arm.record(40.0, seed=24)
    structured = _rmse(result, arm, held_out)
    free = fit.fit("ecbot", TORQUE_CONSTANT)
    assert structured < 2.0
    assert _rmse(free, arm, held_out) > structured


def _rmse(result: PowerFitResult, arm: ExactArm, recording: Telemetry) -> float:
    """Of the power that a result gives, floored at zero as the supply is."""
    current = recording["actual_current"]
    speed = arm.robot.gear_ratio * recording["actual_qd"]
    bus = result.bus
    rate = current_rate(recording.time, current)
    power = (
        bus.standby
        + (result.winding_resistance * current**2).sum(axis=1)
        + (result.back_emf_constant * speed * current).sum(axis=1)
        + np.abs(current) @ bus.driver
        + (current * rate) @ bus.inductance
    )
    measured = recording["actual_robot_voltage"] * recording["actual_robot_current"]
    return float(np.sqrt(np.mean((np.maximum(power, 0.0) - measured) ** 2)))


def test_brakes_and_regeneration_do_not_enter_the_fit() -> None:
    arm = ExactArm(current_noise=0.0)
    running = arm.record(60.0, seed=25)
    mode = np.full(len(running), 7.0)
    mode[:2000] = 5.0
    idle = {**running.columns, "robot_mode": mode}
    power = running["actual_robot_current"].copy()
    power[:2000] = 12.0 / running["actual_robot_voltage"][:2000]
    idle["actual_robot_current"] = power
    result = accumulated(arm, replace(running, columns=idle)).fit("physical", TORQUE_CONSTANT)
    assert result.bus.mode_power["idle"] == pytest.approx(12.0, abs=0.05)
    assert result.bus.standby == pytest.approx(arm.standby, abs=0.5)


def test_without_bus_power_the_priors_stand() -> None:
    arm = ExactArm()
    recording = arm.record(5.0)
    columns = {k: v for k, v in recording.columns.items() if not k.startswith("actual_robot")}
    result = accumulated(arm, replace(recording, columns=columns)).fit("physical", TORQUE_CONSTANT)
    assert result.source == "prior"
    assert result.bus.standby == arm.robot.standby_power
    assert result.bus.std["standby"] == pytest.approx(10.0)
    assert np.isnan(result.bus.residual)


def test_recordings_merge() -> None:
    arm = ExactArm()
    recordings = [arm.record(seed=26), arm.record(seed=27)]
    together = accumulated(arm, *recordings)
    first, second = (accumulated(arm, recording) for recording in recordings)
    first.merge(second)
    a, b = (fit.fit("physical", TORQUE_CONSTANT) for fit in (together, first))
    assert b.bus.standby == pytest.approx(a.bus.standby, abs=0.05)
    assert first.samples == together.samples
