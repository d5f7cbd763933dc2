# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learner: the model improves with work, whatever the batches, restarts and wrong samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm, write_bag
from test.learning.conftest import batches, constants, fed
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.errors import InputError
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.learning.history import Attempt
from ur_energy_model.learning.information import ArmInformation
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry

Learned = tuple[Learner, tuple[Attempt, ...]]


def joint_energies(model: EnergyModel, arm: ExactArm, samples: Telemetry) -> np.ndarray:
    table = EnergyCalculator(model, arm.robot)(samples)
    assert table is not None
    columns = EnergyCalculator(model, arm.robot).channels.per_joint["electrical_power"]
    return np.asarray(table.steps.bridged @ table.power[:, columns])


def true_energies(arm: ExactArm, samples: Telemetry) -> np.ndarray:
    current = samples["actual_current"]
    speed = arm.robot.gear_ratio * samples["actual_qd"]
    copper = arm.resistance_factor * arm.robot.winding_resistance * current**2
    steps = np.diff(samples.time, prepend=samples.time[0])
    return np.asarray(steps @ (copper + arm.torque_constant * speed * current))


@pytest.mark.truth
def test_a_minute_of_work_brings_joint_energies_near_the_truth(
    arm: ExactArm, learned: Learned, generic: EnergyModel
) -> None:
    learner, attempts = learned
    assert learner.version >= 1
    assert learner.learned_minutes == pytest.approx(1.0, abs=0.05)
    assert [attempt.version for attempt in attempts] == sorted(
        a.version for a in attempts
    )
    later = arm.record(30.0, seed=53)
    truth = true_energies(arm, later)
    error = (
        np.abs(joint_energies(learner.model, arm, later) - truth).sum()
        / np.abs(truth).sum()
    )
    before = (
        np.abs(joint_energies(generic, arm, later) - truth).sum() / np.abs(truth).sum()
    )
    assert error < 0.02
    assert error < 0.3 * before
    assert abs(learner.model.bus.standby - arm.standby) < 0.5


@pytest.mark.truth
def test_all_work_gives_the_model_that_identify_gives(
    arm: ExactArm, learned: Learned, work: Telemetry, tmp_path: Path
) -> None:
    learner = Learner(arm.robot, learned[0].model, state=learned[0].state())
    learner.finish()
    same = identify([write_bag(tmp_path / "bag", work)], arm.robot).model
    later = arm.record(30.0, seed=53)
    found, expected = (
        joint_energies(model, arm, later) for model in (learner.model, same)
    )
    np.testing.assert_allclose(found, expected, rtol=0.005)
    np.testing.assert_allclose(constants(learner.model), constants(same), rtol=0.01)


@pytest.mark.truth
@pytest.mark.parametrize("mass", [1.5, 0.0])
def test_an_undeclared_load_is_found_and_does_not_spoil_the_model(
    arm: ExactArm, mass: float
) -> None:
    """Of two sessions the second has a load that the controller computes without."""
    carrying = replace(
        arm, setup=Setup(payload=Payload(mass, np.array([0.0, 0.03, 0.08])))
    )
    information = ArmInformation(arm.robot, first_model(arm.robot))
    for number, own in enumerate((arm, carrying)):
        work = own.record(45.0, seed=60 + number)
        unaware = arm.record(45.0, seed=60 + number).columns
        of_controller = {
            name: unaware[name] for name in ("target_moment", "target_current")
        }
        work = replace(work, columns={**work.columns, **of_controller})
        if number:
            information.start_session()
        for batch in batches(work, 500):
            information.add(batch)
    model = information.fit()
    assert model is not None
    found = [check.mass for check in information.doubts.values()]
    assert found == ([] if not mass else [pytest.approx(mass, abs=0.25)])
    # The arm has inertias of its own, which such a short motion hardly shows beside k_t.
    np.testing.assert_allclose(constants(model)[:6:2], arm.torque_constant[:3], rtol=0.05)


