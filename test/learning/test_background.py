"""Learning in a process: arms, restarts, crashes, its budget, and the end of either process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model
from test.learning.fake_learner import (
    COMPUTE,
    DIE,
    FIRST_STANDBY,
    LEARN,
    NOTICE,
    ORDER,
    RAISE,
    FakeLearner,
)
from ur_energy_model.learning import background, worker
from ur_energy_model.learning.background import BackgroundLearning, LearningUpdate
from ur_energy_model.learning.state import StateStore
from ur_energy_model.learning.worker import (
    CPU_RESERVE,
    BeginLearning,
    CpuBudget,
    LearnerError,
    LearnerState,
    Progress,
    Worker,
)
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

FAKE = "test.learning.fake_learner:FakeLearner"
PATIENCE = 60.0
MODEL = known_model()


def batch(order: float = 0.0, *, serial: str | None = "A1", samples: int = 10) -> Telemetry:
    info = RecordingInfo(robot="ur5e", serial=serial)
    columns = {ORDER: np.full(samples, order), "actual_qd": np.zeros((samples, 6))}
    return Telemetry(0.002 * np.arange(samples, dtype=float), columns, info)


Make = Callable[..., BackgroundLearning]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are sent soon, and progress is reported after each order."""
    monkeypatch.setattr(background, "SEND_PERIOD", 0.05)
    monkeypatch.setattr(worker, "PROGRESS_PERIOD", 0.0)


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes learning that is stopped at the end."""
    made: list[BackgroundLearning] = []

    def new(store: StateStore | None = None, model: object = MODEL) -> BackgroundLearning:
        made.append(BackgroundLearning(ROBOT, model, store=store, learner=FAKE))  # type: ignore[arg-type]
        return made[-1]

    yield new
    for each in made:
        each.stop()


def wait(
    learning: BackgroundLearning,
    condition: Callable[[], object],
    update: LearningUpdate | None = None,
) -> LearningUpdate:
    """Look for update until a condition is true; returns all update together."""
    total = LearningUpdate() if update is None else update
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = learning.poll()
        total.model = found.model or total.model
        total.other_arm |= found.other_arm
        total.attempts += found.attempts
        total.changes += found.changes
        total.troubles += found.troubles
        if condition():
            return total
        time.sleep(0.02)
    pytest.fail(f"nothing within {PATIENCE:g} s")


def begun(learning: BackgroundLearning, serial: str | None = "A1") -> None:
    """Wait for the process."""
    learning.offer(batch(serial=serial))
    wait(learning, lambda: learning.pid is not None)


def learned(learning: BackgroundLearning, version: int) -> LearningUpdate:
    """Let it learn a better model."""
    learning.offer(batch(LEARN))
    return wait(learning, lambda: learning.version == version)


def test_what_is_learned_arrives_from_a_process_of_low_priority(make: Make) -> None:
    learning = make()
    begun(learning)
    update = learned(learning, 1)
    assert update.model is not None
    assert update.model.bus.standby == FIRST_STANDBY + 1
    assert [attempt.reason for attempt in update.attempts] == ["said so"]
    assert learning.learned_minutes > 0.0
    assert learning.needs[0].words == "base above 1 rad/s"
    assert learning.poll().model is None
    # A change of the arm is told once; samples without a serial number are of the same arm.
    learning.offer(batch(NOTICE))
    wait(learning, lambda: update.changes, update)
    before = learning.learned_minutes
    learning.offer(batch(serial=None))
    wait(learning, lambda: learning.learned_minutes > before, update)
    assert [change.words for change in update.changes] == ["standby +3 W"]
    assert learning.version == 1
    assert learning.pid is not None
    assert os.getpriority(os.PRIO_PROCESS, learning.pid) > 0
    assert "rclpy" not in Path(f"/proc/{learning.pid}/maps").read_text()


def test_offering_never_waits_and_counts_what_finds_no_room(make: Make) -> None:
    learning = make()
    begun(learning)
    big = batch(COMPUTE, samples=20_000)
    began = time.monotonic()
    for _ in range(100):
        learning.offer(big)
    assert time.monotonic() - began < 1.0
    assert learning.left_out >= 90 * 20_000


def test_what_was_learned_survives_a_restart(make: Make, tmp_path: Path) -> None:
    base = tmp_path / "state.json"
    learning = make(StateStore(base))
    begun(learning)
    learned(learning, 1)
    learning.stop()
    assert {path.name for path in tmp_path.iterdir()} == {"state.json.learning-A1"}
    again = make(StateStore(base))
    begun(again)
    update = wait(again, lambda: again.version == 1)
    assert update.model is not None
    assert update.model.bus.standby == FIRST_STANDBY + 1
    assert not update.troubles


def test_another_arm_at_the_address_is_learned_apart(make: Make, tmp_path: Path) -> None:
    learning = make(StateStore(tmp_path / "state.json"))
    begun(learning)
    learned(learning, 1)
    learning.offer(batch(serial="B2"))
    update = LearningUpdate()
    wait(learning, lambda: update.other_arm, update)
    assert learning.version == 0
    learning.offer(batch(serial="B2"))
    wait(learning, lambda: learning.learned_minutes > 0)
    assert learning.version == 0
    learning.offer(batch(serial="A1"))  # the first arm is back
    update = wait(learning, lambda: learning.version == 1)
    assert update.model is not None


def test_another_model_file_begins_anew(make: Make, tmp_path: Path) -> None:
    base = tmp_path / "state.json"
    learning = make(StateStore(base))
    begun(learning)
    learned(learning, 1)
    learning.begin_again(known_model(standby=40.0))
    assert learning.version == 0
    learning.offer(batch())
    wait(learning, lambda: learning.learned_minutes > 0)
    learning.stop()
    first = make(StateStore(base))  # with the model before
    first.offer(batch())
    update = wait(first, lambda: first.pid is not None)
    assert "continues another model" in update.troubles[0]
    first.offer(batch())
    wait(first, lambda: first.learned_minutes > 0)
    assert first.version == 0


def test_a_model_that_was_written_continues(make: Make, tmp_path: Path) -> None:
    base = tmp_path / "state.json"
    learning = make(StateStore(base))
    begun(learning)
    model = learned(learning, 1).model
    assert model is not None
    learning.note_written(model)
    learning.stop()
    again = make(StateStore(base), model)
    begun(again)
    assert not wait(again, lambda: again.version == 1).troubles


@pytest.mark.parametrize("order", [RAISE, DIE])
def test_a_crashed_process_is_started_again_and_said(make: Make, order: float) -> None:
    learning = make()
    begun(learning)
    first = learning.pid
    learning.offer(batch(order))
    update = LearningUpdate()
    wait(learning, lambda: learning.failures == 1, update)
    (trouble,) = update.troubles
    assert ("the samples said so" if order == RAISE else "exit code 7") in trouble
    assert learning.problem == trouble
    wait(learning, lambda: learning.pid not in (None, first))
    learning.offer(batch())
    wait(learning, lambda: learning.learned_minutes > 0)
    assert learning.problem is None


def test_a_damaged_state_is_kept_aside(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "state.json.learning-A1"
    path.write_bytes(b'{"schema": 1, "sha256": "0", "serial": null}\nx')
    learning = make(StateStore(tmp_path / "state.json"))
    update = LearningUpdate()
    learning.offer(batch())
    wait(learning, lambda: learning.pid is not None, update)
    assert "is damaged" in update.troubles[0]
    assert path.with_name(f"{path.name}.unreadable").exists()
    learned(learning, 1)


_PARENT = """
import sys, time
from test.learning.test_background import MODEL, ROBOT, FAKE, batch
from ur_energy_model.learning.background import BackgroundLearning
from test.learning.fake_learner import COMPUTE
learning = BackgroundLearning(ROBOT, MODEL, learner=FAKE)
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
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while alive(child):
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Used:
    """Computing time and time that a test sets."""

    def __init__(self) -> None:
        self.seconds = self.now = 0.0

    def budget(self) -> CpuBudget:
        return CpuBudget(0.05, CPU_RESERVE, used=lambda: self.seconds, now=lambda: self.now)


