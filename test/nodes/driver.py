"""A stand-in for a driver that publishes joint_states."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

import rclpy
from rclpy.context import Context
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from test.energy.known_arm import ROBOT
from ur_energy_model.nodes.ros import time_message

START = 1_700_000_000_000_000_000
"""Stamp of the first message [ns]."""


class Driver:
    """Publishes JointState messages of an arm at rest, in a thread's own time.

    Args:
        domain: ROS domain.
        names: joint names.
        namespace: of the node.
        topic: name of the topic.
        reliable: reliability of the publisher.
    """

    def __init__(
        self,
        domain: int,
        names: Sequence[str] = ROBOT.joint_names,
        *,
        namespace: str = "",
        topic: str = "joint_states",
        reliable: bool = True,
    ) -> None:
        self.names = list(names)
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("driver", context=self._context, namespace=namespace)
        kind = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        self._publisher = self._node.create_publisher(
            JointState, topic, QoSProfile(depth=1, reliability=kind)
        )

    @property
    def subscribers(self) -> int:
        """Number of matched subscriptions."""
        return int(self._publisher.get_subscription_count())

    def publish(self, stamp: int | None = None, q: float = 0.0, **columns: list[float]) -> None:
        """One message with this stamp [ns since the epoch; None for now]."""
        zeros = [0.0] * len(self.names)
        values = {"position": [q] * len(zeros), "velocity": zeros, "effort": zeros} | columns
        message = JointState(name=self.names, **values)
        message.header.stamp = time_message(time.time_ns() if stamp is None else stamp)
        self._publisher.publish(message)

    def run(self, seconds: float, rate: float, start: int) -> int:
        """Publish at a rate, with stamps of that rate from `start` [ns]; returns the number."""
        count = round(seconds * rate)
        began = time.monotonic()
        for k in range(count):
            time.sleep(max(0.0, began + k / rate - time.monotonic()))
            self.publish(start + round(k * 1e9 / rate))
        return count

    def close(self) -> None:
        """Destroy the node."""
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


def main() -> None:
    """Publish as the JSON object of the first argument says, once there is a subscriber."""
    options = json.loads(sys.argv[1])
    driver = Driver(
        options["domain"],
        options["names"],
        namespace=options.get("namespace", ""),
        reliable=options.get("reliable", True),
    )
    while not driver.subscribers:
        time.sleep(0.05)
    time.sleep(1.0)  # the subscriber may not know the publisher yet
    print(driver.run(options["seconds"], options.get("rate", 500.0), START), flush=True)
    time.sleep(1.0)  # messages under way
    driver.close()


if __name__ == "__main__":
    main()