@pytest.mark.truth
def test_friction_that_wears_is_expected_near_that_of_the_last_session(
    arm: ExactArm,
) -> None:
    """The mean of the sessions has 1.0 times, the last one 0.8 times the friction."""
    information = ArmInformation(arm.robot, first_model(arm.robot))
    for number, level in enumerate((1.2, 1.07, 0.93, 0.8)):
        worn = {name: level * value for name, value in arm.parameters.items()}
        work = replace(arm, parameters=worn).record(20.0, seed=80 + number)
        if number:
            information.start_session()
        for batch in batches(work, 500):
            information.add(batch)
    model = information.fit()
    assert model is not None
    speed = np.linspace(0.3, 1.5, 7)[:, None] * np.ones(arm.robot.dof)
    bank = FrictionBank([joint.friction for joint in model.joints], arm.robot.gear_ratio)
    none = np.zeros_like(speed)
    level = (bank.torque(speed, none) / arm.friction(speed, none)).mean(axis=0)
    assert (level < 0.92).all()
    assert (level > 0.5).all()
    spread = model.sessions.friction_of(arm.robot.dof)
    assert (np.abs(level - 0.7) < 2.0 * spread).all()


def test_batches_and_restarts_do_not_matter(
    arm: ExactArm, work: Telemetry, generic: EnergyModel
) -> None:
    begun = work.cut(slice(0, len(work) // 2))
    whole = Learner(arm.robot, generic)
    of_whole = fed(whole, begun, 250)
    assert any(attempt.accepted for attempt in of_whole)
    learner = Learner(arm.robot, generic)
    attempts = []
    for number, batch in enumerate(batches(begun, 377)):
        learner.update(batch)
        attempts += learner.attempts()
        if number in (2, 6):
            state = learner.state()
            assert len(state) < 3e6
            learner = Learner(arm.robot, generic, state=state)
    assert [a.accepted for a in attempts] == [a.accepted for a in of_whole]
    assert learner.learned_minutes == whole.learned_minutes
    # The state keeps values of models with eight digits and motions with 16 bits; the
    # deviation of a torque constant is some 100 times this.
    np.testing.assert_allclose(
        constants(learner.model), constants(whole.model), rtol=3e-4, atol=1e-6
    )


def test_a_damaged_or_foreign_state_is_refused_in_one_line(
    arm: ExactArm, generic: EnergyModel
) -> None:
    state = Learner(arm.robot, generic, serial="A").state()
    for damaged in (b"", state[:200], state[:-3] + b"abc"):
        with pytest.raises(InputError, match=r"\A[^\n]+\Z"):
            Learner(arm.robot, generic, state=damaged)
    with pytest.raises(InputError, match="of the arm A, not B"):
        Learner(arm.robot, generic, serial="B", state=state)
    with pytest.raises(InputError, match="of a ur5e, not a ur3e"):
        Learner(load_robot("ur3e"), generic, state=state)


def test_nothing_is_learned_of_another_arm_or_without_power(
    arm: ExactArm, work: Telemetry, generic: EnergyModel
) -> None:
    off = {**work.columns, "robot_mode": np.full(len(work), 3.0)}
    learner = Learner(arm.robot, generic)
    assert not fed(learner, replace(work, columns=off), 500)
    assert learner.learned_minutes == 0.0
    learner = Learner(arm.robot, generic, serial="A")
    for info in (replace(work.info, serial="B"), replace(work.info, robot="ur3e")):
        assert not fed(learner, replace(work, info=info), 500)
    assert learner.left_out == 2 * len(work)
    assert learner.learned_minutes == 0.0
    assert learner.model is generic


def test_impossible_samples_are_left_out(
    arm: ExactArm, work: Telemetry, generic: EnergyModel
) -> None:
    columns = {name: values.copy() for name, values in work.columns.items()}
    columns["actual_current"][100:110] = 1e9
    columns["actual_qd"][500:505] = np.nan
    columns["target_moment"][900:910] = -1e12
    time = work.time.copy()
    time[1500] = np.nan
    learner = Learner(arm.robot, generic)
    fed(learner, Telemetry(time, columns, work.info).cut(slice(len(work) * 2 // 3)), 500)
    assert learner.left_out >= 21
    assert learner.version >= 1
    torque_constant, reflected_inertia = constants(learner.model)[:6].reshape(3, 2).T
    np.testing.assert_allclose(torque_constant, arm.torque_constant[:3], rtol=0.05)
    true_inertia = arm.robot.reflected_inertia[:3]
    np.testing.assert_allclose(reflected_inertia, true_inertia, rtol=0.05)
