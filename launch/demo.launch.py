# A simulated arm and the logger; the estimator too if a model is given.
#   ros2 launch ur_energy_model demo.launch.py model_file:=model.yaml
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from ur_energy_model.nodes.launch_actions import package_node, robot_state_publisher, rviz
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
            DeclareLaunchArgument(
                "host",
                default_value="127.0.0.2",
                description="loopback address of the RTDE, dashboard and script servers",
            ),
            DeclareLaunchArgument(
                "robot_model",
                default_value="ur5e",
                description="name of the robot, such as ur5e, or path of a robot file",
            ),
            DeclareLaunchArgument(
                "motion",
                default_value="trajectory_b",
                description="named motion (trajectory_a, trajectory_b, hold, sinusoids, "
                "pick_and_place, warm_up) or path of a Fourier trajectory file",
            ),
            DeclareLaunchArgument(
                "seed",
                default_value="0",
                description="random seed of the true parameters and of the noise",
            ),
            DeclareLaunchArgument(
                "model_file",
                default_value="",
                description="identified model; if given, the estimator is started too",
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
                "record",
                default_value="false",
                description="start recording on activation",
                choices=["true", "false"],
            ),
            DeclareLaunchArgument(
                "bag_directory",
                default_value="bags",
                description="folder for bags; each is named after the robot and its start time",
            ),
            DeclareLaunchArgument(
                "rviz",
                default_value="false",
                description="open rviz with markers and robot model",
                choices=["true", "false"],
            ),
            OpaqueFunction(function=launch_setup),
        ]
    )
