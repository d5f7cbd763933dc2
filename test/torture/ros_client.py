"""A ROS node of the harness: calls services, and sends messages made up from their type."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

FLOATS = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e-300, 0.0, -1.0, 1e9)
TEXTS = ("", "x", "\x1b[2J\x07", "x" * 100_000, "shoulder_pan_joint", "\N{SNOWMAN}" * 50, "a\nb")
LENGTHS = (0, 1, 5, 6, 7, 1000)
HUGE = 200_000
_BITS = re.compile(r"(u?)int(\d+)")
_SEQUENCE = re.compile(r"sequence<([\w/]+)(?:, \d+)?>|([\w/]+)\[\d*\]")


def no_ros() -> str:
    """Why nodes cannot be tested here; empty if they can."""
    return "" if importlib.util.find_spec("rclpy") else "ROS 2 is not installed: nodes"


class RosClient:
    """A node in a ROS domain."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        name = f"torture_{domain}"
        self._node = rclpy.create_node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._publishers: dict[tuple[str, str], Any] = {}

    def spin(self, seconds: float) -> None:
        """Wait, and let the node work."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def call(self, service: str, seconds: float = 5.0) -> str | None:
        """Message of a Trigger service's response, None if it does not answer in time."""
        from std_srvs.srv import Trigger

        client = self._node.create_client(Trigger, service)
        end = time.monotonic() + seconds
        while not client.service_is_ready() and time.monotonic() < end:
            self.spin(0.1)
        future = client.call_async(Trigger.Request()) if client.service_is_ready() else None
        while future is not None and not future.done() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
        answer = future.result().message if future is not None and future.done() else None
        self._node.destroy_client(client)
        return answer

    def subscribed(self, node: str) -> list[tuple[str, str]]:
        """Topics and types that a node of the root namespace subscribes to; [] if it is gone."""
        with suppress(Exception):  # rclpy raises its own kinds for unknown nodes
            found = self._node.get_subscriber_names_and_types_by_node(node, "/")
            return sorted((topic, kinds[0]) for topic, kinds in found if kinds)
        return []

    def publish(self, topic: str, kind: str, message: Any) -> None:
        """Publish one message, reliable and once the subscriber is known."""
        publisher = self._publishers.get((topic, kind))
        if publisher is None:
            publisher = self._node.create_publisher(message_class(kind), topic, 10)
            self._publishers[topic, kind] = publisher
            end = time.monotonic() + 5.0
            while not publisher.get_subscription_count() and time.monotonic() < end:
                self.spin(0.05)
        publisher.publish(message)
        self.spin(0.05)

    def close(self) -> None:
        """Destroy the node and its context."""
        import rclpy

        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


@contextmanager
def ros_client(environment: Mapping[str, str]) -> Iterator[RosClient]:
    """A node in the domain of these variables."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = environment["ROS_AUTOMATIC_DISCOVERY_RANGE"]
    client = RosClient(int(environment["ROS_DOMAIN_ID"]))
    try:
        yield client
    finally:
        client.close()


def message_class(kind: str) -> Any:
    """Message class of "package/msg/Type"."""
    package, *_, name = kind.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)


def hostile_message(kind: str, random: Random, *, depth: int = 0) -> Any:
    """A message of this type whose values are extreme, with lists of any length."""
    message = message_class(kind)()
    for name, field in message.get_fields_and_field_types().items():
        if random.random() < 0.8:
            setattr(message, name, _value(field, random, depth, getattr(message, name)))
    return message


def _value(field: str, random: Random, depth: int, known: Any) -> Any:
    repeated = _SEQUENCE.fullmatch(field)
    if repeated:
        item = repeated[1] or repeated[2]
        length = len(known) if repeated[2] else _length(item, random, depth)
        if "float" in item or "double" in item:
            same = random.random() < 0.5
            value = random.choice(FLOATS)
            return [value if same else random.choice(FLOATS) for _ in range(length)]
        return [_value(item, random, depth + 1, None) for _ in range(length)]
    integer = _BITS.fullmatch(field)
    if integer:
        bits = int(integer[2])
        low, high = (0, 2**bits - 1) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return random.choice((low, high, 0, 1))
    if field in ("float", "double", "float32", "float64"):
        return random.choice(FLOATS) if "64" in field or field == "double" else 1e38
    if field == "boolean":
        return random.random() < 0.5
    if field.startswith("string"):
        return random.choice(TEXTS if depth < 2 else TEXTS[:3])
    if field == "octet":
        return bytes([random.randrange(256)])
    return hostile_message(field, random, depth=depth + 1)


def _length(item: str, random: Random, depth: int) -> int:
    plain = "/" not in item and not item.startswith("string")
    if depth == 0 and random.random() < 0.1:
        return HUGE if plain else 5000
    return random.choice(LENGTHS if depth == 0 else LENGTHS[:4])
