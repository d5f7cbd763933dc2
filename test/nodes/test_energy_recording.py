"""EnergyRecording: times and numbers of the messages it takes."""

from __future__ import annotations

import struct

import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from test.nodes.conftest import Cell
from ur_energy_model import topics_and_services as topics
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.logger_topics import MOST_AWAY_NS, EnergyRecording
from ur_energy_model.nodes.ros import WARN, time_message
from ur_energy_model.telemetry.clock import HOST_CLOCK


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


def test_times_of_a_replayed_bag_are_replaced(node: Node, recording: EnergyRecording) -> None:
    """An estimator that plays an old bag must not begin the new one years ago."""
    old = HOST_CLOCK.stamp() - 10 * MOST_AWAY_NS
    node.subscriptions["energy/summary"].waiting = [message(old)], [1]
    (taken,) = recording.take()
    assert abs(int(taken.stamp[0]) - HOST_CLOCK.stamp()) < MOST_AWAY_NS


def test_lost_messages_are_counted(node: Node, recording: EnergyRecording) -> None:
    subscription, now = node.subscriptions["energy"], HOST_CLOCK.stamp()
    for numbers in ([1, 2, 3], [5, 6], [1, 2], [3]):  # one lost, then a new publisher
        subscription.waiting = [message(now)] * len(numbers), numbers
        recording.take()
    assert (recording.recorded, recording.lost) == (8, 1)
    assert recording.status().level == WARN
    assert "1 messages are lost" in recording.status().message


def test_messages_too_short_for_a_stamp_are_left_out(
    node: Node, recording: EnergyRecording
) -> None:
    node.subscriptions["energy/cycle"].waiting = [b"\0\1\0\0", b""], None
    assert recording.take() == []


def test_the_stamp_is_where_ros_puts_it(node: Node, recording: EnergyRecording) -> None:
    stamp = HOST_CLOCK.stamp()
    encoded = serialize_message(JointState(header=Header(stamp=time_message(stamp)), name=["a"]))
    node.subscriptions["energy"].waiting = [encoded], [1]
    (taken,) = recording.take()
    assert int(taken.stamp[0]) == stamp


def test_a_logger_without_record_energy_subscribes_to_nothing(cell: Cell) -> None:
    cell.start_node(LoggerNode, record_energy=False, robot_ip="127.0.9.9", record=False)
    found = dict(cell.observer.node.get_topic_names_and_types())
    assert "/energy" not in found
