"""Bags of this package in other libraries, and bags of other writers in this one."""

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES, TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.message_encoder import (
    DIAGNOSTIC_ARRAY,
    DYNAMIC_JOINT_STATE,
    FLOAT64,
    JOINT_STATE,
    LOG,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.fields import FIELDS, column_names
from ur_energy_model.telemetry.samples import Telemetry

CONTROL_MSGS = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": "std_msgs/Header header\nstring[] joint_names\n"
    "control_msgs/InterfaceValue[] interface_values\n",
}


@pytest.fixture(scope="module")
def typestore():
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for name, definition in CONTROL_MSGS.items():
        types.update(get_types_from_msg(definition, name))
    store.register(types)
    return store


@pytest.mark.parametrize("kind", [DYNAMIC_JOINT_STATE, JOINT_STATE, LOG, FLOAT64, DIAGNOSTIC_ARRAY])
def test_hashes_are_those_of_the_real_types(kind, typestore):
    assert typestore.hash_rihs01(kind.name) == kind.digest
    parsed = get_types_from_msg(kind.definition, kind.name)
    assert parsed[kind.name] == typestore.fielddefs[kind.name]


def test_rosbags_reads_every_value(tmp_path, telemetry, typestore):
    bag = write_bag(tmp_path / "bag", telemetry)
    joint = [name for name in telemetry.columns if FIELDS[name].per_joint]
    with Reader(bag) as reader:
        assert {each.topic: each.msgcount for each in reader.connections} == {
            TELEMETRY_TOPIC: 1000,
            "/joint_states": 100,
            "/rtde/events": 0,
            "/rtde/fields": 100,
        }
        wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
        for i, (connection, stamp, raw) in enumerate(reader.messages(wanted)):
            assert stamp == telemetry.stamp[i]
            if i % 97:
                continue
            message = typestore.deserialize_cdr(raw, connection.msgtype)
            assert bytes(typestore.serialize_cdr(message, connection.msgtype)) == bytes(raw)
            assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
            assert message.joint_names[2] == "elbow_joint"
            for j, values in enumerate(message.interface_values[:6]):
                found = dict(zip(values.interface_names, values.values, strict=True))
                assert found == {name: telemetry[name][i, j] for name in joint}
            robot = message.interface_values[6]
            found = dict(zip(robot.interface_names, robot.values, strict=True))
            assert found["timestamp"] == telemetry.time[i]
            assert found["payload_cog_1"] == telemetry["payload_cog"][i, 1]
            assert set(found) == {
                column
                for name in telemetry.columns
                if name not in joint
                for column in column_names(FIELDS[name])
            }


def test_mcap_reads_by_the_embedded_definitions(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    with (bag / "bag_0.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()], validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == 1200
        assert len(summary.chunk_indexes) == summary.statistics.chunk_count
        assert {chunk.compression for chunk in summary.chunk_indexes} == {"zstd"}
        decoded = list(reader.iter_decoded_messages(topics=["/joint_states"]))
    assert len(decoded) == 100
    message = decoded[1].decoded_message
    assert list(message.position) == telemetry["actual_q"][10].tolist()
    assert list(message.effort) == telemetry["actual_current"][10].tolist()


@pytest.mark.parametrize("plugin", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_bags_of_another_writer_are_read(tmp_path, plugin, typestore):
    telemetry = make_telemetry(30, fields=("actual_q", "payload_cog", "payload"))
    path = tmp_path / "foreign"
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection(
            TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name, typestore=typestore
        )
        for i, stamp in enumerate(stamps_of(telemetry)):
            message = _message(typestore, telemetry, i, stamp)
            raw = typestore.serialize_cdr(message, DYNAMIC_JOINT_STATE.name)
            writer.write(connection, stamp, raw)
    assert_same_samples(read_bag(path), telemetry)


def stamps_of(telemetry: Telemetry) -> list[int]:
    assert telemetry.stamp is not None
    return telemetry.stamp.tolist()


def _message(typestore, telemetry, i, stamp):
    """A message with fields in an order that differs from ours, and one that we do not know."""
    types = typestore.types
    value = types["control_msgs/msg/InterfaceValue"]
    header = types["std_msgs/msg/Header"](
        types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9), "base"
    )
    names = ["robot", *JOINT_NAMES[::-1]]
    cog = telemetry["payload_cog"][i]
    robot = value(
        ["payload", "payload_cog_2", "payload_cog_1", "payload_cog_0", "humidity", "timestamp"],
        np.array([telemetry["payload"][i], cog[2], cog[1], cog[0], 0.5, telemetry.time[i]]),
    )
    joints = [value(["actual_q"], telemetry["actual_q"][i, [j]]) for j in range(5, -1, -1)]
    return types["control_msgs/msg/DynamicJointState"](header, names, [robot, *joints])


def test_messages_of_changing_size_are_read_in_order(tmp_path, typestore):
    telemetry = make_telemetry(20, fields=("actual_q", "payload_cog", "payload"))
    path = tmp_path / "foreign"
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection(
            TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name, typestore=typestore
        )
        for i, stamp in enumerate(stamps_of(telemetry)):
            message = _message(typestore, telemetry, i, stamp)
            message.header.frame_id = "x" * (i % 3 * 4)
            raw = typestore.serialize_cdr(message, DYNAMIC_JOINT_STATE.name)
            writer.write(connection, stamp, raw)
    assert_same_samples(read_bag(path), telemetry)
