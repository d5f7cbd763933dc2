# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Another arm of a type: between the generic model and what an identified arm shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.arm_at_hand import on_another_arm, with_controller_constants
from ur_energy_model.model.between_arms import (
    LITTLE_MOTION,
    MOTION,
    DriveParameters,
    between,
    drive_parameters,
    drives_of_another_arm,
    friction_of_another_arm,
    motion_error,
    with_drives,
)
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.typing import Array

GENERIC = generic_model("ur5e")
N = GENERIC.dof


@pytest.mark.truth
def test_errors_for_another_arm_are_as_large_as_stated() -> None:
    random = np.random.default_rng(3)
    size = 4
    of_type, apart, identified = (
        root @ root.T
        for root in random.normal(0.0, [[[0.4]], [[0.2]], [[0.1]]], (3, size, size))
    )
    generic = DriveParameters(np.ones(size), of_type + apart)
    scores = []
    for _ in range(2000):
        type_values = random.multivariate_normal(generic.values, of_type)
        arm, other = random.multivariate_normal(type_values, apart, 2)
        shown = DriveParameters(random.multivariate_normal(arm, identified), identified)
        values, covariance = between(generic, shown, of_type)
        error = values - other
        scores.append(error @ np.linalg.solve(covariance, error))
    assert np.mean(scores) == pytest.approx(size, rel=0.08)
    before = np.trace(generic.covariance)
    assert np.trace(covariance) < before


def identified(copper: float, conversion: float, std: float) -> EnergyModel:
    """An arm with the type's constants times factors, identified with relative deviations."""
    n = GENERIC.dof
    joints = tuple(
        replace(
            joint,
            winding_resistance=copper * joint.winding_resistance,
            back_emf_constant=conversion * joint.torque_constant,
            std={**joint.std, "torque_constant": 1e-4 * joint.torque_constant},
            source={**joint.source, "coulomb": "current"},
            current_covariance=1e-8 * joint.current_covariance,
        )
        for joint in GENERIC.joints
    )
    rows = np.zeros((2, 3 * n + 2))
    rows[0, 1 : n + 1] = std * np.array([joint.winding_resistance for joint in joints])
    rows[1, n + 1 : 2 * n + 1] = std * np.array(
        [joint.back_emf_constant for joint in joints]
    )
    bus = replace(
        GENERIC.bus,
        errors=rows,
        torque_errors=np.zeros((0, 0)),
        source="bus_power",
        standby=24.0,
    )
    sessions = SessionSpread(1.0, np.full(n, 0.05))
    return replace(GENERIC, joints=joints, bus=bus, sessions=sessions, provenance={})


def factors(model: EnergyModel) -> tuple[Array, Array]:
    copper = [
        joint.winding_resistance / kind.winding_resistance
        for joint, kind in zip(model.joints, GENERIC.joints, strict=True)
    ]
    conversion = [
        joint.back_emf_constant / joint.torque_constant for joint in model.joints
    ]
    return np.array(copper), np.array(conversion)


def test_what_a_type_has_in_common_is_learnt_from_another_arm() -> None:
    model = on_another_arm(identified(0.6, 0.95, 0.01))
    copper, conversion = factors(model)
    assert copper == pytest.approx(np.full(N, 0.6), abs=0.1)
    assert ((conversion > 0.955) & (conversion < 0.995)).all()
    for joint, kind in zip(model.joints, GENERIC.joints, strict=True):
        narrow = joint.std["winding_resistance"] / joint.winding_resistance
        assert narrow < 0.5 * kind.std["winding_resistance"] / kind.winding_resistance
        # Torque constants are the type's.
        assert joint.torque_constant == pytest.approx(kind.torque_constant)
        assert joint.std["torque_constant"] == pytest.approx(
            kind.std["torque_constant"], rel=1e-5
        )
    assert GENERIC.bus.standby - 2.0 < model.bus.standby < GENERIC.bus.standby


def test_an_arm_that_shows_little_counts_for_little() -> None:
    model = on_another_arm(identified(0.3, 0.7, 20.0))
    copper, conversion = factors(model)
    assert copper == pytest.approx(np.ones(N), abs=0.05)
    assert conversion == pytest.approx(np.ones(N), abs=0.01)


def test_an_arm_that_hardly_moved_counts_for_little() -> None:
    own = identified(0.3, 0.9, 0.01)
    errors = []
    for energy in (3000.0, 30.0, 8.0):
        model = replace(own, provenance={MOTION: {"energy": energy, "seconds": 4.0}})
        errors.append(motion_error(model))
        conversion = factors(on_another_arm(model))[1][0]
        errors.append(1.0 - conversion)
    assert errors[0] < 0.001
    assert errors[4] > LITTLE_MOTION
    assert errors[1] > errors[3] > 3.0 * errors[5]
    assert motion_error(own) == 0.0  # of a model that does not state it


def test_without_bus_power_the_drives_are_the_types() -> None:
    own = identified(0.6, 0.9, 0.01)
    model = replace(own, bus=replace(own.bus, source="prior"))
    assert drives_of_another_arm(model, GENERIC).values == pytest.approx(
        drive_parameters(GENERIC).values
    )


def test_drives_keep_their_covariance() -> None:
    drives = drives_of_another_arm(identified(0.6, 0.95, 0.01), GENERIC)
    again = drive_parameters(with_drives(GENERIC, drives))
    assert again.values == pytest.approx(drives.values)
    assert again.covariance == pytest.approx(drives.covariance, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_friction_lies_between_the_types_and_the_other_arms(factor: float) -> None:
    kind = GENERIC.joints[1]
    values = {name: factor * value for name, value in kind.friction.parameters.items()}
    own = replace(
        kind,
        friction=replace(kind.friction, parameters=values),
        source={**kind.source, "coulomb": "current"},
        current_covariance=1e-8 * kind.current_covariance,
    )
    found = friction_of_another_arm(own, kind, 0.3, 0.05, 150.0)
    speed = np.array([[0.2], [1.0], [1.8]])
    torques = [
        FrictionBank([friction], np.array([101.0])).torque(speed, 0.0 * speed)
        for friction in (kind.friction, own.friction, found)
    ]
    share = (torques[2] - torques[0]) / (torques[1] - torques[0])
    assert ((share > 0.1) & (share < 0.6)).all()


def test_stated_constants_make_another_arms_model_narrow() -> None:
    model = on_another_arm(identified(0.6, 0.95, 0.01))
    gear = np.array([joint.gear_ratio for joint in model.joints])
    torque = np.array([joint.torque_constant for joint in model.joints])
    constants = ControllerConstants(1.1 * gear * torque, 1e-3 * gear * torque)
    known = with_controller_constants(model, constants)
    after = np.array([joint.torque_constant for joint in known.joints])
    assert after == pytest.approx(1.1 * torque, rel=2e-3)
    # The conversion factor stays what it was: power per torque constant.
    assert factors(known)[1] == pytest.approx(factors(model)[1], rel=2e-3)
    for joint, before in zip(known.joints, model.joints, strict=True):
        assert joint.std["back_emf_constant"] < 0.6 * before.std["back_emf_constant"]
