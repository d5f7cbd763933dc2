# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The logger: sessions that outlive failures, energies in bags, other publishers, its folder."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from test.nodes.conftest import Cell
from test.nodes.driver import Driver
from test.nodes.moving_arm import MovingArm
from test.sinks.peers import free_port
from test.telemetry.scripted_source import ScriptedSource, batches, wait_for
from ur_energy_model import topics_and_services as topics
from ur_energy_model.nodes import logger_topics, recording_session
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.logger_topics import EnergyRecording
from ur_energy_model.nodes.process import begin
from ur_energy_model.nodes.recording_session import RecordingSession
from ur_energy_model.nodes.ros import WARN
from ur_energy_model.simulation.wall import SimulatedMeter, SimulatedWall, serve_meter
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.retention import stored_files
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import NO_LOSSES, Losses
from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions
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

    def start(
        *, record: bool = True, tap: Callable = lambda batch: None
    ) -> RecordingSession:
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


def test_recording_goes_on_with_a_source_that_replaces_a_failed_one(
    session: Make, sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first sample; losses are those of both, and the time that the end takes is none."""
    running = session()
    for number, source in enumerate(sources[:2]):
        source.status = LinkStatus(losses=Losses(3 + number, 0.008, 1))
    sources[0].give(*batches(2))
    sources[0].give_last(EOFError())
    sources[1].give(*batches(3))
    wait_for(lambda: running.status.samples == 75)
    closed = LinkStatus(connected=False, outage=0.87)
    monkeypatch.setattr(
        sources[1], "close", lambda: setattr(sources[1], "status", closed)
    )
    running.stop()
    assert running.link.losses == Losses(7, 0.016, 2)
    assert running.status.losses == NO_LOSSES
    assert (running.status.samples, running.status.state) == (75, "idle")
    assert [len(read_bag(bag)) for bag in sorted((tmp_path / "bags").iterdir())] == [
        50,
        75,
    ]


def test_a_bag_that_cannot_be_begun_or_has_ended_is_tried_again(
    session: Make, sources, tmp_path: Path
) -> None:
    (tmp_path / "bags").write_text("a file in the way of the folder")
    running = session()
    wait_for(lambda: running.refusal is not None)
    sources[0].give(*batches(1))  # reading goes on
    (tmp_path / "bags").unlink()
    wait_for(lambda: running.status.state == "recording" and running.refusal is None)
    sources[0].give(*batches(2, first=25))
    # The batch from before is in the bag, too, if the attempt that began it was under way
    # then.
    wait_for(lambda: running.status.samples in (50, 75))
    first = running.status.bag
    recorder = running._recorder
    assert recorder is not None
    recorder._end_bag("the disk is gone")
    wait_for(lambda: running.status.bag != first and running.status.state == "recording")
    wait_for(lambda: running.refusal is None)


class Subscription:
    """Hands out what a test gives it."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.waiting: tuple[list[bytes], list[int] | None] = ([], [])
        self.estimators = 1

    def publishers(self) -> list[str]:
        return ["/cell1/estimator"] * self.estimators

    def take(self, most: int) -> tuple[list[bytes], list[int] | None]:
        taken = self.waiting
        self.waiting = ([], [])
        return taken


class Node:
    """The part of a node that the recording of energies needs."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, Subscription] = {}

    def add_polled_subscription(self, _: type, topic: topics.Topic) -> Subscription:
        return self.subscriptions.setdefault(
            topic.name, Subscription(f"/cell1/{topic.name}")
        )


def test_energies_have_the_times_of_samples_and_losses_are_counted() -> None:
    node = Node()
    now = HOST_CLOCK.stamp()
    recording = EnergyRecording(node)  # type: ignore[arg-type]
    subscription = node.subscriptions["energy"]

    def message(stamp: int) -> bytes:
        return b"\0\1\0\0" + struct.pack("<iI", *divmod(stamp, 10**9)) + bytes(20)

    stamps = [now - age for age in (90_000_000, 70_000_000)]
    subscription.waiting = [message(stamp) for stamp in stamps], [1, 2]
    taken = recording.take()
    assert [int(stamp) for each in taken for stamp in each.stamp] == stamps
    assert {each.topic.name for each in taken} == {"/cell1/energy"}
    assert recording.take() == []
    looks = [
        (1, [3]),
        (1, [5, 6]),  # one is lost
        (1, [1, 2]),  # of a new publisher
        (1, [3]),
        (2, [4, 700, 5, 701]),  # a second estimator, with numbers of its own
        (2, [6]),
        (1, [702]),
        (1, [703]),
    ]
    for estimators, numbers in looks:
        subscription.estimators = estimators
        subscription.waiting = [message(now)] * len(numbers), numbers
        recording.take()
    assert (recording.recorded, recording.lost) == (15, 1)
    level, text, _ = recording.part()
    assert level == WARN
    assert "1 messages are lost" in text


def test_a_logger_is_silent_beside_a_driver_and_takes_over_when_it_is_gone(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logger_topics, "GONE_AFTER", 1.5)
    monkeypatch.setattr(logger_topics, "JUDGED_AFTER", 1.5)
    observer = cell.observer
    drivers = [Driver(cell.domain)]
    observer.subscribe("/joint_states", "sensor_msgs/JointState")

    def from_logger() -> int:
        """Messages so far that hold the moving arm's pose (the driver's are all zero)."""
        history = observer.history.get("/joint_states", [])
        return sum(any(message.position) for message in history)

    def driven(seconds: float) -> None:
        """Let the last driver publish for a while."""
        for _ in range(round(50 * seconds)):
            drivers[-1].publish()
            observer.spin(0.02)

    try:
        given = {"bag_directory": str(cell.folder), "record": False}
        logger = cell.start_node(LoggerNode, MovingArm, **given)
        observer.wait(lambda: drivers[0].subscribers >= 2, "the logger's subscription")
        driven(2.5)
        assert logger._samples
        assert from_logger() == 0
        drivers.pop().close()
        observer.wait(lambda: from_logger() > 20, "joint_states of the logger")
        before = from_logger()
        written = capfd.readouterr().err
        assert written.count("/joint_states is left to /driver") == 1
        assert written.count("published by this node again") == 1
        # The joints of a gripper do not silence it.
        drivers.append(Driver(cell.domain, ("finger_joint",)))
        for _ in range(600):
            driven(0.1)
            if from_logger() > before + 20:
                break
        assert from_logger() > before + 20
    finally:
        for each in drivers:
            each.close()


def test_it_records_under_a_budget_into_the_users_folder(
    cell: Cell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Under systemd the working directory is /."""
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(tmp_path))
    for space, directory, expected in (
        ("home", "~/mine", "mine"),
        ("unset", "cell/1", ""),
    ):
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        given = {"bag_directory": directory, "record": False}
        cell.start_node(LoggerNode, ScriptedSource, namespace=f"/{space}", **given)
        text = f"to {tmp_path / (expected or '.local/share/ur_energy/cell/1')}"
        assert text in capfd.readouterr().err
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "data" / "ur_energy" / "bags"
    node = cell.start_node(LoggerNode, MovingArm)
    cell.observer.subscribe("/joint_states", "sensor_msgs/JointState")
    cell.observer.wait_for_messages("/joint_states", 10)
    node.end()
    written = capfd.readouterr().err
    assert f"recording to {folder}; at most 20 GB" in written
    assert "record:=false" in written
    assert f"finished {folder}/" in written
    (bag,) = folder.iterdir()
    assert read_bag(bag).info.robot == "ur5e"
    assert [file.path.parent for file in stored_files(folder, {})] == [bag]
    assert not (tmp_path / ".local").exists()


