"""The session of the logger: sources that fail, bags that end by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test.telemetry.recording.scripted_source import ScriptedSource, batches, wait_for
from ur_energy_model.errors import ControllerError, RecordingError, WrongRobotError
from ur_energy_model.nodes import logger as recording_session
from ur_energy_model.nodes.logger import RecordingSession
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.recording.reception import RecorderOptions
from ur_energy_model.telemetry.source import LinkStatus

Make = Callable[..., RecordingSession]


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedSource]:
    """Sources that the session makes, one after the other."""
    monkeypatch.setattr(recording_session, "RECONNECT_PERIOD", 0.01)
    monkeypatch.setattr(recording_session, "RESUME_PERIOD", 0.05)
    monkeypatch.setattr(recording_session, "STATE_PERIOD", 0.01)
    return [ScriptedSource() for _ in range(3)]


@pytest.fixture
def session(sources: list[ScriptedSource], tmp_path: Path) -> Iterator[Make]:
    made = []

    def start(*, record: bool = True, tap: Callable = lambda batch: None) -> RecordingSession:
        queue = iter(sources)
        session = RecordingSession(
            lambda: next(queue), tmp_path / "bags", RecorderOptions(), tap, record=record
        )
        made.append(session)
        session.start()
        return session

    yield start
    for each in made:
        each.stop()


def bags(folder: Path) -> list[Path]:
    return sorted((folder / "bags").iterdir()) if (folder / "bags").exists() else []


def test_the_first_sample_is_in_the_bag(session: Make, sources, tmp_path: Path) -> None:
    running = session()
    sources[0].give(*batches(4))
    wait_for(lambda: running.status.samples == 100)
    running.stop()
    (bag,) = bags(tmp_path)
    assert len(read_bag(bag)) == 100
    assert running.status.samples == 100
    assert running.status.state == "idle"


def test_the_time_that_the_end_takes_is_no_loss(session: Make, sources, monkeypatch) -> None:
    running = session()
    sources[0].give(*batches(1))
    wait_for(lambda: running.info is not None)
    closed = LinkStatus(connected=False, lost=434, lost_seconds=0.87, outage=0.87)
    monkeypatch.setattr(sources[0], "close", lambda: setattr(sources[0], "status", closed))
    running.stop()
    assert (running.link.lost, running.status.lost) == (0, 0)


def test_a_source_that_fails_is_replaced_and_recording_goes_on(
    session: Make, sources, tmp_path: Path
) -> None:
    running = session()
    sources[0].give(*batches(2))
    sources[0].give_last(EOFError())
    sources[1].give(*batches(3))
    wait_for(lambda: running.status.samples == 75)
    running.stop()
    assert [len(read_bag(bag)) for bag in bags(tmp_path)] == [50, 75]


def test_a_recording_that_was_not_wanted_is_not_begun_again(session: Make, sources) -> None:
    running = session(record=False)
    wait_for(lambda: running.info is not None)
    running.start_bag()
    running.stop_bag()
    sources[0].give_last(EOFError())
    sources[1].give(*batches(2))
    wait_for(lambda: running.info is not None)
    assert running.status.bag is None


def test_a_bag_that_cannot_be_begun_is_tried_again(session: Make, sources, tmp_path: Path) -> None:
    (tmp_path / "bags").write_text("a file in the way of the folder")
    running = session()
    wait_for(lambda: running.refusal is not None)
    sources[0].give(*batches(1))  # reading goes on
    (tmp_path / "bags").unlink()
    wait_for(lambda: running.status.state == "recording")
    wait_for(lambda: running.refusal is None)
    sources[0].give(*batches(2, first=25))
    wait_for(lambda: running.status.samples == 50)


def test_a_bag_that_ended_by_itself_is_followed_by_another(
    session: Make, sources, tmp_path: Path
) -> None:
    running = session()
    sources[0].give(*batches(2))
    wait_for(lambda: running.info is not None)
    first = running.status.bag
    recorder = running._recorder
    assert recorder is not None
    recorder._end_bag("the disk is gone")
    wait_for(lambda: running.status.bag != first and running.status.state == "recording")
    wait_for(lambda: running.refusal is None)


def test_why_there_is_no_connection(session: Make, sources, monkeypatch) -> None:
    def refuse(self: ScriptedSource) -> None:
        raise ControllerError("10.0.0.7", "no connection (refused)", "switch it on")

    monkeypatch.setattr(ScriptedSource, "__enter__", refuse)
    sources.extend(ScriptedSource() for _ in range(1000))
    running = session()
    wait_for(lambda: running.link.problem is not None)
    assert "no connection (refused)" in str(running.link.problem)
    assert not running.link.connected
    with pytest.raises(RecordingError, match="not connected"):
        running.start_bag()


def test_another_robot_ends_the_session(session: Make, sources, monkeypatch) -> None:
    def refuse(self: ScriptedSource) -> None:
        raise WrongRobotError("10.0.0.7", "is a UR3", "check the address")

    monkeypatch.setattr(ScriptedSource, "__enter__", refuse)
    running = session()
    wait_for(lambda: running.failure is not None)
    assert "is a UR3" in str(running.failure)


def test_an_unexpected_error_reaches_the_thread(
    session: Make, sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = threading.Event()
    errors: list[BaseException | None] = []

    def keep(arguments: threading.ExceptHookArgs) -> None:
        errors.append(arguments.exc_value)
        raised.set()

    monkeypatch.setattr(threading, "excepthook", keep)

    def fail(batch: object) -> None:
        raise RuntimeError("broken")

    session(tap=fail)
    sources[0].give_last(*batches(1))
    assert raised.wait(10.0)
    assert str(errors[0]) == "broken"
