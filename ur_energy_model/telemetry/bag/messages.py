# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The messages of a bag: their types and topics, and samples, events and diagnostics in them.

All topics are in the namespace of the logger, and all joint names have its prefix, as in
the graph: readers compare the ends of topic names, and joint names without prefix.

`/rtde/joint_telemetry` carries one control_msgs/msg/DynamicJointState a sample: the
joints with the fields that belong to joints, and `robot` with all others (vectors as
name_0, name_1, ...). `/joint_states` carries a sensor_msgs/msg/JointState for viewers,
`/rtde/events` an rcl_interfaces/msg/Log for each mark or message. `/rtde/fields` repeats
all fields at 50 Hz as a sensor_msgs/msg/JointState with the names of the fields as joint
names, because viewers show that type by name and DynamicJointState by index; it is never
read as samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import yaml
from mcap.records import Channel, Schema
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import (
    ENCAPSULATION,
    CdrBuilder,
    CdrParser,
    Template,
)
from ur_energy_model.telemetry.fields import FIELDS, column_names
from ur_energy_model.telemetry.samples import Event
from ur_energy_model.typing import Array, Bytes
from ur_energy_model.yaml_nodes import DUMPER

TELEMETRY_TOPIC = "/rtde/joint_telemetry"
JOINT_STATES_TOPIC = "/joint_states"
EVENTS_TOPIC = "/rtde/events"
FIELDS_TOPIC = "/rtde/fields"
JOINT_NAMES = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint",
    "wrist_1_joint", "wrist_2_joint", "wrist_3_joint",
)  # fmt: skip
ROBOT = "robot"

# Message types: embedded definitions, and type hashes of ROS 2 Jazzy (RIHS01), which a
# test computes again from the definitions.

_SEPARATOR = "=" * 80
_TIME = f"""{_SEPARATOR}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
_HEADER = f"""{_SEPARATOR}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_TIME}"""


class MessageType(NamedTuple):
    """A message type, of ROS 2 by default.

    Attributes:
        name: name of the type, such as "std_msgs/msg/String".
        definition: definition of the type, with the definitions of all types that it
            uses.
        digest: RIHS01 hash of a ROS 2 type, "" for other types.
        schema_encoding: encoding of the definition, as MCAP files state it.
        message_encoding: encoding of the messages, as MCAP files state it.
    """

    name: str
    definition: str | bytes
    digest: str
    schema_encoding: str = "ros2msg"
    message_encoding: str = "cdr"

    @property
    def definition_bytes(self) -> bytes:
        """The definition as it is stored."""
        if isinstance(self.definition, str):
            return self.definition.encode()
        return self.definition


DYNAMIC_JOINT_STATE = MessageType(
    "control_msgs/msg/DynamicJointState",
    f"""std_msgs/Header header
string[] joint_names
control_msgs/InterfaceValue[] interface_values
{_HEADER}{_SEPARATOR}
MSG: control_msgs/InterfaceValue
string[] interface_names
float64[] values
""",
    "RIHS01_18024c98a62697680f581108eeed40b28fb4542fa0ac5a8e36f56c62b6813d26",
)
JOINT_STATE = MessageType(
    "sensor_msgs/msg/JointState",
    f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{_HEADER}""",
    "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e",
)
LOG = MessageType(
    "rcl_interfaces/msg/Log",
    f"""uint8 DEBUG=10
uint8 INFO=20
uint8 WARN=30
uint8 ERROR=40
uint8 FATAL=50
builtin_interfaces/Time stamp
uint8 level
string name
string msg
string file
string function
uint32 line
{_TIME}""",
    "RIHS01_e28ce254ca8abc06abf92773b74602cdbf116ed34fbaf294fb9f81da9f318eac",
)
STRING = MessageType(
    "std_msgs/msg/String",
    "string data\n",
    "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
)
FLOAT64 = MessageType(
    "std_msgs/msg/Float64",
    "float64 data\n",
    "RIHS01_705ba9c3d1a09df43737eb67095534de36fd426c0587779bda2bc51fe790182a",
)
DIAGNOSTIC_ARRAY = MessageType(
    "diagnostic_msgs/msg/DiagnosticArray",
    f"""std_msgs/Header header
diagnostic_msgs/DiagnosticStatus[] status
{_HEADER}{_SEPARATOR}
MSG: diagnostic_msgs/DiagnosticStatus
byte OK=0
byte WARN=1
byte ERROR=2
byte STALE=3
byte level
string name
string message
string hardware_id
diagnostic_msgs/KeyValue[] values
{_SEPARATOR}
MSG: diagnostic_msgs/KeyValue
string key
string value
""",
    "RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e",
)

