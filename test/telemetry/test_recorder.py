# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The recorder: what the source sends between start and stop is in the bag, or counted as lost."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from test.telemetry.conftest import assert_same_samples, make_telemetry
from test.telemetry.recorded_events import read_events
from test.telemetry.scripted_source import ScriptedSource, batches, wait_for
from test.telemetry.system_clock import SystemClock
from ur_energy_model.errors import ControllerError, RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import NO_LOSSES, Gap, Losses
from ur_energy_model.telemetry.recording import writing_thread
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions
from ur_energy_model.telemetry.sample_queue import OVERFLOW, QueuedAction, SampleQueue
from ur_energy_model.telemetry.samples import Event, Telemetry, concatenate
from ur_energy_model.telemetry.source import LinkStatus


def readable(bag):
    """Samples of a bag that can be read back."""
    try:
        return sum(len(part) for part in iterate_bag(bag))
    except UrEnergyError:
        return 0


# A disk that works.


def test_what_comes_between_start_and_stop_is_in_the_bag(tmp_path, source, recorder):
    source.give(*batches(3))
    for number in range(2):
        bag = recorder.start(tmp_path / str(number))
        with pytest.raises(RecordingError, match="still being recorded"):
            recorder.start(tmp_path / "other")
        inside = batches(40, first=75 + 2000 * number)
        source.give(*inside)
        status = recorder.stop()
        source.give(*batches(3, first=1075 + 2000 * number))
        assert (status.state, status.samples, status.gaps) == ("idle", 1000, ())
        assert status.losses == NO_LOSSES
        read = read_bag(bag)
        assert_same_samples(read, replace(concatenate(inside), info=read.info))
    with pytest.raises(RecordingError, match="exists already"):
        recorder.start(bag)
    with pytest.raises(RecordingError, match="nothing is being recorded"):
        recorder.split()


def test_names_pretrigger_duration_and_tap(tmp_path, source):
    seen = []
    options = RecorderOptions(
        name="{robot}-{serial}-{number}", pretrigger=1.0, duration=2.0
    )
    with Recorder(source, tmp_path, options=options, tap=seen.append) as recorder:
        given = batches(100)
        source.give(*given)
        first = recorder.start()
        source.give(*batches(40, first=2500))
        assert recorder.wait(240)
        assert (recorder.status.state, recorder.status.stopped_because) == (
            "stopped",
            None,
        )
        second = recorder.start()
        recorder.stop()
    assert (first.name, second.name) == ("ur5e-1-0", "ur5e-1-1")
    read = read_bag(first).time
    assert (read[-1] - read[0], len(read)) == (pytest.approx(2.0, abs=0.01), 1000)
    assert read[0] == pytest.approx(1004.0, abs=0.06)
    assert seen[:100] == given


def test_events_modes_gaps_and_files(tmp_path, source, recorder):
    recorder.start(tmp_path / "bag")
    recorder.mark("gripper closes")
    source.events.append(Event(5, "message", "hello", 30))
    given = batches(5, modes=[7, 7, 3, 3, 7])
    gap = Gap(0, given[1].time[0], given[2].time[0], 10, "connection lost: cable")
    given[2] = replace(given[2], gaps=(gap,))
    source.give(*given)
    recorder.split()
    status = recorder.stop()
    assert (status.losses.samples, len(status.gaps), status.last_error) == (10, 1, None)
    assert read_bag(tmp_path / "bag").gaps == (replace(gap, index=50),)
    events = {(event.kind, event.text): event for event in read_events(tmp_path / "bag")}
    assert {("mark", "gripper closes"), ("message", "hello")} < set(events)
    assert events["mode", "robot_mode: power off"].stamp == given[2].stamp[0]
    assert {path.name for path in (tmp_path / "bag").glob("*.mcap")} == {
        "bag_0.mcap",
        "bag_1.mcap",
    }


