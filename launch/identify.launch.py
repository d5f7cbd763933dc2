# From bags to a model file.
#   ros2 launch ur_energy_model identify.launch.py bags:=bags/a,bags/b output:=model.yaml
from launch import LaunchDescription

from ur_energy_model.nodes.launch_actions import description


def generate_launch_description() -> LaunchDescription:
    return description(__file__)
