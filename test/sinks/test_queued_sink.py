"""QueuedSink: never blocks its owner, counts what it leaves out, comes back by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import cast

import pytest

from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.sink import ArmReading, QueuedSink


class Recorder:
    """A delivery that keeps what it gets, and fails when told to."""

    name = "recorder"
    clients = 1

    def __init__(self) -> None:
        self.got: list[object] = []
        self.opened = self.closed = 0
        self.broken = False
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> None:
        self.opened += 1
        if self.broken:
            raise ConnectionRefusedError("nobody listens")

    def deliver(self, reading: ArmReading) -> None:
        self.gate.wait(20)
        if self.broken:
            raise BrokenPipeError("gone")
        self.got.append(reading)

    def close(self) -> None:
        self.closed += 1


def reading(number: int) -> ArmReading:
    return cast("ArmReading", number)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(sinks, "LONGEST_PAUSE", 0.02)


def test_everything_arrives_in_order() -> None:
    delivery = Recorder()
    sink = QueuedSink(delivery)
    for k in range(40):
        sink.offer(reading(k))
    sink.close()
    assert delivery.got == list(range(40))
    assert (sink.status.delivered, sink.status.dropped) == (40, 0)
    assert delivery.closed == 1


def test_a_stalled_sink_never_blocks_and_drops_the_oldest() -> None:
    delivery = Recorder()
    delivery.gate.clear()
    sink = QueuedSink(delivery, most_waiting=3)
    until(lambda: sink.status.problem is None)
    sink.offer(reading(0))
    until(lambda: sink.status.waiting == 0)  # the first one is being delivered
    for k in range(1, 11):
        sink.offer(reading(k))
    assert sink.status.dropped == 7
    delivery.gate.set()
    sink.close()
    assert delivery.got == [0, 8, 9, 10]


def test_a_failed_sink_comes_back() -> None:
    delivery = Recorder()
    delivery.broken = True
    sink = QueuedSink(delivery)
    until(lambda: "nobody listens" in (sink.status.problem or ""))
    sink.offer(reading(1))
    delivery.broken = False
    until(lambda: delivery.got == [1])
    delivery.broken = True
    sink.offer(reading(2))
    until(lambda: sink.status.problem is not None)
    delivery.broken = False
    until(lambda: sink.status.problem is None)
    sink.offer(reading(3))
    until(lambda: delivery.got == [1, 3])
    assert (sink.status.delivered, sink.status.dropped) == (2, 1)
    sink.close()
    assert delivery.closed == delivery.opened


def test_closing_does_not_wait_for_a_sink_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "LAST_CHANCE", 0.05)
    delivery = Recorder()
    delivery.gate.clear()
    sink = QueuedSink(delivery)
    sink.offer(reading(1))
    sink.close()  # returns although the delivery hangs
    assert delivery.got == []
    delivery.gate.set()
