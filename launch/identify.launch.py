# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

# Identifies a model from bags and writes the model file.
#   ros2 launch ur_energy_model identify.launch.py bags:=my_bag,another_bag output:=model.yaml
from ur_energy_model.nodes.launch_files import description


def generate_launch_description():
    return description("identify")