# Topics.

# durability of topics whose last message late subscribers get
LATCHED = "transient_local"


def offered_qos_profiles(latched: bool) -> list[dict[str, Any]]:
    """Quality of service that the nodes offer on a topic.

    Args:
        latched: whether late subscribers get the last message.

    Returns:
        One profile in the form that rosbag2 stores (version 9).
    """
    # Three equal mappings: of the same one, YAML would write an anchor and aliases.
    endless = [{"sec": 9223372036, "nsec": 854775807} for _ in range(3)]
    profile = {
        "history": "keep_last",
        "depth": 1 if latched else 10,
        "reliability": "reliable",
        "durability": LATCHED if latched else "volatile",
        "deadline": endless[0],
        "lifespan": endless[1],
        "liveliness": "automatic",
        "liveliness_lease_duration": endless[2],
        "avoid_ros_namespace_conventions": False,
    }
    return [profile]


class BagTopic(NamedTuple):
    """A topic of a bag.

    Attributes:
        name: name of the topic, with its namespace.
        kind: type of its messages.
        latched: whether late subscribers get the last message.
    """

    name: str
    kind: MessageType
    latched: bool = False

    def definitions(self, number: int) -> tuple[Channel, Schema]:
        """Definitions of the topic for a file.

        Args:
            number: number of the topic's channel in the file; its schema gets the same
                number.

        Returns:
            The channel and its schema.
        """
        kind = self.kind
        metadata = {}
        if kind.digest:
            profiles = offered_qos_profiles(self.latched)
            qos = yaml.dump(profiles, Dumper=DUMPER, sort_keys=False).rstrip()
            metadata = {"offered_qos_profiles": qos, "topic_type_hash": kind.digest}
        schema = Schema(
            id=number,
            data=kind.definition_bytes,
            encoding=kind.schema_encoding,
            name=kind.name,
        )
        channel = Channel(
            id=number,
            topic=self.name,
            message_encoding=kind.message_encoding,
            metadata=metadata,
            schema_id=number,
        )
        return channel, schema


TOPICS: Mapping[int, BagTopic] = {
    1: BagTopic(TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE),
    2: BagTopic(JOINT_STATES_TOPIC, JOINT_STATE),
    3: BagTopic(EVENTS_TOPIC, LOG),
    4: BagTopic(FIELDS_TOPIC, JOINT_STATE),
}
"""Topic of each channel outside of any namespace, the same in every file."""
TELEMETRY, JOINT_STATES, EVENTS, NAMED_FIELDS = TOPICS


def topics_in(namespace: str) -> dict[int, BagTopic]:
    """TOPICS in a namespace, "" or with a leading slash."""
    return {n: topic._replace(name=namespace + topic.name) for n, topic in TOPICS.items()}


class Messages(NamedTuple):
    """Consecutive messages of one topic and one size.

    Attributes:
        topic: topic of the messages.
        stamp: log times [n], ns since the epoch, which do not decrease.
        payload: CDR with its encapsulation header [n, size].
    """

    topic: BagTopic
    stamp: NDArray[np.int64]
    payload: Bytes

    @classmethod
    def single(cls, topic: BagTopic, stamp: int, payload: bytes) -> Messages:
        """One message of a topic.

        Args:
            topic: topic of the message.
            stamp: log time [ns since the epoch].
            payload: CDR with its encapsulation header.
        """
        return cls(topic, np.array([stamp]), np.frombuffer(payload, np.uint8)[None])


# Samples.


