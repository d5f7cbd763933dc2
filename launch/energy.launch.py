# Live power and energy of an arm: the estimator, and the logger beside it.
#   ros2 launch ur_energy_model energy.launch.py robot_ip:=192.168.0.10 model_file:=model.yaml
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction

from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.nodes.launch_actions import (
    cell_node,
    package_node,
    robot_state_publisher,
    rviz,
)
from ur_energy_model.nodes.launch_checks import check_packages, ignored_arguments
from ur_energy_model.nodes.launch_parameters import changed_parameters


def launch_setup(context):
    arguments = context.launch_configurations
    check_packages(arguments)
    use_sim_time = {"use_sim_time": True} if arguments["use_sim_time"] == "true" else {}
    estimator = use_sim_time | changed_parameters(
        "estimator",
        arguments,
        ["source", "robot_ip", "model_file", "bag", "effort_unit", "tf_prefix", "state_file"],
    )
    logger = use_sim_time | changed_parameters(
        "logger",
        arguments,
        [
            "robot_ip",
            "robot_model",
            "tf_prefix",
            "record",
            "bag_directory",
            "publish_joint_states",
        ],
    )
    if arguments["source"] != "rtde" or arguments["logger"] == "false":
        source = arguments["source"]
        reason = "logger:=false" if source == "rtde" else f"source:={source}"
        actions = [LogInfo(msg=line) for line in ignored_arguments(arguments, reason)]
        actions.append(package_node("estimator", arguments, estimator))
    elif arguments["composed"] == "true":
        actions = [cell_node(arguments, estimator | logger)]
    else:
        actions = [
            package_node("estimator", arguments, estimator),
            package_node("logger", arguments, logger),
        ]
    if arguments["robot_description"] == "true":
        robot = (
            arguments["robot_model"] or load_model(Path(arguments["model_file"]).expanduser()).robot
        )
        actions.append(robot_state_publisher(arguments, robot, arguments["tf_prefix"]))
    if arguments["rviz"] == "true":
        actions.append(rviz(arguments))
    return actions


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
                "effort_unit",
                default_value="ampere",
                description="unit of effort in joint_states (source: joint_states)",
                choices=["ampere", "newton_metre"],
            ),
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
                "publish_joint_states",
                default_value="true",
                description="publish joint_states; false if a driver does",
                choices=["true", "false"],
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
            DeclareLaunchArgument(
                "respawn",
                default_value="false",
                description="start a node again when it has ended",
                choices=["true", "false"],
            ),
            DeclareLaunchArgument(
                "respawn_delay",
                default_value="5.0",
                description="pause before a node is started again [s]",
            ),
            OpaqueFunction(function=launch_setup),
        ]
    )
