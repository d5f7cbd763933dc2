# Live energy in a cell: estimator and logger beside a controller, a bag or a driver.
#   ros2 launch ur_energy_model energy.launch.py robot_ip:=192.168.0.10 model_file:=model.yaml
from launch import LaunchDescription

from ur_energy_model.nodes.launch_actions import description


def generate_launch_description() -> LaunchDescription:
    return description(__file__)
