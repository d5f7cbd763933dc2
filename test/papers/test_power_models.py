# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power models of papers: what they fit, and what they assume."""

from __future__ import annotations

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.power_fit import PowerFit, PowerFitResult
from ur_energy_model.identification.power_structures import (
    added_power_model,
    power_model_names,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.papers.power_models import SingleParameter
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

ARM = ExactArm(current_noise=0.0)


def fitted(made: Telemetry | None, kind: str) -> PowerFitResult:
    fit = PowerFit(ARM.robot)
    if made is not None:
        fit.accumulate(made)
    return fit.fit(kind, TORQUE_CONSTANT)


def test_catalogue_motors_are_assumed_and_only_standby_is_fitted() -> None:
    """Clochiatti et al. 2024, eq. 23: W = (torque / k_m)^2 + torque * speed / 0.89."""
    made = ARM.record(40.0, seed=21)
    result = fitted(made, "catalogue")
    motor_constant = np.array([0.27426] * 3 + [0.06632] * 3)
    np.testing.assert_allclose(
        result.winding_resistance, (TORQUE_CONSTANT / motor_constant) ** 2
    )
    np.testing.assert_allclose(result.back_emf_constant, TORQUE_CONSTANT / 0.89)
    assert not result.bus.driver.any()
    assert result.bus.kind == result.source == "catalogue"
    assert result.bus.source == "bus_power"  # the standby power and the residual
    assert result.bus.residual > fitted(made, "physical").bus.residual


def test_ecbot_fits_the_motors_where_there_is_bus_power() -> None:
    result = fitted(ARM.record(120.0, seed=22), "ecbot")
    assert result.bus.kind == "ecbot"
    assert result.source == "bus_power"
    assert result.bus.standby == pytest.approx(ARM.standby, abs=1.0)
    assert fitted(None, "ecbot").bus.kind == "physical"


def samples_of_a_single_parameter(
    loss: float, overhead: float, seed: int = 4
) -> tuple[Array, Array, Array]:
    """Torques of the links of a moving arm, its speeds, and the power by the model's equation."""
    made = ARM.record(10.0, seed=seed)
    dynamics = ArmDynamics(ARM.robot)
    motion = (made["target_q"], made["target_qd"], made["target_qdd"])
    torque = dynamics.inverse_dynamics(*motion)
    qd = made["target_qd"]
    power = np.empty(len(made))
    for k in range(len(made)):
        power[k] = torque[k] @ qd[k] + loss * torque[k] @ torque[k] + overhead
    return torque, qd, power


def test_the_single_parameter_is_recovered_and_predicts_another_motion() -> None:
    """With the values that Petrichenko et al. found on a Franka Emika Panda."""
    torque, qd, power = samples_of_a_single_parameter(0.0036, 88.04)
    found = SingleParameter.fitted(torque, qd, power)
    assert found.loss == pytest.approx(0.0036)
    assert found.overhead == pytest.approx(88.04)
    torque, qd, power = samples_of_a_single_parameter(0.0036, 88.04, seed=5)
    np.testing.assert_allclose(found.power(torque, qd), power, rtol=1e-9)


def test_the_single_parameter_needs_samples_and_ignores_those_that_are_not_finite() -> (
    None
):
    torque, qd, power = samples_of_a_single_parameter(0.01, 30.0)
    torque[::7, 2] = np.nan
    power[1::7] = np.inf
    found = SingleParameter.fitted(torque, qd, power)
    assert found == pytest.approx((0.01, 30.0))
    with pytest.raises(IdentificationError):
        SingleParameter.fitted(torque, qd, np.full_like(power, np.nan))


def test_friction_that_the_single_parameter_lacks_does_not_make_it_negative() -> None:
    torque, qd, power = samples_of_a_single_parameter(0.0, 30.0)
    squares = np.square(torque).sum(axis=1)
    found = SingleParameter.fitted(torque, qd, power - 10.0 * squares / squares.max())
    assert found.loss == 0.0
    assert 20.0 < found.overhead < 30.0


def test_one_pose_shows_the_sum_of_overhead_and_loss() -> None:
    torque, qd, power = samples_of_a_single_parameter(0.01, 30.0)
    pose = np.tile(torque[0], (100, 1))
    still = np.zeros_like(pose)
    watts = np.full(100, power[0] - torque[0] @ qd[0])
    found = SingleParameter.fitted(pose, still, watts)
    np.testing.assert_allclose(found.power(pose, still), watts)


def test_the_room_adds_both() -> None:
    assert power_model_names() == ("physical", "ecbot", "catalogue")
    for name in ("ecbot", "catalogue"):
        model = added_power_model(name)
        assert model is not None
        assert model.name == name
