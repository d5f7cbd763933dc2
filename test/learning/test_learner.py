"""Learner: the model improves with work, whatever the batches, restarts and wrong samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from test.learning.conftest import batches, constants, fed
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.errors import InputError
from ur_energy_model.learning.history import Attempt
from ur_energy_model.learning.learner import Learner
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry

Learned = tuple[Learner, tuple[Attempt, ...]]


def joint_energies(model: EnergyModel, arm: ExactArm, samples: Telemetry) -> np.ndarray:
    table = EnergyCalculator(model, arm.robot)(samples)
    assert table is not None
    columns = EnergyCalculator(model, arm.robot).channels.per_joint["electrical_power"]
    return np.asarray(table.steps.bridged @ table.power[:, columns])


def true_energies(arm: ExactArm, samples: Telemetry) -> np.ndarray:
    current, speed = samples["target_current"], arm.robot.gear_ratio * samples["actual_qd"]
    copper = arm.resistance_factor * arm.robot.winding_resistance * current**2
    steps = np.diff(samples.time, prepend=samples.time[0])
    return np.asarray(steps @ (copper + arm.torque_constant * speed * current))


def test_a_minute_of_work_brings_joint_energies_near_the_truth(
    arm: ExactArm, learned: Learned, generic: EnergyModel
) -> None:
    learner, attempts = learned
    assert learner.version >= 1
    assert learner.learned_minutes == pytest.approx(1.0, abs=0.05)
    assert [attempt.version for attempt in attempts] == sorted(a.version for a in attempts)
    later = arm.record(30.0, seed=53)
    truth = true_energies(arm, later)
    error = np.abs(joint_energies(learner.model, arm, later) - truth).sum() / np.abs(truth).sum()
    before = np.abs(joint_energies(generic, arm, later) - truth).sum() / np.abs(truth).sum()
    assert error < 0.02
    assert error < 0.3 * before
    assert abs(learner.model.bus.standby - arm.standby) < 0.5


def test_batches_and_restarts_do_not_matter(
    arm: ExactArm, work: Telemetry, generic: EnergyModel, learned: Learned
) -> None:
    learner, attempts = Learner(arm.robot, generic), []
    for number, batch in enumerate(batches(work, 777)):
        learner.update(batch)
        attempts += learner.attempts()
        if number in (1, 4):
            state = learner.state()
            assert len(state) < 3e6
            learner = Learner(arm.robot, generic, state=state)
    assert [a.accepted for a in attempts] == [a.accepted for a in learned[1]]
    assert learner.learned_minutes == learned[0].learned_minutes
    # The state keeps values of models with eight digits.
    np.testing.assert_allclose(
        constants(learner.model), constants(learned[0].model), rtol=1e-4, atol=1e-6
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
    arm: ExactArm, work: Telemetry, generic: EnergyModel, learned: Learned
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
    error = constants(learner.model) / constants(learned[0].model) - 1.0
    assert np.abs(error)[:6].max() < 0.05
