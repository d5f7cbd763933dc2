# Live energy, and the logger, beside ur_robot_driver, which is started by itself before or after.
#   ros2 launch ur_energy_model ur_driver.launch.py robot_ip:=192.168.0.10
# The driver publishes joint_states, robot_description and frames; these nodes do not.
from launch.actions import DeclareLaunchArgument

from ur_energy_model.nodes.launch_actions import (
    common_arguments,
    description,
    estimator_and_logger,
    parameter_arguments,
    rviz,
)
from ur_energy_model.nodes.launch_arguments import (
    BUDGET,
    OUTLETS,
    changed_parameters,
    check_packages,
)


def launch_setup(context):
    arguments = context.launch_configurations
    check_packages(arguments, {"rviz": ("rviz2",)})
    estimator = changed_parameters(
        "estimator",
        arguments,
        [
            "source",
            "robot_ip",
            "robot_model",
            "model_file",
            "learn",
            "effort_unit",
            "tf_prefix",
            "publish_rate",
            "state_file",
            *OUTLETS,
        ],
    )
    logger = {"publish_joint_states": False} | changed_parameters(
        "logger",
        arguments,
        [
            "robot_ip",
            "robot_model",
            "tf_prefix",
            "publish_rate",
            "record",
            "bag_directory",
            *BUDGET,
        ],
    )
    actions = estimator_and_logger(
        arguments,
        estimator,
        logger,
        composed=arguments["source"] == "rtde",
        alone_because="logger:=false" if arguments["logger"] == "false" else "",
    )
    if arguments["rviz"] == "true":
        actions.append(rviz(arguments))
    return actions


def generate_launch_description():
    return description(
        __file__,
        [
            DeclareLaunchArgument(
                "robot_ip", description="address of the robot controller, as given to the driver"
            ),
            *parameter_arguments("estimator", "model_file", "learn"),
            DeclareLaunchArgument(
                "source",
                default_value="rtde",
                description="source of samples: a connection of its own to the controller, or the "
                "joint_states topic of the driver",
                choices=["rtde", "joint_states"],
            ),
            *parameter_arguments("estimator", "effort_unit"),
            *common_arguments("namespace"),
            *parameter_arguments("estimator", "tf_prefix", "publish_rate"),
            *parameter_arguments("estimator", "robot_model"),
            DeclareLaunchArgument(
                "logger",
                default_value="true",
                description="start the logger too, on a connection to the controller",
                choices=["true", "false"],
            ),
            *parameter_arguments("logger", "record", "bag_directory", *BUDGET),
            *parameter_arguments("estimator", *OUTLETS),
            *parameter_arguments("estimator", "state_file"),
            *common_arguments("params_file", "log_level"),
            DeclareLaunchArgument(
                "rviz",
                default_value="false",
                description="open rviz with markers and the driver's robot model",
                choices=["true", "false"],
            ),
            *common_arguments("respawn", "respawn_delay"),
        ],
        launch_setup,
    )
