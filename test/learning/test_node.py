# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator that learns: take-over, other arms, restarts, files, and what it tells."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from test.energy.known_arm import STANDBY
from test.learning.fake_learner import (
    DIE,
    FAKE,
    FIRST_STANDBY,
    FRICTION,
    LEARN,
    NOTICE,
    LearnerThread,
)
from test.nodes.conftest import Cell, cell, model
from test.nodes.moving_arm import MovingArm
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.learning import background
from ur_energy_model.learning import node as companion
from ur_energy_model.learning.background import BackgroundLearning
from ur_energy_model.learning.room import LearningParameters
from ur_energy_model.learning.state import kept_path
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes import managed_node
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.process import begin

__all__ = ["cell", "model"]  # fixtures
ENERGY = "/energy/total/energy"
OFF = Parameter("learn", value="off")


@pytest.fixture(autouse=True)
def fake_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    """What learns does what the samples say, and soon; so does the report about it."""
    monkeypatch.setattr(managed_node, "REPORT_PERIOD", 0.1)
    monkeypatch.setattr(background, "SEND_PERIOD", 0.05)
    monkeypatch.setattr(background, "FIRST_PAUSE", 0.05)
    fake = functools.partial(BackgroundLearning, learner=FAKE)
    monkeypatch.setattr(companion, "BackgroundLearning", fake)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning in a thread, where crashes are not the subject."""
    monkeypatch.setattr(background, "start_main", LearnerThread)


class Learning:
    """An estimator of a moving arm."""

    node: Any

    def __init__(self, cell: Cell, **parameters: Any) -> None:
        self.cell = cell
        self.arm = MovingArm()
        cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
        cell.observer.subscribe(ENERGY, "std_msgs/Float64")
        self.node = cell.start_node(
            lambda **options: EstimatorNode(lambda: self.arm, **options), **parameters
        )

    def wait(
        self, what: str, condition: Callable[[dict[str, str]], bool] = lambda status: True
    ) -> dict[str, str]:
        """Status of the model, once it fulfils a condition."""
        return self.cell.observer.status_that("estimator: model", condition, what)

    def begin(self) -> None:
        """Wait until it learns."""
        self.wait("learning", lambda status: float(status["learned_minutes"]) > 0.0)

    def learn(self, version: int) -> dict[str, str]:
        """Learn one version more."""
        self.arm.say(LEARN)
        return self.wait(
            "a version", lambda status: status["model_version"] == str(version)
        )


@pytest.mark.usefixtures("threads")
def test_a_learned_model_and_its_friction_are_used_without_a_jump_and_changes_are_warnings(
    cell: Cell, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion, "CHANGE_SHOWN", 2.0)
    learning = Learning(cell)
    learning.begin()
    assert learning.wait("a status")["model"] == "generic ur5e, not identified"
    status = learning.learn(1)
    assert status["friction_now"].startswith("125 +-6 %")
    calculator = learning.node._arm.estimator.calculator
    assert calculator.model.bus.standby == FIRST_STANDBY + 1
    session = calculator.model_in_session().session
    np.testing.assert_array_equal(session.friction_scale, FRICTION.scale)
    np.testing.assert_array_equal(session.friction_std, FRICTION.std)
    assert status["standby_model_W"] == f"{FIRST_STANDBY + 1:g}"
    assert "version 1 learned from" in status["model"]
    assert "not identified" not in status["model"]
    assert status["next_needed"] == "base above 1 rad/s"
    assert status["learned_because"] == "said so"
    learning.arm.say(NOTICE)
    noticed = learning.wait("the warning", lambda status: status["level"] == "1")
    assert noticed["message"] == noticed["last_change"] == "standby +3 W"
    learning.wait("the end of the warning", lambda status: status["level"] == "0")
    assert learning.wait("a status")["last_change"] == "standby +3 W"
    cell.observer.wait_for_messages(ENERGY, 20)
    steps = np.diff([message.data for message in cell.observer.history[ENERGY]])
    assert (steps >= 0.0).all()
    learning.arm.clock = 3.0  # a restarted controller is no end of learning
    before = float(learning.wait("a status")["learned_minutes"])
    status = learning.wait(
        "more", lambda status: float(status["learned_minutes"]) > before
    )
    assert (status["model_version"], status["learning_restarts"]) == ("1", "0")
    # A batch takes 20 ms; the arm of this motion takes less than 500 W. Some messages may
    # be lost.
    assert steps.max() < 500.0 * 0.02 * 25
    output = capfd.readouterr().err
    for line in (
        "change of the arm: standby +3 W",
        "model version 1 is used",
        "the model lacks",
    ):
        assert output.count(line) == 1


@pytest.mark.usefixtures("threads")
def test_another_arm_begins_with_the_first_model_and_a_restart_with_what_was_learned(
    cell: Cell, model: Path
) -> None:
    learning = Learning(cell, model_file=str(model), state_file=str(cell.folder / "s.db"))
    learning.begin()
    learning.learn(1)
    learning.arm.serial = "B2"
    status = learning.wait(
        "the first model", lambda status: status["model_version"] == "0"
    )
    assert status["model"] == str(model)
    learning.wait("its use", lambda status: float(status["standby_model_W"]) == STANDBY)
    learning.arm.serial = "A1"
    learning.wait(
        "what was learned of the first arm", lambda s: s["model_version"] == "1"
    )
    assert learning.node.trigger_deactivate()
    assert learning.node.trigger_cleanup()
    cell.observer.latest.clear()
    assert begin([learning.node])
    status = learning.wait("the version", lambda status: status["model_version"] == "1")
    assert status["learned_because"] == "learned before the last start"


def test_a_process_that_dies_is_started_again_and_energies_go_on(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    learning = Learning(cell)
    learning.begin()
    learning.arm.say(DIE)
    learning.wait("the restart", lambda status: status["learning_restarts"] == "1")
    cell.observer.wait_for_messages(ENERGY, 10)
    learning.wait(
        "the end of the problem", lambda status: status["learning_problem"] == "none"
    )
    learning.learn(1)
    (beside,) = (
        each
        for each in learning.node._companions
        if isinstance(each, companion.LearningCompanion)
    )
    assert beside._learning is not None
    pid = beside._learning.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    learning.wait("the next restart", lambda status: status["learning_restarts"] == "2")
    learning.wait(
        "the end of the problem", lambda status: status["learning_problem"] == "none"
    )
    output = capfd.readouterr().err
    assert output.count("is started again") == 1  # the second one within 10 s is counted
    assert "energies are counted as before" in output
    assert "Traceback" not in output


@pytest.mark.usefixtures("threads")
def test_keep_writes_the_model_file_and_does_not_load_it_again(cell: Cell) -> None:
    path = cell.folder / "kept.yaml"
    learning = Learning(cell, learn="keep", model_file=str(path), reload_period=0.001)
    learning.begin()
    assert learning.wait("a status")["model"] == "generic ur5e, not identified"
    for version in (1, 2):
        learning.learn(version)
    cell.observer.wait_for_messages("/diagnostics", 3)
    assert learning.wait("a status")["model_version"] == "2"
    assert load_model(path).bus.standby == FIRST_STANDBY + 2
    kept = [kept_path(path, which) for which in (1, "original")]
    assert [load_model(each).bus.standby for each in kept if each.exists()] == [
        FIRST_STANDBY + 1
    ]
    learning.arm.serial = "B2"
    learning.wait("the other arm", lambda status: status["model_version"] == "0")
    learning.begin()
    learning.learn(1)
    status = learning.wait(
        "the refusal", lambda status: status["learning_problem"] != "none"
    )
    assert "is the model of arm A1, and this is arm B2" in status["learning_problem"]
    assert load_model(path).bus.standby == FIRST_STANDBY + 2


def test_the_arm_may_become_known_later_and_nothing_is_learned_with_learn_off(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    arm = MovingArm(robot=None)
    node = EstimatorNode(
        lambda: arm, context=cell.observer.context, parameter_overrides=[OFF]
    )
    cell.start_node(lambda **options: node)
    name = "estimator: source"
    cell.observer.status_that(
        name, lambda s: "does not name the arm" in s["message"], "reason"
    )
    assert not cell.observer.call("/estimator/reset_energy").success
    status = cell.observer.status("/diagnostics", "estimator: model")
    assert {status[key] for key in ("model", "next_needed")} == {"unknown"}
    arm.robot = "ur5e"
    name = "estimator: model"
    status = cell.observer.status_that(name, lambda s: "standby_W" in s, "the arm")
    assert status["model"] == "generic ur5e, not identified"
    assert (status["learned_minutes"], status["next_needed"]) == ("0", "learn is off")
    assert "model_version" not in status
    assert node._arm is not None
    assert node.robot_name == "ur5e"
    assert cell.observer.call("/estimator/reset_energy").success
    assert "name the arm in robot_model" in capfd.readouterr().err


def test_whether_it_learns_is_a_switch(cell: Cell) -> None:
    node = cell.make_node(EstimatorNode, learn=False)  # as YAML reads off
    assert node.given.of(LearningParameters).learn == "off"
    with pytest.raises(UrEnergyError, match="estimator: learn must be"):
        cell.make_node(EstimatorNode, learn=3)
    node = cell.make_node(EstimatorNode, learn="keep")
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
