"""What is reported is what can be read back; the rest of what was received is lost, and said."""

import errno
import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.telemetry.conftest import make_telemetry
from test.telemetry.recording.scripted_source import FIELDS, ScriptedSource, batches, wait_for
from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag, read_events
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.recording import writing_thread
from ur_energy_model.telemetry.recording import writing_thread as fault_tolerant_writer
from ur_energy_model.telemetry.recording.reception import OVERFLOW, Command, RecorderOptions
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import Gap, find_gaps
from ur_energy_model.telemetry.source import LinkStatus


def readable(bag):
    """Samples of a bag that can be read back."""
    try:
        return sum(len(part) for part in iterate_bag(bag))
    except UrEnergyError:
        return 0


def stop(recorder):
    """Status after stopping, however the disk is."""
    try:
        return recorder.stop()
    except RecordingError:
        return recorder.status


def delete_file(bag):
    (bag / "bag_0.mcap").unlink()


def delete_bag(bag):
    shutil.rmtree(bag)


def delete_parent(bag):
    shutil.rmtree(bag.parent)


def rename_bag(bag):
    bag.rename(bag.with_name("elsewhere"))


def replace_file(bag):
    other = bag / "other"
    other.write_bytes(os.urandom(5000))
    other.replace(bag / "bag_0.mcap")


def empty_file(bag):
    (bag / "bag_0.mcap").write_bytes(b"")


def overwrite_file(bag):
    size = (bag / "bag_0.mcap").stat().st_size
    (bag / "bag_0.mcap").write_bytes(os.urandom(size))


HARM = [
    delete_file,
    delete_bag,
    delete_parent,
    rename_bag,
    replace_file,
    empty_file,
    overwrite_file,
]


@pytest.mark.parametrize("harm", HARM, ids=lambda each: each.__name__)
@pytest.mark.parametrize("at_once", [True, False], ids=["then stopped", "then continued"])
def test_what_is_reported_is_what_can_be_read(tmp_path, harm, at_once):
    source, bag = ScriptedSource(), tmp_path / "folder" / "bag"
    with Recorder(source, record=bag) as recorder:
        source.give(*batches(40))
        wait_for(lambda: recorder.status.bytes > 10_000)
        harm(bag)
        if not at_once:
            wait_for(lambda: recorder.status.last_error is not None)
            wait_for(lambda: recorder.status.state == "recording")
            source.give(*batches(40, first=1000))
        status = stop(recorder)
    assert status.samples == readable(bag)
    assert status.samples + status.lost == (1000 if at_once else 2000)
    assert status.unreadable > 0
    assert status.lost_seconds == pytest.approx(status.lost / 500)
    if not at_once:
        (gap,) = read_bag(bag).gaps
        assert (gap.index, gap.missing) == (0, status.lost)
        assert gap.start == 1000.0
        assert "can no longer be read" in gap.cause
        assert any("can no longer be read" in event.text for event in read_events(bag))


def test_a_file_that_was_complete_is_missed_too(tmp_path, source):
    options = RecorderOptions(split=FileSplit(seconds=1.0))
    with Recorder(source, options=options, record=tmp_path / "bag") as recorder:
        source.give(*batches(80))
        wait_for(lambda: (tmp_path / "bag" / "bag_2.mcap").exists())
        (tmp_path / "bag" / "bag_1.mcap").unlink()
        status = recorder.stop()
    assert status.samples == readable(tmp_path / "bag") > 1000
    assert status.samples + status.lost == 2000


def test_a_touched_file_is_still_ours(tmp_path, source):
    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(*batches(40))
        wait_for(lambda: recorder.status.bytes > 10_000)
        os.utime(tmp_path / "bag" / "bag_0.mcap", (1, 1))
        source.give(*batches(40, first=1000))
        status = recorder.stop()
    assert (status.samples, status.lost, status.last_error) == (2000, 0, None)
    assert readable(tmp_path / "bag") == 2000


class FullDisk:
    """Lets bags take some bytes, and no more."""

    def __init__(self, monkeypatch, room):
        self.room, write = room, os.pwrite

        def pwrite(file, data, place):
            if place + len(data) > self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(file, data, place)

        monkeypatch.setattr("ur_energy_model.telemetry.bag.mcap_writer.os.pwrite", pwrite)


