# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

# A simulated arm, the logger and the estimator.
#   ros2 launch ur_energy_model demo.launch.py
# Without a model_file the estimator begins with the generic model of the arm, and learns.
from ur_energy_model.nodes.launch_files import description


def generate_launch_description():
    return description("demo")
