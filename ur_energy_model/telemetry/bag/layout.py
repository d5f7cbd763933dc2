"""Layout of telemetry, joint states and events in the messages of a bag.

All topics are in the namespace of the logger, and all joint names have its prefix, as in the graph:
readers compare the ends of topic names, and joint names without prefix.

`/rtde/joint_telemetry` carries one control_msgs/msg/DynamicJointState a sample: the joints with the
fields that belong to joints, and `robot` with all others (vectors as name_0, name_1, ...).
`/joint_states` carries a sensor_msgs/msg/JointState for viewers, `/rtde/events` an
rcl_interfaces/msg/Log for each mark or message. `/rtde/fields` repeats all fields at 50 Hz as a
sensor_msgs/msg/JointState whose names are those of the fields, because viewers show that type by
name and DynamicJointState by index; it is never read as samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import CdrBuilder, CdrParser, Template
from ur_energy_model.telemetry.fields import FIELDS, column_names
from ur_energy_model.telemetry.samples import Event
from ur_energy_model.typing import Array, Bytes

TELEMETRY_TOPIC = "/rtde/joint_telemetry"
JOINT_STATES_TOPIC = "/joint_states"
EVENTS_TOPIC = "/rtde/events"
FIELDS_TOPIC = "/rtde/fields"
JOINT_NAMES = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint",
    "wrist_1_joint", "wrist_2_joint", "wrist_3_joint",
)  # fmt: skip
ROBOT = "robot"
_ELEMENTS = {
    column: (field.name, k)
    for field in FIELDS.values()
    for k, column in enumerate(column_names(field))
}
"""Field and element of an interface of a group that is no joint."""


@dataclass(frozen=True)
class TelemetryLayout:
    """A DynamicJointState message, and the places of each field among its values."""

    template: Template
    places: Mapping[str, tuple[int, ...]]

    @classmethod
    def of_fields(
        cls, names: Iterable[str], joint_names: Sequence[str] = JOINT_NAMES
    ) -> TelemetryLayout:
        """Layout of a message with these fields of the table; `timestamp` must be one of them."""
        fields = [FIELDS[name] for name in names]
        joint = [field.name for field in fields if field.per_joint]
        robot = [name for f in fields if not f.per_joint for name in column_names(f)]
        groups = {**dict.fromkeys(joint_names, joint), ROBOT: robot}
        return cls.of_message(dynamic_joint_state_template(groups).message)

    @classmethod
    def of_message(cls, message: bytes) -> TelemetryLayout:
        """Layout of an existing message.

        Raises:
            CdrError: it is not a DynamicJointState.
        """
        parser = CdrParser(message)
        parser.u32()
        parser.u32()
        parser.string()
        groups = parser.strings()
        count = parser.u32()
        interfaces: list[tuple[str, ...]] = []
        blocks: list[tuple[int, int]] = []
        for _ in range(min(count, len(groups))):
            interfaces.append(parser.strings())
            blocks.append(parser.doubles())
        return cls(Template(message, tuple(blocks)), _places(groups, interfaces, blocks))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Fields of the table that the message has, in the table's order."""
        return tuple(name for name in FIELDS if name in self.places)

    def encode(self, stamp: NDArray[np.int64], columns: Mapping[str, Array]) -> Bytes:
        """Messages [n, size] of samples."""
        values = np.empty((len(stamp), self.template.width))
        for name, place in self.places.items():
            values[:, place] = np.asarray(columns[name]).reshape(len(stamp), len(place))
        return self.template.encode(stamp, values)

    def decode(
        self, messages: Bytes, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], dict[str, Array]]:
        """Stamps [n] (ns) and columns of messages [n, size]."""
        stamp, values = self.template.decode(messages)
        columns = {}
        for name in names:
            place = self.places[name]
            columns[name] = values[:, place[0]].copy() if len(place) == 1 else values[:, place]
        return stamp, columns


def _places(
    groups: Sequence[str], interfaces: Sequence[Sequence[str]], blocks: Sequence[tuple[int, int]]
) -> dict[str, tuple[int, ...]]:
    """Positions of the values of each field that is complete in the message."""
    joints = _joints(groups, interfaces)
    found: dict[str, dict[int, int]] = {}
    start = 0
    for group, names, (_, count) in zip(groups, interfaces, blocks, strict=False):
        for place, name in enumerate(names[:count], start):
            if group not in joints:
                element = _ELEMENTS.get(name)
            elif name in FIELDS and FIELDS[name].per_joint:
                element = name, joints.index(group)
            else:
                element = None
            if element is not None:
                found.setdefault(element[0], {})[element[1]] = place
        start += count
    places = {}
    for name, field in FIELDS.items():
        width = len(joints) if field.per_joint else field.width
        if name in found and len(found[name]) == width:
            places[name] = tuple(found[name][k] for k in range(width))
    return places


def _joints(groups: Sequence[str], interfaces: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of the joints: those of one UR arm in their order, others in the message's order."""
    if any(group in JOINT_NAMES for group in groups):
        return JOINT_NAMES
    first, known = JOINT_NAMES[0], set(groups)
    prefixes = [group.removesuffix(first) for group in groups if group.endswith(first)]
    arms = [tuple(prefix + name for name in JOINT_NAMES) for prefix in prefixes]
    arms = [arm for arm in arms if known.issuperset(arm)]
    if len(arms) == 1:
        return arms[0]
    return tuple(
        group
        for group, names in zip(groups, interfaces, strict=False)
        if group != ROBOT and any(name in FIELDS and FIELDS[name].per_joint for name in names)
    )


def joint_state_template(names: Sequence[str], counts: tuple[int, int, int]) -> Template:
    """A JointState message with these names and numbers of positions, velocities and efforts."""
    builder = CdrBuilder()
    builder.stamp(0)
    builder.string("")
    builder.strings(names)
    for count in counts:
        builder.doubles(count)
    return Template(bytes(builder.body), tuple(builder.blocks))


def dynamic_joint_state_template(groups: Mapping[str, Sequence[str]]) -> Template:
    """A DynamicJointState message with the interfaces of each group (joint)."""
    builder = CdrBuilder()
    builder.stamp(0)
    builder.string("")
    builder.strings(tuple(groups))
    builder.u32(len(groups))
    for interfaces in groups.values():
        builder.strings(interfaces)
        builder.doubles(len(interfaces))
    return Template(bytes(builder.body), tuple(builder.blocks))


def encode_event(event: Event) -> bytes:
    """An event as a rcl_interfaces/msg/Log message."""
    builder = CdrBuilder()
    builder.stamp(event.stamp)
    builder.u8(event.level)
    for text in (event.kind, event.text, "", ""):
        builder.string(text)
    builder.u32(0)
    return bytes(builder.body)


def decode_event(message: bytes) -> Event:
    """Event from a rcl_interfaces/msg/Log message.

    Raises:
        CdrError: it is not one.
    """
    parser = CdrParser(message)
    seconds, nanoseconds, level = parser.u32(), parser.u32(), parser.u8()
    return Event(seconds * 1_000_000_000 + nanoseconds, parser.string(), parser.string(), level)
