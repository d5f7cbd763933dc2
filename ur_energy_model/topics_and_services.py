# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics and services of the nodes: the only place that spells their names.

Nodes, dashboards and docs/nodes.md use these constants. The module does not import ROS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

LIVE_DEPTH = 10  # messages of a live topic that are kept for slow subscribers
EVENT_DEPTH = 100
"""Messages of events that are kept: several may come at once, such as the cycles that are found
with the first repetition, or the answers to ten plans."""
LIVE_POLICIES = ("history", "depth", "reliability")
"""Policies that are parameters of a live topic: a slow network may want best effort."""
EVENT_POLICIES = ("depth",)
"""Policies that are parameters of a topic of events, which must not be lost."""
JOINT = "<joint>"  # place of the name of each joint in a topic name, prefix included


@dataclass(frozen=True)
class Topic:
    """One topic of a node.

    Attributes:
        name: relative to the namespace; absolute if it begins with /, private if with ~/.
        type: type of the messages, package/Type.
        rate: rate of publication in words, or the parameter that sets it.
        description: content of the messages, with units.
        subscribed: whether the node subscribes to it, and does not publish it.
        latched: whether late subscribers get the last messages.
        depth: messages kept for slow subscribers, of a latched topic for late ones.
        reliable: False for a subscription that matches publishers of either kind.
        adjustable: policies of its quality of service that are parameters,
            `qos_overrides.<topic>...`.
    """

    name: str
    type: str
    rate: str
    description: str
    subscribed: bool = False
    latched: bool = False
    depth: int = LIVE_DEPTH
    reliable: bool = True
    adjustable: tuple[str, ...] = ()

    @property
    def absolute_name(self) -> str:
        """The name outside of any namespace."""
        return "/" + self.name.lstrip("/")

    def for_joint(self, joint: str) -> Topic:
        """The topic of one joint, if the name has a place for it.

        Names of joints may have characters that names of topics must not have: they
        become _.
        """
        part = re.sub("/+", "/", re.sub("[^A-Za-z0-9_/]", "_", joint)).strip("/")
        part = re.sub("(^|/)(?=[0-9])", r"\1_", part)
        return replace(self, name=self.name.replace(JOINT, part))


@dataclass(frozen=True)
class Service:
    """One service of a node, of the type std_srvs/Trigger.

    Attributes:
        name: private, with ~/ in front.
        description: what it does, and what its message returns.
    """

    name: str
    description: str


_LIVE = "publish_rate"
_ARRAY = "diagnostic_msgs/DiagnosticArray"
_NUMBER = "std_msgs/Float64"

DIAGNOSTICS = Topic("/diagnostics", _ARRAY, "1 Hz", "health of the node")

JOINT_STATES = Topic(
    "joint_states",
    "sensor_msgs/JointState",
    _LIVE,
    "measured position [rad], velocity [rad/s] and motor current as effort [A]",
    adjustable=LIVE_POLICIES,
)
EVENT_MARKS = Topic(
    "~/mark", "std_msgs/String", "", "label of an event for the bag", subscribed=True
)

IDENTIFICATION_RESULT = Topic(
    "~/result",
    _ARRAY,
    "after each identification",
    "identified constants with standard deviations, and errors of the fit",
    latched=True,
    depth=1,
)


def _pair(
    part: str, power: str, energy: str, adjustable: tuple[str, ...] = ()
) -> tuple[Topic, Topic]:
    """Topics of the power and the energy of a part of the arm.

    Args:
        part: second part of the names, such as "bus".
        power: description of the power.
        energy: description of the energy.
        adjustable: see `Topic`.
    """
    return (
        Topic(f"energy/{part}/power", _NUMBER, _LIVE, power, adjustable=adjustable),
        Topic(f"energy/{part}/energy", _NUMBER, _LIVE, energy, adjustable=adjustable),
    )


