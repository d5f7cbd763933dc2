# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power models of papers: what they fit, and what they assume."""

from __future__ import annotations

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.identification.power_fit import PowerFit, PowerFitResult
from ur_energy_model.identification.power_structures import (
    added_power_model,
    power_model_names,
)
from ur_energy_model.telemetry.samples import Telemetry

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


def test_the_room_adds_both() -> None:
    assert power_model_names() == ("physical", "ecbot", "catalogue")
    for name in ("ecbot", "catalogue"):
        model = added_power_model(name)
        assert model is not None
        assert model.name == name