def test_readings_of_a_power_meter_are_in_the_bag(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    meter = SimulatedMeter(SimulatedWall((30.0, 40.0, 45.0)))
    for time in np.arange(0.0, 4.0, 0.01).tolist():
        meter.update(time, 130.0 * time)
    with ExitStack() as servers:
        (url,) = serve_meter(meter, [f"http://127.0.0.1:{free_port()}"], servers)
        node = cell.start_node(
            LoggerNode, MovingArm, bag_directory=str(cell.folder / "bags"), meter=url
        )
        cell.observer.wait(
            lambda: node._meter is not None and node._meter.problem is None, "meter"
        )
        before = node._session.status.samples
        cell.observer.wait(lambda: node._session.status.samples > before + 500, "samples")
        node.end()
    (bag,) = (cell.folder / "bags").iterdir()
    telemetry = read_bag(bag)
    assert telemetry.info.extra["meter"] == url
    assert telemetry["wall_power"][-1] == 130.0
    assert telemetry["wall_reading"][-1] >= 1.0
    assert "Traceback" not in capfd.readouterr().err


def test_a_logger_that_cannot_start_reads_no_power_meter(cell: Cell) -> None:
    node = cell.make_node(
        LoggerNode,
        bag_directory=str(cell.folder / "bags"),
        meter=f"http://127.0.0.1:{free_port()}/rpc/Switch.GetStatus?id=0",
        fields=["actul_q"],
    )
    assert not begin([node])
    assert "power meter" not in [thread.name for thread in threading.enumerate()]


def test_a_power_meter_that_cannot_be_right_is_a_warning(cell: Cell) -> None:
    meter = SimulatedMeter(SimulatedWall((30.0, 40.0, 45.0)))
    watts = -100.0

    def named() -> bool:
        """Whether the reversed meter is named, which shows another power each time."""
        nonlocal watts
        watts -= 1.0
        meter.shown = (watts, 0.0)
        status = cell.observer.status("/diagnostics", "logger: power meter")
        return "clamp" in status["message"] and status["level"] == "1"

    with ExitStack() as servers:
        (url,) = serve_meter(meter, [f"http://127.0.0.1:{free_port()}"], servers)
        cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
        cell.start_node(
            LoggerNode, MovingArm, bag_directory=str(cell.folder / "bags"), meter=url
        )
        cell.observer.wait(named, "a warning about the meter")
        status = cell.observer.status("/diagnostics", "logger: power meter")
        assert url in status["message"]
