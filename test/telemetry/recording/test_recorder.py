"""The recorder: what the source gave is in the bag, whatever happens in between."""

import errno
import os
import queue as queues
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import ControllerError, RecordingError
from ur_energy_model.telemetry.bag.layout import Event
from ur_energy_model.telemetry.bag.naming import Retention
from ur_energy_model.telemetry.bag.source import read_bag, read_events
from ur_energy_model.telemetry.recording import bag_keeper, recorder
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.sample_queue import OVERFLOW, SampleQueue
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, concatenate

FIELDS = ("actual_q", "robot_mode", "safety_mode")


class ScriptedSource:
    """Hands out what a test gives it, and raises what a test gives it."""

    def __init__(self, info=None):
        self.info = info or RecordingInfo(source="script", robot="ur5e", serial="1", rate=500.0)
        self.fields = ("timestamp", *FIELDS)
        self.events = []
        self._items = queues.Queue()
        self._given = 0
        self._taken = threading.Semaphore(0)

    def give(self, *items):
        """Returns once all of it was taken, and the last of it was dealt with."""
        for item in items:
            self._items.put(item)
        self._items.put(None)
        for _ in range(len(items) + 1):
            assert self._taken.acquire(timeout=10.0)

    def read(self, timeout):
        try:
            item = self._items.get(timeout=timeout)
        except queues.Empty:
            return None
        self._taken.release()
        if isinstance(item, BaseException):
            raise item
        return item

    def take_events(self):
        events, self.events = self.events, []
        return events

    def close(self):
        pass


def batches(count, first=0, modes=None):
    made = []
    for i in range(count):
        batch = make_telemetry(25, fields=FIELDS, first=first + 25 * i)
        columns = dict(batch.columns)
        columns["robot_mode"] = np.full(25, 7.0 if modes is None else modes[i])
        columns["safety_mode"] = np.full(25, 1.0)
        made.append(replace(batch, columns=columns))
    return made


@pytest.fixture
def source():
    return ScriptedSource()


@pytest.fixture
def anywhere(tmp_path, source):
    with Recorder(source, tmp_path) as recorder_:
        yield recorder_


