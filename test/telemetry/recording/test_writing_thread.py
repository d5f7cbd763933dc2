"""Recording over failures: disks that fail or fill up, deleted bags, a full queue."""

import errno
import os
import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest

from test.telemetry.conftest import assert_same_samples
from test.telemetry.recording.scripted_source import batches, wait_for
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.reader import read_bag, read_events
from ur_energy_model.telemetry.recording import writing_thread
from ur_energy_model.telemetry.recording import writing_thread as fault_tolerant_writer
from ur_energy_model.telemetry.recording.reception import OVERFLOW, SampleQueue
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import concatenate


@contextmanager
def disk_that_refuses(monkeypatch, code=errno.ENOSPC):
    """Every write to a bag fails."""
    with monkeypatch.context() as patch:

        def refuse(*_):
            raise OSError(code, os.strerror(code))

        patch.setattr("ur_energy_model.telemetry.bag.mcap_writer.os.pwrite", refuse)
        yield


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_failing_disk_is_reported_and_survived(tmp_path, source, recorder, monkeypatch, code):
    given = batches(60)
    recorder.start(tmp_path / "bag")
    source.give(*given[:20])
    with disk_that_refuses(monkeypatch, code):
        source.give(*given[20:40])
        wait_for(lambda: recorder.status.state == "failing")
        assert os.strerror(code) in recorder.status.last_error
    wait_for(lambda: recorder.status.state == "recording")
    source.give(*given[40:])
    status = recorder.stop()
    assert (status.samples, status.overflow, status.lost) == (1500, 0, 0)
    assert os.strerror(code) in status.last_error
    read = read_bag(tmp_path / "bag")
    assert_same_samples(read, replace(concatenate(given), info=read.info))
    assert len(list((tmp_path / "bag").glob("*.mcap"))) == 2
    assert any("writing failed" in event.text for event in read_events(tmp_path / "bag"))


def test_a_disk_that_refuses_for_good_does_not_hold_up_stopping(
    tmp_path, source, recorder, monkeypatch
):
    monkeypatch.setattr(writing_thread, "GIVE_UP_SECONDS", 0.5)
    recorder.start(tmp_path / "bag")
    source.give(*batches(40))
    wait_for(lambda: recorder.status.bytes > 10_000)
    with disk_that_refuses(monkeypatch):
        source.give(*batches(40, first=1000))
        wait_for(lambda: recorder.status.state == "failing")
        source.give(*batches(10, first=2000))
        with pytest.raises(RecordingError, match="No space left"):
            recorder.stop()
        assert recorder.status.overflow > 0
    assert len(read_bag(tmp_path / "bag")) >= 250


def test_a_deleted_bag_is_noticed_and_continued_in_a_new_file(tmp_path, source, recorder):
    recorder.start(tmp_path / "bag")
    source.give(*batches(40))
    wait_for(lambda: recorder.status.bytes > 10_000)
    shutil.rmtree(tmp_path / "bag")
    wait_for(lambda: recorder.status.last_error is not None)
    wait_for(lambda: recorder.status.state == "recording")
    source.give(*batches(40, first=1000))
    recorder.stop()
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
    (gap,) = [gap for gap in read.gaps if gap.cause.startswith(OVERFLOW)]
    assert gap.missing == status.overflow == status.lost
    assert len(read) + gap.missing == 3525


def fill_disk(monkeypatch, full=True):
    monkeypatch.setattr(fault_tolerant_writer, "MIN_FREE_BYTES", 1 << 60 if full else 0)
    monkeypatch.setattr(fault_tolerant_writer, "MIN_FREE_FRACTION", 2.0)


def test_recording_ends_before_the_disk_is_full(tmp_path, source, recorder, monkeypatch):
    monkeypatch.setattr(fault_tolerant_writer, "ROOM_SECONDS", 1.0)
    recorder.start(tmp_path / "bag")
    source.give(*batches(20))
    fill_disk(monkeypatch)
    wait_for(lambda: recorder.status.state == "failing")
    source.give(*batches(20, first=500))
    assert recorder.wait(10.0)
    assert "the disk is nearly full" in recorder.status.stopped_because
    assert len(read_bag(tmp_path / "bag")) == 1000
    with pytest.raises(RecordingError, match="nearly full"):
        recorder.start(tmp_path / "next")
    assert not (tmp_path / "next").exists()


def test_room_that_comes_back_is_used(tmp_path, source, recorder, monkeypatch):
    recorder.start(tmp_path / "bag")
    source.give(*batches(20))
    fill_disk(monkeypatch)
    wait_for(lambda: recorder.status.state == "failing")
    source.give(*batches(20, first=500))
    fill_disk(monkeypatch, full=False)
    wait_for(lambda: recorder.status.state == "recording")
    source.give(*batches(20, first=1000))
    status = recorder.stop()
    assert (status.samples, status.overflow) == (1500, 0)
    assert len(read_bag(tmp_path / "bag")) == 1500
