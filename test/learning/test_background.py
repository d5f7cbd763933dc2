# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning in a process: arms, restarts, crashes, its budget, and the end of either process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model
from test.learning.fake_learner import (
    COMPUTE,
    DIE,
    FAKE,
    FIRST_STANDBY,
    LEARN,
    NOTICE,
    ORDER,
    RAISE,
    FakeLearner,
    LearnerThread,
)
from ur_energy_model.learning import background, worker
from ur_energy_model.learning.background import BackgroundLearning, LearningUpdate
from ur_energy_model.learning.worker import CPU_RESERVE, BeginLearning, Progress, Worker
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.state_file import StateFile
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

PATIENCE = 240.0
MODEL = known_model()


def batch(
    order: float = 0.0, *, serial: str | None = "A1", samples: int = 10
) -> Telemetry:
    info = RecordingInfo(robot="ur5e", serial=serial)
    columns = {ORDER: np.full(samples, order), "actual_qd": np.zeros((samples, 6))}
    return Telemetry(0.002 * np.arange(samples, dtype=float), columns, info)


class Learning(BackgroundLearning):
    """Learning of the fake learner, with all that has happened so far."""

    def __init__(self, file: StateFile | None = None, model: EnergyModel = MODEL) -> None:
        super().__init__(ROBOT, model, file=file, learner=FAKE)
        self.seen = LearningUpdate()

    def wait(self, condition: Callable[[], object]) -> None:
        """Poll until a condition is true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            found = self.poll()
            self.seen.model = found.model or self.seen.model
            self.seen.other_arm |= found.other_arm
            self.seen.attempts += found.attempts
            self.seen.changes += found.changes
            self.seen.troubles += found.troubles
            time.sleep(0.01)

    def begin(self, serial: str | None = "A1") -> None:
        """Offer samples until they are learned from."""
        before = self.progress.learned_minutes

        def learned() -> bool:
            self.offer(batch(serial=serial))
            return self.serial == serial and self.progress.learned_minutes not in (
                0.0,
                before,
            )

        self.wait(learned)

    def learn(self) -> None:
        """Learn a better model."""
        version = self.progress.version + 1
        self.offer(batch(LEARN))
        self.wait(lambda: self.progress.version == version)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are sent soon, and progress is reported after each order."""
    monkeypatch.setattr(background, "SEND_PERIOD", 0.02)
    monkeypatch.setattr(worker, "PROGRESS_PERIOD", 0.0)
    monkeypatch.setattr(background, "FIRST_PAUSE", 0.05)


def test_the_process_learns_at_low_priority_and_is_started_again_after_crashes() -> None:
    learning = Learning()
    learning.begin()
    learning.learn()
    update = learning.seen
    assert update.model is not None
    assert update.model.bus.standby == FIRST_STANDBY + 1
    assert [attempt.reason for attempt in update.attempts] == ["said so"]
    assert learning.progress.needs[0].words == "base above 1 rad/s"
    assert learning.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, learning.pid) > 0
    assert "rclpy" not in Path(f"/proc/{learning.pid}/maps").read_text()
    learning.offer(batch(NOTICE))
    learning.wait(lambda: update.changes)
    before = learning.progress.learned_minutes
    learning.offer(batch(serial=None))  # of the same arm
    learning.wait(lambda: learning.progress.learned_minutes > before)
    assert [change.words for change in update.changes] == ["standby +3 W"]
    for number, (order, reason) in enumerate(
        ((RAISE, "samples said so"), (DIE, "code 7")), 1
    ):
        first = learning.pid
        learning.offer(batch(order))
        learning.wait(lambda number=number: learning.failures == number)  # type: ignore[misc]
        assert reason in update.troubles[-1]
        assert learning.problem == update.troubles[-1]
        learning.wait(lambda first=first: learning.pid not in (None, first))  # type: ignore[misc]
        learning.begin()
        assert learning.problem is None
    assert len(update.troubles) == 2
    # Offering never waits, and what finds no room is counted.
    big = batch(COMPUTE, samples=20_000)
    began = time.monotonic()
    for _ in range(100):
        learning.offer(big)
    assert time.monotonic() - began < PATIENCE / 2  # the process itself would take 50 s
    assert learning.left_out >= 50 * 20_000
    learning.stop()


def test_each_arm_is_learned_apart_also_over_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "start_main", LearnerThread)
    file = StateFile(tmp_path / "state.db")
    file.open()
    learning = Learning(file)
    learning.begin()
    learning.learn()
    learning.begin("B2")
    assert learning.seen.other_arm
    assert learning.progress.version == 0
    learning.offer(batch())  # the first arm is back
    learning.wait(lambda: learning.progress.version == 1)
    learned = learning.seen.model
    assert learned is not None
    learning.stop()
    file.close()
    file = StateFile(file.path)
    file.open()
    again = Learning(file)
    again.offer(batch())
    again.wait(lambda: again.progress.version == 1)
    assert again.seen.model is not None
    assert again.seen.model.bus.standby == FIRST_STANDBY + 1
    again.note_written(learned)
    again.stop()
    written = Learning(file, learned)  # the model file has the learned model now
    written.offer(batch())
    written.wait(lambda: written.progress.version == 1)
    assert not again.seen.troubles
    assert not written.seen.troubles
    written.begin_again(known_model(standby=40.0))
    assert written.progress.version == 0
    written.begin()
    written.stop()
    other = Learning(file)  # with the model before
    other.begin()
    assert "continues another model" in other.seen.troubles[0]
    assert other.progress.version == 0
    other.stop()
    file.put("learned of A1", b'{"robot": "ur5e", "serial": null}\nx')
    damaged = Learning(file)
    damaged.begin()
    assert "is damaged" in damaged.seen.troubles[0]
    damaged.stop()
    file.close()


_PARENT = """
import time
from test.learning.test_background import Learning, batch
from test.learning.fake_learner import COMPUTE
learning = Learning()
learning.offer(batch())
learning.poll()
print(learning.pid, flush=True)
while True:
    learning.offer(batch(COMPUTE))
    time.sleep(0.1)
"""


def test_the_process_ends_with_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        parent.send_signal(signal.SIGKILL)
        parent.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_samples_beyond_the_budget_are_left_out_and_counted() -> None:
    used, (ours, theirs) = iter([0.0]), Pipe()
    with ours, theirs:
        loop = Worker(theirs, FakeLearner, lambda: next(used, 3.0 * CPU_RESERVE))
        begin = BeginLearning(1, ROBOT, MODEL, b"no state")
        for order in (begin, batch(samples=7), batch(samples=5), None):
            ours.send(order)
        loop.run()
        trouble, *found, state = [ours.recv() for _ in iter(ours.poll, False)]
    assert "begins anew" in trouble
    assert [each.left_out for each in found if isinstance(each, Progress)][-1] == 12
    assert b'"samples": 0' in state[1]
