# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bus power: physical structure, priors, and what the data may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.errors import InputError
from ur_energy_model.identification.power_fit import PowerFit, PowerFitResult
from ur_energy_model.identification.power_structures import (
    JointPowerEvidence,
    PowerLayout,
    PowerRows,
    power_columns,
)
from ur_energy_model.telemetry.samples import Telemetry

ARM = ExactArm(current_noise=0.0)


def fitted(
    made: Telemetry | None,
    kind: str = "physical",
    guess: np.ndarray = TORQUE_CONSTANT,
    std: np.ndarray | None = None,
    arm: ExactArm = ARM,
) -> PowerFitResult:
    fit = PowerFit(arm.robot)
    if made is not None:
        fit.accumulate(made)
    return fit.fit(kind, guess, std)


def test_finds_the_delay_of_the_currents() -> None:
    """With and without torque constants in the robot file, which weight the joints' delays."""
    arm = replace(ARM, current_delay=3e-3)
    made = arm.record(120.0, rate=250.0, seed=28)
    unstated = replace(arm.robot, torque_constant=np.full(arm.robot.dof, np.nan))
    for known in (arm, replace(arm, robot=unstated)):
        result = fitted(made, std=0.01 * TORQUE_CONSTANT, arm=known)
        spread = result.factors["current_delay"][1]
        assert 0.0 < spread < 0.3e-3
        assert result.current_delay == pytest.approx(arm.current_delay, abs=3 * spread)
        np.testing.assert_allclose(
            result.back_emf_constant[:3], TORQUE_CONSTANT[:3], rtol=0.005
        )
        assert result.source == "bus_power"
        assert result.bus.standby == pytest.approx(arm.standby, abs=0.3)
        assert result.factors["copper"][0] == pytest.approx(
            arm.resistance_factor, rel=0.1
        )
        assert result.bus.residual == pytest.approx(arm.power_noise, rel=0.05)


def test_samples_at_which_the_capacitor_feeds_the_arm_are_left_out() -> None:
    fast = ARM.record(60.0, rate=500.0, seed=30)
    expected = ARM.power(fast["actual_qd"], fast["actual_current"])
    resting = np.flatnonzero(expected <= 0.0)
    assert len(resting)
    current = fast["actual_robot_current"].copy()
    for k in resting:  # a capacitor that feeds the arm for a tenth of a second
        current[k : k + 50] = 0.0
    fed = replace(fast, columns={**fast.columns, "actual_robot_current": current})
    plain = fitted(fast).bus
    without = fitted(fed).bus
    assert without.standby == pytest.approx(plain.standby, abs=0.1)
    assert without.residual == pytest.approx(plain.residual, rel=0.03)


def test_without_bus_power_the_prior_is_what_remains() -> None:
    prior = fitted(None)
    assert prior.source == "prior"
    assert prior.bus.standby == ARM.robot.standby_power
    assert prior.bus.std["standby"] == pytest.approx(10.0)


def test_power_models_that_no_room_adds_are_refused() -> None:
    with pytest.raises(InputError, match="use physical"):
        fitted(None, "psychic")


@pytest.mark.parametrize("drag", [0.0, 6e-3])
def test_drag_is_found_only_where_it_is(drag: float) -> None:
    arm = replace(ARM, drag=drag)
    result = fitted(
        arm.record(60.0, rate=125.0, seed=31), std=0.01 * TORQUE_CONSTANT, arm=arm
    )
    value, std = result.factors["drag"]
    assert value == pytest.approx(drag, abs=max(4 * std, 1e-4))
    assert result.bus.drag == value
    assert result.bus.errors.shape[1] == 3 * arm.robot.dof + 2


def powered(made: Telemetry, errors: np.ndarray | float = 0.0) -> Telemetry:
    """The recording with the bus power of its speeds and currents, plus errors [samples], W."""
    watts = ARM.power(made["actual_qd"], made["actual_current"]) + errors
    columns = {
        **made.columns,
        "actual_robot_current": watts / made["actual_robot_voltage"],
    }
    return replace(made, columns=columns)


def test_a_joint_that_has_not_moved_keeps_the_prior_of_its_conversion() -> None:
    made = ARM.record(40.0, rate=125.0, seed=32)
    moves = np.array([1.0] * 5 + [0.0])
    held = made["actual_qd"] * moves, np.where(moves, made["actual_current"], 0.3)
    columns = dict(zip(("actual_qd", "actual_current"), held, strict=True))
    result = fitted(powered(replace(made, columns={**made.columns, **columns})))
    share = result.back_emf_std / result.back_emf_constant
    assert share[:3].max() < 0.05
    assert 0.05 < share[5] < 0.12  # CONVERSION_FACTOR allows 0.07


