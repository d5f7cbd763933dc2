# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Prints what each work cycle took, also the last ones before it was started.

Start it with python: it is not in a package.
"""

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile


class CycleEnergies(Node):
    def __init__(self) -> None:
        super().__init__("cycle_energies")
        quality = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(DiagnosticArray, "energy/cycle", self.on_cycle, quality)

    def on_cycle(self, message: DiagnosticArray) -> None:
        (status,) = message.status
        values = {each.key: each.value for each in status.values}
        energy, seconds = float(values["total_energy_J"]), float(values["duration_s"])
        text = f"cycle {values['cycle']}: {energy:.1f} J in {seconds:.1f} s"
        if status.level == DiagnosticStatus.OK:
            self.get_logger().info(text)
        else:  # the energy of this time is not in it
            self.get_logger().warning(
                f"{text}, {values['unaccounted_s']} s without samples"
            )


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(CycleEnergies())
