"""Topics of the logger: joint_states, unless a driver publishes them, and energy for its bags."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState

from ur_energy_model import topics_and_services as topics
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
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET, CdrError
from ur_energy_model.telemetry.bag.messages import DIAGNOSTIC_ARRAY, JOINT_STATE, BagTopic, Messages
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.joint_states import JointStateFormats, as_array
from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.telemetry.source import Decimator

DEPTH = 50
"""Messages that are not examined yet; a driver repeats itself."""
STAMPS_KEPT = 1000
"""Own messages, which their stamps distinguish from those of others."""
JUDGED_AFTER = 2.0
"""Time for which the messages of another publisher are awaited at the start [s]."""
GONE_AFTER = 10.0
"""Silence after which another publisher no longer counts [s]."""


class JointStatesPublisher:
    """Publishes joint_states at a rate [Hz], in any thread, unless another node does.

    Only messages with joints of this arm count: a gripper's driver may use the same topic. The
    topic is subscribed to only while another node publishes it.
    """

    def __init__(self, node: ManagedNode, joints: Sequence[str], rate: float) -> None:
        self._node, self._joints, self._due = node, tuple(joints), Decimator(rate)
        self._publisher = node.add_publisher(JointState, topics.JOINT_STATES)
        self._topic = node.resolve_topic_name(topics.JOINT_STATES.name)
        self._subscription: PolledSubscription | None = None
        self._formats = JointStateFormats()
        self._own: deque[int] = deque(maxlen=STAMPS_KEPT)
        self._began: float | None = None
        self._other_seen: float | None = None
        self._alone = False
        """Whether this node should publish; False until the first check."""
        node.on_discard(self._unsubscribe)

    def publish(self, batch: Telemetry) -> None:
        """Publish the samples that are due, if they are subscribed and no other node does."""
        columns = batch.columns
        if "actual_q" not in columns:
            return
        for row in (part.stop - 1 for part in self._due.parts(batch.time)[0]):
            due = self._due.due(float(batch.time[row]))
            if not (due and self._alone and has_subscribers(self._publisher)):
                continue
            now = self._node.get_clock().now
            stamp = now().nanoseconds if batch.stamp is None else int(batch.stamp[row])
            self._own.append(stamp)
            names, q = ("actual_qd", "actual_current"), columns["actual_q"][row]
            qd, current = (columns[name][row] if name in columns else None for name in names)
            self._publisher.publish(joint_state(self._joints, time_message(stamp), q, qd, current))

    def poll(self) -> str | None:
        """Look at the topic; to be called about once a second, in the executor's thread.

        Returns:
            A line for the operator when another node begins to publish the joints, or has ended.
        """
        now, topic = time.monotonic(), self._topic
        self._began = now if self._began is None else self._began
        own = self._node.get_fully_qualified_name()
        others = sorted(set(publishing_nodes(self._node, topic)) - {own})
        if not others:
            self._unsubscribe()
        elif self._hears_joints():
            already = self._other_seen is not None
            self._alone, self._other_seen = False, now
            if not already:
                names = ", ".join(others)
                return f"{topic} is left to {names}, which publishes the joints of this arm"
        if self._other_seen is not None:
            if now - self._other_seen < GONE_AFTER:
                return None
            self._alone, self._other_seen = True, None
            return f"{topic} is published by this node again, since no other node does"
        if not others or now - self._began > JUDGED_AFTER:
            self._alone = True
        return None

    def _unsubscribe(self) -> None:
        if self._subscription is not None:
            self._subscription.destroy()
            self._subscription = None

    def _hears_joints(self) -> bool:
        """Whether messages of another node name joints of this arm."""
        if self._subscription is None:
            self._subscription = PolledSubscription(self._node, JointState, self._topic, DEPTH)
            return False
        messages, _ = self._subscription.take(DEPTH)
        return any(self._is_of_another(message) for message in messages)

    def _is_of_another(self, message: bytes) -> bool:
        try:
            found, _ = self._formats.run([message], 0)
        except CdrError:
            return False
        stamp, _ = found.template.decode(as_array([message]))
        named = not set(self._joints).isdisjoint(found.names)
        return named and int(stamp[0]) not in self._own


# EnergyRecording: messages of the estimator for the bags of the logger.
#
# The writing thread of the recorder takes the messages twice a second, from where the middleware
# keeps them: the thread that reads the samples never waits for them.

RECORDED = (
    (topics.ENERGY, JointState, JOINT_STATE),
    (topics.ENERGY_SUMMARY, DiagnosticArray, DIAGNOSTIC_ARRAY),
    (topics.ENERGY_CYCLE, DiagnosticArray, DIAGNOSTIC_ARRAY),
    (topics.ENERGY_PREDICTION, DiagnosticArray, DIAGNOSTIC_ARRAY),
)
"""Topics in bags; energy has the values of the Float64 topics in 1/23 of the messages."""
ENERGY_DEPTH = 1000
"""Messages of a topic that may wait."""
MOST_AWAY_NS = 10_000_000_000
"""Stamps further from the present are not of this arm's samples; the present counts instead."""


class EnergyRecording:
    """Subscribes to the energy topics in the namespace of a node.

    Counts messages that went into bags, and that were lost (where the middleware numbers them).
    """

    def __init__(self, node: ManagedNode) -> None:
        self.recorded = self.lost = 0
        self._topics: dict[BagTopic, PolledSubscription] = {}
        self._newest: dict[BagTopic, int] = {}
        """Number of the newest message."""
        for topic, message_type, kind in RECORDED:
            subscription = node.add_polled_subscription(message_type, topic, ENERGY_DEPTH)
            self._topics[BagTopic(subscription.topic, kind, topic.latched)] = subscription

    def take(self) -> list[Messages]:
        """Messages since the last call; for the writing thread of a recorder."""
        now = HOST_CLOCK.stamp()
        taken: list[Messages] = []
        for topic, subscription in self._topics.items():
            messages, numbers = subscription.take(ENERGY_DEPTH)
            if numbers:  # count those that are missing; a new publisher starts at one
                before = self._newest.get(topic)
                if before is not None and numbers[0] > before and numbers == sorted(numbers):
                    self.lost += numbers[-1] - before - len(numbers)
                self._newest[topic] = numbers[-1]
            messages = [each for each in messages if len(each) >= STAMP_OFFSET + STAMP.size]
            self.recorded += len(messages)
            for part in equal_runs([len(each) for each in messages]):
                stamps = np.array([_log_time(each, now) for each in messages[part]])
                payload = np.frombuffer(b"".join(messages[part]), np.uint8)
                taken.append(Messages(topic, stamps, payload.reshape(len(stamps), -1)))
        return taken

    def part(self) -> Part:
        """Status of the energy topics in bags."""
        text = "recorded with the samples, if an estimator publishes"
        if self.lost:
            text = f"{self.lost} messages are lost"
        values = {"messages": self.recorded, "lost": self.lost}
        return WARN if self.lost else OK, text, values


def _log_time(message: bytes, now: int) -> int:
    """Time of the sample that a message belongs to [ns since the epoch]."""
    seconds, nanoseconds = STAMP.unpack_from(message, STAMP_OFFSET)
    stamp = int(seconds) * 1_000_000_000 + int(nanoseconds)
    return stamp if abs(stamp - now) < MOST_AWAY_NS else now
