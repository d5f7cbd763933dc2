"""The recorder: what the source sends between start and stop is in the bag."""

from dataclasses import replace

import numpy as np
import pytest

from test.telemetry.conftest import assert_same_samples
from test.telemetry.recording.scripted_source import batches, wait_for
from ur_energy_model.errors import ControllerError, RecordingError
from ur_energy_model.telemetry.bag.reader import read_bag, read_events
from ur_energy_model.telemetry.recording.reception import RecorderOptions
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import Event, Gap, concatenate


def test_what_comes_between_start_and_stop_is_in_the_bag(tmp_path, source, recorder):
    source.give(*batches(3))
    bag = recorder.start(tmp_path / "bag")
    inside = batches(40, first=75)
    source.give(*inside)
    status = recorder.stop()
    source.give(*batches(3, first=1075))
    assert bag == tmp_path / "bag"
    assert (status.state, status.samples, status.lost, status.gaps) == ("idle", 1000, 0, ())
    read = read_bag(bag)
    assert_same_samples(read, replace(concatenate(inside), info=read.info))


def test_one_recorder_makes_many_bags(tmp_path, source, recorder):
    for i in range(3):
        recorder.start(tmp_path / str(i))
        source.give(*batches(4, first=1000 * i))
        recorder.stop()
    assert [read_bag(tmp_path / str(i)).time[0] for i in range(3)] == [1000.0, 1002.0, 1004.0]


def test_names_come_from_the_template(tmp_path, source):
    with Recorder(
        source, tmp_path, options=RecorderOptions(name="{robot}-{serial}-{number}")
    ) as named:
        first = named.start()
        named.stop()
        second = named.start()
        named.stop()
    assert (first.name, second.name) == ("ur5e-1-0", "ur5e-1-1")


def test_the_seconds_before_the_start_are_there_too(tmp_path, source):
    with Recorder(source, tmp_path, options=RecorderOptions(pretrigger=1.0)) as early:
        source.give(*batches(100))
        early.start(tmp_path / "bag")
        source.give(*batches(2, first=2500))
        early.stop()
    time_ = read_bag(tmp_path / "bag").time
    assert time_[-1] - time_[0] == pytest.approx(1.1, abs=0.06)
    assert np.allclose(np.diff(time_), 0.002)


def test_the_time_is_over_by_the_controllers_clock(tmp_path, source):
    with Recorder(source, tmp_path, options=RecorderOptions(duration=1.0)) as limited:
        limited.start(tmp_path / "bag")
        source.give(*batches(30))
        assert limited.wait(5.0)
        assert limited.status.state == "stopped"
        assert limited.status.stopped_because is None
    assert len(read_bag(tmp_path / "bag")) == 500


def test_marks_and_messages_are_in_the_bag(tmp_path, source, recorder):
    recorder.start(tmp_path / "bag")
    recorder.mark("gripper closes")
    source.events.append(Event(5, "message", "hello", 30))
    source.give(*batches(2))
    recorder.stop()
    events = {event.kind: event.text for event in read_events(tmp_path / "bag")}
    assert events == {"mark": "gripper closes", "message": "hello"}


def test_changes_of_mode_are_events_not_errors(tmp_path, source, recorder):
    recorder.start(tmp_path / "bag")
    given = batches(5, modes=[7, 7, 3, 3, 7])
    source.give(*given)
    status = recorder.stop()
    assert status.last_error is None
    modes = [event for event in read_events(tmp_path / "bag") if event.kind == "mode"]
    assert [event.text for event in modes] == ["robot_mode: power off", "robot_mode: running"]
    assert [event.stamp for event in modes] == [given[2].stamp[0], given[4].stamp[0]]


def test_gaps_are_in_the_bag_and_in_the_status(tmp_path, source, recorder):
    first, second = batches(1)[0], batches(1, first=35)[0]
    gap = Gap(0, first.time[-1], second.time[0], 10, "connection lost: cable")
    recorder.start(tmp_path / "bag")
    source.give(first, replace(second, gaps=(gap,)))
    status = recorder.stop()
    assert (status.lost, len(status.gaps)) == (10, 1)
    assert read_bag(tmp_path / "bag").gaps == (replace(gap, index=25),)


def test_splitting_on_request(tmp_path, source, recorder):
    recorder.start(tmp_path / "bag")
    source.give(*batches(4))
    recorder.split()
    source.give(*batches(4, first=100))
    recorder.stop()
    assert sorted(path.name for path in (tmp_path / "bag").iterdir()) == [
        "bag_0.mcap",
        "bag_1.mcap",
        "metadata.yaml",
    ]
    assert len(read_bag(tmp_path / "bag")) == 200


def test_wrong_requests_are_refused(tmp_path, source, recorder):
    for request in (recorder.split, lambda: recorder.mark("x")):
        with pytest.raises(RecordingError, match="nothing is being recorded"):
            request()
    recorder.start(tmp_path / "bag")
    with pytest.raises(RecordingError, match="still being recorded"):
        recorder.start(tmp_path / "other")
    recorder.stop()
    with pytest.raises(RecordingError, match="exists already"):
        recorder.start(tmp_path / "bag")
    assert recorder.stop().state == "idle"


@pytest.mark.parametrize(
    ("end", "because"),
    [
        (EOFError(), None),
        (ControllerError("10.0.0.1", "gone", "look"), "gone"),
        (ValueError("a bug"), "a bug"),
    ],
)
def test_the_end_of_the_source_finishes_the_bag(tmp_path, source, recorder, end, because):
    recorder.start(tmp_path / "bag")
    source.give(*batches(4))
    source._items.put(end)
    assert recorder.wait(10.0)
    status = recorder.status
    assert status.state == "stopped"
    assert (
        (status.stopped_because is None) if because is None else because in status.stopped_because
    )
    assert len(read_bag(tmp_path / "bag")) == 100
    wait_for(lambda: not recorder._reading.is_alive())
    with pytest.raises(RecordingError, match="no more samples"):
        recorder.start(tmp_path / "next")


def test_every_batch_passes_the_tap(tmp_path, source):
    seen = []
    with Recorder(source, tmp_path, tap=seen.append):
        given = batches(5)
        source.give(*given)
    assert seen == given
