# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Constants that the controller states, from the first seconds on, and an exchanged joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from test.learning.conftest import batches, fed
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.learning.state import decoded, encoded
from ur_energy_model.learning.stated_constants import ExchangedJoint, StatedConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry

ROBOT = load_robot("ur5e")
N = ROBOT.dof
CONSTANTS = (
    ROBOT.gear_ratio * ROBOT.torque_constant * np.array([1.1, 0.95, 1.0, 1.05, 0.9, 1.0])
)
ELBOW = 2
CHANGE = 1.06


def stated(
    constants: np.ndarray, seed: int, seconds: float = 40.0, step: float = 0.0
) -> Telemetry:
    """Rests of 2 s in one pose after the other, with the rounding of a controller's currents."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 0.02)
    poses = (
        random.uniform(-1.0, 1.0, (int(seconds / 2.0) + 1, N)) * 0.3 * ROBOT.max_torque
    )
    moment = poses[(time / 2.0).astype(int)]
    current = moment / constants
    current = current + step * random.standard_normal(current.shape)
    moving = (time % 2.0 < 0.5)[:, None]
    speed = np.where(moving, 0.3, 0.0) * np.ones(N)
    columns = {"target_moment": moment, "target_current": current, "target_qd": speed}
    return Telemetry(time, columns)


def followed(follower: StatedConstants, work: Telemetry) -> list[ExchangedJoint]:
    found = []
    for window in batches(work, 250):
        follower.observe(window)
        found += follower.exchanged()
    return found


@pytest.mark.parametrize("restart", [False, True])
def test_an_exchanged_joint_is_found_once_and_no_other(restart: bool) -> None:
    follower = StatedConstants(ROBOT)
    for seed in range(4):
        assert not followed(follower, stated(CONSTANTS, seed, step=1e-3))
        follower.start_session()
    np.testing.assert_allclose(follower.known.torque_per_ampere, CONSTANTS, rtol=0.002)
    changed = CONSTANTS.copy()
    changed[ELBOW] *= CHANGE
    found = followed(follower, stated(changed, 9, seconds=5.0, step=1e-3))
    if restart:
        saved = decoded(encoded(follower.saved()))
        follower = StatedConstants(ROBOT)
        follower.restore(saved)
    found += followed(follower, stated(changed, 10, step=1e-3))
    (exchange,) = found
    assert exchange.joint == ELBOW
    assert exchange.change == pytest.approx(CHANGE - 1.0, abs=0.003)
    np.testing.assert_allclose(follower.known.torque_per_ampere, changed, rtol=0.002)


def test_what_states_nothing_changes_nothing() -> None:
    follower = StatedConstants(ROBOT)
    followed(follower, stated(CONSTANTS, 1))
    before = follower.known
    follower.start_session()
    work = stated(CONSTANTS, 2)
    without = {name: work[name] for name in ("target_moment", "target_qd")}
    unknown = {**work.columns, "target_current": np.full((len(work), N), np.nan)}
    for columns in (without, unknown):
        assert not followed(follower, replace(work, columns=columns))
    np.testing.assert_allclose(follower.known.torque_per_ampere, before.torque_per_ampere)


def torque_constants(model: EnergyModel) -> np.ndarray:
    return np.array([joint.torque_constant for joint in model.joints])


def test_the_first_model_has_the_stated_constants_within_seconds(arm: ExactArm) -> None:
    generic = first_model(arm.robot)
    learner = Learner(arm.robot, generic)
    fed(learner, arm.record(12.0, seed=61), 250)
    truth = arm.torque_constant
    loaded = slice(0, 3)
    before = np.abs(torque_constants(generic) / truth - 1.0)[loaded]
    after = np.abs(torque_constants(learner.model) / truth - 1.0)[loaded]
    assert after.max() < 0.02 < before.max()
    held = learner.model.controller_constants
    assert held is not None
    assert held.known[loaded].all()


@pytest.mark.truth
def test_an_exchanged_joint_is_named_and_learned_anew(arm: ExactArm) -> None:
    """The other joints keep what was learned, across a restart, too."""
    constant = arm.torque_constant.copy()
    constant[ELBOW] *= 1.12
    changed = replace(arm, torque_constant=constant)
    learner = Learner(arm.robot, first_model(arm.robot))
    fed(learner, arm.record(60.0, seed=62), 250)
    learner.end_session()
    learner.attempts()
    assert learner.take_changes() == ()
    learned = torque_constants(learner.model)
    learner = Learner(arm.robot, first_model(arm.robot), state=learner.state())
    work = changed.record(60.0, seed=63)
    attempts = fed(learner, replace(work, time=work.time + 86400.0), 250)
    changes = [each for each in learner.take_changes() if each.what == "torque_constant"]
    (change,) = changes
    assert change.joint == arm.robot.joint_names[ELBOW]
    assert change.interval[0] < 0.12 < change.interval[1]
    assert any("exchanged" in attempt.reason and attempt.accepted for attempt in attempts)
    learner.finish()
    found = torque_constants(learner.model)
    np.testing.assert_allclose(found[:3], constant[:3], rtol=0.02)
    others = np.arange(N) != ELBOW
    np.testing.assert_allclose(found[others], learned[others], rtol=0.03)
