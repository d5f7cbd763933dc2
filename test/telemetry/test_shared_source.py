"""SharedSource: every consumer gets every sample once, in order."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry import source as module
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import Consumer, LinkStatus, SharedSource
from ur_energy_model.typing import Self


class Numbers:
    """A source whose samples are numbered; it waits for `go`, and ends after `count`."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count, self.error = count, error
        self.go = threading.Event()
        self.next = 0
        self.open = False
        self.info = RecordingInfo(source="numbers", rate=500.0)
        self.fields = ("timestamp",)
        self.status = LinkStatus(reconnects=2)
        self.events = [Event(1, "message", "hello")]

    def __enter__(self) -> Self:
        self.open = True
        return self

    def read(self, timeout: float) -> Telemetry | None:
        if not self.go.wait(timeout):
            return None
        if self.next >= self.count:
            raise self.error or EOFError
        time = np.arange(self.next, self.next + 5) / 500.0
        self.next += 5
        return Telemetry(time, {"timestamp": time}, self.info)

    def take_events(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        self.open = False

    def __exit__(self, *_: object) -> None:
        self.close()


def drain(consumer: Consumer) -> list[Telemetry]:
    batches = []
    while True:
        try:
            batch = consumer.read(5.0)
        except EOFError:
            return batches
        assert batch is not None
        batches.append(batch)


def test_every_consumer_gets_every_sample_in_order() -> None:
    source = Numbers(1000)
    shared = SharedSource(lambda: source)
    with shared.consumer() as quick, shared.consumer(100) as slow:
        assert quick.fields == ("timestamp",)
        assert slow.info.source == "numbers"
        source.go.set()
        for batches in (drain(quick), drain(slow)):
            time = np.concatenate([batch.time for batch in batches])
            assert time == pytest.approx(np.arange(1000) / 500.0)
    assert not source.open


def test_status_and_events_are_those_of_the_source() -> None:
    source = Numbers(10)
    shared = SharedSource(lambda: source)
    consumer = shared.consumer()
    assert not consumer.status.connected
    assert consumer.take_events() == []
    with consumer, shared.consumer() as other:
        assert consumer.status == other.status == source.status
        assert [event.text for event in consumer.take_events()] == ["hello"]
        assert other.take_events() == []


def test_a_consumer_may_wait_for_more_samples() -> None:
    source = Numbers(1000)
    with SharedSource(lambda: source).consumer(100) as consumer:
        source.go.set()
        first = consumer.read(5.0)
        assert first is not None
        assert len(first) >= 100


def test_nothing_in_time_is_none() -> None:
    with SharedSource(lambda: Numbers(10)).consumer() as consumer:
        assert consumer.read(0.05) is None


def test_the_source_stays_until_the_last_consumer_leaves() -> None:
    source = Numbers(1000)
    shared = SharedSource(lambda: source)
    first, second = shared.consumer(), shared.consumer()
    first.__enter__()
    second.__enter__()
    first.close()
    assert source.open
    second.close()
    assert not source.open


def test_a_failure_reaches_everybody_and_the_next_attempt_starts_anew() -> None:
    made: list[Numbers] = []

    def make() -> Numbers:
        made.append(Numbers(10, ControllerError("numbers", "is gone", "look for it")))
        return made[-1]

    shared = SharedSource(make)
    with shared.consumer() as one, shared.consumer() as two:
        made[0].go.set()
        for consumer in (one, two):
            got = 0
            while got < 10:
                batch = consumer.read(5.0)
                assert batch is not None
                got += len(batch)
            with pytest.raises(ControllerError, match="is gone"):
                consumer.read(5.0)
    with shared.consumer() as again:
        assert len(made) == 2
        made[1].go.set()
        assert again.read(5.0) is not None


def test_a_consumer_that_lags_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 20)
    source = Numbers(10)

    def batch(first: int) -> Telemetry:
        time = np.arange(first, first + 8) / 500.0
        return Telemetry(time, {"timestamp": time}, source.info)

    with SharedSource(lambda: source).consumer() as consumer:
        for first in range(0, 40, 8):
            consumer.put(batch(first))
        kept = consumer.read(5.0)
        assert kept is not None
        assert (len(kept), kept.gaps) == (16, ())
        consumer.put(batch(40))
        later = consumer.read(5.0)
        assert later is not None
        (gap,) = later.gaps
        assert (gap.index, gap.missing, gap.cause) == (0, 24, module.LAG)
        assert (gap.start, gap.end) == (16 / 500, 40 / 500)
        assert consumer.status.lost == 24


class Unreachable(Numbers):
    """A source that tries to connect until it is closed."""

    def __init__(self) -> None:
        super().__init__(10)
        self.entering, self.closed = threading.Event(), threading.Event()
        self.status = LinkStatus(connected=False, problem="no answer")

    def __enter__(self) -> Self:
        self.entering.set()
        assert self.closed.wait(10.0)
        raise ControllerError("numbers", "was closed", "connect again")

    def close(self) -> None:
        self.closed.set()


def test_closing_ends_the_wait_for_a_controller() -> None:
    made: list[Unreachable] = []

    def make() -> Unreachable:
        made.append(Unreachable())
        return made[-1]

    shared = SharedSource(make)
    first, second = shared.consumer(), shared.consumer()

    def enter(consumer: Consumer) -> None:
        with pytest.raises(ControllerError, match="closed"):
            consumer.__enter__()

    threads = [threading.Thread(target=enter, args=[each]) for each in (first, second)]
    threads[0].start()
    while not made:
        threads[0].join(0.01)
    assert made[0].entering.wait(5.0)
    threads[1].start()
    assert first.status.problem == second.status.problem == "no answer"
    second.close()
    threads[1].join(5.0)
    assert not threads[1].is_alive()
    assert threads[0].is_alive()
    first.close()
    threads[0].join(5.0)
    assert not threads[0].is_alive()
