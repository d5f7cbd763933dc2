# Identifies a model from bags and writes the model file.
#   ros2 launch ur_energy_model identify.launch.py bags:=my_bag,another_bag output:=model.yaml
from launch.actions import DeclareLaunchArgument

from ur_energy_model.nodes.launch_actions import (
    common_arguments,
    description,
    package_node,
    parameter_arguments,
)
from ur_energy_model.nodes.launch_arguments import changed_parameters


def launch_setup(context):
    arguments = context.launch_configurations
    parameters = {"identify_on_start": True} | changed_parameters(
        "identification",
        arguments,
        ["bags", "validation_bags", "robot_model", "output", "friction", "exit_when_done"],
    )
    return [package_node("identification", arguments, parameters)]


def generate_launch_description():
    return description(
        __file__,
        [
            DeclareLaunchArgument(
                "bags", description="bags to identify the model from, separated by commas"
            ),
            DeclareLaunchArgument(
                "validation_bags",
                default_value="",
                description="bags held out for validation, separated by commas",
            ),
            *parameter_arguments("identification", "robot_model", "output", "friction"),
            *common_arguments("namespace", "params_file", "log_level"),
            DeclareLaunchArgument(
                "exit_when_done",
                default_value="true",
                description="end when the model file is written",
                choices=["true", "false"],
            ),
        ],
        launch_setup,
    )
