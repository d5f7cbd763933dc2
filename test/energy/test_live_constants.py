# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live estimator takes the torque constants of the arm at hand from its stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.energy.known_arm import packets
from ur_energy_model.energy.arm_fingerprint import LiveConstants
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator, LiveOptions
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC, generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = replace(load_robot("ur5e"), rate=125.0)
SECONDS = 10.0


@pytest.fixture(scope="module")
def arm() -> SimulatedArm:
    return SimulatedArm(ROBOT, motion=named_motion("pick_and_place", ROBOT), seed=4411)


@pytest.fixture(scope="module")
def telemetry(arm: SimulatedArm) -> Telemetry:
    return record_arm(arm, SECONDS, LIVE_FIELDS)


def stated(arm: SimulatedArm) -> ControllerConstants:
    constant = arm.parameters.stated_current_to_torque
    return ControllerConstants(constant, 0.002 * constant)


def of_arm(constants: ControllerConstants) -> EnergyModel:
    """A model of the arm with these constants, which is not generic."""
    model = generic_model(ROBOT)
    provenance = {
        name: value for name, value in model.provenance.items() if value != GENERIC
    }
    return replace(model, controller_constants=constants, provenance=provenance)


@pytest.mark.truth
def test_a_generic_model_becomes_sharp_while_its_counters_go_on(
    arm: SimulatedArm, telemetry: Telemetry
) -> None:
    model = generic_model(ROBOT)
    estimator = LiveEstimator(model, ROBOT)
    energies = []
    deviations = []
    for batch in packets(telemetry, 10):
        estimator.update(batch)
        snapshot = estimator.snapshot()
        if snapshot is None:
            continue
        energies.append(float(snapshot.lifetime.net[snapshot.channels.arm["total"]]))
        joints = estimator.calculator.model.joints
        deviations.append(
            [each.std["torque_constant"] / each.torque_constant for each in joints]
        )
    assert np.diff(energies).min() >= 0.0
    bus = np.trapezoid(np.asarray(telemetry.bus_power), telemetry.time)
    assert energies[-1] == pytest.approx(bus, rel=1e-6)
    assert estimator.samples == len(telemetry)
    loaded = slice(1, 4)
    first, last = np.array(deviations)[[0, -1]]
    assert first[loaded].min() > 0.05
    assert last[loaded].max() < 0.012
    changes = np.abs(np.diff(deviations, axis=0)).max(axis=1)
    assert 1 <= np.count_nonzero(changes) <= 4  # not with each packet
    # From the first seconds on.
    early = np.array(deviations)[round(0.45 * len(deviations))]
    assert early[loaded].max() < 0.02
    found = estimator.calculator.model.joints
    truth = arm.parameters.stated_current_to_torque
    constants = np.array([each.torque_constant * each.gear_ratio for each in found])
    assert np.abs(constants[loaded] / truth[loaded] - 1.0).max() < 0.01
    assert estimator.arm_warning is None


def test_the_model_of_another_arm_is_named_within_seconds(
    arm: SimulatedArm, telemetry: Telemetry
) -> None:
    own = stated(arm)
    other = replace(
        own, torque_per_ampere=own.torque_per_ampere * [1.0, 1.0, 1.06, 1.0, 1.0, 1.0]
    )
    for constants, warned in ((own, False), (other, True)):
        for same_arm in (False, True):
            options = LiveOptions(same_arm=same_arm)
            estimator = LiveEstimator(of_arm(constants), ROBOT, options)
            for batch in packets(telemetry, 25):
                estimator.update(batch)
            warning = estimator.arm_warning
            assert (warning is not None) == warned
            if warning is not None:
                assert "elbow_joint" in warning
                assert f"{other.torque_per_ampere[2]:.4g}" in warning
                assert ("--same-arm" in warning) != same_arm


def test_constants_belong_to_one_arm(telemetry: Telemetry) -> None:
    """A stream that goes on with another serial number is of another arm."""
    estimator = LiveEstimator(generic_model(ROBOT), ROBOT)
    for serial in ("1", "2"):
        info = replace(telemetry.info, serial=serial)
        for batch in packets(replace(telemetry, info=info), 125):
            estimator.update(batch)
            if float(batch.time[0]) == float(telemetry.time[0]):
                joints = estimator.calculator.model.joints
                of_type = generic_model(ROBOT).joints
                assert [each.torque_constant for each in joints] == [
                    each.torque_constant for each in of_type
                ]


def test_constants_are_reported_a_few_times_only(telemetry: Telemetry) -> None:
    constants = LiveConstants(ROBOT)
    news = []
    for part in range(12):
        later = replace(telemetry, time=telemetry.time + part * SECONDS)
        news += [constants.update(batch) is not None for batch in packets(later, 25)]
    assert 1 <= sum(news) <= 6
