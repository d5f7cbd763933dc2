"""Subscriber of the whole-arm topics of the estimator."""

from __future__ import annotations

from functools import partial

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64

from ur_energy_model.topics_and_services import (
    BUS_ENERGY,
    BUS_POWER,
    TOTAL_ENERGY,
    TOTAL_POWER,
)
from ur_energy_model.typing import Self

TOPICS = tuple(topic.name for topic in (TOTAL_POWER, TOTAL_ENERGY, BUS_POWER, BUS_ENERGY))


class EnergyMonitor:
    """Latest values of the whole-arm topics, received in a separate ROS context.

    Args:
        domain: ROS domain of the estimator.

    Attributes:
        latest: latest value by topic, W or J.
        messages: number of received messages.
    """

    def __init__(self, domain: int) -> None:
        self.latest: dict[str, float] = {}
        self.messages = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("ur_energy_demo", context=self._context)
        for topic in TOPICS:
            self._node.create_subscription(
                Float64,
                topic,
                partial(self._keep, topic),
                QoSProfile(depth=10),
            )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def receive(self, seconds: float) -> None:
        """Receive messages for this time [s]."""
        end = self._node.get_clock().now().nanoseconds + int(seconds * 1e9)
        while (left := end - self._node.get_clock().now().nanoseconds) > 0:
            self._executor.spin_once(timeout_sec=left / 1e9)

    def _keep(self, topic: str, message: Float64) -> None:
        self.latest[topic] = message.data
        self.messages += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)