JOINT_POWER, JOINT_ENERGY = _pair(
    JOINT,
    "electrical power of the joint [W]",
    "electrical energy of the joint since reset [J], regeneration subtracted",
)
TOTAL_POWER, TOTAL_ENERGY = _pair(
    "total",
    "power of the whole arm [W]: measured where the bus power is, else the model's",
    "energy of the whole arm since reset [J], measured where the bus power is; never decreases",
    LIVE_POLICIES,
)
BUS_POWER, BUS_ENERGY = _pair(
    "bus",
    "measured bus voltage times current [W]",
    "integral of the bus power since reset [J]",
    LIVE_POLICIES,
)
STANDBY_POWER, STANDBY_ENERGY = _pair(
    "standby", "standby power [W]", "standby energy since reset [J]"
)
DRIVERS_POWER, DRIVERS_ENERGY = _pair(
    "drivers",
    "power lost in the drivers [W]",
    "energy lost in the drivers since reset [J]",
)
REGENERATION_POWER, REGENERATION_ENERGY = _pair(
    "regeneration",
    "what the supply cannot take back [W]: positive while it is stored or burnt, negative while "
    "the bus capacitor feeds the arm",
    "its energy since reset [J], which may rise and fall",
)
WALL_POWER, WALL_ENERGY = _pair(
    "wall",
    "power at the mains [W]: control box and supply included; measured once with a power meter, "
    "else those of any cell",
    "its energy since reset [J]; only with another model it may decrease",
    LIVE_POLICIES,
)
MODEL_POWER, MODEL_ENERGY = _pair(
    "model",
    "sum of the modelled parts: joints, standby, drivers and regeneration [W]",
    "its energy since reset [J]",
)
UNEXPLAINED_POWER, UNEXPLAINED_ENERGY = _pair(
    "unexplained",
    "total less model [W]: what the measured power has beyond the parts, or lacks; 0 where the "
    "total is modelled",
    "its energy since reset [J], which may rise and fall",
)
ENERGY_JOINTS = Topic(
    "energy/joints",
    "control_msgs/DynamicJointState",
    _LIVE,
    "all powers and energies of one instant, per joint and part, for `total` and `model`; only if "
    "control_msgs is installed",
)
ENERGY = Topic(
    "energy",
    "sensor_msgs/JointState",
    _LIVE,
    "all values of one instant, by name: energy since reset [J] as position, power [W] as "
    "velocity, standard uncertainty of the energy [J] as effort",
    adjustable=LIVE_POLICIES,
)
ENERGY_SUMMARY = Topic(
    "energy/summary",
    _ARRAY,
    "1 Hz",
    "powers, energies, uncertainties, counters and states as readable text; where the total comes "
    "from, and what the model leaves unexplained",
)
ENERGY_CYCLE = Topic(
    "energy/cycle",
    _ARRAY,
    "at the end of a cycle",
    "energy, its parts and where it comes from, duration, peak power, idle and motion of the "
    "cycle; a warning with `unaccounted_s` where a part of it had no samples",
    latched=True,
    depth=EVENT_DEPTH,
    adjustable=EVENT_POLICIES,
)
ENERGY_PREDICTION = Topic(
    "energy/prediction",
    _ARRAY,
    "after each plan, and what is found out later",
    "answer to a plan: predicted, optimized and measured energy, or why it was refused",
    latched=True,
    depth=EVENT_DEPTH,
    adjustable=EVENT_POLICIES,
)
ENERGY_MARKERS = Topic(
    "energy/markers",
    "visualization_msgs/MarkerArray",
    "10 Hz",
    "power as a colour at each joint, total power as text, in frame `base`",
    adjustable=LIVE_POLICIES,
)
PLANNED_TRAJECTORY = Topic(
    "energy/planned_trajectory",
    "trajectory_msgs/JointTrajectory",
    "",
    "plan whose energy is to be predicted, and to be lowered in the same time",
    subscribed=True,
)
OPTIMIZED_TRAJECTORY = Topic(
    "energy/optimized_trajectory",
    "trajectory_msgs/JointTrajectory",
    "after a plan",
    "the plan with the same path, duration, joints and header for less energy",
    latched=True,
    depth=1,
)
DRIVER_JOINT_STATES = replace(
    JOINT_STATES,
    rate="",
    description="samples (source: joint_states)",
    subscribed=True,
    depth=2000,  # four seconds of a driver with 500 Hz
    reliable=False,
)
ROBOT_DESCRIPTION = Topic(
    "robot_description",
    "std_msgs/String",
    "on activation",
    "URDF of the arm (publish_robot_description)",
    latched=True,
    depth=1,
)
CLOCK = Topic(
    "/clock",
    "rosgraph_msgs/Clock",
    _LIVE,
    "time of the bag's samples (source: bag, use_sim_time)",
)