def test_the_end_of_the_source_finishes_the_bag(tmp_path, source):
    for batch in batches(4):  # the first sample of the source is the first of the bag
        source.give_last(batch)
    with Recorder(source, tmp_path, record=tmp_path / "bag") as recorder:
        source.give_last(ControllerError("10.0.0.1", "gone", "look"))
        assert recorder.wait(240)
        assert recorder.status.state == "stopped"
        assert "gone" in str(recorder.status.stopped_because)
        assert read_bag(tmp_path / "bag").time[[0, -1]].tolist() == [
            1000.0,
            1000.0 + 99 / 500,
        ]
        wait_for(lambda: not recorder.reading)
        with pytest.raises(RecordingError, match="no more samples"):
            recorder.start(tmp_path / "next")


# Outages and durations.


def test_an_outage_at_the_end_is_a_gap(tmp_path, source):
    def outage(seconds):
        return LinkStatus(connected=False, problem="no answer", outage=seconds)

    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(*batches(40))
        recorder._reception.began -= 20.0
        source.status = outage(14.0)
        present = recorder.status  # the samples may still be on their way
        assert (present.outage, present.losses) == (14.0, NO_LOSSES)
        status = recorder.stop()
        source.status = outage(50.0)
        assert recorder.status == replace(status, seconds=recorder.status.seconds)
    time_ = 1000.0 + 999 / 500
    gap = Gap(1000, time_, time_ + 14.0, 7000, "connection lost: no answer", 14.0)
    assert (status.samples, status.losses, status.gaps) == (
        1000,
        Losses(7000, 14.0, 1),
        (gap,),
    )
    for telemetry in (
        read_bag(tmp_path / "bag"),
        list(iterate_bag(tmp_path / "bag"))[-1],
    ):
        assert telemetry.gaps == (gap,)
    assert recover_bag(tmp_path / "bag").samples == 1000
    assert read_bag(tmp_path / "bag").gaps == (gap,)


# Disks that fail or fill up, and bags that are deleted or changed.


@pytest.fixture
def disk(monkeypatch):
    """Lets bags take `room` bytes, and no more."""
    disk_ = SimpleNamespace(room=1 << 60)
    write = os.pwrite

    def pwrite(file, data, place):
        if place + len(data) > disk_.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data, place)

    monkeypatch.setattr("ur_energy_model.telemetry.bag.mcap_writer.os.pwrite", pwrite)
    return disk_


def begin(recorder, source, bag):
    """Record until some samples are on the disk."""
    recorder.start(bag)
    source.give(*batches(40))
    wait_for(lambda: recorder.status.bytes > 10_000)


def test_a_failing_disk_is_reported_and_survived(tmp_path, source, recorder, disk):
    begin(recorder, source, tmp_path / "bag")
    disk.room = 0
    source.give(*batches(20, first=1000))
    wait_for(lambda: recorder.status.state == "failing")
    assert os.strerror(errno.ENOSPC) in recorder.status.last_error
    disk.room = 1 << 60
    wait_for(lambda: recorder.status.state == "recording")
    source.give(*batches(20, first=1500))
    status = recorder.stop()
    assert (status.samples, status.overflow, status.losses.samples) == (2000, 0, 0)
    read = read_bag(tmp_path / "bag")
    assert_same_samples(read, replace(concatenate(batches(80)), info=read.info))
    assert any("writing failed" in event.text for event in read_events(tmp_path / "bag"))


def test_a_disk_that_is_full_for_good_costs_what_is_reported(
    tmp_path, source, recorder, disk
):
    begin(recorder, source, tmp_path / "bag")
    disk.room = recorder.status.bytes + 40_000
    source.give(*batches(60, first=1000))
    wait_for(lambda: recorder.status.state == "failing")
    disk.room = 0
    with pytest.raises(RecordingError, match="No space left"):
        recorder.stop()
    status = recorder.status
    assert 0 < status.samples == readable(tmp_path / "bag") < 2500
    assert status.samples + status.losses.samples == 2500
    with pytest.raises(RecordingError, match="No space left"):
        recorder.start(tmp_path / "second")
    assert not (tmp_path / "second").exists()
    assert recorder.status.samples == status.samples