def wait_for(condition, timeout=10.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_what_comes_between_start_and_stop_is_in_the_bag(tmp_path, source, anywhere):
    source.give(*batches(3))
    bag = anywhere.start(tmp_path / "bag")
    inside = batches(40, first=75)
    source.give(*inside)
    status = anywhere.stop()
    source.give(*batches(3, first=1075))
    assert bag == tmp_path / "bag"
    assert (status.state, status.samples, status.lost, status.gaps) == ("idle", 1000, 0, ())
    read = read_bag(bag)
    assert_same_samples(read, replace(concatenate(inside), info=read.info))


def test_one_recorder_makes_many_bags(tmp_path, source, anywhere):
    for i in range(3):
        anywhere.start(tmp_path / str(i))
        source.give(*batches(4, first=1000 * i))
        anywhere.stop()
    assert [read_bag(tmp_path / str(i)).time[0] for i in range(3)] == [1000.0, 1002.0, 1004.0]


def test_names_come_from_the_template(tmp_path, source):
    with Recorder(source, tmp_path, name="{robot}-{serial}-{number}") as named:
        first = named.start()
        named.stop()
        second = named.start()
        named.stop()
    assert (first.name, second.name) == ("ur5e-1-0", "ur5e-1-1")


def test_the_seconds_before_the_start_are_there_too(tmp_path, source):
    with Recorder(source, tmp_path, pretrigger=1.0) as early:
        source.give(*batches(100))
        early.start(tmp_path / "bag")
        source.give(*batches(2, first=2500))
        early.stop()
    time_ = read_bag(tmp_path / "bag").time
    assert time_[-1] - time_[0] == pytest.approx(1.1, abs=0.06)
    assert np.allclose(np.diff(time_), 0.002)


def test_the_time_is_over_by_the_controllers_clock(tmp_path, source):
    with Recorder(source, tmp_path, duration=1.0) as limited:
        limited.start(tmp_path / "bag")
        source.give(*batches(30))
        assert limited.wait(5.0)
        assert limited.status.state == "stopped"
        assert limited.status.stopped_because is None
    assert len(read_bag(tmp_path / "bag")) == 500


def test_marks_and_messages_are_in_the_bag(tmp_path, source, anywhere):
    anywhere.start(tmp_path / "bag")
    anywhere.mark("gripper closes")
    source.events.append(Event(5, "message", "hello", 30))
    source.give(*batches(2))
    anywhere.stop()
    events = {event.kind: event.text for event in read_events(tmp_path / "bag")}
    assert events == {"mark": "gripper closes", "message": "hello"}


def test_changes_of_mode_are_events_not_errors(tmp_path, source, anywhere):
    anywhere.start(tmp_path / "bag")
    given = batches(5, modes=[7, 7, 3, 3, 7])
    source.give(*given)
    status = anywhere.stop()
    assert status.last_error is None
    modes = [event for event in read_events(tmp_path / "bag") if event.kind == "mode"]
    assert [event.text for event in modes] == ["robot_mode: power off", "robot_mode: running"]
    assert [event.stamp for event in modes] == [given[2].stamp[0], given[4].stamp[0]]


def test_gaps_are_in_the_bag_and_in_the_status(tmp_path, source, anywhere):
    first, second = batches(1)[0], batches(1, first=35)[0]
    gap = Gap(0, first.time[-1], second.time[0], 10, "connection lost: cable")
    anywhere.start(tmp_path / "bag")
    source.give(first, replace(second, gaps=(gap,)))
    status = anywhere.stop()
    assert (status.lost, len(status.gaps)) == (10, 1)
    assert read_bag(tmp_path / "bag").gaps == (replace(gap, index=25),)


def test_splitting_on_request(tmp_path, source, anywhere):
    anywhere.start(tmp_path / "bag")
    source.give(*batches(4))
    anywhere.split()
    source.give(*batches(4, first=100))
    anywhere.stop()
    assert sorted(path.name for path in (tmp_path / "bag").iterdir()) == [
        "bag_0.mcap",
        "bag_1.mcap",
        "metadata.yaml",
    ]
    assert len(read_bag(tmp_path / "bag")) == 200


def test_wrong_requests_are_refused(tmp_path, source, anywhere):
    for request in (anywhere.split, lambda: anywhere.mark("x")):
        with pytest.raises(RecordingError, match="nothing is being recorded"):
            request()
    anywhere.start(tmp_path / "bag")
    with pytest.raises(RecordingError, match="still being recorded"):
        anywhere.start(tmp_path / "other")
    anywhere.stop()
    with pytest.raises(RecordingError, match="exists already"):
        anywhere.start(tmp_path / "bag")
    assert anywhere.stop().state == "idle"


@pytest.mark.parametrize(
    ("end", "because"),
    [
        (EOFError(), None),
        (ControllerError("10.0.0.1", "gone", "look"), "gone"),
        (ValueError("a bug"), "a bug"),
    ],
)
def test_the_end_of_the_source_finishes_the_bag(tmp_path, source, anywhere, end, because):
    anywhere.start(tmp_path / "bag")
    source.give(*batches(4))
    source._items.put(end)
    assert anywhere.wait(10.0)
    status = anywhere.status
    assert status.state == "stopped"
    assert (
        (status.stopped_because is None) if because is None else because in status.stopped_because
    )
    assert len(read_bag(tmp_path / "bag")) == 100
    wait_for(lambda: not anywhere._reading.is_alive())
    with pytest.raises(RecordingError, match="no more samples"):
        anywhere.start(tmp_path / "next")


def test_every_batch_passes_the_tap(tmp_path, source):
    seen = []
    with Recorder(source, tmp_path, tap=seen.append):
        given = batches(5)
        source.give(*given)
    assert seen == given


@contextmanager
def disk_that_refuses(monkeypatch, code=errno.ENOSPC):
    """Every write to a bag fails."""
    with monkeypatch.context() as patch:

        def refuse(*_):
            raise OSError(code, os.strerror(code))

        patch.setattr("ur_energy_model.telemetry.bag.mcap_writer.os.pwrite", refuse)
        yield


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_failing_disk_is_reported_and_survived(tmp_path, source, anywhere, monkeypatch, code):
    given = batches(60)
    anywhere.start(tmp_path / "bag")
    source.give(*given[:20])
    with disk_that_refuses(monkeypatch, code):
        source.give(*given[20:40])
        wait_for(lambda: anywhere.status.state == "failing")
        assert os.strerror(code) in anywhere.status.last_error
    wait_for(lambda: anywhere.status.state == "recording")
    source.give(*given[40:])
    status = anywhere.stop()
    assert (status.samples, status.overflow, status.lost) == (1500, 0, 0)
    assert os.strerror(code) in status.last_error
    read = read_bag(tmp_path / "bag")
    assert_same_samples(read, replace(concatenate(given), info=read.info))
    assert len(list((tmp_path / "bag").glob("*.mcap"))) == 2
    assert any("writing failed" in event.text for event in read_events(tmp_path / "bag"))


def test_a_disk_that_refuses_for_good_does_not_hold_up_stopping(
    tmp_path, source, anywhere, monkeypatch
):
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", 0.5)
    anywhere.start(tmp_path / "bag")
    source.give(*batches(40))
    wait_for(lambda: anywhere.status.bytes > 10_000)
    with disk_that_refuses(monkeypatch):
        source.give(*batches(40, first=1000))
        wait_for(lambda: anywhere.status.state == "failing")
        source.give(*batches(10, first=2000))
        with pytest.raises(RecordingError, match="No space left"):
            anywhere.stop()
        assert anywhere.status.overflow > 0
    assert len(read_bag(tmp_path / "bag")) >= 250


def test_a_deleted_bag_is_noticed_and_begun_anew(tmp_path, source, anywhere):
    anywhere.start(tmp_path / "bag")
    source.give(*batches(40))
    wait_for(lambda: anywhere.status.bytes > 10_000)
    shutil.rmtree(tmp_path / "bag")
    wait_for(lambda: anywhere.status.last_error is not None)
    wait_for(lambda: anywhere.status.state == "recording")
    source.give(*batches(40, first=1000))
    anywhere.stop()
    assert len(read_bag(tmp_path / "bag")) >= 1000


def test_a_full_queue_is_a_counted_gap(tmp_path, source, monkeypatch):
    small = SampleQueue(memory_bytes=20_000, spill_bytes=20_000)
    with Recorder(source, tmp_path, queue=small) as narrow:
        narrow.start(tmp_path / "bag")
        with disk_that_refuses(monkeypatch):
            source.give(*batches(40))
            wait_for(lambda: narrow.status.state == "failing")
            source.give(*batches(100, first=1000))
            assert narrow.status.overflow > 0
            assert narrow.status.spilled > 0
        wait_for(lambda: narrow.status.waiting == 0)
        source.give(*batches(1, first=3500))
        status = narrow.stop()
    read = read_bag(tmp_path / "bag")
    (gap,) = [gap for gap in read.gaps if gap.cause == OVERFLOW]
    assert gap.missing == status.overflow == status.lost
    assert len(read) + gap.missing == 3525


def fill_disk(monkeypatch, full=True):
    monkeypatch.setattr(bag_keeper, "MIN_FREE_BYTES", 1 << 60 if full else 0)
    monkeypatch.setattr(bag_keeper, "MIN_FREE_FRACTION", 2.0)


def test_recording_ends_before_the_disk_is_full(tmp_path, source, anywhere, monkeypatch):
    monkeypatch.setattr(bag_keeper, "ROOM_SECONDS", 1.0)
    anywhere.start(tmp_path / "bag")
    source.give(*batches(20))
    fill_disk(monkeypatch)
    wait_for(lambda: anywhere.status.state == "failing")
    source.give(*batches(20, first=500))
    assert anywhere.wait(10.0)
    assert "the disk is nearly full" in anywhere.status.stopped_because
    assert len(read_bag(tmp_path / "bag")) == 1000
    with pytest.raises(RecordingError, match="nearly full"):
        anywhere.start(tmp_path / "next")
    assert not (tmp_path / "next").exists()


def test_room_that_comes_back_is_used(tmp_path, source, anywhere, monkeypatch):
    anywhere.start(tmp_path / "bag")
    source.give(*batches(20))
    fill_disk(monkeypatch)
    wait_for(lambda: anywhere.status.state == "failing")
    source.give(*batches(20, first=500))
    fill_disk(monkeypatch, full=False)
    wait_for(lambda: anywhere.status.state == "recording")
    source.give(*batches(20, first=1000))
    status = anywhere.stop()
    assert (status.samples, status.overflow) == (1500, 0)
    assert len(read_bag(tmp_path / "bag")) == 1500


def test_old_bags_go_when_new_ones_come(tmp_path, source):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    with Recorder(source, tmp_path, name="{number}", retention=Retention(bags=2)) as tidy:
        for i in range(4):
            bag = tidy.start()
            os.utime(bag, (i, i))
            source.give(*batches(1, first=25 * i))
            tidy.stop()
            os.utime(bag, (i, i))
    bags = [path for path in tmp_path.iterdir() if path.name != "precious"]
    assert sorted(read_bag(bag).time[0] for bag in bags) == [1000.1, 1000.15]
    assert (tmp_path / "precious" / "thesis.txt").exists()
