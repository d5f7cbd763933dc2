# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A stand-in for a driver that publishes joint_states."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import rclpy
from rclpy.context import Context
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from test.energy.known_arm import ROBOT
from ur_energy_model.nodes.ros import time_message

START = 1_700_000_000_000_000_000  # stamp of the first message [ns]
DEPTH = 5000
"""Messages that the publisher keeps until a reliable subscriber has acknowledged them."""


class Driver:
    """Publishes JointState messages of an arm at rest."""

    def __init__(
        self,
        domain: int,
        names: Sequence[str] = ROBOT.joint_names,
        *,
        namespace: str = "",
        topic: str = "joint_states",
    ) -> None:
        self.names = list(names)
        self.closed = False
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node(
            "driver", context=self._context, namespace=namespace
        )
        self._publisher = self._node.create_publisher(
            JointState, topic, QoSProfile(depth=DEPTH)
        )

    @property
    def subscribers(self) -> int:
        """Number of matched subscriptions."""
        return int(self._publisher.get_subscription_count())

    def publish(self, stamp: int | None = None, **columns: list[float]) -> None:
        """One message with this stamp [ns since the epoch; None for now]."""
        zeros = [0.0] * len(self.names)
        values = {"position": zeros, "velocity": zeros, "effort": zeros} | columns
        message = JointState(name=self.names, **values)
        message.header.stamp = time_message(time.time_ns() if stamp is None else stamp)
        self._publisher.publish(message)

    def close(self) -> None:
        """Destroy the node."""
        self.closed = True
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


def main() -> None:
    """Publish at 500 Hz as the JSON object of the first argument says.

    Its folder has three files: `begin`, made once the subscriber is connected,
    `published`, made here after the messages, and `end`, made once the subscriber has
    counted them. Until then further messages follow slowly, with stamps that go on as
    before: a loss is only seen by a message that comes after it.
    """
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"])
    driver = Driver(options["domain"], options["names"], namespace=options["namespace"])
    while not (driver.subscribers and (folder / "begin").exists()):
        time.sleep(0.05)
    began = time.monotonic()
    number = 0
    while not (folder / "end").exists():
        if number < options["count"]:
            time.sleep(max(0.0, began + number / 500.0 - time.monotonic()))
        else:
            (folder / "published").touch()
            time.sleep(0.05)
        driver.publish(START + number * 2_000_000)
        number += 1
    driver.close()


if __name__ == "__main__":
    main()
