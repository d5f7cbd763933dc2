# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of the logger: joint_states, the energies that bags keep, and marks.

joint_states are published unless a driver does (`JointStatesPublisher`). What an
estimator publishes in the namespace of the logger goes into the bags
(`EnergyRecording`), and a mark is a serialized String (`label_of`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState

from ur_energy_model import topics_and_services as names
from ur_energy_model.errors import InputError
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.ros import (
    OK,
    WARN,
    Part,
    PolledSubscription,
    has_subscribers,
    joint_state,
    publishing_nodes,
    time_message,
)
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET, CdrError, CdrParser
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    JOINT_STATE,
    BagTopic,
    Messages,
)
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.joint_states import JointStateFormats, as_array
from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.telemetry.source import Decimator

DEPTH = 50  # messages that are not examined yet; a driver repeats itself
STAMPS_KEPT = 1000
"""Own messages whose stamps are kept, to distinguish them from other messages."""
JUDGED_AFTER = 2.0
"""Time for which the messages of another publisher are awaited at the start [s]."""
GONE_AFTER = 10.0  # silence after which another publisher no longer counts [s]


class JointStatesPublisher:
    """Publishes joint_states at a rate [Hz], in any thread, unless another node does.

    Only messages with joints of this arm count: a gripper's driver may use the same
    topic. The topic is subscribed to only while another node publishes it.

    Args:
        node: node that publishes the messages.
        joints: names of the joints, with their prefix [n].
        rate: largest rate of messages [Hz].
    """

    def __init__(self, node: ManagedNode, joints: Sequence[str], rate: float) -> None:
        self._node = node
        self._joints = tuple(joints)
        self._due = Decimator(rate)
        self._publisher = node.add_publisher(JointState, names.JOINT_STATES)
        self._topic = node.resolve_topic_name(names.JOINT_STATES.name)
        self._other = replace(  # all publishers, whatever their quality of service
            names.JOINT_STATES,
            subscribed=True,
            depth=DEPTH,
            reliable=False,
            adjustable=(),
        )
        self._subscription: PolledSubscription | None = None
        self._formats = JointStateFormats()
        self._own: deque[int] = deque(maxlen=STAMPS_KEPT)
        self._began: float | None = None
        self._other_seen: float | None = None
        # whether this node should publish; False until the first check
        self._alone = False
        node.on_discard(self._unsubscribe)

    def publish(self, batch: Telemetry) -> None:
        """Publish samples that are due, if they are subscribed and no other node does.

        Positions are in rad, velocities in rad/s, and efforts the motor currents in A, as
        the UR driver has them.

        Args:
            batch: samples that follow the previous ones; the reading thread calls.
        """
        columns = batch.columns
        if "actual_q" not in columns:
            return
        velocities = columns.get("actual_qd")
        currents = columns.get("actual_current")
        parts, _ = self._due.parts(batch.time)
        for part in parts:
            row = part.stop - 1  # its newest sample
            due = self._due.due(float(batch.time[row]))
            if not (due and self._alone and has_subscribers(self._publisher)):
                continue
            if batch.stamp is None:
                stamp = self._node.get_clock().now().nanoseconds
            else:
                stamp = int(batch.stamp[row])
            self._own.append(stamp)
            message = joint_state(
                self._joints,
                time_message(stamp),
                columns["actual_q"][row],
                None if velocities is None else velocities[row],
                None if currents is None else currents[row],
            )
            self._publisher.publish(message)

    def poll(self) -> str | None:
        """Find out which nodes publish the topic.

        It is called about once a second, in the executor's thread.

        Another node counts from its first message with joints of this arm until
        GONE_AFTER of silence. While another publisher of the topic is there, this node
        begins to publish only JUDGED_AFTER after its start, because the messages of the
        other one may have the joints of this arm.

        Returns:
            A line when another node begins to publish the joints, or has ended, else
            None.
        """
        now = time.monotonic()
        topic = self._topic
        if self._began is None:
            self._began = now
        own = self._node.get_fully_qualified_name()
        others = sorted(set(publishing_nodes(self._node, topic)) - {own})
        if not others:
            self._unsubscribe()
        elif self._hears_joints():
            already = self._other_seen is not None
            self._alone = False
            self._other_seen = now
            if not already:
                names = ", ".join(others)
                return (
                    f"{topic} is left to {names}, which publishes the joints of this arm"
                )
        if self._other_seen is not None:
            if now - self._other_seen < GONE_AFTER:
                return None
            self._alone = True
            self._other_seen = None
            return f"{topic} is published by this node again, since no other node does"
        if not others or now - self._began > JUDGED_AFTER:
            self._alone = True
        return None

    def _unsubscribe(self) -> None:
        """Take no messages of other nodes any more."""
        if self._subscription is not None:
            self._subscription.destroy()
            self._subscription = None

    def _hears_joints(self) -> bool:
        """Whether messages of another node name joints of this arm."""
        if self._subscription is None:
            self._subscription = PolledSubscription(self._node, JointState, self._other)
        for message in self._subscription.take(DEPTH)[0]:
            with suppress(CdrError):
                found, _ = self._formats.run([message], 0)
                stamp, _ = found.template.decode(as_array([message]))
                named = not set(self._joints).isdisjoint(found.names)
                if named and int(stamp[0]) not in self._own:
                    return True
        return False


