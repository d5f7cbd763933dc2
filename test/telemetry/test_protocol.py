# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RTDE on the wire: what is packed is unpacked again, malformed packets are refused."""

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde import protocol
from ur_energy_model.telemetry.rtde.protocol import (
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    frame,
)


def recipe_of(names, recipe_id=7):
    return Recipe(tuple(names), tuple(FIELDS[name].kind for name in names), recipe_id)


def test_data_packages_are_what_the_guide_says():
    recipe = recipe_of(["timestamp", "actual_q", "robot_mode"], 1)
    package = recipe.pack(
        {"timestamp": 1.5, "actual_q": [1, 2, 3, 4, 5, 6], "robot_mode": -1}
    )
    assert package == struct.pack(">HBBd6di", 64, 85, 1, 1.5, *range(1, 7), -1)
    version_1 = recipe_of(["timestamp"], None)
    assert version_1.pack({"timestamp": 2.0}) == struct.pack(">HBd", 11, 85, 2.0)
    names = protocol.in_type_order(["robot_mode", "actual_q", "tool_mode", "timestamp"])
    assert names == ("timestamp", "actual_q", "robot_mode", "tool_mode")


def test_every_kind_of_value_comes_back_bit_for_bit():
    recipe = recipe_of(FIELDS)
    random = np.random.default_rng(1)
    values = {}
    for name, field in FIELDS.items():
        scale = 1e9 if field.kind in ("DOUBLE", "VECTOR3D", "VECTOR6D") else 1.0
        drawn = random.random(field.width) * scale
        values[name] = drawn if scale > 1.0 else np.rint(drawn)
        if field.width == 1:
            values[name] = values[name][0]
    columns = recipe.columns(recipe.unpack_many(recipe.pack(values) * 3))
    for name, value in values.items():
        assert columns[name].dtype == np.float64
        assert columns[name].tobytes() == np.stack([value] * 3).tobytes()


@given(st.binary(max_size=1000))
def test_any_bytes_are_decoded_or_refused(data):
    reader = FrameReader()
    taken = 0
    reader.feed(data)
    with suppress(ProtocolError):
        while (packet := reader.take_frame()) is not None:
            taken += 3 + len(packet.payload)
    assert taken + len(reader.buffer) == len(data)
    for name in dir(protocol):
        if name.startswith("decode_"):
            with suppress(ProtocolError):
                getattr(protocol, name)(data)


def test_data_is_taken_up_to_the_next_other_packet():
    recipe = recipe_of(["timestamp"], 1)
    other = recipe_of(["timestamp"], 2)
    packages = [recipe.pack({"timestamp": float(i)}) for i in range(5)]
    reader = FrameReader("10.0.0.1")

    def taken():
        records = reader.take_records(recipe)
        return None if records is None else records["timestamp"].tolist()

    text = frame(PacketType.TEXT_MESSAGE, b"\x02hi\x00\x03")
    reader.feed(b"".join(packages[:3]) + text + packages[3] + packages[4][:5])
    assert [taken(), taken()] == [[0.0, 1.0, 2.0], None]
    assert reader.take_frame() == Frame(PacketType.TEXT_MESSAGE, b"\x02hi\x00\x03")
    assert [taken(), taken()] == [[3.0], None]
    reader.feed(packages[4][5:] + other.pack({"timestamp": 1.0}))
    assert [taken(), taken()] == [[4.0], None]
    reader.take_frame()
    reader.feed(b"\x00\x02U")
    with pytest.raises(ProtocolError, match=r"10\.0\.0\.1: sent a packet of size 2"):
        reader.take_frame()
    with pytest.raises(ValueError, match="16-bit"):
        frame(PacketType.TEXT_MESSAGE, bytes(0xFFFF))
