# Live power and energy of an arm: the estimator, and the logger beside it.
#   ros2 launch ur_energy_model energy.launch.py robot_ip:=192.168.0.10 model_file:=model.yaml
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.launch_parameters import changed_parameters

PACKAGE = "ur_energy_model"
CONFIG = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])


def launch_setup(context):
    arguments = context.launch_configurations
    namespace = LaunchConfiguration("namespace")
    estimator_log_level = ["--log-level", ["estimator:=", LaunchConfiguration("log_level")]]
    logger_log_level = ["--log-level", ["logger:=", LaunchConfiguration("log_level")]]

    # Later sources of parameters win: defaults, params_file, changed launch arguments.
    params_file = [Path(arguments["params_file"]).expanduser()] if arguments["params_file"] else []
    sim_time = {"use_sim_time": True} if arguments["use_sim_time"] == "true" else {}
    estimator_parameters = sim_time | changed_parameters(
        "estimator",
        arguments,
        ["source", "robot_ip", "model_file", "bag", "tf_prefix", "state_file"],
    )
    logger_parameters = sim_time | changed_parameters(
        "logger", arguments, ["robot_ip", "robot_model", "tf_prefix", "record", "bag_directory"]
    )

    estimator = Node(
        package=PACKAGE,
        executable="estimator_node",
        name="estimator",
        namespace=namespace,
        parameters=[
            PathJoinSubstitution([CONFIG, "estimator.yaml"]),
            *params_file,
            estimator_parameters,
        ],
        ros_arguments=estimator_log_level,
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
            logger_parameters,
        ],
        ros_arguments=logger_log_level,
        output="screen",
    )
    # Both nodes in one process. It gets no name, which would rename both nodes, and no default
    # files, since the defaults are built in.
    composed = Node(
        package=PACKAGE,
        executable="cell_node",
        namespace=namespace,
        parameters=[*params_file, estimator_parameters | logger_parameters],
        ros_arguments=estimator_log_level + logger_log_level,
        output="screen",
    )

    if arguments["logger"] == "false" or arguments["source"] != "rtde":
        nodes = [estimator]
    elif arguments["composed"] == "true":
        nodes = [composed]
    else:
        nodes = [estimator, logger]
    if arguments["robot_description"] == "true":
        robot = load_robot(arguments["robot_model"] or load_model(arguments["model_file"]).robot)
        nodes.append(
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                name="robot_state_publisher",
                namespace=namespace,
                parameters=[{"robot_description": urdf(robot, prefix=arguments["tf_prefix"])}],
                output="screen",
            )
        )
    return nodes


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_ip",
                default_value="127.0.0.2",
                description="address of the robot controller (RTDE port 30004)",
            ),
            DeclareLaunchArgument(
                "robot_model",
                default_value="",
                description="name of the robot or path of a robot file; empty for the model that "
                "the controller names (logger) and that of the model file",
            ),
            DeclareLaunchArgument("model_file", description="identified model (model.yaml)"),
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
                "source",
                default_value="rtde",
                description="source of samples: the controller, a bag played in real time, or the "
                "joint_states topic of a driver",
                choices=["rtde", "bag", "joint_states"],
            ),
            DeclareLaunchArgument("bag", default_value="", description="bag to play (source: bag)"),
            DeclareLaunchArgument(
                "tf_prefix",
                default_value="",
                description="prefix of joint and frame names, as in the UR driver",
            ),
            DeclareLaunchArgument(
                "state_file",
                default_value="",
                description="file that keeps the energy counters over a restart; empty for none",
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
                "logger",
                default_value="true",
                description="start the logger too (source: rtde only)",
                choices=["true", "false"],
            ),
            DeclareLaunchArgument(
                "composed",
                default_value="false",
                description="logger and estimator in one process, on one connection",
                choices=["true", "false"],
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                description="take the time from /clock",
                choices=["true", "false"],
            ),
            DeclareLaunchArgument(
                "robot_description",
                default_value="false",
                description="publish a simple robot model and its frames; not needed with a driver",
                choices=["true", "false"],
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