RECORDED = {
    "sensor_msgs/JointState": (JointState, JOINT_STATE),
    "diagnostic_msgs/DiagnosticArray": (DiagnosticArray, DIAGNOSTIC_ARRAY),
}
"""Message type of ROS, and message type in bags, by the name of the type."""
MOST_TAKEN = 1000  # messages of a topic that are taken at once
LARGEST_RECORDED = 1_000_000
"""Largest message for the bags [bytes]; an estimator's have less than 20,000."""
MOST_AWAY_NS = 10_000_000_000
"""Largest distance of a stamp from the present [ns]; a message with another stamp is
recorded at the present time, because no sample of this arm has such a stamp."""


class EnergyRecording:
    """Messages of the estimator in the namespace of a node, for the bags.

    The writing thread of the recorder takes them twice a second from where the middleware
    keeps them: the thread that reads the samples never waits for them.

    Args:
        node: node in whose namespace the estimator is.

    Attributes:
        recorded: messages taken so far.
        lost: messages missing so far, where the middleware numbers them.
        refused: messages that no estimator publishes: without a header, or larger than
            LARGEST_RECORDED.
    """

    def __init__(self, node: ManagedNode) -> None:
        self.recorded = 0
        self.lost = 0
        self.refused = 0
        self._taking = threading.Lock()
        self._topics: dict[BagTopic, PolledSubscription] = {}
        self._newest: dict[BagTopic, int] = {}  # number of the newest message
        # whether it had one publisher at the last look
        self._alone: dict[BagTopic, bool] = {}
        for published, recorded in zip(
            names.PUBLISHED_ENERGY, names.RECORDED_ENERGY, strict=True
        ):
            message_type, kind = RECORDED[recorded.type]
            subscription = node.add_polled_subscription(message_type, recorded)
            self._topics[BagTopic(subscription.topic, kind, published.latched)] = (
                subscription
            )

    def take(self) -> list[Messages]:
        """Messages since the last call; for the writing thread of a recorder."""
        with self._taking:
            return self._take()

    def _take(self) -> list[Messages]:
        """Messages of all topics, messages of equal length together; the lock is held."""
        now = HOST_CLOCK.stamp()
        taken: list[Messages] = []
        for topic, subscription in self._topics.items():
            messages, numbers = subscription.take(MOST_TAKEN)
            self._count_lost(topic, numbers, len(subscription.publishers()))
            least = STAMP_OFFSET + STAMP.size
            good = [each for each in messages if least <= len(each) <= LARGEST_RECORDED]
            self.recorded += len(good)
            self.refused += len(messages) - len(good)
            for part in equal_runs([len(each) for each in good]):
                times = np.array([_stamp_of(each) for each in good[part]])
                stamps = np.where(np.abs(times - now) < MOST_AWAY_NS, times, now)
                payload = np.frombuffer(b"".join(good[part]), np.uint8)
                taken.append(Messages(topic, stamps, payload.reshape(len(stamps), -1)))
        return taken

    def _count_lost(
        self, topic: BagTopic, numbers: list[int] | None, publishers: int
    ) -> None:
        """Count the messages that are missing between these and the ones before.

        Each publisher counts its own messages from one on, so that numbers are compared
        only while the topic has the same single publisher.

        Args:
            topic: topic of the messages.
            numbers: numbers of the messages; None where the middleware does not number
                them.
            publishers: number of publishers of the topic.
        """
        was_alone = self._alone.get(topic, False)
        self._alone[topic] = publishers == 1
        if not numbers:
            return
        before = self._newest.get(topic)
        self._newest[topic] = numbers[-1]
        if before is None or not (was_alone and self._alone[topic]):
            return
        if numbers[0] > before and numbers == sorted(numbers):
            self.lost += numbers[-1] - before - len(numbers)

    def part(self) -> Part:
        """Status of the energy topics in bags; a warning if messages are missing."""
        problems: list[str] = []
        if self.lost:
            problems.append(f"{self.lost} messages are lost")
        if self.refused:
            problems.append(
                f"{self.refused} messages are not an estimator's and not recorded"
            )
        values = {"messages": self.recorded, "lost": self.lost, "refused": self.refused}
        if problems:
            return WARN, "; ".join(problems), values
        return OK, "recorded with the samples, if an estimator publishes", values


def _stamp_of(message: bytes) -> int:
    """Stamp of a serialized message that begins with a header [ns since the epoch]."""
    seconds, nanoseconds = STAMP.unpack_from(message, STAMP_OFFSET)
    return int(seconds) * 10**9 + int(nanoseconds)


LONGEST_LABEL = 1000  # size of an event's longest label [bytes]
STRING_OVERHEAD = 9
"""Bytes of a serialized String besides its text: encapsulation, length and a zero."""


def label_of(message: bytes) -> str:
    """Label of an event from a serialized String.

    Raises:
        InputError: it is too long, or no text.
    """
    remedy = f"use up to {LONGEST_LABEL} bytes of UTF-8"
    if len(message) > LONGEST_LABEL + STRING_OVERHEAD:
        raise InputError("mark", f"the label has {len(message)} bytes", remedy)
    try:
        (label,) = CdrParser(message).take("s")
    except CdrError as error:
        raise InputError("mark", f"the label cannot be read: {error}", remedy) from error
    return str(label)
