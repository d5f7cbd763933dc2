# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whether intervals hold, of arms of known constants: with every field and with few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.motor_powers import backward_difference
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.controller_constants import CALIBRATION_ERROR
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.model.robots import load_robot

Scores = dict[str, np.ndarray]
SPEED = 0.5  # joint speed at which friction is judged [rad/s]
CURRENTS = ("actual_q", "actual_qd", "actual_current")
FIELDS = {  # fields recorded, their rate [Hz], and number of arms
    "all": ((), 125.0, 4),
    "no target_current": ((), 125.0, 4),
    "neither": (CURRENTS, 50.0, 3),
}
LEAST = {"torque_constant": 0.85, "friction": 0.85, "reflected_inertia": 0.0}
ENOUGH = {"torque_constant": 0.9, "winding_resistance": 0.9, "energy": 0.9, "sum": 0.9}


def some_arm(seed: int) -> ExactArm:
    """An arm from the spread that the priors speak of."""
    random = np.random.default_rng([seed, 5])
    return ExactArm(
        torque_constant=TORQUE_CONSTANT * random.normal(1.0, 0.05, 6),
        resistance_factor=random.uniform(0.5, 1.2),
        driver=random.normal(0.25, 0.05),
        standby=random.uniform(22.0, 34.0),
        current_delay=random.normal(0.0, 1e-3),
        calibration=random.normal(1.0, CALIBRATION_ERROR, 6),
    )


@pytest.fixture(scope="module", params=FIELDS)
def scores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Scores]:
    """Errors over standard deviations [arms, joints or 1] by quantity, of arms with these fields.

    Masses are 1 % and motor inertias 5 % off the robot file where no target_moment shows
    them.
    """
    names, rate, arms = FIELDS[request.param]
    found: dict[str, list[np.ndarray]] = {}
    nominal = load_robot("ur5e")
    for seed in range(arms):
        arm = some_arm(seed)
        folder = tmp_path_factory.mktemp("arm")
        if request.param == "neither":
            random = np.random.default_rng([seed, 6])
            heavier = random.normal(1.0, 0.01)
            robot = replace(
                nominal, mass=heavier * nominal.mass, inertia=heavier * nominal.inertia
            )
            rotor = nominal.rotor_inertia * random.normal(1.0, 0.05, 6)
            arm = replace(arm, robot=replace(robot, rotor_inertia=rotor))
        made = arm.record(40.0, rate=rate, seed=seed)
        left_out = "target_current" if request.param == "no target_current" else ""
        columns = {name: made[name] for name in names or made.columns if name != left_out}
        bag = write_bag(folder / "fit", replace(made, columns=columns))
        model = identify(
            [bag], nominal, IdentificationOptions(friction="power_flow")
        ).model
        truths = {"torque_constant": arm.torque_constant}
        truths["reflected_inertia"] = arm.robot.reflected_inertia
        if not names:
            truths["winding_resistance"] = (
                arm.resistance_factor * arm.robot.winding_resistance
            )
        for name, truth in truths.items():
            pairs = zip(model.joints, truth, strict=True)
            each = [
                (getattr(joint, name) - value) / joint.std[name] for joint, value in pairs
            ]
            found.setdefault(name, []).append(np.array(each))
        speed = SPEED * np.array([[1.0] * 6, [-1.0] * 6])
        truth = np.abs(arm.friction(speed, np.zeros_like(speed))).mean(axis=0)
        value, std = np.array([_friction(joint) for joint in model.joints]).T
        found.setdefault("friction", []).append((value - truth) / std)
        if not names:
            other = arm.record(30.0, rate=rate, seed=seed + 100)
            summary = estimate_energy(model, write_bag(folder / "other", other))
            current = other["actual_current"]
            qd = other["actual_qd"]
            qd = qd - arm.current_delay * backward_difference(other.time, qd)
            copper = arm.resistance_factor * arm.robot.winding_resistance * current**2
            shaft = arm.torque_constant * arm.robot.gear_ratio * qd * current
            energy = np.trapezoid(copper + shaft, other.time, axis=0)
            errors = (summary.electrical - energy) / summary.electrical_std
            total = (summary.electrical - energy).sum() / summary.electrical_total_std
            found.setdefault("energy", []).append(errors)
            found.setdefault("sum", []).append(np.array([total]))
    return request.param, {name: np.array(values) for name, values in found.items()}


def _friction(joint: JointModel) -> tuple[float, float]:
    """Friction at SPEED, both ways taken together, and its standard deviation, motor side [N m]."""
    friction = joint.friction
    ratio = np.array([joint.gear_ratio])
    point = OperatingPoint(np.array([[SPEED], [-SPEED]]), np.zeros((2, 1)), ratio)
    terms = friction.law.regressor(point, dict(friction.shape))[:, 0]
    middle = 0.5 * (terms[0] - terms[1])
    value = float(middle @ friction.values)
    slope = joint.torque_constant * np.append(-value, middle)
    return value, float(np.sqrt(slope @ joint.current_covariance @ slope))


@pytest.mark.truth
def test_intervals_cover_the_truth(scores: tuple[str, Scores]) -> None:
    fields, found = scores
    for quantity, least in (LEAST if fields == "neither" else ENOUGH).items():
        assert (np.abs(found[quantity]) < CONFIDENCE).mean() >= least, quantity
    if fields != "neither":  # nor are they wide for safety's sake
        assert all(
            np.sqrt(np.square(found[quantity]).mean()) > 0.4 for quantity in ENOUGH
        )
    else:
        assert (np.abs(found["reflected_inertia"]) < 3.0).mean() >= 0.85
