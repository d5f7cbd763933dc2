# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

# Live energy, and the logger, beside ur_robot_driver, which is started by itself before or after.
#   ros2 launch ur_energy_model ur_driver.launch.py robot_ip:=192.168.0.10
# The driver publishes joint_states, robot_description and frames; these nodes do not.
from ur_energy_model.nodes.launch_files import description


def generate_launch_description():
    return description("ur_driver")
