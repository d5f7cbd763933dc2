# Live power and energy of an arm: the estimator, and the logger beside it.
#   ros2 launch ur_energy_model energy.launch.py robot_ip:=192.168.0.10
# Without a model_file it begins with the generic model of the arm, and learns while the arm works.
from launch.actions import DeclareLaunchArgument

from ur_energy_model.nodes.launch_actions import (
    common_arguments,
    description,
    estimator_and_logger,
    parameter_arguments,
    robot_state_publisher,
    rviz,
)
from ur_energy_model.nodes.launch_arguments import (
    BUDGET,
    OUTLETS,
    changed_parameters,
    check_address,
    check_packages,
    described_robot,
)


def launch_setup(context):
    arguments = context.launch_configurations
    check_packages(arguments)
    check_address(arguments)
    address = ["robot_ip"] if arguments["robot_ip"] else []
    use_sim_time = {"use_sim_time": True} if arguments["use_sim_time"] == "true" else {}
    estimator = use_sim_time | changed_parameters(
        "estimator",
        arguments,
        [
            "source",
            *address,
            "publish_rate",
            "robot_model",
            "model_file",
            "learn",
            "bag",
            "effort_unit",
            "tf_prefix",
            "state_file",
            *OUTLETS,
        ],
    )
    logger = use_sim_time | changed_parameters(
        "logger",
        arguments,
        [
            *address,
            "publish_rate",
            "robot_model",
            "tf_prefix",
            "record",
            "bag_directory",
            *BUDGET,
            "publish_joint_states",
        ],
    )
    reason = "logger:=false" if arguments["logger"] == "false" else ""
    if arguments["source"] != "rtde":
        reason = f"source:={arguments['source']}"
    actions = estimator_and_logger(
        arguments,
        estimator,
        logger,
        composed=arguments["composed"] == "true",
        alone_because=reason,
    )
    if arguments["robot_description"] == "true":
        robot = described_robot(arguments)
        actions.append(robot_state_publisher(arguments, robot, arguments["tf_prefix"]))
    if arguments["rviz"] == "true":
        actions.append(rviz(arguments))
    return actions


def generate_launch_description():
    return description(
        __file__,
        [
            DeclareLaunchArgument(
                "robot_ip",
                default_value="",
                description="address of the robot controller; required with source:=rtde, unless "
                "params_file has it",
            ),
            *parameter_arguments("estimator", "robot_model", "model_file", "learn"),
            *common_arguments("namespace", "params_file", "log_level"),
            *parameter_arguments(
                "estimator",
                "source",
                "bag",
                "effort_unit",
                "tf_prefix",
                "publish_rate",
                "state_file",
            ),
            *parameter_arguments(
                "logger",
                "record",
                "bag_directory",
                *BUDGET,
                "publish_joint_states",
            ),
            *parameter_arguments("estimator", *OUTLETS),
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
            *common_arguments("rviz", "respawn", "respawn_delay"),
        ],
        launch_setup,
    )