@pytest.mark.parametrize("moving", [15.0, 60.0])
def test_the_error_of_motion_is_that_of_motion_alone(moving: float) -> None:
    """Every second of motion has another error; the rest of the 60 s is standstill without any."""
    made = ARM.record(60.0, rate=125.0, seed=33)
    second = (made.time - made.time[0]).astype(int)
    moves = second < moving
    columns = {
        "actual_qd": made["actual_qd"] * moves[:, None],
        "actual_current": np.where(moves[:, None], made["actual_current"], 1.0),
    }
    errors = np.random.default_rng(2).normal(0.0, 2.0, second.max() + 1)[second] * moves
    result = fitted(powered(replace(made, columns={**made.columns, **columns}), errors))
    assert result.bus.std["motion"] == pytest.approx(2.0, rel=0.35)


def test_a_meter_at_the_joints_corrects_their_conversions() -> None:
    """The bus alone cannot tell a joint that converts more than its constant says from others."""
    made = ARM.record(20.0, rate=100.0, seed=31)
    guess = TORQUE_CONSTANT.copy()
    guess[5] *= 0.9
    fit = PowerFit(ARM.robot)
    fit.accumulate(made)
    std = 0.006 * guess
    stated = np.ones(6, dtype=bool)
    shown = np.array([True, False, False, False, False, True])
    deviation = np.where(shown, 0.002 * TORQUE_CONSTANT, np.inf)
    meter = JointPowerEvidence(
        np.where(shown, TORQUE_CONSTANT, np.nan), np.diag(np.square(1.0 / deviation))
    )
    alone = fit.fit("physical", guess, std, stated=stated)
    metered = fit.fit("physical", guess, std, stated=stated, meter=meter)
    assert alone.back_emf_constant[5] < 0.96 * TORQUE_CONSTANT[5]
    np.testing.assert_allclose(metered.back_emf_constant, TORQUE_CONSTANT, rtol=0.012)
    error = np.abs(metered.back_emf_constant - TORQUE_CONSTANT)[shown]
    assert (error < 3.0 * metered.back_emf_std[shown]).all()


def test_bus_power_corrects_stated_constants_within_their_deviation() -> None:
    made = ARM.record(60.0, rate=250.0, seed=32)
    random = np.random.default_rng(3)
    guess = TORQUE_CONSTANT * random.normal(1.0, 0.006, 6)
    fit = PowerFit(ARM.robot)
    fit.accumulate(made)
    found = fit.fit("physical", guess, 0.006 * guess, stated=np.ones(6, dtype=bool))
    before = np.abs(guess / TORQUE_CONSTANT - 1.0)
    after = np.abs(found.back_emf_constant / TORQUE_CONSTANT - 1.0)
    assert after.max() < 0.01
    assert np.square(after).sum() < 0.5 * np.square(before).sum()
    assert "own_constants" not in found.factors


def test_columns_of_the_power_have_the_coefficients_of_their_names() -> None:
    """Power of known motors, with a torque constant of 1 N m/A that weights the delays."""
    layout = PowerLayout(2)
    time = np.arange(400, dtype=float) * 0.002
    qd = np.column_stack([np.sin(3 * time), np.cos(5 * time)])
    current = np.column_stack([np.cos(7 * time), 0.3 + np.sin(11 * time)])
    speed = np.array([100.0, 50.0]) * qd
    slope = np.vstack([np.zeros(2), np.diff(current, axis=0) / 0.002])
    power = 30 + 0.5 * current[:, 0] ** 2 + 0.1 * (speed * current)[:, 1]
    power = power + 0.2 * np.abs(current[:, 1]) + 0.002 * (current * slope)[:, 0]
    power = power + 0.01 * np.abs(speed).sum(axis=1)
    rows = PowerRows(time, qd, current, power, np.full(400, 7.0))
    columns = power_columns(rows, np.array([100.0, 50.0]), np.ones(2))
    kept = slice(0, layout.drag + 1)
    solution, *_ = np.linalg.lstsq(columns[1:, kept], power[1:], rcond=None)
    found = dict(zip(layout.columns[kept], solution.tolist(), strict=True))
    expected = dict.fromkeys(layout.columns[kept], 0.0)
    expected |= {"standby": 30.0, "R_1": 0.5, "k_2": 0.1, "driver_2": 0.2}
    expected |= {"L_1": 0.002, "drag": 0.01}
    assert found == pytest.approx(expected, abs=1e-8)
    assert len(layout.units) == len(layout.columns) == layout.width