def _elements() -> dict[str, tuple[str, int]]:
    """Field and element by the name of an interface, in a group that is no joint."""
    found: dict[str, tuple[str, int]] = {}
    for field in FIELDS.values():
        for element, name in enumerate(column_names(field)):
            found[name] = (field.name, element)
    return found


_ELEMENTS = _elements()
_NO_FIELD = ("", 0)  # entry for an interface that the table of fields lacks


class _Group(NamedTuple):
    """A joint, or `robot`, with its interfaces in a DynamicJointState message.

    Attributes:
        name: name of the joint, or `robot`.
        interfaces: names of its values.
        block: offset of its values in the message [bytes], and their number.
    """

    name: str
    interfaces: Sequence[str]
    block: tuple[int, int]


def _groups_of(message: bytes) -> list[_Group]:
    """Groups of a DynamicJointState message.

    Raises:
        CdrError: it is not such a message.
    """
    parser = CdrParser(message)
    _stamp, _frame, names, count = parser.take("tsSI")
    groups: list[_Group] = []
    for name in names[:count]:
        interfaces, block = parser.take("Sd")
        groups.append(_Group(name, interfaces, block))
    return groups


class TelemetryLayout:
    """Where the fields are in DynamicJointState messages like an existing one.

    Args:
        message: the existing message.

    Attributes:
        template: template of the messages.
        places: places of each complete field among the values of a message, in the order
            of the table of fields.

    Raises:
        CdrError: it is not a DynamicJointState.
    """

    def __init__(self, message: bytes) -> None:
        groups = _groups_of(message)
        self.template = Template(message, tuple(group.block for group in groups))
        joints = _joints({group.name: group.interfaces for group in groups})
        found: dict[str, dict[int, int]] = {}  # places by field and element
        start = 0
        for group in groups:
            _, count = group.block
            for place, name in enumerate(group.interfaces[:count], start):
                if group.name not in joints:
                    field, element = _ELEMENTS.get(name, _NO_FIELD)
                else:
                    field = name if _is_per_joint(name) else ""
                    element = joints.index(group.name)
                found.setdefault(field, {})[element] = place
            start += count
        self.places: dict[str, tuple[int, ...]] = {}
        for name, field_of_table in FIELDS.items():
            if name not in found:
                continue
            places = found[name]
            per_joint = field_of_table.per_joint
            width = len(joints) if per_joint else field_of_table.width
            if places.keys() == set(range(width)):
                self.places[name] = tuple(places[element] for element in range(width))

    @classmethod
    def of_fields(
        cls, names: Iterable[str], joint_names: Sequence[str] = JOINT_NAMES
    ) -> TelemetryLayout:
        """Layout of a message with these fields of the table.

        Args:
            names: RTDE names, `timestamp` included.
            joint_names: names of the arm's joints, with prefix.

        Returns:
            The layout: a group for each joint, and `robot` with the other fields.
        """
        of_joint: list[str] = []  # interfaces of each joint
        of_robot: list[str] = []
        for name in names:
            if FIELDS[name].per_joint:
                of_joint.append(name)
            else:
                of_robot += column_names(FIELDS[name])
        groups = {**dict.fromkeys(joint_names, of_joint), ROBOT: of_robot}
        return cls(dynamic_joint_state_template(groups).message)

    def encode(self, stamp: NDArray[np.int64], columns: Mapping[str, Array]) -> Bytes:
        """Messages of samples.

        Args:
            stamp: host times of the samples [n], ns.
            columns: values of at least the fields of this layout, [n] or [n, width].

        Returns:
            CDR with its encapsulation header [n, size].
        """
        values = np.empty((len(stamp), self.template.width))
        for name, place in self.places.items():
            values[:, place] = np.asarray(columns[name]).reshape(len(stamp), len(place))
        return self.template.encode(stamp, values)

    def decode(
        self, messages: Bytes, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], dict[str, Array]]:
        """Samples of messages that have this layout.

        Args:
            messages: CDR with its encapsulation header [n, size].
            names: fields to decode, of this layout.

        Returns:
            Stamps [n], ns, and values by field, [n] or [n, width].
        """
        stamp, values = self.template.decode(messages)
        columns = {}
        for name in names:
            places = self.places[name]
            if len(places) == 1:
                columns[name] = values[:, places[0]].copy()
            else:
                columns[name] = values[:, places]
        return stamp, columns