def test_samples_that_find_no_place_while_the_disk_fails_are_a_gap_of_the_bag(
    tmp_path, source, recorder, disk, monkeypatch
):
    begin(recorder, source, tmp_path / "bag")
    disk.room = 0  # the next file cannot be begun, either
    source.give(*batches(20, first=1000))
    wait_for(lambda: recorder.status.state == "failing")
    wait_for(lambda: recorder.status.samples == 1500)  # none is in the queue any more
    monkeypatch.setattr(writing_thread, "WAITING_BYTES", 0)
    source.give(*batches(40, first=1500))
    wait_for(lambda: recorder.status.overflow == 1000)
    assert recorder.status.losses.samples == 1000  # known at once
    monkeypatch.undo()
    disk.room = 1 << 60
    wait_for(lambda: recorder.status.state == "recording")
    source.give(*batches(20, first=2500))
    status = recorder.stop()
    assert (status.samples, status.losses.samples, status.overflow) == (2000, 1000, 1000)
    read = read_bag(tmp_path / "bag")
    (gap,) = read.gaps
    assert (gap.index, gap.missing) == (1500, 1000)
    assert gap.cause.startswith(OVERFLOW)
    assert os.strerror(errno.ENOSPC) in gap.cause
    given = batches(60) + batches(20, first=2500)
    assert_same_samples(read, replace(concatenate(given), info=read.info))


def test_recording_goes_on_when_a_full_disk_has_room(tmp_path, monkeypatch):
    monkeypatch.setattr(writing_thread, "MIN_FREE_FRACTION", 2.0)
    monkeypatch.setattr(writing_thread, "MIN_FREE_BYTES", 0)
    source = ScriptedSource()
    with Recorder(source, tmp_path) as recorder:
        begin(recorder, source, tmp_path / "bag")
        monkeypatch.setattr(writing_thread, "MIN_FREE_BYTES", 1 << 60)
        wait_for(lambda: recorder.status.state == "failing")
        assert "nearly full" in str(recorder.status.last_error)
        source.give(*batches(20, first=1000))
        assert not recorder.wait(1.0)
        monkeypatch.setattr(writing_thread, "MIN_FREE_BYTES", 0)
        wait_for(lambda: recorder.status.state == "recording")
        assert recorder.stop().losses == NO_LOSSES
        monkeypatch.setattr(writing_thread, "MIN_FREE_BYTES", 1 << 60)
        with pytest.raises(RecordingError, match="nearly full"):
            recorder.start(tmp_path / "next")
        assert not (tmp_path / "next").exists()
    assert readable(tmp_path / "bag") == 1500


def test_what_is_reported_is_what_can_be_read(tmp_path, source):
    """A file that is complete disappears, the present one is overwritten, one is touched."""
    bag = tmp_path / "bag"
    options = RecorderOptions(split=FileSplit(seconds=1.0))
    with Recorder(source, options=options, record=bag) as recorder:
        source.give(*batches(80))
        wait_for(lambda: (bag / "bag_3.mcap").exists() and recorder.status.waiting == 0)
        (bag / "bag_1.mcap").unlink()
        (bag / "bag_3.mcap").write_bytes(os.urandom(20_000))
        os.utime(bag / "bag_0.mcap", (1, 1))
        with suppress(RecordingError):
            recorder.stop()
        status = recorder.status
    assert status.unreadable > 0
    assert status.samples == readable(bag) > 0
    assert status.samples + status.losses.samples == 2000
    assert status.losses.seconds == pytest.approx(status.losses.samples / 500)


# The queue between the threads: in order and bounded; what it drops is a counted gap.

