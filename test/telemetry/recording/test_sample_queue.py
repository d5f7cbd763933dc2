"""The queue between reading and writing: in order and bounded; what it drops is a counted gap."""

import threading
from collections import deque

import numpy as np
import pytest

from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.telemetry.recording.reception import OVERFLOW, Command, SampleQueue
from ur_energy_model.telemetry.samples import Event, Telemetry, concatenate

FIELDS = ("actual_q", "payload", "payload_cog")
BATCH_BYTES = 25 * 8 * (1 + 1 + 6 + 1 + 3)


def batches(count, first=0):
    return [make_telemetry(25, fields=FIELDS, first=first + 25 * i) for i in range(count)]


def drain(queue):
    items = []
    while (item := queue.get(0.0)) is not None:
        items.append(item)
    return items


def test_everything_comes_out_in_order():
    queue = SampleQueue()
    put = [*batches(3), Event(5, "mark", "x"), *batches(2, first=75)]
    for item in put:
        queue.put(item)
    assert queue.samples == 125
    assert drain(queue) == put
    assert queue.samples == 0


def test_what_does_not_fit_waits_in_a_file():
    queue = SampleQueue(memory_bytes=3 * BATCH_BYTES)
    put = batches(40)
    for batch in put:
        queue.put(batch)
    assert queue.samples == 1000
    assert queue.spilled == 37 * 25
    assert queue.overflow == 0
    got = drain(queue)
    assert_same_samples(concatenate(got), concatenate(put))
    queue.close()


def test_the_file_is_used_again_once_it_is_empty():
    queue = SampleQueue(memory_bytes=BATCH_BYTES, spill_bytes=6 * BATCH_BYTES)
    for round_ in range(20):
        put = batches(5, first=round_ * 125)
        for batch in put:
            queue.put(batch)
        assert_same_samples(concatenate(drain(queue)), concatenate(put))
    assert queue.overflow == 0
    queue.close()


def test_an_overflow_is_counted_and_becomes_a_gap():
    queue = SampleQueue(memory_bytes=2 * BATCH_BYTES, spill_bytes=2 * BATCH_BYTES)
    put = batches(10)
    for batch in put:
        queue.put(batch)
    got = drain(queue)
    kept = len(got)
    assert queue.overflow == (10 - kept) * 25
    assert_same_samples(concatenate(got), concatenate(put[:kept]))
    after = make_telemetry(25, fields=FIELDS, first=250)
    queue.put(after)
    (last,) = drain(queue)
    (gap,) = last.gaps
    assert (gap.index, gap.missing, gap.cause) == (0, queue.overflow, OVERFLOW)
    assert gap.end == after.time[0]
    queue.close()


def test_commands_are_taken_from_the_head_only():
    queue = SampleQueue()
    command = Command(lambda: 42)
    queue.put(command)
    queue.put(batches(1)[0])
    assert queue.get(0.0, commands_only=True) is command
    assert queue.get(0.0, commands_only=True) is None
    assert isinstance(queue.get(0.0), Telemetry)


def test_samples_in_front_of_a_command_can_be_dropped():
    queue = SampleQueue()
    for batch in batches(4):
        queue.put(batch)
    queue.drop_before_command()
    assert queue.samples == 100
    command = Command(lambda: None)
    queue.put(command)
    queue.drop_before_command()
    assert queue.overflow == 100
    assert drain(queue) == [command]


@pytest.mark.parametrize(
    ("memory", "waits"),
    [(100, True), (1, True), (100, False)],
    ids=["in memory", "in the file", "still to come"],
)
def test_samples_dropped_in_front_of_a_command_are_a_gap_in_front_of_the_next(memory, waits):
    queue = SampleQueue(memory_bytes=memory * BATCH_BYTES)
    for batch in batches(4):
        queue.put(batch)
    queue.put(Command(lambda: None))
    after = make_telemetry(25, fields=FIELDS, first=100)
    if waits:
        queue.put(after)
    queue.drop_before_command()
    if not waits:
        queue.put(after)
    _, last = drain(queue)
    (gap,) = last.gaps
    assert (gap.index, gap.missing, gap.end) == (0, 100, after.time[0])
    assert_same_samples(last, after)
    assert queue.take_gap() is None
    queue.close()


def test_samples_that_are_dropped_last_are_one_gap():
    queue = SampleQueue(memory_bytes=2 * BATCH_BYTES, spill_bytes=0)
    for batch in batches(4):
        queue.put(batch)
    queue.put(Command(lambda: None))
    queue.drop_before_command()
    gap = queue.take_gap()
    assert gap is not None
    assert (gap.missing, gap.start, gap.end) == (100, 1000.0, 1000.0 + 99 / 500)


def test_commands_return_results_and_errors():
    command = Command(lambda: 42)
    command.execute()
    assert command.result.result(0.0) == 42
    failing = Command(lambda: 1 // 0)
    failing.execute()
    with pytest.raises(ZeroDivisionError):
        failing.result.result(0.0)


def test_two_threads_lose_nothing():
    queue = SampleQueue(memory_bytes=5 * BATCH_BYTES)
    put = batches(400)
    got: list[Telemetry] = []
    writer = threading.Thread(target=lambda: deque(map(queue.put, put), maxlen=0))
    writer.start()
    while sum(len(part) for part in got) < 10_000:
        item = queue.get(1.0)
        assert isinstance(item, Telemetry)
        got.append(item)
    writer.join()
    times = np.concatenate([batch.time for batch in got])
    assert np.array_equal(times, np.concatenate([batch.time for batch in put]))
    queue.close()
