"""OtherPublishers: whether another node publishes the joints of this arm on the same topic."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from rclpy.node import Node
from sensor_msgs.msg import JointState

from ur_energy_model.nodes.polled_subscription import PolledSubscription, publishing_nodes
from ur_energy_model.nodes.quality_of_service import best_effort
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.joint_state_messages import JointStateFormats, as_array
from ur_energy_model.topics_and_services import Topic

DEPTH = 50
"""Messages that wait for a look; a driver repeats itself."""
STAMPS_KEPT = 1000
"""Own messages that are told from those of others by their stamps."""
JUDGED_AFTER = 2.0
"""Time for which the messages of another publisher are awaited at the start [s]."""
GONE_AFTER = 10.0
"""Silence after which another publisher no longer counts [s]."""


class OtherPublishers:
    """Looks at a joint_states topic before this node publishes there, and from then on.

    Only messages with joints of this arm count: a gripper's driver may use the same topic. The
    topic is subscribed to only while another node publishes it.

    Args:
        node: that is to publish.
        topic: on which it is to publish.
        joints: joint names of the arm, prefix included.

    Attributes:
        alone: whether this node should publish; False until the first look.
        names: full names of the other nodes that publish the topic.
    """

    def __init__(self, node: Node, topic: Topic, joints: Sequence[str]) -> None:
        self._node, self._topic, self._joints = node, topic, tuple(joints)
        self._subscription: PolledSubscription | None = None
        self._formats = JointStateFormats()
        self._own: deque[int] = deque(maxlen=STAMPS_KEPT)
        self._began: float | None = None
        self._heard: float | None = None
        self.alone = False
        self.names: tuple[str, ...] = ()

    def note_own(self, stamp: int) -> None:
        """Note the stamp of a message that this node publishes [ns]; in any thread."""
        self._own.append(stamp)

    def look(self) -> str | None:
        """Look at the topic; to be called about once a second, in the executor's thread.

        Returns:
            A line for the operator when another node begins to publish the joints, or has ended.
        """
        now, topic = time.monotonic(), self._node.resolve_topic_name(self._topic.name)
        self._began = now if self._began is None else self._began
        self.names = self._others(topic)
        if not self.names:
            self.close()
        elif self._hears_joints():
            already = self._heard is not None
            self.alone, self._heard = False, now
            if not already:
                names = ", ".join(self.names)
                return f"{topic} is left to {names}, which publishes the joints of this arm"
        if self._heard is not None:
            if now - self._heard < GONE_AFTER:
                return None
            self.alone, self._heard = True, None
            return f"{topic} is published by this node again, since no other node does"
        if not self.names or now - self._began > JUDGED_AFTER:
            self.alone = True
        return None

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._subscription.destroy()
            self._subscription = None

    def _others(self, topic: str) -> tuple[str, ...]:
        own = self._node.get_fully_qualified_name()
        return tuple(sorted(set(publishing_nodes(self._node, topic)) - {own}))

    def _hears_joints(self) -> bool:
        """Whether messages of another node name joints of this arm."""
        if self._subscription is None:
            self._subscription = PolledSubscription(
                self._node, JointState, self._topic.name, best_effort(DEPTH)
            )
            return False
        messages, _ = self._subscription.take(DEPTH)
        return any(self._is_of_another(message) for message in messages)

    def _is_of_another(self, message: bytes) -> bool:
        try:
            found, _ = self._formats.run([message], 0)
        except CdrError:
            return False
        stamp, _ = found.template.decode(as_array([message]))
        return found.names_any(self._joints) and int(stamp[0]) not in self._own
