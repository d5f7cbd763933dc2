"""The one table of topics and services, by node; docs/nodes.md and the tests are held to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

JOINT = "<joint>"
"""In a topic name: once for each joint of the arm, prefix included."""


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes:
        name: relative to the namespace unless it begins with / (or ~/ for the node's own).
        type: package/Type.
        rate: of publication, in words.
        description: what it carries, units included.
        subscribed: True where the node listens instead of speaking.
        latched: True where late joiners get the last message.
    """

    name: str
    type: str
    rate: str
    description: str
    subscribed: bool = False
    latched: bool = False


@dataclass(frozen=True)
class Service:
    """One service; all are std_srvs/Trigger.

    Attributes:
        name: relative to the node.
        description: what it does and answers.
    """

    name: str
    description: str


_LIVE = "publish_rate"
_DIAGNOSTICS = "diagnostic_msgs/DiagnosticArray"
_NUMBER = "std_msgs/Float64"
_HEALTH = Topic("/diagnostics", _DIAGNOSTICS, "1 Hz", "health of the node")

TOPICS: dict[str, tuple[Topic, ...]] = {
    "logger": (
        Topic("joint_states", "sensor_msgs/JointState", _LIVE,
              "measured position [rad], velocity [rad/s] and motor current as effort [A]"),
        _HEALTH,
        Topic("~/mark", "std_msgs/String", "", "a labelled event for the bag", subscribed=True),
    ),
    "identification": (
        Topic("~/result", _DIAGNOSTICS, "after each identification",
              "identified constants with standard deviations, and the fit", latched=True),
        _HEALTH,
    ),
    "estimator": (
        Topic(f"energy/{JOINT}/power", _NUMBER, _LIVE, "electrical power of the joint [W]"),
        Topic(f"energy/{JOINT}/energy", _NUMBER, _LIVE,
              "electrical energy of the joint since reset [J], regeneration subtracted"),
        Topic("energy/total/power", _NUMBER, _LIVE,
              "power of the whole arm, standby and drivers included [W]"),
        Topic("energy/total/energy", _NUMBER, _LIVE,
              "energy of the whole arm since reset [J]; never decreases"),
        Topic("energy/bus/power", _NUMBER, _LIVE, "measured voltage times current [W]"),
        Topic("energy/bus/energy", _NUMBER, _LIVE, "its integral since reset [J]"),
        Topic("energy/standby/power", _NUMBER, _LIVE, "standby power in use [W]"),
        Topic("energy/residual/power", _NUMBER, _LIVE, "model minus measured bus power [W]"),
        Topic("energy/joints", "control_msgs/DynamicJointState", _LIVE,
              "all powers and energies of one moment, per joint and for `total`; where "
              "control_msgs is installed"),
        Topic("energy/summary", _DIAGNOSTICS, "1 Hz",
              "the same for people, with uncertainty, counters, states and residual"),
        Topic("energy/cycle", _DIAGNOSTICS, "at the end of a cycle",
              "energy, duration, peak power, idle and motion of the cycle", latched=True),
        Topic("energy/prediction", _DIAGNOSTICS, "after a plan, and after its motion",
              "energy that the plan will take, and what it took", latched=True),
        Topic("energy/markers", "visualization_msgs/MarkerArray", "10 Hz",
              "power by colour at each joint, total as text, in frame `base`"),
        Topic("energy/planned_trajectory", "trajectory_msgs/JointTrajectory", "",
              "a plan to predict the energy of", subscribed=True),
        Topic("joint_states", "sensor_msgs/JointState", "", "samples (source: joint_states)",
              subscribed=True),
        Topic("robot_description", "std_msgs/String", "on activation",
              "URDF (publish_robot_description)", latched=True),
        Topic("/clock", "rosgraph_msgs/Clock", _LIVE,
              "time of the bag's samples (source: bag, use_sim_time)"),
        _HEALTH,
    ),
    "simulated_robot": (_HEALTH,),
}  # fmt: skip

SERVICES: dict[str, tuple[Service, ...]] = {
    "logger": (
        Service("start_recording", "begins a bag and answers its path"),
        Service("stop_recording", "ends the bag and answers its samples and losses"),
        Service("split_recording", "goes on in the next file of the bag"),
        Service("mark", "puts an event into the bag"),
    ),
    "identification": (
        Service("identify", "identifies from the parameter `bags`, writes the model file"),
    ),
    "estimator": (
        Service("reset_energy", "sets the counters since reset to zero; those since ever go on"),
        Service("read_interval", "answers the energies since the last call, as JSON"),
        Service("start_cycle", "ends the cycle and begins another with the next sample"),
    ),
    "simulated_robot": (),
}


def live_topics(joints: Sequence[str]) -> dict[str, str]:
    """Types of the topics that the estimator always publishes, by name outside a namespace."""
    optional = {"energy/joints", "robot_description", "/clock"}
    out = {}
    for topic in TOPICS["estimator"]:
        if topic.subscribed or topic.name in optional:
            continue
        for joint in joints if JOINT in topic.name else [""]:
            out["/" + topic.name.lstrip("/").replace(JOINT, joint)] = topic.type
    return out