QUEUED = ("actual_q", "payload", "payload_cog")
BATCH_BYTES = 25 * 8 * (1 + 1 + 6 + 1 + 3)


def put(queue, count, first=0):
    made = [make_telemetry(25, fields=QUEUED, first=first + 25 * i) for i in range(count)]
    for batch in made:
        queue.put(batch)
    return made


def drain(queue):
    return list(iter(lambda: queue.get(0.0), None))


@pytest.mark.parametrize("urgent", [Event(1, "mark", "now"), QueuedAction(lambda: None)])
def test_a_reader_waits_for_enough_samples_or_for_what_is_urgent(urgent):
    queue = SampleQueue()
    queue.awaited = 75
    with ThreadPoolExecutor(1) as reader:
        got = reader.submit(queue.get, 240.0)
        put(queue, 2)
        assert not got.done()  # 50 samples
        put(queue, 1, first=50)
        assert got.result(240.0) is not None
        assert len(drain(queue)) == 2
        got = reader.submit(queue.get, 240.0)
        put(queue, 1, first=75)
        queue.put(urgent)
        assert isinstance(got.result(240.0), Telemetry)  # first in, first out
        assert queue.get(240.0) is urgent


def test_an_overflow_is_counted_and_becomes_a_gap():
    queue = SampleQueue(memory_bytes=5 * BATCH_BYTES)
    given = put(queue, 10)
    assert queue.losses.samples == 5 * 25
    assert_same_samples(concatenate(drain(queue)), concatenate(given[:5]))
    (after,) = put(queue, 1, first=250)
    ((gap,),) = (item.gaps for item in drain(queue))
    assert (gap.index, gap.missing, gap.cause) == (0, 5 * 25, OVERFLOW)
    assert gap.end == after.time[0]
    assert queue.losses.samples == 5 * 25


def test_an_overflow_in_front_of_a_command_is_a_gap_in_front_of_it():
    """What was dropped at the end of a bag belongs to this bag, and not to the next one."""
    queue = SampleQueue(memory_bytes=5 * BATCH_BYTES)
    put(queue, 10)
    command = QueuedAction(lambda: None)
    queue.put(command)
    items = drain(queue)
    assert [len(item) for item in items[:5]] == [25] * 5
    gap, last = items[5:]
    assert (gap.missing, last) == (5 * 25, command)
    put(queue, 1, first=250)
    assert drain(queue)[0].gaps == ()


def live(count, first):
    """Batches stamped as a source would stamp them now."""
    start = HOST_CLOCK.now()
    made = batches(count, first=first)
    origin = made[0].time[0]
    return [
        replace(part, stamp=start + np.rint((part.time - origin) * 1e9).astype(np.int64))
        for part in made
    ]


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_samples_marks_and_names_share_one_clock_that_somebody_sets(
    tmp_path, monkeypatch, step
):
    system = SystemClock(monkeypatch)
    source = ScriptedSource()
    before = HOST_CLOCK.check()
    bags = []
    stamps = []
    marks = []
    with Recorder(source, tmp_path) as recorder:
        for number in range(2):
            bags.append(recorder.start())
            source.give(*live(4, 200 * number))
            if not number:
                system.step(step)
            recorder.mark("after the step")
            source.give(*live(4, 200 * number + 100))
            recorder.stop()
    monkeypatch.undo()
    assert HOST_CLOCK.check() == before + 2  # there and back
    for bag in bags:
        stamps.append(np.array(read_bag(bag).stamp))
        events = {event.kind: event for event in read_events(bag)}
        marks.append(events["mark"].stamp)
        assert np.ptp(stamps[-1]) * 1e-9 < 60
        assert abs(marks[-1] - stamps[-1][0]) * 1e-9 < 60
    assert any("was set" in event.text for event in read_events(bags[0]))
    assert (stamps[1][0] - stamps[0][-1]) * 1e-9 == pytest.approx(step, abs=60)
