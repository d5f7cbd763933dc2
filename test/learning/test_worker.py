"""The loop of the process that learns, and its budget of computing time."""

from __future__ import annotations

from multiprocessing import Pipe

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model
from test.learning.fake_learner import ORDER, FakeLearner
from ur_energy_model.learning import worker
from ur_energy_model.learning.process import (
    BeginLearning,
    FinishLearning,
    LearnerError,
    LearnerState,
    Progress,
)
from ur_energy_model.learning.worker import CPU_RESERVE, CpuBudget, Worker
from ur_energy_model.telemetry.samples import Telemetry


class Used:
    """Computing time and time that a test sets."""

    def __init__(self) -> None:
        self.seconds = self.now = 0.0

    def budget(self) -> CpuBudget:
        return CpuBudget(0.05, CPU_RESERVE, used=lambda: self.seconds, now=lambda: self.now)


def batch(samples: int = 10) -> Telemetry:
    columns = {ORDER: np.zeros(samples), "actual_qd": np.zeros((samples, 6))}
    return Telemetry(0.002 * np.arange(samples, dtype=float), columns)


def reports(used: Used, *orders: object) -> list[object]:
    """What a worker sends until it finishes."""
    ours, theirs = Pipe()
    with ours, theirs:
        for order in (*orders, FinishLearning()):
            ours.send(order)
        Worker(theirs, FakeLearner, used.budget()).run()
        found = []
        while ours.poll():
            found.append(ours.recv())
    return found


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is reported after each order."""
    monkeypatch.setattr(worker, "PROGRESS_PERIOD", 0.0)


def begin(run: int = 1, state: bytes | None = None) -> BeginLearning:
    return BeginLearning(run, ROBOT, known_model(), state)


def test_the_budget_grows_with_time() -> None:
    used = Used()
    budget = used.budget()
    assert budget.left == CPU_RESERVE
    used.seconds = CPU_RESERVE + 1.0
    assert budget.left == pytest.approx(-1.0)
    used.now = 20.0
    assert budget.left == pytest.approx(0.0)
    used.now = 100.0
    assert budget.mean_share == pytest.approx((CPU_RESERVE + 1.0) / 100.0)


def test_samples_beyond_the_budget_are_left_out_and_counted() -> None:
    used = Used()
    ours, theirs = Pipe()
    with ours, theirs:
        busy = Worker(theirs, FakeLearner, used.budget())
        used.seconds = 3.0 * CPU_RESERVE
        for order in (begin(), batch(7), batch(5), FinishLearning()):
            ours.send(order)
        busy.run()
        found = []
        while ours.poll():
            found.append(ours.recv())
    assert [each.left_out for each in found if isinstance(each, Progress)][-1] == 12
    *_, state = found
    assert isinstance(state, LearnerState)
    assert b'"samples": 0' in state.content


def test_the_state_of_the_arm_before_is_sent_when_another_one_comes() -> None:
    found = reports(Used(), begin(1), batch(4), begin(2), batch(6))
    states = [each for each in found if isinstance(each, LearnerState)]
    assert [
        (each.run, b'"samples": %d' % n in each.content)
        for each, n in zip(states, (4, 6), strict=True)
    ] == [(1, True), (2, True)]


def test_a_state_that_cannot_be_used_is_said_and_learning_begins_anew() -> None:
    trouble, *others = reports(Used(), begin(1, b"no state"), batch(4))
    assert isinstance(trouble, LearnerError)
    assert not trouble.fatal
    assert "begins anew" in trouble.text
    assert any(isinstance(each, Progress) for each in others)


def test_samples_without_an_arm_are_no_error() -> None:
    assert reports(Used(), batch(3)) == []
