# A simulated arm and the logger; the estimator too if a model is given.
#   ros2 launch ur_energy_model demo.launch.py model_file:=model.yaml
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.launch_parameters import changed_parameters

PACKAGE = "ur_energy_model"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])


def launch_setup(context):
    arguments = context.launch_configurations
    namespace = LaunchConfiguration("namespace")
    log_level = LaunchConfiguration("log_level")

    # Later sources of parameters win: defaults, params_file, changed launch arguments.
    params_file = [Path(arguments["params_file"]).expanduser()] if arguments["params_file"] else []
    connection = {"robot_ip": arguments["host"]}

    simulated_robot = Node(
        package=PACKAGE,
        executable="simulated_robot_node",
        name="simulated_robot",
        namespace=namespace,
        parameters=[
            PathJoinSubstitution([CONFIG, "simulated_robot.yaml"]),
            *params_file,
            changed_parameters(
                "simulated_robot", arguments, ["host", "robot_model", "motion", "seed"]
            ),
        ],
        ros_arguments=["--log-level", ["simulated_robot:=", log_level]],
        output="screen",
    )
    logger = Node(
        package=PACKAGE,
        executable="logger_node",
        name="logger",
        namespace=namespace,
        parameters=[
            PathJoinSubstitution([CONFIG, "logger.yaml"]),
            *params_file,
            connection
            | changed_parameters("logger", arguments, ["robot_model", "record", "bag_directory"]),
        ],
        ros_arguments=["--log-level", ["logger:=", log_level]],
        output="screen",
    )
    estimator = Node(
        package=PACKAGE,
        executable="estimator_node",
        name="estimator",
        namespace=namespace,
        parameters=[
            PathJoinSubstitution([CONFIG, "estimator.yaml"]),
            *params_file,
            connection | changed_parameters("estimator", arguments, ["model_file"]),
        ],
        ros_arguments=["--log-level", ["estimator:=", log_level]],
        output="screen",
    )

    nodes = [simulated_robot, logger]
    if arguments["model_file"]:
        nodes.append(estimator)
    if arguments["rviz"] == "true":
        robot = load_robot(arguments["robot_model"])
        nodes.append(
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                name="robot_state_publisher",
                namespace=namespace,
                parameters=[{"robot_description": urdf(robot)}],
                output="screen",
            )
        )
    return nodes


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
            Node(
                package="rviz2",
                executable="rviz2",
                name="rviz2",
                namespace=LaunchConfiguration("namespace"),
                arguments=["-d", PathJoinSubstitution([CONFIG, "rviz", "energy.rviz"])],
                condition=IfCondition(LaunchConfiguration("rviz")),
                output="screen",
            ),
        ]
    )
