"""The logger: sessions that outlive failures, bags that equal the live graph, other publishers."""

from __future__ import annotations

import signal
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test.energy.known_arm import ROBOT
from test.nodes.conftest import Cell
from test.nodes.driver import Driver
from test.telemetry.scripted_source import ScriptedSource, batches, wait_for
from ur_energy_model import topics_and_services as topics
from ur_energy_model.errors import ControllerError, RecordingError
from ur_energy_model.nodes import logger as recording_session
from ur_energy_model.nodes import logger_topics as other_publishers
from ur_energy_model.nodes.logger import LoggerNode, RecordingSession
from ur_energy_model.nodes.logger_topics import EnergyRecording
from ur_energy_model.nodes.ros import WARN
from ur_energy_model.telemetry.bag.files import stored_files
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.clock import HOST_CLOCK
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


def test_a_recording_that_is_not_wanted_is_not_begun_again(session: Make, sources) -> None:
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


class Subscription:
    """Hands out what a test gives it."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.waiting: tuple[list[bytes], list[int] | None] = ([], [])

    def take(self, most: int) -> tuple[list[bytes], list[int] | None]:
        taken, self.waiting = self.waiting, ([], [])
        return taken


class Node:
    """The part of a node that the recording needs."""

    full_name = "cell1/logger"

    def __init__(self) -> None:
        self.subscriptions: dict[str, Subscription] = {}

    def add_polled_subscription(
        self, message_type: type, topic: topics.Topic, depth: int
    ) -> Subscription:
        subscription = Subscription(f"/cell1/{topic.name}")
        self.subscriptions[topic.name] = subscription
        return subscription


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def recording(node: Node) -> EnergyRecording:
    return EnergyRecording(node)  # type: ignore[arg-type]


def message(stamp: int) -> bytes:
    return b"\0\1\0\0" + struct.pack("<iI", *divmod(stamp, 10**9)) + bytes(20)


def test_log_times_are_those_of_the_samples(node: Node, recording: EnergyRecording) -> None:
    stamps = [HOST_CLOCK.stamp() - age for age in (90_000_000, 70_000_000)]
    node.subscriptions["energy"].waiting = [message(s) for s in stamps], [1, 2]
    taken = recording.take()
    assert [int(stamp) for each in taken for stamp in each.stamp] == stamps
    assert {each.topic.name for each in taken} == {"/cell1/energy"}
    assert recording.take() == []


def test_lost_messages_are_counted(node: Node, recording: EnergyRecording) -> None:
    subscription, now = node.subscriptions["energy"], HOST_CLOCK.stamp()
    for numbers in ([1, 2, 3], [5, 6], [1, 2], [3]):  # one lost, then a new publisher
        subscription.waiting = [message(now)] * len(numbers), numbers
        recording.take()
    assert (recording.recorded, recording.lost) == (8, 1)
    assert recording.status().level == WARN
    assert "1 messages are lost" in recording.status().message


@pytest.fixture
def make_driver(cell: Cell) -> Iterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def make(names: tuple[str, ...] = ROBOT.joint_names) -> Driver:
        made.append(Driver(cell.domain, names))
        return made[-1]

    yield make
    for each in made:
        each.close()


def start_logger(cell: Cell, host: str) -> LoggerNode:
    cell.start_process("simulated_robot", host=host, motion="hold")
    cell.observer.subscribe("/joint_states", "sensor_msgs/JointState")
    node = cell.start_node(LoggerNode, robot_ip=host, bag_directory=str(cell.folder))
    assert isinstance(node, LoggerNode)
    return node


def from_logger(cell: Cell) -> int:
    """Messages so far that hold the simulated arm's pose (the driver's are all zero)."""
    return sum(
        bool(message.name == list(ROBOT.joint_names) and any(message.position))
        for message in cell.observer.history.get("/joint_states", [])
    )


def driven(cell: Cell, driver: Driver, seconds: float) -> None:
    """Let a driver publish for a while."""
    for _ in range(round(50 * seconds)):
        driver.publish()
        cell.observer.spin(0.02)


def test_a_logger_is_silent_beside_a_driver_and_takes_over_when_it_is_gone(
    cell: Cell,
    fresh_host: Callable[[], str],
    make_driver: Callable[..., Driver],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(other_publishers, "GONE_AFTER", 3.0)
    driver = make_driver()
    logger = start_logger(cell, fresh_host())
    cell.observer.wait(lambda: driver.subscribers >= 2, "the logger's look")
    driven(cell, driver, 6.0)
    cell.observer.wait(lambda: logger._session.link.connected, "the controller")
    assert from_logger(cell) == 0
    stamps = [m.header.stamp for m in cell.observer.history["/joint_states"]]
    assert stamps == sorted(stamps, key=lambda each: (each.sec, each.nanosec))
    driver.close()
    cell.observer.wait(lambda: from_logger(cell) > 20, "joint_states of the logger")
    late = make_driver()
    cell.observer.wait(lambda: late.subscribers >= 2, "the logger's look")
    driven(cell, late, 3.0)
    before = from_logger(cell)
    driven(cell, late, 2.0)
    assert from_logger(cell) == before
    said = capfd.readouterr().err
    assert said.count("/joint_states is left to /driver") == 2
    assert said.count("published by this node again") == 1


def test_the_joints_of_a_gripper_do_not_silence_the_logger(
    cell: Cell, fresh_host: Callable[[], str], make_driver: Callable[..., Driver]
) -> None:
    gripper = make_driver(("finger_joint",))
    start_logger(cell, fresh_host())
    for _ in range(1000):
        driven(cell, gripper, 0.1)
        if from_logger(cell) > 20:
            break
    assert from_logger(cell) > 20


@pytest.mark.parametrize(
    ("given", "data", "expected"),
    [
        ("bags", "/tmp/user/data", "/tmp/user/data/ur_energy/bags"),
        ("cell/1", "", "/tmp/user/.local/share/ur_energy/cell/1"),
        ("bags", "relative", "/tmp/user/.local/share/ur_energy/bags"),
        ("/tmp/user/mine", "/tmp/user/data", "/tmp/user/mine"),
        ("~/mine", "/tmp/user/data", "/tmp/user/mine"),
    ],
)
def test_bags_go_to_the_folder_that_is_said(
    cell: Cell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    given: str,
    data: str,
    expected: str,
) -> None:
    """Under systemd the working directory is /."""
    monkeypatch.chdir("/")
    home = tmp_path / "user"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", data.replace("/tmp/user", str(home)))
    directory = given.replace("/tmp/user", str(home))
    cell.start_node(LoggerNode, robot_ip="127.0.9.9", bag_directory=directory)
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "recording to" in line]
    assert f"recording to {expected.replace('/tmp/user', str(home))}; at most 20 GB" in line
    assert "record:=false" in line


def test_it_records_under_a_budget_unless_switched_off(
    cell: Cell, data_folder: Path, fresh_host: Callable[[], str]
) -> None:
    host = fresh_host()
    cell.start_process("simulated_robot", host=host, motion="hold")
    folder = data_folder / "ur_energy" / "of_this_test"
    silent = cell.start_process("logger", namespace="/silent", robot_ip=host, record=False)
    child = cell.start_process("logger", robot_ip=host, bag_directory=folder.name)
    cell.observer.subscribe("/joint_states", "sensor_msgs/JointState")
    cell.observer.wait(lambda: list(folder.glob("*/*.mcap")), "a bag")
    cell.observer.wait_for_messages("/joint_states", 20)
    code, output = cell.stop(child, signal.SIGINT)
    assert code == 0
    assert f"finished {folder}/" in output
    (bag,) = folder.iterdir()
    assert len(read_bag(bag)) > 100
    assert [file.path.parent for file in stored_files(folder, {})] == [bag]
    _, output = cell.stop(silent, signal.SIGINT)
    bags = data_folder / "ur_energy" / "bags"
    assert f"not recording; the service start_recording records to {bags}" in output
    assert not bags.exists()
