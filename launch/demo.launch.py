# A simulated arm and the logger; the estimator too if a model is given.
#   ros2 launch ur_energy_model demo.launch.py model_file:=model.yaml
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from ur_energy_model.nodes.launch_actions import (
    common_arguments,
    package_node,
    parameter_arguments,
    robot_state_publisher,
    rviz,
)
from ur_energy_model.nodes.launch_checks import check_packages
from ur_energy_model.nodes.launch_parameters import changed_parameters


def launch_setup(context):
    arguments = context.launch_configurations
    check_packages(arguments, {"rviz": ("rviz2", "robot_state_publisher")})
    connection = {"robot_ip": arguments["host"]}
    actions = [
        package_node(
            "simulated_robot",
            arguments,
            changed_parameters(
                "simulated_robot", arguments, ["host", "robot_model", "motion", "seed"]
            ),
        ),
        package_node(
            "logger",
            arguments,
            connection
            | changed_parameters("logger", arguments, ["robot_model", "record", "bag_directory"]),
        ),
    ]
    if arguments["model_file"]:
        estimator = connection | changed_parameters("estimator", arguments, ["model_file"])
        actions.append(package_node("estimator", arguments, estimator))
    if arguments["rviz"] == "true":
        actions.append(robot_state_publisher(arguments, arguments["robot_model"]))
        actions.append(rviz(arguments))
    return actions


def generate_launch_description():
    return LaunchDescription(
        [
            *parameter_arguments("simulated_robot", "host", "robot_model", "motion", "seed"),
            DeclareLaunchArgument(
                "model_file",
                default_value="",
                description="identified model; if given, the estimator is started too",
            ),
            *common_arguments("namespace", "params_file", "log_level"),
            *parameter_arguments("logger", "record", "bag_directory"),
            *common_arguments("rviz"),
            OpaqueFunction(function=launch_setup),
        ]
    )
