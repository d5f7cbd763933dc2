"""Payload from currents, and torque constants from a known payload, against known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from test.identification.filtering import filtered_motions
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.payload import PayloadFit, with_torque_constants
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry

Make = Callable[..., Telemetry]
UPRIGHT = np.array([0.0, 0.0, -9.82])
LOAD = Payload(2.5, np.array([0.03, 0.1, 0.05]), 0.003 * np.eye(3))
COULOMB, VISCOUS = 4.0, 3.0


def true_model(robot: RobotDescription, gains: np.ndarray | None = None) -> EnergyModel:
    """Model of the made-up arm; `gains` make its torque constants (and friction) wrong."""
    gains = np.ones(robot.dof) if gains is None else gains
    law = LAWS["coulomb_viscous"]
    joints = tuple(
        JointModel(
            name=name,
            gear_ratio=ratio,
            reflected_inertia=inertia,
            torque_constant=0.1 * gain,
            winding_resistance=0.3,
            back_emf_constant=0.1,
            friction=Friction(
                law,
                {
                    "coulomb": gain * COULOMB / ratio,
                    "viscous": gain * VISCOUS / ratio**2,
                },
            ),
            std={"torque_constant": 0.0005},
        )
        for name, ratio, inertia, gain in zip(
            robot.joint_names, robot.gear_ratio, robot.reflected_inertia, gains, strict=True
        )
    )
    bus = BusModel("physical", 30.0, np.zeros(robot.dof), np.zeros(robot.dof))
    return EnergyModel(robot.name, Setup(UPRIGHT), "given", joints, bus)


def identified(robot, model, made, **options):
    stretches = list(filtered_motions([made], robot.dof, 20.0, 0.01))
    return PayloadFit(model, robot, UPRIGHT, **options).estimate(stretches)


def loaded(recording: Make, robot: RobotDescription, **options) -> Telemetry:
    """The controller was told nothing; the arm carries LOAD."""
    values = {"noise": 0.5, "coulomb": COULOMB, "viscous": VISCOUS, **options}
    return recording(robot, setup=Setup(UPRIGHT), carried=Setup(UPRIGHT, LOAD), **values)


@pytest.mark.parametrize("name", ["ur5e", "ur10e"])
def test_identifies_a_payload_the_controller_does_not_know(recording: Make, name: str) -> None:
    robot = load_robot(name)
    found = identified(robot, true_model(robot), loaded(recording, robot))
    assert found.payload.mass == pytest.approx(2.5, rel=0.01)
    assert abs(found.payload.mass - 2.5) < 3 * found.mass_std
    assert np.allclose(found.payload.center_of_mass, LOAD.center_of_mass, atol=3e-3)
    assert (found.torque_rms < 0.7).all()


@pytest.mark.parametrize("rate", [10.0, 50.0, 500.0])
def test_a_few_seconds_are_enough_at_any_rate(recording: Make, rate: float) -> None:
    """Joints count by the time they move, not by samples: at 10 Hz these are 60 in all."""
    robot = load_robot("ur5e")
    cutoff = min(6.0, 0.25 * rate)
    made = loaded(recording, robot, seconds=6, rate=rate)
    stretches = list(filtered_motions([made], robot.dof, cutoff, 1 / rate))
    fit = PayloadFit(true_model(robot), robot, UPRIGHT)
    found = fit.estimate(stretches, ParallelFilter(cutoff))
    assert np.isfinite(found.torque_rms).all()  # no joint is left out
    assert found.shown_mass == pytest.approx(2.5, rel=0.03)
    assert found.interval[0] < 2.5 < found.interval[1]


def test_identifies_a_payload_the_controller_does_know(recording: Make) -> None:
    robot = load_robot("ur5e")
    made = recording(robot, setup=Setup(UPRIGHT, LOAD), noise=0.5, coulomb=COULOMB, viscous=VISCOUS)
    assert identified(robot, true_model(robot), made).payload.mass == pytest.approx(2.5, rel=0.01)


def test_an_empty_flange_has_no_payload(recording: Make) -> None:
    robot = load_robot("ur5e")
    made = recording(robot, noise=0.5, coulomb=COULOMB, viscous=VISCOUS)
    found = identified(robot, true_model(robot), made)
    assert found.payload.mass < max(0.02, 3 * found.mass_std)


def test_a_negative_mass_is_no_payload(recording: Make) -> None:
    """A flange lighter than the published one: shown as it is, reported as none, with its ±."""
    robot = load_robot("ur5e")
    lighter = replace(robot, mass=robot.mass - np.array([0, 0, 0, 0, 0, 0.2]))
    made = recording(lighter, setup=Setup(UPRIGHT), noise=0.5, coulomb=COULOMB, viscous=VISCOUS)
    found = identified(robot, true_model(robot), made)
    assert found.shown_mass == pytest.approx(-0.2, abs=0.02)
    assert found.payload.mass == 0.0
    assert 0 < found.mass_std < 0.1
    assert np.isnan(found.center_std).all()


def test_a_recording_of_the_empty_arm_corrects_flange_and_links(recording: Make) -> None:
    """Torque constants found on links 5 % heavier than published, and 0.3 kg left on the flange."""
    robot = load_robot("ur5e")
    real = replace(robot, mass=robot.mass * 1.05 + np.array([0, 0, 0, 0, 0, 0.3]))
    values = {"setup": Setup(UPRIGHT), "noise": 0.5, "coulomb": COULOMB, "viscous": VISCOUS}
    model = true_model(robot, np.full(6, 1 / 1.05))
    tare = identified(robot, model, recording(real, carried=Setup(UPRIGHT), **values), empty=True)
    made = recording(real, carried=Setup(UPRIGHT, LOAD), **values)
    assert identified(robot, model, made).shown_mass > 2.6
    full = identified(robot, model, made, calibration=tare.calibration)
    assert full.shown_mass == pytest.approx(2.5 / 1.05, rel=0.01)
    assert full.interval[0] < 2.5 < full.interval[1]


def test_known_payload_and_empty_arm_together_calibrate_the_drives(recording: Make) -> None:
    """Links heavier than published and wrists found badly: other payloads come out right."""
    robot = load_robot("ur5e")
    real = replace(robot, mass=robot.mass * 1.04)
    wrong = np.array([1.0, 1.0, 1.0, 1.06, 0.94, 1.08]) / 1.04
    exact = true_model(robot, wrong)
    uncertain = tuple(
        replace(j, std={"torque_constant": s * j.torque_constant})
        for j, s in zip(exact.joints, (0.05, 0.02, 0.02, 0.06, 0.07, 0.07), strict=True)
    )
    model = replace(exact, joints=uncertain)
    values = {"setup": Setup(UPRIGHT), "noise": 0.5, "coulomb": COULOMB, "viscous": VISCOUS}
    empty = recording(real, carried=Setup(UPRIGHT), **values)
    full = recording(real, carried=Setup(UPRIGHT, LOAD), **values)
    tare = identified(robot, model, empty, empty=True)
    known = identified(robot, model, full, known_mass=2.5, calibration=tare.calibration)
    assert np.allclose(known.torque_constants, 0.1, rtol=0.025)
    calibrated = with_torque_constants(model, known)
    light = Payload(1.2, np.array([-0.05, 0.0, 0.08]), 0.001 * np.eye(3))
    other = recording(real, carried=Setup(UPRIGHT, light), **values | {"seed": 7})
    found = identified(robot, calibrated, other)
    assert found.shown_mass == pytest.approx(1.2, rel=0.015)
    assert found.interval[0] < 1.2 < found.interval[1]
    assert found.mass_std < 0.02
    nothing = identified(robot, calibrated, empty)
    assert abs(nothing.shown_mass) < 0.02


def test_a_known_payload_corrects_torque_constants(recording: Make) -> None:
    robot = load_robot("ur5e")
    gains = np.array([1.04, 1.04, 1.04, 1.1, 1.0, 1.0])
    exact = true_model(robot, gains)
    model = replace(
        exact, joints=tuple(replace(j, std={"torque_constant": 0.008}) for j in exact.joints)
    )
    real = replace(robot, mass=robot.mass / 1.04)
    made = loaded(recording, real, seconds=60)
    found = identified(robot, model, made, known_mass=2.5)
    assert found.payload.mass == 2.5
    assert np.allclose(found.torque_constants[:4], 0.1, rtol=0.02)
    calibrated = with_torque_constants(model, found)
    assert calibrated.joints[3].friction.parameters["coulomb"] == pytest.approx(
        COULOMB / 101, rel=0.03
    )
    assert calibrated.joints[3].source["torque_constant"] == "known_payload"
    assert identified(robot, calibrated, made).payload.mass == pytest.approx(2.5, rel=0.01)


@pytest.mark.parametrize("mass", [0.0, -1.0, float("nan"), 1e6])
def test_refuses_an_impossible_known_mass(mass: float) -> None:
    robot = load_robot("ur5e")
    with pytest.raises(InputError, match="known-payload"):
        PayloadFit(true_model(robot), robot, UPRIGHT, known_mass=mass)


def test_refuses_an_arm_at_standstill(recording: Make) -> None:
    robot = load_robot("ur5e")
    still = recording(robot, noise=0.1, still=(0, 1, 2, 3, 4, 5))
    with pytest.raises(IdentificationError, match="no joint moves"):
        identified(robot, true_model(robot), still)


def test_a_wrong_model_shows_in_the_residual(recording: Make) -> None:
    robot = load_robot("ur5e")
    model = true_model(robot)
    sticky = tuple(
        replace(
            joint, friction=replace(joint.friction, parameters={"coulomb": 0.2, "viscous": 0.0})
        )
        for joint in model.joints
    )
    made = loaded(recording, robot)
    right = identified(robot, model, made)
    wrong = identified(robot, replace(model, joints=sticky), made)
    assert (wrong.torque_rms > 2 * right.torque_rms).all()
