# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""From bags to a model: an arm of known constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.supply import BusCapacitor
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot


def test_constants_currents_power_and_energies_of_a_known_arm(tmp_path: Path) -> None:
    arm = ExactArm()
    bag = arm.bag(tmp_path, "fit", seed=3)
    held_out = arm.bag(tmp_path, "held_out", seed=4)
    options = IdentificationOptions(friction="power_flow")
    result = identify([bag], "ur5e", options, validate=[held_out])
    for j, joint in enumerate(result.model.joints):
        # Its own inertia is fitted beside the torque constant, which a wrist without load
        # shares.
        assert joint.torque_constant == pytest.approx(TORQUE_CONSTANT[j], rel=0.03)
        assert joint.reflected_inertia == pytest.approx(
            arm.robot.reflected_inertia[j], rel=0.02
        )
        for name, value in arm.parameters.items():
            assert joint.friction.parameters[name] == pytest.approx(
                value * arm.size[j], rel=0.05
            )
        assert (
            abs(joint.torque_constant - TORQUE_CONSTANT[j])
            < 3 * joint.std["torque_constant"]
        )
    metrics = result.validation[0]
    assert metrics.current is not None
    assert all(
        entry["r2"] is not None and entry["r2"] > 0.995 for entry in metrics.current
    )
    assert metrics.power is not None
    # the noise and nothing else
    assert metrics.power["rmse"] == pytest.approx(1.5, rel=0.1)
    assert abs(metrics.power["energy_error_percent"] or 0.0) < 0.3
    telemetry = arm.record(seed=4)
    summary = estimate_energy(result.model, held_out)
    current = telemetry["actual_current"]
    speed = arm.robot.gear_ratio * telemetry["actual_qd"]
    shaft = np.trapezoid(TORQUE_CONSTANT * speed * current, telemetry.time, axis=0)
    resistance = arm.resistance_factor * arm.robot.winding_resistance
    copper = np.trapezoid(resistance * current**2, telemetry.time, axis=0)
    np.testing.assert_allclose(summary.mechanical, shaft, rtol=0.03)
    np.testing.assert_allclose(
        summary.electrical.sum(), (shaft + copper).sum(), rtol=0.01
    )
    assert summary.bus is not None
    assert summary.model == pytest.approx(summary.bus, rel=0.01)


def test_stated_constants_show_what_the_links_weigh(tmp_path: Path) -> None:
    """Links 3 % heavier than published: the controller's torque constants tell it from k_t."""
    heavy = load_robot("ur5e")
    heavy = replace(heavy, mass=1.03 * heavy.mass, inertia=1.03 * heavy.inertia)
    calibration = 1.0 + 0.006 * np.array([1.0, -1.0, 0.5, -0.5, 0.2, -0.2])
    arm = ExactArm(calibration=calibration)
    targets = arm.record(seed=21)
    real = replace(arm, robot=heavy).record(seed=21)
    measured = ("actual_current", "actual_robot_current", "actual_robot_voltage")
    columns = {**targets.columns, **{name: real[name] for name in measured}}
    bag = write_bag(tmp_path / "heavy", replace(targets, columns=columns))
    model = identify([bag], "ur5e", IdentificationOptions(friction="power_flow")).model
    save_model(model, tmp_path / "model.yaml")
    for each in (model, load_model(tmp_path / "model.yaml")):
        constants = each.controller_constants
        assert constants is not None
        assert constants.known.all()
        stated = constants.torque_per_ampere / arm.robot.gear_ratio
        np.testing.assert_allclose(stated, TORQUE_CONSTANT * calibration, rtol=0.003)
        for j, joint in enumerate(each.joints):
            assert joint.source["torque_constant"] == "controller"
            assert joint.torque_constant == pytest.approx(stated[j], rel=1e-6)
            error = abs(joint.torque_constant - TORQUE_CONSTANT[j])
            assert error < 3.0 * joint.std["torque_constant"]
            assert joint.std["torque_constant"] < 0.02 * joint.torque_constant
        factors = [joint.load_factor for joint in each.joints]
        np.testing.assert_allclose(factors[1:3], calibration[1:3] * 1.03, atol=0.012)
        assert 1.01 < np.mean(factors) < 1.05


def test_a_joint_that_does_not_move_keeps_the_robot_file(tmp_path: Path) -> None:
    arm = ExactArm()
    bag = arm.bag(tmp_path, seed=6, still=(4,))
    result = identify([bag], "ur5e", IdentificationOptions(friction="power_flow"))
    joint = result.model.joints[4]
    assert any("wrist_2_joint" in line and "inertia" in line for line in result.warnings)
    assert joint.source["torque_constant"] != "current"
    assert joint.torque_constant == pytest.approx(arm.robot.torque_constant[4], rel=0.1)
    assert joint.std["torque_constant"] > 0.03 * joint.torque_constant
    assert "moved for less than" in joint.friction_reason
    assert joint.source["reflected_inertia"] == "prior"
    for key in ("torque", "current", "current_all"):
        assert [row["r2"] is None for row in result.model.fit[0][key]] == [
            j == 4 for j in range(6)
        ]


@pytest.mark.truth
def test_finds_what_the_bus_keeps_of_braking_energy(tmp_path: Path) -> None:
    arm = ExactArm(current_noise=0.0, standby=16.0)
    capacity = 4.0
    recording = arm.record(30.0, rate=250.0, seed=30)
    demand = arm.demand(recording["actual_qd"], recording["actual_current"])
    assert demand.min() < -20.0
    power = BusCapacitor(capacity)(bridged_steps(recording.time), demand)
    power += arm.power_noise * np.random.default_rng(1).standard_normal(len(power))
    current = power / recording["actual_robot_voltage"]
    columns = {**recording.columns, "actual_robot_current": current}
    bag = write_bag(tmp_path / "braking", replace(recording, columns=columns))
    model = identify([bag], arm.robot, IdentificationOptions(friction="power_flow")).model
    assert model.bus.capacitor_energy == pytest.approx(capacity, rel=0.3)
