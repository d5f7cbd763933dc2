# A simulated arm, the logger and the estimator.
#   ros2 launch ur_energy_model demo.launch.py
# Without a model_file the estimator begins with the generic model of the arm, and learns.
from launch.actions import DeclareLaunchArgument

from ur_energy_model.nodes.launch_actions import (
    common_arguments,
    description,
    package_node,
    parameter_arguments,
    robot_state_publisher,
    rviz,
)
from ur_energy_model.nodes.launch_arguments import changed_parameters, check_packages


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
            | {"record": arguments["record"] == "true"}
            | changed_parameters("logger", arguments, ["robot_model", "bag_directory"]),
        ),
        package_node(
            "estimator",
            arguments,
            connection | changed_parameters("estimator", arguments, ["model_file", "learn"]),
        ),
    ]
    if arguments["rviz"] == "true":
        actions.append(robot_state_publisher(arguments, arguments["robot_model"]))
        actions.append(rviz(arguments))
    return actions


def generate_launch_description():
    return description(
        __file__,
        [
            *parameter_arguments("simulated_robot", "host", "robot_model", "motion", "seed"),
            *parameter_arguments("estimator", "model_file", "learn"),
            *common_arguments("namespace", "params_file", "log_level"),
            DeclareLaunchArgument(
                "record",
                default_value="false",
                description="record the simulated arm into bag_directory",
                choices=["true", "false"],
            ),
            *parameter_arguments("logger", "bag_directory"),
            *common_arguments("rviz"),
        ],
        launch_setup,
    )
