# Identifies a model from bags and writes the model file.
#   ros2 launch ur_energy_model identify.launch.py bags:=bags/a,bags/b output:=model.yaml
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from ur_energy_model.nodes.launch_actions import package_node
from ur_energy_model.nodes.launch_parameters import changed_parameters


def launch_setup(context):
    arguments = context.launch_configurations
    parameters = {"identify_on_start": True} | changed_parameters(
        "identification",
        arguments,
        ["bags", "validation_bags", "robot_model", "output", "friction", "exit_when_done"],
    )
    return [package_node("identification", arguments, parameters)]


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "bags", description="bags to identify the model from, separated by commas"
            ),
            DeclareLaunchArgument(
                "validation_bags",
                default_value="",
                description="bags held out for validation, separated by commas",
            ),
            DeclareLaunchArgument(
                "robot_model",
                default_value="ur5e",
                description="name of the robot, such as ur5e, or path of a robot file",
            ),
            DeclareLaunchArgument(
                "output",
                default_value="model.yaml",
                description="path of the model file to write",
            ),
            DeclareLaunchArgument(
                "friction",
                default_value="auto",
                description="friction law; auto selects the one with the smallest held-out error",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of all nodes, one per robot"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="YAML file with node parameters; launch arguments override it",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                description="lowest severity of messages that are shown",
                choices=["debug", "info", "warn", "error"],
            ),
            DeclareLaunchArgument(
                "exit_when_done",
                default_value="true",
                description="end when the model file is written",
                choices=["true", "false"],
            ),
            OpaqueFunction(function=launch_setup),
        ]
    )
