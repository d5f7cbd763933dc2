# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What live and recorded sources share: runs of samples, one connection for many, lower rates."""

import threading

import numpy as np
import pytest

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry import shared_source
from ur_energy_model.telemetry.gaps import Losses
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.shared_source import LAG, SharedSource
from ur_energy_model.telemetry.source import Decimator, LinkStatus

# One connection for several consumers.


class Numbers:
    """A source whose samples are numbered; it waits for `go`, and ends after `count`."""

    def __init__(self, count=1000, error=None):
        self.count = count
        self.error = error
        self.go = threading.Event()
        self.closed = threading.Event()
        self.next = 0
        self.info = RecordingInfo(source="numbers", rate=500.0)
        self.fields = ("timestamp",)
        self.status = LinkStatus(reconnects=2)
        self.events = [Event(1, "message", "hello")]

    def __enter__(self):
        return self

    def read(self, timeout):
        if not self.go.wait(timeout):
            return None
        if self.next >= self.count:
            raise self.error or EOFError
        self.next += 5
        return numbered(self.next - 5, 5)

    def take_events(self):
        events = self.events
        self.events = []
        return events

    def close(self):
        self.closed.set()

    def __exit__(self, *_):
        self.close()


def numbered(first, count):
    time = np.arange(first, first + count) / 500.0
    return Telemetry(
        time, {"timestamp": time}, RecordingInfo(source="numbers", rate=500.0)
    )


def batches_of(consumer, end=EOFError):
    """All batches up to the error that ends them."""
    batches = []
    while True:
        try:
            batch = consumer.read(240.0)
        except end:
            return batches
        assert batch is not None
        batches.append(batch)


def drain(consumer, end=EOFError):
    """All times up to the error that ends them."""
    return [time for batch in batches_of(consumer, end) for time in batch.time.tolist()]


def test_every_consumer_gets_every_sample_in_order():
    source = Numbers()
    shared = SharedSource(lambda: source)
    consumer = shared.consumer()
    assert not consumer.status.connected
    with consumer as one, shared.consumer() as two:
        assert (one.fields, two.info) == (source.fields, source.info)
        assert one.status == two.status == source.status
        assert [event.text for event in one.take_events()] == ["hello"]
        assert two.take_events() == []
        assert one.read(0.05) is None
        source.go.set()
        for each in (one, two):
            assert drain(each) == pytest.approx(np.arange(1000) / 500.0)
        one.close()
        assert not source.closed.is_set()
    assert source.closed.is_set()


def test_batches_of_a_consumer_have_its_time_span_whatever_the_source_reads():
    source = Numbers(200)
    shared = SharedSource(lambda: source)
    with shared.consumer(0.08) as coarse, shared.consumer() as fine:
        for number in range(7):
            coarse.queue.put(numbered(5 * number, 5))
        # fewer than 40: its thread is not woken up for these
        assert coarse.queue.samples == 35
        early = coarse.read(0.01)
        assert early is not None
        assert len(early) == 35  # but they do not wait longer than the timeout
        source.go.set()
        lengths = [len(batch) for batch in batches_of(coarse)]
        assert sum(lengths) == 200
        assert all(length >= 40 for length in lengths[:-1])
        assert len(drain(fine)) == 200


def test_a_failure_reaches_everybody_and_the_next_attempt_starts_anew():
    made = [
        Numbers(10, ControllerError("numbers", "is gone", "look for it"))
        for _ in range(2)
    ]
    left = list(made)
    shared = SharedSource(lambda: left.pop(0))
    with shared.consumer() as one, shared.consumer() as two:
        made[0].go.set()
        for consumer in (one, two):
            assert len(drain(consumer, ControllerError)) == 10
    with shared.consumer() as again:
        made[1].go.set()
        assert again.read(5.0) is not None


def test_a_consumer_that_lags_has_a_gap(monkeypatch):
    monkeypatch.setattr(shared_source, "MOST_WAITING", 20 * 2 * 8)
    with SharedSource(Numbers).consumer() as consumer:
        for first in range(0, 40, 8):
            consumer.queue.put(numbered(first, 8))
        kept = consumer.read(5.0)
        consumer.queue.put(numbered(40, 8))
        later = consumer.read(5.0)
        assert kept is not None
        assert later is not None
        assert (len(kept), kept.gaps) == (16, ())
        (gap,) = later.gaps
        assert (gap.index, gap.missing, gap.cause) == (0, 24, LAG)
        assert (gap.start, gap.end) == (16 / 500, 40 / 500)
        assert consumer.status.losses == Losses(24, 24 / 500, 1)


# A lower rate: the mean is exact, on any grid of batches.


def test_what_came_late_is_taken_in_parts_or_counted_as_missed():
    random = np.random.default_rng(3)
    rate = 50.0
    start = 0
    times = 7.0 + 0.002 * np.arange(5000, dtype=np.float64)
    decimator = Decimator(rate)
    published = missed = 0
    while start < len(times):
        size = 10 * int(random.integers(1, 31))
        batch = times[start : start + size]
        parts, left_out = decimator.parts(batch)
        assert np.concatenate([batch[part] for part in parts]).tolist() == batch.tolist()
        missed += left_out
        published += sum(decimator.due(float(batch[part][-1])) for part in parts)
        start += size
    assert published + missed == pytest.approx(10.0 * rate, rel=0.01)
    assert missed > 0
