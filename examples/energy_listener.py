# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Warns when the power of an arm exceeds a limit. Start it with python: it is not in a package."""

import rclpy
from rclpy.node import Node
from std_msgs.msg import Float64


class PeakWatch(Node):
    def __init__(self) -> None:
        super().__init__("peak_watch")
        self.limit = self.declare_parameter("limit", 150.0).value
        self.create_subscription(Float64, "energy/total/power", self.on_power, 10)

    def on_power(self, power: Float64) -> None:
        if power.data > self.limit:
            self.get_logger().warning(f"{power.data:.0f} W, limit {self.limit:.0f} W")


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(PeakWatch())
