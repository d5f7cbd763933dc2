# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the nodes share of ROS: quality of service, subscriptions, messages."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Header

from ur_energy_model.telemetry.bag.messages import Status, text_of
from ur_energy_model.topics_and_services import Topic
from ur_energy_model.typing import Array


def quality(topic: Topic) -> QoSProfile:
    """Quality of service of a topic: KEEP_LAST, with its depth, reliability and durability.

    A new profile for each call: parameters `qos_overrides.<topic>...` change it in place.
    """
    reliability = ReliabilityPolicy
    durability = DurabilityPolicy
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=topic.depth,
        reliability=reliability.RELIABLE if topic.reliable else reliability.BEST_EFFORT,
        durability=durability.TRANSIENT_LOCAL if topic.latched else durability.VOLATILE,
    )


def overrides(topic: Topic) -> QoSOverridingOptions | None:
    """The policies of a topic that are parameters; None where there are none."""
    if not topic.adjustable:
        return None
    kinds = [QoSPolicyKind[name.upper()] for name in topic.adjustable]
    return QoSOverridingOptions(kinds)


MOST_BYTES = 16_000_000
"""Size of messages that are taken at once [bytes]; the last one may exceed it."""


class _NeverExecuted(CallbackGroup):
    """A group whose entities the executor never runs: their messages are polled."""

    def can_execute(self, entity: Any) -> bool:
        """No entity may be executed."""
        return False

    beginning_execution = can_execute

    def ending_execution(self, entity: Any) -> None:
        return


