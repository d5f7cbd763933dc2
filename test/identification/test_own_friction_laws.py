# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The example of a user's friction law is identified on an arm that has this friction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.contracts.surface import ur_energy
from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.friction import FrictionLaw
from ur_energy_model.model.friction_files import load_friction_laws
from ur_energy_model.model.friction_terms import ShapeConstant
from ur_energy_model.model.model_file import load_model
from ur_energy_model.telemetry.bag.reader import read_bag

FILE = Path(__file__).resolve().parents[2] / "examples" / "lugre_friction.py"
PARAMETERS = {"coulomb": 0.05, "breakaway": 0.04, "viscous": 4e-4}
SLOW_SPEED = 0.11
"""Truth of the arm, rad/s, between two values of the grid."""


@pytest.fixture
def lugre(package_laws: None) -> FrictionLaw:
    """The law of the example, which only a test of this file has."""
    return load_friction_laws(FILE)[0]


def lugre_arm(law: FrictionLaw) -> ExactArm:
    """An arm whose friction is the law's, with the true Stribeck speed."""
    true = ShapeConstant("rad/s", SLOW_SPEED, SLOW_SPEED, SLOW_SPEED)
    constants = {**law.constants, "slow_speed": true}
    true_law = FrictionLaw("true", "", law.terms, constants)
    return ExactArm(law=true_law, parameters=PARAMETERS, correlation=0.5)


def torque_of(
    values: dict[str, float], speed: np.ndarray, slow_speed: float
) -> np.ndarray:
    """The formula of the example, motor side [N m], for joint speeds [rad/s]."""
    slow = np.exp(-((speed / slow_speed) ** 2))
    level = values["coulomb"] + values["breakaway"] * slow
    return level * np.tanh(speed / 1e-3) + values["viscous"] * 101.0 * speed


@pytest.mark.truth
def test_a_users_law_is_identified_estimated_and_better_than_the_straight_line(
    tmp_path: Path, lugre: FrictionLaw
) -> None:
    arm = lugre_arm(lugre)
    bags = [
        arm.bag(tmp_path, f"bag{k}", seconds=60.0, rate=50.0, seed=k) for k in range(2)
    ]
    model = tmp_path / "model.yaml"
    errors = {}
    found: dict[str, Any] = {}
    for law in ("coulomb_viscous", "lugre"):
        words = ["--friction", law, "--friction-laws", FILE, "--overwrite", "--json"]
        identified = ur_energy(
            "identify", bags[0], "--validate", bags[1], "-o", model, *words
        )
        found = identified.json
        errors[law] = np.array(
            [each["rms"] for each in found["validation"][0]["current"]]
        )
    ratio = errors["lugre"] / errors["coulomb_viscous"]
    assert ratio.max() < 1.0
    assert ratio.mean() < 0.7
    for joint, size in zip(found["joints"], arm.size, strict=True):
        for name, value in PARAMETERS.items():
            error = joint["friction_parameters"][name] - value * size
            assert abs(error) < 3.5 * joint["friction_std_this_session"][name]
        error = joint["friction_shape"]["slow_speed"] - SLOW_SPEED
        assert abs(error) < 3.5 * joint["friction_shape_std"]["slow_speed"]
    # Predicted currents and the estimator's friction energies are those of the formula.
    estimated = ur_energy(
        "estimate", model, bags[1], "--friction-laws", FILE, "--json"
    ).json
    telemetry = read_bag(bags[1])
    speed = telemetry["actual_qd"]
    arm_model = load_model(model)
    motion = (telemetry["actual_q"], speed, telemetry["target_qdd"])
    predicted = arm_model.predict(*motion, std=False)
    bus = arm_model.bus
    power = np.full(len(speed), bus.standby)
    load = arm_model.dynamics().inverse_dynamics(*motion)
    for j, joint in enumerate(arm_model.joints):
        slow_speed = joint.friction.shape["slow_speed"]
        torque = torque_of(dict(joint.friction.parameters), speed[:, j], slow_speed)
        whole = load[:, j] + joint.inertia * motion[2][:, j]
        current = (joint.load_factor * whole / 101.0 + torque) / joint.torque_constant
        fast = np.abs(speed[:, j]) > 0.1  # beyond the travel in which friction reverses
        np.testing.assert_allclose(predicted.current[fast, j], current[fast], atol=0.02)
        motor_speed = 101.0 * speed[:, j]
        power += joint.winding_resistance * current**2
        power += joint.back_emf_constant * motor_speed * current
        power += bus.driver[j] * np.abs(current) + bus.drag * np.abs(motor_speed)
        energy = np.trapezoid(101.0 * torque * speed[:, j], telemetry.time)
        # The friction of the recording's session differs a little from the identified one.
        assert estimated["joints"][j]["friction_energy"] == pytest.approx(
            energy, rel=0.03
        )


@pytest.mark.truth
@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 125.0, 500.0])
def test_intervals_of_a_users_law_cover_the_truth(
    tmp_path: Path, lugre: FrictionLaw, rate: float
) -> None:
    """95 % intervals of parameters and Stribeck speed of 18 joints at every sample rate."""
    arm = lugre_arm(lugre)
    hits = []
    for seed in range(3):
        bag = arm.bag(tmp_path, f"bag{seed}", seconds=60.0, rate=rate, seed=20 + seed)
        result = identify([bag], arm.robot, IdentificationOptions(friction="lugre"))
        for joint, size in zip(result.joints, arm.size, strict=True):
            for name, value in PARAMETERS.items():
                error = joint.friction.parameters[name] - value * size
                hits.append(abs(error) < 1.96 * joint.friction_std[name])
            error = joint.friction.shape["slow_speed"] - SLOW_SPEED
            hits.append(abs(error) < 1.96 * joint.shape_std["slow_speed"])
    assert np.mean(hits) >= 0.9, json.dumps({"rate": rate, "share": float(np.mean(hits))})