def reports(*orders: object, busy: float = 0.0) -> list[object]:
    """What a worker sends until it finishes, after some seconds of computing."""
    used, (ours, theirs) = Used(), Pipe()
    with ours, theirs:
        loop = Worker(theirs, FakeLearner, used.budget())
        used.seconds = busy
        for order in (*orders, None):
            ours.send(order)
        loop.run()
        found = []
        while ours.poll():
            found.append(ours.recv())
    return found


def begin(run: int = 1, state: bytes | None = None) -> BeginLearning:
    return BeginLearning(run, ROBOT, MODEL, state)


def test_samples_beyond_the_budget_are_left_out_and_counted() -> None:
    *found, state = reports(begin(), batch(samples=7), batch(samples=5), busy=3.0 * CPU_RESERVE)
    assert [each.left_out for each in found if isinstance(each, Progress)][-1] == 12
    assert isinstance(state, LearnerState)
    assert b'"samples": 0' in state.content


def test_the_state_of_the_arm_before_is_sent_when_another_one_comes() -> None:
    found = reports(batch(), begin(1), batch(samples=4), begin(2), batch(samples=6))
    states = [each for each in found if isinstance(each, LearnerState)]
    assert [(each.run, each.content[:13]) for each in states] == [
        (1, b'{"samples": 4'), (2, b'{"samples": 6')
    ]  # fmt: skip


def test_a_state_that_cannot_be_used_is_reported_and_learning_begins_anew() -> None:
    trouble, *others = reports(begin(1, b"no state"), batch())
    assert isinstance(trouble, LearnerError)
    assert not trouble.fatal
    assert "begins anew" in trouble.text
    assert any(isinstance(each, Progress) for each in others)
