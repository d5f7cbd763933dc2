"""The RTDE codec: packed values are unpacked again, malformed packets are refused."""

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.fields import FIELDS, WIDTH
from ur_energy_model.telemetry.rtde.protocol import (
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    SetupReply,
    TextMessage,
    decode_controller_version,
    decode_flag,
    decode_names,
    decode_output_setup,
    decode_setup_reply,
    decode_text_message,
    decode_version_request,
    encode_output_setup,
    encode_setup_reply,
    encode_text_message,
    frame,
    in_type_order,
)

NAMES = st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=12)
INTEGERS = {
    "BOOL": (0, 1), "UINT8": (0, 255), "UINT32": (0, 2**32 - 1), "UINT64": (0, 2**53),
    "INT32": (-(2**31), 2**31 - 1), "VECTOR6INT32": (-(2**31), 2**31 - 1),
    "VECTOR6UINT32": (0, 2**32 - 1),
}  # fmt: skip


def recipe_of(names, recipe_id=7):
    return Recipe(tuple(names), tuple(FIELDS[name].kind for name in names), recipe_id)


@st.composite
def samples(draw):
    """Field names and a value for each of them."""
    names = list(dict.fromkeys(draw(NAMES)))
    values = {}
    for name in names:
        kind = FIELDS[name].kind
        element = st.integers(*INTEGERS[kind]) if kind in INTEGERS else st.floats(width=64)
        drawn = draw(st.lists(element, min_size=WIDTH[kind], max_size=WIDTH[kind]))
        values[name] = drawn if WIDTH[kind] > 1 else drawn[0]
    return names, values


def test_a_data_package_is_what_the_guide_says():
    recipe = recipe_of(["timestamp", "actual_q", "robot_mode"], 1)
    package = recipe.pack({"timestamp": 1.5, "actual_q": [1, 2, 3, 4, 5, 6], "robot_mode": -1})
    assert package == struct.pack(">HBB d 6d i".replace(" ", ""), 64, 85, 1, 1.5, *range(1, 7), -1)


def test_version_1_carries_no_recipe_number():
    recipe = recipe_of(["timestamp"], None)
    assert recipe.pack({"timestamp": 2.0}) == struct.pack(">HBd", 11, 85, 2.0)


@given(samples(), st.sampled_from([None, 1, 255]))
def test_values_come_back_bit_for_bit(sample, recipe_id):
    names, values = sample
    recipe = recipe_of(names, recipe_id)
    records = recipe.unpack_many(recipe.pack(values) * 3)
    columns = recipe.columns(records)
    assert list(columns) == names
    for name in names:
        expected = np.asarray(values[name], float)
        assert columns[name].shape == (3, *expected.shape)
        assert columns[name].dtype == np.float64
        assert columns[name].tobytes() == np.stack([expected] * 3).tobytes()


@given(
    st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=12),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_frames_survive_any_fragmentation(frames, cuts):
    stream = b"".join(frame(kind, payload) for kind, payload in frames)
    reader, found, position, i = FrameReader(), [], 0, 0
    while position < len(stream):
        step = cuts[i % len(cuts)]
        reader.feed(stream[position : position + step])
        position, i = position + step, i + 1
        while (packet := reader.take_frame()) is not None:
            found.append(packet)
    assert found == [Frame(kind, payload) for kind, payload in frames]
    assert len(reader) == 0


@given(st.binary(max_size=2000))
def test_any_bytes_are_cut_into_frames_or_refused(data):
    reader = FrameReader()
    reader.feed(data)
    taken = 0
    with suppress(ProtocolError):
        while (frame := reader.take_frame()) is not None:
            taken += 3 + len(frame.payload)
    assert taken + len(reader) == len(data)


@pytest.mark.parametrize(
    "decode",
    [
        decode_names,
        decode_output_setup,
        decode_setup_reply,
        decode_version_request,
        decode_flag,
        decode_controller_version,
        decode_text_message,
    ],
)
@given(payload=st.binary(max_size=300))
def test_decoders_refuse_with_one_kind_of_error(decode, payload):
    with suppress(ProtocolError):
        decode(payload)


def test_a_refusal_names_the_peer():
    reader = FrameReader("10.0.0.1")
    reader.feed(b"\x00\x02U")
    with pytest.raises(ProtocolError, match=r"10\.0\.0\.1: sent a packet of size 2"):
        reader.take_frame()


def test_data_is_taken_up_to_the_next_other_packet():
    recipe = recipe_of(["timestamp"], 1)
    text = frame(PacketType.TEXT_MESSAGE, b"\x02hi\x00\x03")
    packages = [recipe.pack({"timestamp": float(i)}) for i in range(5)]
    reader = FrameReader()
    reader.feed(b"".join(packages[:3]) + text + packages[3] + packages[4][:5])
    assert recipe.columns(recipe.take_records(reader))["timestamp"].tolist() == [0.0, 1.0, 2.0]
    assert recipe.take_records(reader) is None
    assert reader.take_frame() == Frame(PacketType.TEXT_MESSAGE, b"\x02hi\x00\x03")
    assert recipe.columns(recipe.take_records(reader))["timestamp"].tolist() == [3.0]
    assert recipe.take_records(reader) is None


def test_a_package_of_another_recipe_is_not_taken_for_ours():
    ours, other = recipe_of(["timestamp"], 1), recipe_of(["timestamp"], 2)
    reader = FrameReader()
    reader.feed(other.pack({"timestamp": 1.0}))
    assert ours.take_records(reader) is None


@given(st.text(max_size=80), st.text(max_size=80), st.integers(0, 3), st.sampled_from([1, 2]))
def test_text_messages_come_back(text, source, level, version):
    payload = encode_text_message(TextMessage(text, source, level), version)
    message = decode_text_message(payload, version)
    assert message.level == level
    if len(text.encode()) <= 255:
        assert message.text == text
    if version == 2 and len(source.encode()) <= 255:
        assert message.source == source


@given(st.floats(1, 500), st.lists(st.sampled_from(sorted(FIELDS))), st.sampled_from([1, 2]))
def test_output_setups_come_back(frequency, names, version):
    payload = encode_output_setup(names, frequency if version == 2 else None)
    expected = frequency if version == 2 else None
    assert decode_output_setup(payload, version) == (expected, tuple(names))


def test_a_trailing_comma_is_borne():
    assert decode_names(b"timestamp,actual_q,") == ("timestamp", "actual_q")


@pytest.mark.parametrize("number", [None, 0, 1, 255])
def test_setup_replies_come_back(number):
    reply = SetupReply(number, ("DOUBLE", "NOT_FOUND"))
    payload = encode_setup_reply(reply)
    assert decode_setup_reply(payload, numbered=number is not None) == reply
    assert not reply.accepted


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="16-bit"):
        frame(PacketType.TEXT_MESSAGE, bytes(0xFFFF))
    with pytest.raises(ValueError, match="no type"):
        Recipe(("x",), ("DOUBEL",), 1)  # type: ignore[arg-type]


def test_a_controller_version_may_lack_its_build():
    assert decode_controller_version(struct.pack(">3I", 3, 15, 8)) == (3, 15, 8, 0)


def test_fields_of_one_type_are_side_by_side() -> None:
    names = in_type_order(["robot_mode", "actual_q", "tool_mode", "timestamp", "joint_mode"])
    assert names == ("timestamp", "actual_q", "joint_mode", "robot_mode", "tool_mode")