class PolledSubscription:
    """A subscription whose messages wait in the middleware until they are taken.

    An executor wakes up for each message, which at 500 Hz takes about ten percent of a
    core and falls behind on a busy machine; to take messages in batches takes two.

    Args:
        node: node that subscribes.
        message_type: class of the ROS messages.
        topic: name, depth and quality of service.

    Attributes:
        topic: full name of the topic.
    """

    def __init__(self, node: Node, message_type: type, topic: Topic) -> None:
        self._node = node
        self._message_type = message_type
        self._subscription = node.create_subscription(
            message_type,
            topic.name,
            lambda message: None,
            quality(topic),
            callback_group=_NeverExecuted(),
            raw=True,
            qos_overriding_options=overrides(topic),
        )
        self.topic = str(self._subscription.topic_name)
        self._destroyed = False

    def take(self, most: int) -> tuple[list[bytes], list[int] | None]:
        """Take the oldest messages that wait.

        Args:
            most: largest number of messages; they end earlier after MOST_BYTES.

        Returns:
            Serialized messages, and the numbers by which their publishers count them;
            None in place of the numbers where the middleware does not report them.
        """
        messages: list[bytes] = []
        numbers: list[Any] = []
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
                numbers.append(info.get("publication_sequence_number"))
        return messages, None if None in numbers else numbers

    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic, one per publisher.

        Empty once a signal has shut ROS down, after which threads take the last messages.
        """
        if not self._node.context.ok():
            return []
        try:
            return publishing_nodes(self._node, self.topic)
        except RuntimeError:  # rclpy's RCLError: ROS was shut down meanwhile
            return []

    def connected_publishers(self) -> int | None:
        """Number of publishers whose messages reach this subscription.

        A publisher that was discovered is connected a little later, and never if its
        quality of service does not suit the subscription.

        Returns:
            The number; None with versions of rclpy that do not count publishers (Humble).
        """
        count = getattr(self._subscription, "get_publisher_count", None)
        return None if count is None else int(count())

    def destroy(self) -> None:
        """Unsubscribe; no thread may be taking messages."""
        self._destroyed = True
        self._node.destroy_subscription(self._subscription)


def publishing_nodes(node: Node, topic: str) -> list[str]:
    """Full names of the nodes that publish a topic, one per publisher."""
    found = node.get_publishers_info_by_topic(topic)
    return [f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in found]


# Conversions between the package's arrays and ROS messages of times and joints.

_ENCAPSULATION = 4
"""Bytes in front of a serialized message; the second one states the order of bytes."""
_NUMBER_HEAD = serialize_message(Float64())[:_ENCAPSULATION]
_NUMBER = struct.Struct("<4sd" if _NUMBER_HEAD[1] else ">4sd")


def time_message(nanoseconds: int) -> Time:
    """Time stamp from ns since the epoch."""
    seconds, rest = divmod(int(nanoseconds), 10**9)
    return Time(sec=seconds, nanosec=rest)


def joint_state(
    names: Sequence[str], stamp: Time, q: Array, qd: Array | None, effort: Array | None
) -> JointState:
    """JointState of one sample.

    Args:
        names: names of the joints [n].
        stamp: host time of the sample.
        q: positions [n], rad.
        qd: velocities [n], rad/s; None where unknown.
        effort: currents [n], A, or torques, N m; None where unknown.
    """
    return JointState(
        header=Header(stamp=stamp),
        name=list(names),
        position=q.tolist(),
        velocity=[] if qd is None else qd.tolist(),
        effort=[] if effort is None else effort.tolist(),
    )


class SerializedJointStates:
    """JointState messages with the same names, serialized in a tenth of the usual time.

    rclpy serializes one message, whose bytes are kept: stamp and numbers have a fixed
    size and place in them, as the names do not change. For each message these are
    overwritten.

    Args:
        names: names of the entries [n].
    """

    def __init__(self, names: Sequence[str]) -> None:
        n = len(names)
        empty = joint_state(names, Time(), *np.zeros((3, n)))
        self._content = bytearray(serialize_message(empty))
        order = "<" if self._content[1] else ">"
        self._stamp = struct.Struct(f"{order}iI")
        # The message ends with three arrays of n words of 8 bytes, each behind its length,
        # which with its padding takes one word more. `_values` is a view of the numbers.
        word = 8
        row = word * (n + 1)
        length_of_first = word
        first = len(self._content) - 3 * row + length_of_first
        self._values = np.ndarray(
            shape=(3, n),
            dtype=f"{order}f8",
            buffer=self._content,
            offset=first,
            strides=(row, word),
        )

    def __call__(self, nanoseconds: int, values: Array) -> bytes:
        """A serialized message.

        Args:
            nanoseconds: stamp of the message, since the epoch.
            values: positions, velocities and efforts [3, n].
        """
        seconds, rest = divmod(nanoseconds, 10**9)
        self._stamp.pack_into(self._content, _ENCAPSULATION, seconds, rest)
        self._values[:] = values
        return bytes(self._content)


def serialized_number(value: float) -> bytes:
    """A serialized Float64 message."""
    return _NUMBER.pack(_NUMBER_HEAD, value)


# Diagnostic messages: statuses with key-value pairs.

SILENT_AFTER = 1.0  # time without samples that is reported as an error [s]
OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR
Part: TypeAlias = tuple[bytes, str, Mapping[str, object]]
"""Level, message and values of a status."""


def status(name: str, part: Part, hardware: str = "") -> DiagnosticStatus:
    """One status; values become text by `text_of`."""
    level, message, values = part
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=text_of(value)) for key, value in values.items()],
    )


def diagnostic_array(
    stamp: Time, statuses: Iterable[DiagnosticStatus]
) -> DiagnosticArray:
    """Statuses with a time stamp."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(statuses))


def ros_statuses(statuses: Iterable[Status]) -> list[DiagnosticStatus]:
    """Statuses as ROS messages."""
    return [
        status(each.name, (bytes([each.level]), each.message, each.values))
        for each in statuses
    ]


def has_subscribers(publisher: Publisher) -> bool:
    """Whether a topic has subscribers; False once a signal has shut ROS down."""
    try:
        return bool(publisher.get_subscription_count())
    except RuntimeError:  # rclpy's RCLError: the context is invalid
        return False