def test_a_disk_that_is_full_for_good_costs_what_is_said(tmp_path, source, monkeypatch):
    monkeypatch.setattr(writing_thread, "GIVE_UP_SECONDS", 0.5)
    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(*batches(20))
        wait_for(lambda: recorder.status.bytes > 10_000)
        disk = FullDisk(monkeypatch, recorder.status.bytes + 40_000)
        source.give(*batches(60, first=500))
        wait_for(lambda: recorder.status.state == "failing")
        disk.room = 0
        status = stop(recorder)
    assert 500 <= status.samples == readable(tmp_path / "bag") < 2000
    assert status.samples + status.lost == 2000


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 5 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=5M", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_a_small_disk_that_fills_up_costs_what_is_said(small_disk, source, monkeypatch):
    monkeypatch.setattr(fault_tolerant_writer, "ROOM_SECONDS", 0.5)
    with Recorder(source, record=small_disk / "bag") as recorder:
        source.give(*batches(40))
        wait_for(lambda: recorder.status.bytes > 10_000)
        fill(small_disk)
        source.give(*batches(1000, first=1000))
        assert recorder.wait(30.0)
        status = recorder.status
    assert "full" in str(status.stopped_because)
    assert 0 < status.samples == readable(small_disk / "bag")
    assert status.samples + status.lost == 26000


def test_recording_resumes_when_a_full_disk_has_room_again(small_disk, source, monkeypatch):
    monkeypatch.setattr(fault_tolerant_writer, "ROOM_SECONDS", 0.5)
    resuming = Recorder(source, options=RecorderOptions(resume=True), record=small_disk / "bag")
    with resuming as recorder:
        source.give(*batches(20))
        wait_for(lambda: recorder.status.bytes > 10_000)
        filler = fill(small_disk)
        source.give(*batches(20, first=500))
        wait_for(lambda: recorder.status.state == "failing")
        time.sleep(1.0)  # longer than a recorder that does not resume would wait
        assert recorder.status.state == "failing"
        assert "full" in str(recorder.status.last_error)
        filler.unlink()
        wait_for(lambda: recorder.status.state == "recording")
        source.give(*batches(20, first=1000))
        status = recorder.stop()
    assert (status.samples, status.lost, status.stopped_because) == (1500, 0, None)
    assert readable(small_disk / "bag") == 1500
    assert any("writing again" in event.text for event in read_events(small_disk / "bag"))


def outage(seconds, **options):
    return LinkStatus(
        connected=False, problem="no answer", outage=seconds, lost_seconds=seconds, **options
    )


def test_an_outage_at_the_end_is_a_gap(tmp_path, source):
    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(*batches(40))
        recorder._reception.began -= 20.0
        source.status = outage(14.0)
        assert (recorder.status.lost, recorder.status.lost_seconds) == (7000, 14.0)
        status = recorder.stop()
        source.status = outage(50.0)
        assert recorder.status == replace(status, seconds=recorder.status.seconds)
    assert (status.samples, status.lost, status.lost_seconds) == (1000, 7000, 14.0)
    time_ = 1000.0 + 999 / 500
    gap = Gap(1000, time_, time_ + 14.0, 7000, "connection lost: no answer", 14.0)
    assert status.gaps == (gap,)
    for telemetry in (read_bag(tmp_path / "bag"), list(iterate_bag(tmp_path / "bag"))[-1]):
        assert telemetry.gaps == (gap,)
        assert telemetry.lost == 7000
        assert telemetry.duration == pytest.approx(999 / 500)
    (said,) = [event for event in read_events(tmp_path / "bag") if event.kind == "gap"]
    assert "7000 samples missing at the end" in said.text
    assert recover_bag(tmp_path / "bag").samples == 1000
    assert read_bag(tmp_path / "bag").gaps == (gap,)


def test_an_outage_counts_no_longer_than_the_bag(tmp_path, source):
    options = RecorderOptions(duration=10.0)
    with Recorder(source, options=options, record=tmp_path / "bag") as recorder:
        source.give(*batches(40))
        source.status = outage(500.0)
        assert recorder.status.lost < 5000  # the bag has just begun
        recorder._reception.began -= 600.0
        status = recorder.stop()
    assert (status.samples, status.lost) == (1000, 4000)


def test_samples_behind_the_duration_end_a_bag_in_its_gap(tmp_path, source):
    late = batches(1, first=20_000)[0]
    gap = Gap(0, 1001.998, 1040.0, 18_999, "connection lost: cable")
    options = RecorderOptions(duration=10.0)
    with Recorder(source, options=options, record=tmp_path / "bag") as recorder:
        source.give(*batches(40), replace(late, gaps=(gap,)))
        assert recorder.wait(10.0)
        status = recorder.status
    assert (status.samples, status.lost) == (1000, 4000)
    assert [each.cause for each in read_bag(tmp_path / "bag").gaps] == ["connection lost: cable"]


@pytest.mark.parametrize(("before", "missing"), [(13, 25), (25, 0)], ids=["inside", "behind"])
def test_a_gap_among_samples_at_the_end_of_a_bag_counts_up_to_its_end(
    tmp_path, source, before, missing
):
    """Ten batches of 25; in the last one the bag's duration is over, after some samples."""
    batch = make_telemetry(1000, fields=FIELDS, first=0)
    kept = 225 + before
    batch = batch.select((np.arange(1000) < kept) | (np.arange(1000) >= 600))
    batch = replace(batch, gaps=find_gaps(batch.time, 0.002))
    duration = (225 + before + missing) / 500
    options = RecorderOptions(duration=duration, fields=("actual_q",))
    with Recorder(source, options=options, record=tmp_path / "bag") as recorder:
        source.give(batch)
        assert recorder.wait(10.0)
        status = recorder.status
    assert (status.samples, status.lost) == (kept, missing)
    assert sum(gap.missing for gap in read_bag(tmp_path / "bag").gaps) == missing


