"""EnergyRecording: messages of the estimator for the bags of the logger.

The writing thread of the recorder takes the messages twice a second, from where the middleware
keeps them: the thread that reads the samples never waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState

from ur_energy_model import topics_and_services as topics
from ur_energy_model.nodes.diagnostics import OK, WARN, status
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.polled_subscription import PolledSubscription
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.message_types import DIAGNOSTIC_ARRAY, JOINT_STATE, BagTopic
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.runs import equal_runs

RECORDED = (
    (topics.ENERGY, JointState, JOINT_STATE),
    (topics.ENERGY_SUMMARY, DiagnosticArray, DIAGNOSTIC_ARRAY),
    (topics.ENERGY_CYCLE, DiagnosticArray, DIAGNOSTIC_ARRAY),
    (topics.ENERGY_PREDICTION, DiagnosticArray, DIAGNOSTIC_ARRAY),
)
"""Topics in bags; energy has the values of the Float64 topics in 1/23 of the messages."""
DEPTH = 1000
"""Messages of a topic that may wait."""
MOST_AWAY_NS = 10_000_000_000
"""Stamps further from the present are not of this arm's samples; the present counts instead."""


@dataclass
class _Recorded:
    """A subscribed topic, and the number of its newest message."""

    topic: BagTopic
    subscription: PolledSubscription
    number: int | None = None


class EnergyRecording:
    """Subscribes to the energy topics in the namespace of a node.

    Args:
        node: the logger.

    Attributes:
        recorded, lost: number of messages that went into bags, and that did not arrive (where the
            middleware numbers them).
    """

    def __init__(self, node: ManagedNode) -> None:
        self.recorded = self.lost = 0
        self._name = node.full_name
        self._topics = []
        for topic, message_type, kind in RECORDED:
            subscription = node.add_polled_subscription(message_type, topic, DEPTH)
            bag_topic = BagTopic(subscription.topic, kind, topic.latched)
            self._topics.append(_Recorded(bag_topic, subscription))

    def take(self) -> list[Messages]:
        """Messages since the last call; for the writing thread of a recorder."""
        now = HOST_CLOCK.stamp()
        taken: list[Messages] = []
        for recorded in self._topics:
            messages, numbers = recorded.subscription.take(DEPTH)
            if numbers:
                self._count(recorded, numbers)
            messages = [each for each in messages if len(each) >= STAMP_OFFSET + STAMP.size]
            self.recorded += len(messages)
            for part in equal_runs([len(each) for each in messages]):
                stamps = np.array([_log_time(each, now) for each in messages[part]])
                payload = np.frombuffer(b"".join(messages[part]), np.uint8)
                taken.append(Messages(recorded.topic, stamps, payload.reshape(len(stamps), -1)))
        return taken

    def status(self) -> DiagnosticStatus:
        """Status of the energy topics in bags."""
        text = "recorded with the samples, if an estimator publishes"
        if self.lost:
            text = f"{self.lost} messages are lost"
        values = {"messages": self.recorded, "lost": self.lost}
        return status(f"{self._name}: energy topics", WARN if self.lost else OK, text, values)

    def _count(self, recorded: _Recorded, numbers: list[int]) -> None:
        """Count the messages missing among these numbers; a new publisher starts at one."""
        before = recorded.number
        if before is not None and numbers[0] > before and numbers == sorted(numbers):
            self.lost += numbers[-1] - before - len(numbers)
        recorded.number = numbers[-1]


def _log_time(message: bytes, now: int) -> int:
    """Time of the sample that a message belongs to [ns since the epoch]."""
    seconds, nanoseconds = STAMP.unpack_from(message, STAMP_OFFSET)
    stamp = int(seconds) * 1_000_000_000 + int(nanoseconds)
    return stamp if abs(stamp - now) < MOST_AWAY_NS else now