PUBLISHED_ENERGY = (ENERGY, ENERGY_SUMMARY, ENERGY_CYCLE, ENERGY_PREDICTION)
"""Topics that the estimator publishes for bags: `energy` has the values of the Float64
topics in 1/28 of the messages."""
RECORDED_ENERGY: tuple[Topic, ...] = tuple(
    replace(
        topic,
        rate="",
        description="for bags (record_energy)",
        subscribed=True,
        latched=False,
        depth=1000,
        reliable=topic is not ENERGY,  # events and summaries must not be lost
        adjustable=LIVE_POLICIES if topic is ENERGY else EVENT_POLICIES,
    )
    for topic in PUBLISHED_ENERGY
)
"""The same, as the logger subscribes to it."""

TOPICS: dict[str, tuple[Topic, ...]] = {
    "logger": (JOINT_STATES, DIAGNOSTICS, EVENT_MARKS, *RECORDED_ENERGY),
    "identification": (IDENTIFICATION_RESULT, DIAGNOSTICS),
    "estimator": (
        ENERGY, JOINT_POWER, JOINT_ENERGY, STANDBY_POWER, STANDBY_ENERGY, DRIVERS_POWER,
        DRIVERS_ENERGY, REGENERATION_POWER, REGENERATION_ENERGY, TOTAL_POWER, TOTAL_ENERGY,
        MODEL_POWER, MODEL_ENERGY, UNEXPLAINED_POWER, UNEXPLAINED_ENERGY, BUS_POWER, BUS_ENERGY,
        WALL_POWER, WALL_ENERGY, ENERGY_JOINTS, ENERGY_SUMMARY,
        ENERGY_CYCLE, ENERGY_PREDICTION, ENERGY_MARKERS,
        PLANNED_TRAJECTORY, OPTIMIZED_TRAJECTORY, DRIVER_JOINT_STATES, ROBOT_DESCRIPTION, CLOCK,
        DIAGNOSTICS,
    ),
    "simulated_robot": (DIAGNOSTICS,),
}  # fmt: skip
"""Topics of every node, by node name."""

START_RECORDING = Service("~/start_recording", "starts a bag; returns its path")
STOP_RECORDING = Service(
    "~/stop_recording",
    "finishes the bag; returns its number of samples and of lost samples",
)
SPLIT_RECORDING = Service("~/split_recording", "continues in a new file of the bag")
MARK = Service("~/mark", "writes an event into the bag")
IDENTIFY = Service(
    "~/identify", "identifies a model from the parameter `bags` and writes the model file"
)
RESET_ENERGY = Service(
    "~/reset_energy",
    "sets the counters since reset to zero; the lifetime counters continue",
)
READ_INTERVAL = Service(
    "~/read_interval", "returns the energies since the last call, as JSON"
)
START_CYCLE = Service("~/start_cycle", "ends the cycle; the next sample starts a new one")

SERVICES: dict[str, tuple[Service, ...]] = {
    "logger": (START_RECORDING, STOP_RECORDING, SPLIT_RECORDING, MARK),
    "identification": (IDENTIFY,),
    "estimator": (RESET_ENERGY, READ_INTERVAL, START_CYCLE),
    "simulated_robot": (),
}
"""Services of every node, by node name."""
