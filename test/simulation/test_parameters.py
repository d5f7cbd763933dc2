# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Constants of simulated arms: their calibration and their spread."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.forms import Scope
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_constants import ARM, constants
from ur_energy_model.simulation.arm_options import draw_session, with_drive_set
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.simulation.supply import EnergyBalance
from ur_energy_model.yaml_reader import YamlTree

ROBOT = load_robot("ur5e")


def test_calibration_figures_are_those_published(facts):
    published = yaml.safe_load((facts / "ur_motors.yaml").read_text())[
        "ur5e_friction_calibration"
    ]
    table = constants()["friction_calibration"]
    for direction, sign in (("forward", 1.0), ("backward", -1.0)):
        for joint in range(6):
            rows = published["arm_a"][f"joint_{joint + 1}"]
            currents = [abs(rows[sign * v][1]) for v in table["speed"]]
            assert currents == table[direction][joint].tolist()


def test_seeds_are_arms_of_one_type_with_the_calibrated_friction_on_average():
    table = constants()["friction_calibration"]
    calibrated = np.array(table["forward"]).T * 101 * np.array(table["torque_constant"])
    speed = np.array(table["speed"])[:, None] * np.ones(6)
    arms = [draw_parameters(ROBOT, seed) for seed in range(50)]
    whole = np.array([
        p.friction.torque(speed) + p.flex_spline_coulomb + p.flex_spline_viscous * speed
        for p in arms
    ])  # fmt: skip
    ratio = (whole / calibrated)[:, 1:]  # the first speed has breakaway friction
    assert 0.8 < ratio.min() < ratio.max() < 1.2
    assert ratio.mean(axis=0) == pytest.approx(1.0, rel=0.07)
    constant = np.array([p.torque_constant for p in arms])
    ratio = constant / ROBOT.torque_constant
    assert np.all(np.abs(ratio - 1.0) <= 0.12)
    assert ratio.std() > 0.05
    assert np.array_equal(draw_parameters(ROBOT, 3).torque_constant, constant[3])


def test_the_ur5_of_the_slides() -> None:
    robot = load_robot("ur5")
    typical = draw_parameters(robot, 3)
    assert with_drive_set(typical, robot, "typical") is typical
    own = with_drive_set(typical, robot, "s3")
    assert own.stiffness[[0, 5]].tolist() == [[16e3, 25e3, 29e3], [4.7e3, 6.1e3, 7.1e3]]
    assert own.flex_spline_coulomb.tolist() == [0.4] * 6
    np.testing.assert_allclose(
        own.rotor_inertia / 101**2, [0.404e-4] * 3 + [0.091e-4] * 3
    )
    # Wave generator at 1 rad/s of the joint: Coulomb 0.008 N m and 6.4e-4 N m s/rad of
    # the motor.
    for speed, coulomb in ((np.ones(6), 0.008), (-np.ones(6), 0.007)):
        torque = speed[0] * 101 * (coulomb + 6.4e-4 * 101)
        assert own.friction.torque(speed)[0] == pytest.approx(torque)
    assert own.friction_factor(np.full(6, 20.0)) == pytest.approx(np.ones(6))


OF_THE_SESSION = {
    "friction", "flex_spline_coulomb", "flex_spline_viscous", "load_direct", "load_reverse",
    "standby_power", "standby_heat",
}  # fmt: skip


def test_a_session_changes_standby_and_friction_only() -> None:
    arm = draw_parameters(ROBOT, 3)
    session = draw_session(3, 2, 6)
    assert draw_session(3, 0, 6).applied_to(arm) is arm
    now = session.applied_to(arm)
    for name, value in vars(arm).items():
        if name not in OF_THE_SESSION:
            assert np.array_equal(value, getattr(now, name)), name
    assert now.standby_power == arm.standby_power + session.standby_offset
    before, torque = (p.friction.torque(np.full(6, -2.0), 1.3) for p in (arm, now))
    assert torque == pytest.approx(session.friction_scale * before)
    with pytest.raises(InputError, match="session"):
        draw_session(0, -1, 6)
    cold, rest, warm = (
        EnergyBalance(arm, 0.002, 22.0, warmth).temperature for warmth in range(3)
    )
    assert cold == pytest.approx(22.0)
    assert warm - rest == pytest.approx(rest - cold)
    assert rest - cold == pytest.approx(arm.thermal_resistance * arm.standby_heat)


def test_a_damaged_file_of_constants_is_refused_with_its_line(tmp_path):
    text = config_file("simulation", "arm.yaml").read_text()
    path = tmp_path / "arm.yaml"
    for change, problem in (
        (("source_resistance: 0.175", "source_resistance: -1"), "bus.source_resistance"),
        (("  deadband: ", "  dead_band: "), "did you mean 'deadband'"),
        (("speed: [0.01, 0.5, 1.5, 3.2]", "speed: [0.01, 0.5]"), "2 are needed"),
    ):
        assert change[0] in text
        path.write_text(text.replace(*change))
        with pytest.raises(InputError, match=problem) as error:
            ARM.read(YamlTree.read(path, InputError, "restore the file"), Scope())
        assert "line" in str(error.value)
