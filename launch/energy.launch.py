# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

# Live power and energy of an arm: the estimator, and the logger beside it.
#   ros2 launch ur_energy_model energy.launch.py robot_ip:=192.168.0.10
# Without a model_file it begins with the generic model of the arm, and learns while the arm works.
from ur_energy_model.nodes.launch_files import description


def generate_launch_description():
    return description("energy")
