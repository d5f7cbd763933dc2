# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Payload from currents, and torque constants from a known payload, against known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification import conftest
from test.identification.conftest import (
    filtered_motions,
    made_up_recording,
    smooth_motion,
)
from test.identification.exact_arm import write_bag
from test.truth import first_fast
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.doubts import payload_doubts
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.payload import identify_payload, with_torque_constants
from ur_energy_model.identification.payload_fit import (
    LINK_CENTER_ERROR,
    LINK_EXCESS,
    LINK_EXCESS_ERROR,
    LINK_MASS_ERROR,
    REPEATABLE,
    PayloadEstimate,
    estimate_payload,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.report.verdict import judge
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion

UR5E = load_robot("ur5e")
UPRIGHT = np.array([0.0, 0.0, -9.82])
EMPTY = Payload()
LOAD = Payload(2.5, np.array([0.03, 0.1, 0.05]), 0.003 * np.eye(3))
COULOMB = 4.0
VISCOUS = 3.0


def true_model(gains: Any = 1.0, std: Any = 0.005) -> EnergyModel:
    """Model of the made-up arm; `gains` make its torque constants (and friction) wrong.

    `std` is relative to the torque constants.
    """
    joints = []
    for j, gain in enumerate(np.broadcast_to(gains, 6).tolist()):
        ratio = UR5E.gear_ratio[j]
        constant = 0.1 * gain
        friction = {
            "coulomb": gain * COULOMB / ratio,
            "viscous": gain * VISCOUS / ratio**2,
        }
        joints.append(
            JointModel(
                name=UR5E.joint_names[j],
                gear_ratio=ratio,
                reflected_inertia=UR5E.reflected_inertia[j],
                torque_constant=constant,
                winding_resistance=0.3,
                back_emf_constant=0.1,
                friction=Friction(LAWS["coulomb_viscous"], friction),
                std={"torque_constant": float(np.broadcast_to(std, 6)[j]) * constant},
                source={"torque_constant": "current"},
            )
        )
    bus = BusModel("physical", 30.0, np.zeros(6), np.zeros(6))
    return EnergyModel("ur5e", Setup(UPRIGHT), "given", tuple(joints), bus)


def made(
    robot: RobotDescription = UR5E, load: Payload = LOAD, **options: Any
) -> Telemetry:
    """No payload is set in the controller; the arm carries this one."""
    values = {"noise": 0.5, "coulomb": COULOMB, "viscous": VISCOUS, **options}
    return made_up_recording(
        robot, setup=Setup(UPRIGHT), carried=Setup(UPRIGHT, load), **values
    )


def identified(
    model: EnergyModel, telemetry: Telemetry, **options: Any
) -> PayloadEstimate:
    period = float(telemetry.time[1] - telemetry.time[0])
    cutoff = min(6.0, 0.25 / period)
    stretches = list(filtered_motions([telemetry], 6, cutoff, period))
    return estimate_payload(
        model, UR5E, UPRIGHT, stretches, ParallelFilter(cutoff), **options
    )


@pytest.mark.parametrize(("seconds", "rate"), [(40.0, 100.0), (6.0, 10.0)])
def test_identifies_a_payload_the_controller_does_not_have(
    seconds: float, rate: float
) -> None:
    """Joints count by the time they move, not by samples: at 10 Hz these are 60 in all."""
    found = identified(true_model(), made(seconds=seconds, rate=rate))
    assert found.shown_mass == pytest.approx(2.5, rel=0.4 / seconds**0.7)
    assert found.interval[0] < 2.5 < found.interval[1]
    assert np.isfinite(found.torque_rms).all()  # no joint is left out
    if seconds > 10:
        assert np.allclose(found.payload.center_of_mass, LOAD.center_of_mass, atol=3e-3)


def test_known_payload_and_empty_arm_together_calibrate_the_drives() -> None:
    """Links heavier than published and wrists found badly: other payloads come out right."""
    real = replace(UR5E, mass=UR5E.mass * 1.04)
    wrong = np.array([1.0, 1.0, 1.0, 1.06, 0.94, 1.08]) / 1.04
    model = true_model(wrong, STATED)
    empty = made(real, EMPTY)
    tare = identified(model, empty, known_mass=0.0)
    known = identified(model, made(real), known_mass=2.5, calibration=tare.calibration)
    assert known.payload.mass == 2.5
    assert np.allclose(known.torque_constants, 0.1, rtol=0.025)
    calibrated = with_torque_constants(model, known)
    for joint, constant in zip(calibrated.joints, known.torque_constants, strict=True):
        scale = constant / 0.1  # friction was identified in amperes
        assert joint.friction.parameters["coulomb"] == pytest.approx(
            scale * COULOMB / 101
        )
        assert joint.source["torque_constant"] == "known_payload"
    light = Payload(1.2, np.array([-0.05, 0.0, 0.08]), 0.001 * np.eye(3))
    found = identified(calibrated, made(real, light, seed=7))
    assert found.shown_mass == pytest.approx(1.2, rel=0.015)
    assert found.interval[0] < 1.2 < found.interval[1]
    assert found.mass_std < 0.02
    assert abs(identified(calibrated, empty).shown_mass) < 0.02


@pytest.mark.truth
@pytest.mark.parametrize(
    ("load", "drift", "slowness"),
    [(EMPTY, 0.0, 1.0), (LOAD, 0.3, 15.0)],
    ids=["empty", "2.5 kg"],
)
def test_intervals_cover_the_truth(
    load: Payload, drift: float, slowness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arms that differ from their files as the priors say: links in common and one by one, torque
    constants (found on those links, without a payload; badly at the wrists), friction. 95
    % intervals hold the mass in nine of ten and more, and are not wide for safety's sake.
    That holds too where friction falls while the arm warms up, on a motion so slow that
    each joint passes a pose once, where falling friction looks like a weight.
    """

    def slowed(
        robot: RobotDescription, time: np.ndarray, seed: int, still: tuple[int, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, qd, qdd = smooth_motion(robot, time / slowness, seed, still)
        return q, qd / slowness, qdd / slowness**2

    monkeypatch.setattr(conftest, "smooth_motion", slowed)
    errors = np.array([_error_over_std(load, seed, drift, slowed) for seed in range(12)])
    assert np.mean(np.abs(errors) < 1.96) >= 0.9
    assert 0.4 < np.sqrt(np.mean(errors**2)) < 1.2


STATED = np.array([0.05, 0.02, 0.02, 0.05, 0.07, 0.07])
"""What a model states for its torque constants, as of a UR10e from a minute of excitation."""


def _error_over_std(load: Payload, seed: int, drift: float, motion: Any) -> float:
    random = np.random.default_rng(seed)
    common = 1 + LINK_EXCESS + LINK_EXCESS_ERROR * random.standard_normal()
    real = replace(
        UR5E,
        mass=UR5E.mass * (common + LINK_MASS_ERROR * random.standard_normal(6)),
        center_of_mass=UR5E.center_of_mass
        + LINK_CENTER_ERROR * random.standard_normal((6, 3)),
    )
    telemetry = made(real, load, noise=1.0, seconds=16.0, rate=60.0, seed=seed)
    q, qd, qdd = motion(UR5E, telemetry.time, seed)
    bare, true = (
        ArmDynamics(robot, Setup(UPRIGHT)).inverse_dynamics(q, qd, qdd)
        + UR5E.reflected_inertia * qdd
        for robot in (UR5E, real)
    )
    found_on_links = (bare * bare).sum(axis=0) / (bare * true).sum(axis=0)
    badly = np.where(STATED > 0.03, STATED, REPEATABLE)
    gains = found_on_links * (1 + badly * random.standard_normal(6))
    sticky = 4.0 * 0.2 * random.standard_normal(6)
    falling = drift * (1 + 0.3 * random.standard_normal(6))

    t = telemetry.time
    qd = telemetry["actual_qd"]
    warm = 1 - np.exp(-3 * (t - t[0]) / (t[-1] - t[0]))[:, None]
    change = sticky - falling * warm * COULOMB
    extra = change * np.tanh(qd / 1e-3) - falling * warm * VISCOUS * qd
    current = telemetry["actual_current"] + extra / (0.1 * UR5E.gear_ratio)
    worked = replace(telemetry, columns={**telemetry.columns, "actual_current": current})
    found = identified(true_model(gains, STATED), worked)
    return (found.shown_mass - load.mass) / found.mass_std


@pytest.mark.truth
def test_a_simulated_arm_with_compliant_gears_and_friction_of_its_own(
    tmp_path: Path,
) -> None:
    """Identified on one motion, payload found on another; no payload is set in the controller."""
    robot = replace(UR5E, rate=125.0)

    def recorded(motion: str, mass: float, seconds: float) -> Path:
        carried = Payload(mass, np.array([0.02, 0.04, 0.06]), 0.002 * mass * np.eye(3))
        arm = SimulatedArm(
            robot, motion=named_motion(motion, robot), seed=3, carried=carried
        )
        return write_bag(tmp_path / f"{motion}_{mass:g}kg", record_arm(arm, seconds))

    options = IdentificationOptions(friction="power_load")
    model = identify([recorded("trajectory_a", 0.0, 15.0)], robot, options).model
    for mass in (0.0, 2.0):
        found = identify_payload(model, recorded("trajectory_b", mass, 10.0), robot=robot)
        expected = mass * (1 + LINK_EXCESS)  # the links weigh what is published
        assert found.shown_mass == pytest.approx(expected, abs=0.03 + 0.02 * mass)
        assert abs(found.shown_mass - mass) < 2 * found.mass_std < 0.12 + 0.07 * mass


def test_friction_of_a_warm_arm_in_a_recording_without_temperatures() -> None:
    law = LAWS["temperature_linear"]
    model = true_model()
    warm = {"viscous_temperature": 0.0}
    joints = (
        replace(joint, friction=Friction(law, {**joint.friction.parameters, **warm}))
        for joint in model.joints
    )
    assert set(law.parameters) == {"viscous", "coulomb", *warm}
    telemetry = made(seconds=20.0)
    plain = identified(model, telemetry).shown_mass
    found = identified(replace(model, joints=tuple(joints)), telemetry)
    assert found.shown_mass == pytest.approx(plain)


@pytest.mark.parametrize("moving", [0, 1, 3, 5])
def test_a_single_joint_shows_the_payload_within_the_interval_or_is_refused(
    moving: int,
) -> None:
    """The motor inertia is another one than the model's, as far as those of currents differ."""
    random = np.random.default_rng(moving)
    still = tuple(j for j in range(6) if j != moving)
    inertia = UR5E.reflected_inertia * (1 + 0.18 * random.standard_normal(6))
    telemetry = made(seconds=20.0, still=still, reflected_inertia=inertia)
    gains = 1 + np.where(STATED > 0.03, STATED, REPEATABLE) * random.standard_normal(6)
    if moving == 1:
        found = identified(true_model(gains, STATED), telemetry)
        assert found.interval[0] < 2.5 < found.interval[1]
    else:
        with pytest.raises(IdentificationError):
            identified(true_model(gains, STATED), telemetry)


@pytest.mark.parametrize(
    ("arm", "wrong", "set_mass", "count"),
    first_fast(
        [
            ("ur5e", 0, 1.5, 3),
            ("ur10e", 0, 2.5, 1),
            ("ur10e", None, 0.0, 3),
            ("ur3e", 1, 0.0, 3),
        ],
    ),
)
def test_recordings_of_one_arm_with_a_payload_set_wrongly(
    arm: str, wrong: int | None, set_mass: float, count: int, tmp_path: Path
) -> None:
    """Torque constants are common, so the other recordings show it; links are not as published."""
    robot = load_robot(arm)
    random = np.random.default_rng(len(arm))
    heavier = 1 + LINK_EXCESS + LINK_EXCESS_ERROR * random.standard_normal()
    real = replace(robot, mass=robot.mass * heavier)
    constant = robot.torque_constant * (1 + 0.1 * random.standard_normal())
    constant = constant * (1 + 0.03 * random.standard_normal(6))
    carried = [0.0, 1.2, 0.6][:count]
    bags = []
    for k, mass in enumerate(carried):
        told, load = (
            Setup(
                UPRIGHT,
                Payload(each, np.array([0.02, 0.05, 0.06]), 0.002 * each * np.eye(3)),
            )
            for each in (set_mass if k == wrong else mass, mass)
        )
        options: dict[str, Any] = {"seconds": 20.0, "rate": 60.0, "seed": k}
        size = float(robot.max_torque[3]) * (1 + 0.1 * random.standard_normal())
        made = made_up_recording(robot, setup=told, **options)
        drives = made_up_recording(
            real,
            setup=load,
            noise=0.3,
            coulomb=0.04 * size,
            viscous=0.03 * size,
            **options,
        )
        current = 0.1 * drives["actual_current"] / constant
        columns = {**made.columns, "actual_current": current}
        bags.append(write_bag(tmp_path / str(k), replace(made, columns=columns)))
    found = identify(bags, robot, IdentificationOptions(friction="coulomb_viscous"))
    scores = [
        (each.mass - mass) / each.std
        for each, mass in zip(found.payload_checks, carried, strict=True)
    ]
    assert len(scores) == count
    assert np.abs(scores).max() < 2.5
    errors = [
        (joint.torque_constant - true) / joint.std["torque_constant"]
        for joint, true in zip(found.model.joints, constant, strict=True)
    ]
    assert np.abs(errors).max() < 2.5
    doubts = payload_doubts(found.model)
    assert len(doubts) == (wrong is not None)
    assert set(doubts) <= set(found.warnings)
    if wrong is not None:
        assert doubts[0].startswith(str(bags[wrong]))
        assert judge([], robot.joint_names, motions=set(), doubts=doubts).grade != "good"
