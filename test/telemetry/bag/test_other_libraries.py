# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags of this package in other libraries, complete or not, and bags of other writers in it."""

from __future__ import annotations

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg

from test.layouts.viewers import STORE
from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    DYNAMIC_JOINT_STATE,
    FLOAT64,
    JOINT_NAMES,
    JOINT_STATE,
    LOG,
    TELEMETRY_TOPIC,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.fields import FIELDS, column_names


@pytest.mark.parametrize(
    "kind", [DYNAMIC_JOINT_STATE, JOINT_STATE, LOG, FLOAT64, DIAGNOSTIC_ARRAY]
)
def test_hashes_are_those_of_the_real_types(kind):
    assert STORE.hash_rihs01(kind.name) == kind.digest
    assert (
        get_types_from_msg(kind.definition, kind.name)[kind.name]
        == STORE.fielddefs[kind.name]
    )


def test_rosbags_and_mcap_read_every_value(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    joint = [name for name in telemetry.columns if FIELDS[name].per_joint]
    with Reader(bag) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
        others = {"/joint_states": 100, "/rtde/events": 0, "/rtde/fields": 100}
        assert counts == {TELEMETRY_TOPIC: 1000, **others}
        wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
        for i, (connection, stamp, raw) in enumerate(reader.messages(wanted)):
            assert stamp == telemetry.stamp[i]
            if i % 97:
                continue
            message = STORE.deserialize_cdr(raw, connection.msgtype)
            assert bytes(STORE.serialize_cdr(message, connection.msgtype)) == bytes(raw)
            assert (
                message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
            )
            assert message.joint_names[2] == "elbow_joint"
            found = [
                dict(zip(each.interface_names, each.values, strict=True))
                for each in message.interface_values
            ]
            for j in range(6):
                assert found[j] == {name: telemetry[name][i, j] for name in joint}
            assert found[6] == {
                column: telemetry[name][i].reshape(-1)[k]
                for name in telemetry.columns
                if name not in joint
                for k, column in enumerate(column_names(FIELDS[name]))
            }
    with (bag / "bag_0.mcap").open("rb") as file:
        mcap = make_reader(file, decoder_factories=[DecoderFactory()], validate_crcs=True)
        decoded = list(mcap.iter_decoded_messages(topics=["/joint_states"]))
    assert len(decoded) == 100
    assert list(decoded[1].decoded_message.position) == telemetry["actual_q"][10].tolist()
    assert (
        list(decoded[1].decoded_message.effort)
        == telemetry["actual_current"][10].tolist()
    )


def test_bags_of_another_writer_are_read(tmp_path):
    """Their messages have other orders of fields, and a field that is not in the table."""
    telemetry = make_telemetry(30, fields=("actual_q", "payload_cog", "payload"))
    assert telemetry.stamp is not None
    types = STORE.types
    kind = DYNAMIC_JOINT_STATE.name
    value = types["control_msgs/msg/InterfaceValue"]
    fields = [
        "payload",
        "payload_cog_2",
        "payload_cog_1",
        "payload_cog_0",
        "humidity",
        "timestamp",
    ]
    with Writer(
        tmp_path / "foreign", version=9, storage_plugin=StoragePlugin.MCAP
    ) as writer:
        connection = writer.add_connection(TELEMETRY_TOPIC, kind, typestore=STORE)
        for i, stamp in enumerate(telemetry.stamp.tolist()):
            time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
            header = types["std_msgs/msg/Header"](time, "x" * (i % 3 * 4))
            cog = telemetry["payload_cog"][i]
            numbers = [telemetry["payload"][i], *cog[::-1], 0.5, telemetry.time[i]]
            joints = [
                value(["actual_q"], telemetry["actual_q"][i, [j]])
                for j in range(5, -1, -1)
            ]
            interfaces = [value(fields, np.array(numbers)), *joints]
            message = types[kind](header, ["robot", *JOINT_NAMES[::-1]], interfaces)
            writer.write(connection, stamp, STORE.serialize_cdr(message, kind))
    assert_same_samples(read_bag(tmp_path / "foreign"), telemetry)
