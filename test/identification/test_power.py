"""Bus power: physical structure, priors, and what the data may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_structures import (
    PowerRows,
    breaking_away,
    expected_resistance,
)
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry


def accumulated(arm: ExactArm, *recordings: Telemetry) -> PowerFit:
    fit = PowerFit(arm.robot)
    for recording in recordings:
        fit.accumulate(recording)
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


@pytest.mark.parametrize("stated", [True, False])
def test_finds_the_delay_of_the_currents(stated: bool) -> None:
    """With and without torque constants in the robot file, which weight the joints' delays."""
    arm = ExactArm(current_noise=0.0, current_delay=3e-3)
    recording = arm.record(120.0, rate=500.0, seed=28)
    unstated = replace(arm.robot, torque_constant=np.full(arm.robot.dof, np.nan))
    known = arm if stated else replace(arm, robot=unstated)
    result = accumulated(known, recording).fit("physical", TORQUE_CONSTANT, 0.01 * TORQUE_CONSTANT)
    spread = result.factors["current_delay"][1]
    assert 0.0 < spread < 0.3e-3
    assert result.current_delay == pytest.approx(arm.current_delay, abs=3 * spread)
    np.testing.assert_allclose(result.back_emf_constant[:3], TORQUE_CONSTANT[:3], rtol=0.005)


def test_a_common_error_of_torque_constants_differs_from_the_conversion() -> None:
    arm = ExactArm(current_noise=0.0)
    fit = accumulated(arm, arm.record(120.0, rate=500.0, seed=29))
    guess = 1.015 * TORQUE_CONSTANT
    result = fit.fit("physical", guess, 0.005 * guess)
    before = np.abs(guess / TORQUE_CONSTANT - 1)
    after = np.abs(result.torque_constant / TORQUE_CONSTANT - 1)
    assert (after < 0.5 * before).all()
    assert (after < 3 * result.torque_constant_std / TORQUE_CONSTANT).all()


def test_samples_at_which_the_capacitor_feeds_the_arm_are_left_out() -> None:
    arm = ExactArm(current_noise=0.0)
    recording = arm.record(60.0, rate=500.0, seed=30)
    expected = arm.power(recording["actual_qd"], recording["actual_current"])
    resting = np.flatnonzero(expected <= 0.0)
    assert len(resting)
    columns = dict(recording.columns)
    columns["actual_robot_current"] = columns["actual_robot_current"].copy()
    for k in resting:  # a capacitor that feeds the arm for a tenth of a second
        columns["actual_robot_current"][k : k + 50] = 0.0
    fits = [
        accumulated(arm, r).fit("physical", TORQUE_CONSTANT)
        for r in (recording, replace(recording, columns=columns))
    ]
    assert fits[1].bus.standby == pytest.approx(fits[0].bus.standby, abs=0.1)
    assert fits[1].bus.residual == pytest.approx(fits[0].bus.residual, rel=0.03)


def test_breakaway_is_left_out() -> None:
    time = 10.0 + 0.012 * np.arange(100.0)
    qd = np.zeros((100, 2))
    qd[40:, 0] = 0.5
    qd[70:80, 1] = -0.5
    nothing = np.zeros(100)
    left_out = breaking_away(PowerRows(time, qd, np.zeros((100, 2)), nothing, nothing))
    np.testing.assert_array_equal(np.flatnonzero(left_out), [40, 41, 42, 70, 71, 72])


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


def test_without_bus_power_the_priors_apply() -> None:
    arm = ExactArm()
    recording = arm.record(5.0)
    columns = {k: v for k, v in recording.columns.items() if not k.startswith("actual_robot")}
    result = accumulated(arm, replace(recording, columns=columns)).fit("physical", TORQUE_CONSTANT)
    assert result.source == "prior"
    assert result.bus.standby == arm.robot.standby_power
    assert result.bus.std["standby"] == pytest.approx(10.0)
    assert np.isnan(result.bus.residual)


def test_unknown_winding_resistances_have_wide_priors() -> None:
    known = load_robot("ur5e")
    value, spread = expected_resistance(known)
    np.testing.assert_allclose(value, known.winding_resistance)
    assert (spread < 0.1 * value).all()
    for name in ("ur5", "gen3"):
        value, spread = expected_resistance(load_robot(name))
        assert (spread >= 0.5 * value).all()
        assert (value > 0).all()
    np.testing.assert_allclose(expected_resistance(load_robot("ur5"))[0], known.winding_resistance)


def test_catalogue_motors_are_assumed_and_only_standby_is_fitted() -> None:
    """Clochiatti et al. 2024, eq. 23: W = (torque / k_m)^2 + torque * speed / 0.89."""
    arm = ExactArm(current_noise=0.0)
    result = accumulated(arm, arm.record(60.0, seed=21)).fit("catalogue", TORQUE_CONSTANT)
    motor_constant = np.array([0.27426] * 3 + [0.06632] * 3)
    np.testing.assert_allclose(result.winding_resistance, (TORQUE_CONSTANT / motor_constant) ** 2)
    np.testing.assert_allclose(result.back_emf_constant, TORQUE_CONSTANT / 0.89)
    assert not result.bus.driver.any()
    assert result.bus.kind == result.source == "catalogue"
    assert result.bus.source == "bus_power"  # the standby power and the residual
    physical = accumulated(arm, arm.record(60.0, seed=21)).fit("physical", TORQUE_CONSTANT)
    assert result.bus.residual > physical.bus.residual
    without_bus = PowerFit(arm.robot).fit("catalogue", TORQUE_CONSTANT)
    assert without_bus.bus.std["standby"] == pytest.approx(10.0)
