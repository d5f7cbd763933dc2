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
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("driver", context=self._context, namespace=namespace)
        self._publisher = self._node.create_publisher(JointState, topic, QoSProfile(depth=1))

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
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


def main() -> None:
    """Publish at 500 Hz as the JSON object of the first argument says, once its file exists."""
    options = json.loads(sys.argv[1])
    driver = Driver(options["domain"], options["names"], namespace=options["namespace"])
    while not (driver.subscribers and Path(options["begin"]).exists()):
        time.sleep(0.05)
    time.sleep(1.0)  # the subscriber may not know the publisher yet
    began = time.monotonic()
    for k in range(options["count"]):
        time.sleep(max(0.0, began + k / 500.0 - time.monotonic()))
        driver.publish(START + k * 2_000_000)
    print(options["count"], flush=True)
    time.sleep(1.0)  # messages under way
    driver.close()


if __name__ == "__main__":
    main()