def test_samples_dropped_while_the_disk_fails_are_a_gap_of_the_bag(tmp_path, source, monkeypatch):
    """The budget's commands wait in the queue while the disk is full, and make room."""
    monkeypatch.setattr(writing_thread, "GIVE_UP_SECONDS", 0.1)
    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(*batches(20))
        wait_for(lambda: recorder.status.bytes > 10_000)
        disk = FullDisk(monkeypatch, recorder.status.bytes)
        source.give(*batches(20, first=500))
        wait_for(lambda: recorder.status.state == "failing")
        source.give(*batches(20, first=1000))
        command = Command(lambda: None)
        recorder._queue.put(command)
        command.result.result(20.0)
        disk.room = 1 << 40
        source.give(*batches(20, first=1500))
        wait_for(lambda: recorder.status.state == "recording")
        status = recorder.stop()
    assert status.lost == status.overflow > 0
    read = read_bag(tmp_path / "bag")
    assert (len(read), read.lost) == (status.samples, status.lost)
    assert len(read) + read.lost == 2000
    assert [gap.cause for gap in read.gaps] == [OVERFLOW]


def test_a_gap_counts_from_the_beginning_of_the_bag(tmp_path, source):
    batch = batches(1, first=30_000)[0]
    gap = Gap(0, 1000.0, 1060.0, 29_999, "connection lost: cable")
    with Recorder(source, record=tmp_path / "bag") as recorder:
        source.give(replace(batch, gaps=(gap,)))
        status = recorder.stop()
    assert status.lost < 5000
    assert status.lost_seconds < 10.0


def test_the_first_sample_of_the_source_is_the_first_of_the_bag(tmp_path, source):
    for batch in batches(4):
        source._items.put(batch)
    with Recorder(source, tmp_path, record=True) as recorder:
        bag = recorder.status.bag
        source.give(*batches(4, first=100))
        status = recorder.stop()
    assert (status.samples, status.lost) == (200, 0)
    assert read_bag(str(bag)).time[0] == 1000.0


def test_a_recorder_that_cannot_begin_is_not_entered(tmp_path, source):
    (tmp_path / "bag").mkdir()
    with (
        pytest.raises(RecordingError, match="exists already"),
        Recorder(source, record=tmp_path / "bag"),
    ):
        pass


def test_a_restart_does_not_make_a_bag_longer(tmp_path, source):
    options = RecorderOptions(duration=10.0)
    with Recorder(source, options=options, record=tmp_path / "bag") as recorder:
        source.give(*batches(100))
        recorder._reception.began -= 8.0
        # A clock that is behind, but after the first sample; that of the host goes on.
        again = batches(80, first=50)
        first, *rest = (replace(each, stamp=each.stamp + 10**10) for each in again)
        gap = Gap(0, 1004.998, 1000.1, 1500, "controller restarted", 3.0)
        source.give(replace(first, gaps=(gap,)), *rest)
        assert recorder.wait(10.0)
        status = recorder.status
    assert status.samples == len(read_bag(tmp_path / "bag"))
    # 10 s at 500 Hz, less what this test took beside other processes; not 1500 samples more
    assert 4000 < status.samples + status.lost < 5250


def test_a_defect_in_writing_ends_the_bag_and_not_the_recorder(tmp_path, source, monkeypatch):
    with Recorder(source, tmp_path, record=True) as recorder:
        source.give(*batches(20))

        def fail(*_):
            raise ValueError("a defect")

        with monkeypatch.context() as patch:
            patch.setattr(recorder._writing._writer, "write", fail)
            source.give(*batches(20, first=500))
            assert recorder.wait(10.0)
        status = recorder.status
        assert "a defect" in str(status.stopped_because)
        assert status.samples == readable(status.bag)
        assert status.samples + status.lost >= 500
        again = recorder.start()
        source.give(*batches(4, first=1000))
        assert recorder.stop().samples == readable(again) == 100


def test_a_bag_that_cannot_be_begun_leaves_nothing(tmp_path, source, monkeypatch):
    with Recorder(source, record=tmp_path / "first") as recorder:
        source.give(*batches(2))
        ended = recorder.stop()
        FullDisk(monkeypatch, 0)
        with pytest.raises(RecordingError, match="No space left"):
            recorder.start(tmp_path / "second")
        assert not (tmp_path / "second").exists()
        assert recorder.status.samples == ended.samples == 50
