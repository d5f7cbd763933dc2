# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The current model of Clochiatti et al. and EcBot, from data of known constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.s0_models import (
    CatalogueMotors,
    fit_current_model,
    published_series,
)
from ur_energy_model.papers.s2_models import Ecbot, EcbotErrors

STANDBY = 30.0
RESISTANCE = 0.5
BACK_EMF = 9.0
DRIVER = 0.25


def test_errors_of_two_joints() -> None:
    """Eq. 25: sqrt(sum of squares / (n N)); eq. 26: mean of each joint's share of its range."""
    errors = EcbotErrors(2)
    measured = np.array([[0.0, 0.0], [10.0, 2.0]])
    errors.accumulate(measured, measured + np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert errors.rmse == pytest.approx(1.0)
    assert errors.rmse_percent == pytest.approx((10.0 + 50.0) / 2)
    errors.accumulate(measured, measured + 3.0)
    assert errors.rmse == pytest.approx(np.sqrt((4 * 1 + 4 * 9) / 8))
    assert errors.samples == 4


def recording(tmp_path: Path, seed: int) -> Path:
    robot = load_robot("ur3e")
    inertia = np.linspace(0.6, 0.2, robot.dof)
    options: dict[str, Any] = {"noise": 0.3, "coulomb": 2.0, "viscous": 1.5, "seed": seed}
    made = made_up_recording(robot, reflected_inertia=inertia, **options)
    qd = made["actual_qd"]
    current = made["actual_current"]
    parts = RESISTANCE * current**2 + BACK_EMF * qd * current + DRIVER * np.abs(current)
    watts = STANDBY + parts.sum(axis=1)
    volts = np.full(len(made), 48.0)
    columns = {
        "actual_q": made["actual_q"],
        "actual_qd": qd,
        "actual_current": current,
        "actual_robot_voltage": volts,
        "actual_robot_current": np.maximum(watts, 0.0) / volts,
        "actual_current_as_torque": current * 0.1 * robot.gear_ratio,
    }
    return write_bag(tmp_path / str(seed), replace(made, columns=columns))


def test_trains_and_tests_an_arm_with_current_sensors(tmp_path: Path) -> None:
    bags = [recording(tmp_path, seed) for seed in (1, 2)]
    found = Ecbot(load_robot("ur3e"), bags[:1])
    assert found.measured == "current"
    assert found.samples == 4000
    test = found.test(bags[1:])
    assert test.dynamics.samples == 4000
    assert test.dynamics.rmse == pytest.approx(
        0.3 / 10.1, rel=0.5
    )  # noise of the torques, 10.1 N m/A
    assert test.power.r2 > 0.98
    n = len(found.dynamics.viscous)  # coefficients of standby, i^2, w i, |i| and i di/dt
    expected = [STANDBY, *[RESISTANCE] * n, *[BACK_EMF] * n, *[DRIVER] * n, *[0.0] * n]
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-6)
    assert test.power_from_measured.rmse < test.power.rmse
    assert len(test.time) == len(test.model_power) == 4000


def test_finds_the_constants_and_counts_every_sample(tmp_path: Path) -> None:
    arm = ExactArm(current_noise=0.05)
    bags = [
        arm.bag(tmp_path, f"bag_{seed}", seconds=40.0, rate=50.0, seed=seed)
        for seed in (1, 2)
    ]
    model = identify(
        bags[:1], arm.robot, IdentificationOptions(friction="power_flow")
    ).model
    found = fit_current_model(model, bags[0])
    np.testing.assert_allclose(found.torque_constant, TORQUE_CONSTANT, rtol=0.05)
    np.testing.assert_allclose(found.viscous / arm.size, 4e-4, rtol=0.1)
    np.testing.assert_allclose(found.coulomb_direct / arm.size, 0.06, rtol=0.15)
    series = published_series(
        model, bags[1], found, CatalogueMotors(np.full(6, 0.1), 1.0)
    )
    current, own = (ErrorStatistics(6) for _ in range(2))
    current.accumulate(series.measured, series.modelled)
    own.accumulate(series.measured, series.own)
    samples = sum(len(part) for part in recorded_motions(bags[1], 5.0))
    assert current.count.tolist() == [samples] * 6
    # What is left is the noise, which a filter would have taken out.
    noise = 0.05 * arm.size**0.7
    np.testing.assert_allclose(current.rms, noise, rtol=0.1)
    assert (current.largest > 3 * noise).all()
    assert (np.abs(current.mean) < 0.02).all()
    assert (own.r2 > 0.98).all()
    # Eq. 19-22 from the currents of the model: R = (k_t / k_m)^2.
    assert series.electrical is not None
    copper = np.square(found.torque_constant / 0.1 * series.modelled)
    np.testing.assert_allclose(series.electrical - series.mechanical, copper, rtol=1e-9)
