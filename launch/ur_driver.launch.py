# Live energy, and the logger, beside ur_robot_driver, which is started by itself before or after.
#   ros2 launch ur_energy_model ur_driver.launch.py robot_ip:=192.168.0.10 model_file:=model.yaml
# The driver publishes joint_states, robot_description and frames; these nodes do not.
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction

from ur_energy_model.nodes.launch_actions import cell_node, package_node, rviz
from ur_energy_model.nodes.launch_checks import check_packages, ignored_arguments
from ur_energy_model.nodes.launch_parameters import changed_parameters


def launch_setup(context):
    arguments = context.launch_configurations
    check_packages(arguments, {"rviz": ("rviz2",)})
    estimator = changed_parameters(
        "estimator",
        arguments,
        ["source", "robot_ip", "model_file", "effort_unit", "tf_prefix", "state_file"],
    )
    logger = {"publish_joint_states": False} | changed_parameters(
        "logger",
        arguments,
        ["robot_ip", "robot_model", "tf_prefix", "record", "bag_directory"],
    )
    if arguments["logger"] == "false":
        actions = [LogInfo(msg=line) for line in ignored_arguments(arguments, "logger:=false")]
        actions.append(package_node("estimator", arguments, estimator))
    elif arguments["source"] == "rtde":
        actions = [cell_node(arguments, estimator | logger)]  # on one connection
    else:
        actions = [
            package_node("estimator", arguments, estimator),
            package_node("logger", arguments, logger),
        ]
    if arguments["rviz"] == "true":
        actions.append(rviz(arguments))
    return actions


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_ip", description="address of the robot controller, as given to the driver"
            ),
            DeclareLaunchArgument("model_file", description="identified model (model.yaml)"),
            DeclareLaunchArgument(
                "source",
                default_value="rtde",
                description="source of samples: a connection of its own to the controller, or the "
                "joint_states topic of the driver",
                choices=["rtde", "joint_states"],
            ),
            DeclareLaunchArgument(
                "effort_unit",
                default_value="ampere",
                description="unit of effort in joint_states (source: joint_states)",
                choices=["ampere", "newton_metre"],
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of all nodes, one per robot"
            ),
            DeclareLaunchArgument(
                "tf_prefix",
                default_value="",
                description="prefix of joint and frame names, as in the UR driver",
            ),
            DeclareLaunchArgument(
                "robot_model",
                default_value="",
                description="name of the robot or path of a robot file; empty for the model that "
                "the controller names",
            ),
            DeclareLaunchArgument(
                "logger",
                default_value="true",
                description="start the logger too, on a connection to the controller",
                choices=["true", "false"],
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
                "state_file",
                default_value="",
                description="file that keeps the energy counters over a restart; empty for none",
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
                "rviz",
                default_value="false",
                description="open rviz with markers and the driver's robot model",
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
