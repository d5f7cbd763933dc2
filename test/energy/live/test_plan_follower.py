"""Reader thread, and what a planned motion took."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets, total
from ur_energy_model.energy.live import source_reader as module
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.plan_follower import PlanFollower
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.energy.prediction import PlanEnergy
from ur_energy_model.errors import ControllerError, RecordingError
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus


def test_the_motion_after_a_plan_is_measured() -> None:
    zero = np.zeros(6)
    plan = PlanEnergy(ROBOT.joint_names, zero, zero, zero, 4.0, 0.0, 0.0, 0.0)
    estimator, follower = LiveEstimator(known_model(), ROBOT), PlanFollower()
    follower.expect(plan)
    parts = [
        motion(2.0, speed=0.0),
        motion(4.0, start=102.002),
        motion(2.0, start=106.004, speed=0.0),
    ]
    found = []
    for part in parts:
        for batch in packets(part, 10):
            estimator.update(batch)
            snapshot = estimator.snapshot()
            assert snapshot is not None
            done = follower.update(snapshot)
            found += [] if done is None else [done]
    ((same, measured),) = found
    assert same is plan
    truth = np.trapezoid(total(parts[1]), parts[1].time)
    assert measured.net[estimator.channels.arm["total"]] == pytest.approx(truth, rel=0.03)
    assert measured.accounted == pytest.approx(4.0, abs=0.1)


class Script:
    """A source whose reads do what a script says."""

    info = RecordingInfo(source="script")
    fields = ("timestamp",)
    status = LinkStatus()

    def __init__(self, steps: Iterator[Callable[[], Telemetry | None]]) -> None:
        self.steps = steps

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, timeout: float) -> Telemetry | None:
        return next(self.steps)()

    def take_events(self) -> list[Event]:
        return []

    def close(self) -> None:
        pass


def batch() -> Telemetry:
    return Telemetry(np.zeros(1), {})


def fail(error: Exception) -> Callable[[], Telemetry | None]:
    def step() -> Telemetry | None:
        raise error

    return step


def finished(reader: SourceReader) -> SourceReader:
    reader.start()
    reader._thread.join(20.0)
    assert not reader._thread.is_alive()
    return reader


def test_a_lost_controller_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_PERIOD", 0.01)
    lost = ControllerError("script", "is gone", "wait")
    steps = iter([batch, fail(lost), batch, lambda: None, fail(EOFError())])
    got: list[Telemetry] = []
    reader = finished(SourceReader(lambda: Script(steps), got.append))
    assert len(got) == 2
    assert (reader.attempts, reader.ended, reader.failure, reader.problem) == (2, True, None, None)


def test_other_errors_end_the_thread_and_are_kept() -> None:
    error = RecordingError("script", "is damaged", "record again")
    reader = finished(SourceReader(lambda: Script(iter([fail(error)])), lambda _: None))
    assert reader.failure is error
    assert "damaged" in str(reader.problem)


def test_a_fault_of_the_consumer_is_not_swallowed() -> None:
    def consume(_: Telemetry) -> None:
        raise ZeroDivisionError

    reader = finished(SourceReader(lambda: Script(iter([batch])), consume))
    assert isinstance(reader.failure, ZeroDivisionError)


def test_a_recorded_source_may_be_repeated() -> None:
    rounds = iter([[batch, fail(EOFError())], [batch, fail(EOFError())]])
    stop = threading.Event()

    def source() -> Script:
        steps = next(rounds, None)
        if steps is None:
            stop.set()
            raise RecordingError("script", "has no more rounds", "end")
        return Script(iter(steps))

    got: list[Telemetry] = []
    finished(SourceReader(source, got.append, loop=True))
    assert len(got) == 2
    assert stop.is_set()
