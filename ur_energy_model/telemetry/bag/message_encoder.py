"""The message types and topics of a bag, and the stamps of its samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.layout import (
    EVENTS_TOPIC,
    FIELDS_TOPIC,
    JOINT_STATES_TOPIC,
    TELEMETRY_TOPIC,
)
from ur_energy_model.telemetry.bag.mcap_format import Channel, Schema
from ur_energy_model.telemetry.bag.metadata import TopicEntry, qos_text
from ur_energy_model.telemetry.samples import Telemetry

# Embedded definitions and type hashes of ROS 2 types.
#
# The hashes are those of the ROS 2 Jazzy types (RIHS01); a test computes them again from the
# definitions.

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


@dataclass(frozen=True)
class MessageType:
    """A message type, of ROS 2 by default, with the definitions of all types it uses.

    `digest` is the RIHS01 hash of a ROS 2 type, else empty.
    """

    name: str
    definition: str | bytes
    digest: str
    schema_encoding: str = "ros2msg"
    message_encoding: str = "cdr"

    @property
    def definition_bytes(self) -> bytes:
        """The definition as it is stored."""
        return self.definition.encode() if isinstance(self.definition, str) else self.definition


@dataclass(frozen=True)
class BagTopic:
    """A topic of a bag; late subscribers get the last message of a latched one."""

    name: str
    kind: MessageType
    latched: bool = False

    def entry(self, messages: int) -> TopicEntry:
        """Its entry in the metadata of a bag with this number of messages."""
        kind = self.kind
        return TopicEntry(self.name, kind.name, kind.digest, messages, self.latched)

    def definitions(self, number: int) -> tuple[Channel, Schema]:
        """Definitions of its channel of this number and of the schema, which has it too."""
        kind, metadata = self.kind, {}
        if kind.digest:
            qos = qos_text(self.latched)
            metadata = {"offered_qos_profiles": qos, "topic_type_hash": kind.digest}
        schema = Schema(number, kind.name, kind.schema_encoding, kind.definition_bytes)
        return Channel(number, number, self.name, kind.message_encoding, metadata), schema


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
    return {n: replace(topic, name=namespace + topic.name) for n, topic in TOPICS.items()}


class StampRule:
    """Stamps of consecutive batches of one recording.

    Attributes:
        host_clock: whether the recording has host stamps; None before the first batch.
    """

    def __init__(self) -> None:
        self.host_clock: bool | None = None
        self._shift = 0
        self._last: int | None = None

    def stamps(self, batch: Telemetry) -> NDArray[np.int64]:
        """Host stamps [n] of a batch (ns), or its controller times where it has none.

        Where the controller's clock starts again, its times continue one second later: log times
        must not go back.
        """
        if self.host_clock is None:
            self.host_clock = batch.stamp is not None
        if batch.stamp is not None:
            return batch.stamp
        stamp: NDArray[np.int64] = np.rint(batch.time * 1e9).astype(np.int64)
        first = int(stamp[0]) if self._last is None else self._last
        steps = np.diff(stamp, prepend=first - self._shift)
        steps[steps < 0] = 1_000_000_000
        out: NDArray[np.int64] = first + np.cumsum(steps)
        self._last = int(out[-1])
        self._shift = self._last - int(stamp[-1])
        return out
