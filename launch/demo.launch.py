# A simulated arm, the logger, and the estimator where a model is given.
#   ros2 launch ur_energy_model demo.launch.py model_file:=model.yaml
from launch import LaunchDescription

from ur_energy_model.nodes.launch_actions import description


def generate_launch_description() -> LaunchDescription:
    return description(__file__)