def _is_per_joint(name: str) -> bool:
    """Whether a name belongs to a field that has one value per joint."""
    return name in FIELDS and FIELDS[name].per_joint


def _joints(groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names of the joints among the groups of a message.

    The joints of a UR arm, perhaps with a common prefix, are in the order of JOINT_NAMES.
    Other joints are the groups with values of joints, in the order of the message.

    Args:
        groups: names of the interfaces of each group of a message.
    """
    if any(group in JOINT_NAMES for group in groups):
        return JOINT_NAMES
    first = JOINT_NAMES[0]
    arms: list[tuple[str, ...]] = []  # joints of each UR arm, with its prefix
    for group in groups:
        if group.endswith(first):
            prefix = group.removesuffix(first)
            arm = tuple(prefix + name for name in JOINT_NAMES)
            if groups.keys() >= set(arm):
                arms.append(arm)
    if len(arms) == 1:
        return arms[0]
    others: list[str] = []
    for group, names in groups.items():
        if group != ROBOT and any(_is_per_joint(name) for name in names):
            others.append(group)
    return tuple(others)


def joint_state_template(names: Sequence[str], counts: tuple[int, int, int]) -> Template:
    """A JointState message with these names and numbers of positions, velocities and efforts."""
    return CdrBuilder().add("tsSddd", 0, "", names, *counts).template()


def dynamic_joint_state_template(groups: Mapping[str, Sequence[str]]) -> Template:
    """A DynamicJointState message with the interfaces of each group (joint)."""
    builder = CdrBuilder().add("tsSI", 0, "", tuple(groups), len(groups))
    for interfaces in groups.values():
        builder.add("Sd", interfaces, len(interfaces))
    return builder.template()


# Events, diagnostics, and other single values.


def encode_event(event: Event) -> bytes:
    """An event as a rcl_interfaces/msg/Log message."""
    values = event.stamp, event.level, event.kind, event.text, "", "", 0
    return bytes(CdrBuilder().add("tBssssI", *values).body)


def decode_event(message: bytes) -> Event:
    """Event from a rcl_interfaces/msg/Log message.

    Raises:
        CdrError: it is not such a message.
    """
    stamp, level, kind, text = CdrParser(message).take("tBss")
    return Event(stamp, kind, text, level)


OK = 0
WARN = 1
ERROR = 2


@dataclass(frozen=True)
class Status:
    """One diagnostic_msgs/DiagnosticStatus.

    Attributes:
        name: name of the diagnosed component.
        level: OK, WARN or ERROR.
        message: one line for people.
        values: further values by name; `text_of` makes them text.
    """

    name: str
    level: int
    message: str
    values: Mapping[str, object]


def text_of(value: object) -> str:
    """Text of a value: numbers to six significant digits, large ones to three decimals."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # Six digits would hide the changes of a large energy counter.
        return f"{value:.3f}" if abs(value) >= 1000 else f"{value + 0.0:.6g}"
    return str(value)


def encode_diagnostics(stamp: int, statuses: Sequence[Status]) -> bytes:
    """A diagnostic_msgs/DiagnosticArray.

    Args:
        stamp: host time [ns since the epoch].
        statuses: statuses in the order of the message.

    Returns:
        CDR with its encapsulation header.
    """
    builder = CdrBuilder().add("tsI", stamp, "", len(statuses))
    for status in statuses:
        values = status.values
        builder.add("BsssI", status.level, status.name, status.message, "", len(values))
        for key, value in values.items():
            builder.add("ss", key, text_of(value))
    return bytes(builder.body)


def encode_text(text: str) -> bytes:
    """A std_msgs/String."""
    return bytes(CdrBuilder().add("s", text).body)


def encode_numbers(values: Array) -> Bytes:
    """Float64 messages [n, 12] of values [n]."""
    numbers = np.asarray(values, "<f8").view(np.uint8).reshape(-1, 8)
    heads = np.broadcast_to(np.frombuffer(ENCAPSULATION, np.uint8), (len(numbers), 4))
    return np.hstack([heads, numbers])
