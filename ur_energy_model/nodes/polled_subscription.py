"""PolledSubscription: a subscription whose messages a thread takes when it is ready."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

from ur_energy_model.nodes.quality_of_service import OVERRIDES

MOST_BYTES = 16_000_000
"""Size of the messages that are taken at once [bytes]; a little more where the last is large."""


class _NeverExecuted(CallbackGroup):
    """Keeps its entities away from the executor."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return


class PolledSubscription:
    """Encoded messages of a topic, kept by the middleware until they are taken.

    An executor wakes up for each message, which at 500 Hz takes about ten percent of a core and
    falls behind on a busy machine; to take them in batches takes two.

    Args:
        node: to which the subscription belongs.
        message_type: class of the messages.
        topic: name of the topic.
        qos: its quality of service; its depth is the number of messages that may wait.
    """

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._node, self._message_type = node, message_type
        self._subscription = node.create_subscription(
            message_type,
            topic,
            lambda message: None,
            qos,
            callback_group=_NeverExecuted(),
            raw=True,
            qos_overriding_options=OVERRIDES,
        )
        self._destroyed = False

    @property
    def topic(self) -> str:
        """Full name of the topic, remappings applied."""
        return str(self._subscription.topic_name)

    def take(self, most: int) -> tuple[list[bytes], list[int] | None]:
        """The oldest messages that wait, and their numbers.

        Args:
            most: largest number of messages.

        Returns:
            The messages, and the numbers by which the publisher counts them; None where the
            middleware does not tell them.
        """
        messages: list[bytes] = []
        numbers: list[int] = []
        size = 0
        if self._destroyed:
            return messages, None
        handle = self._subscription.handle
        with handle:
            while len(messages) < most and size < MOST_BYTES:
                taken = handle.take_message(self._message_type, True)
                if taken is None:
                    break
                message, info = taken
                messages.append(bytes(message))
                size += len(message)
                number = info.get("publication_sequence_number")
                if number is not None:
                    numbers.append(number)
        return messages, numbers if len(numbers) == len(messages) else None

    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic, one per publisher."""
        return publishing_nodes(self._node, self.topic)

    def destroy(self) -> None:
        """Unsubscribe; no thread may be taking messages."""
        self._destroyed = True
        self._node.destroy_subscription(self._subscription)


def publishing_nodes(node: Node, topic: str) -> list[str]:
    """Full names of the nodes that publish a topic, one per publisher."""
    found = node.get_publishers_info_by_topic(topic)
    return [f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in found]
