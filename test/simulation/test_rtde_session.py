"""One RTDE session: what the controller answers, packet by packet."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.errors import ProtocolError
from ur_energy_model.simulation.commands import SpeedSlider
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.rtde_session import RtdeSession
from ur_energy_model.telemetry.fields import FIELDS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import (
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    decode_controller_version,
    decode_flag,
    decode_setup_reply,
    decode_text_message,
    encode_output_setup,
    frame,
)


class Client:
    """Sends one packet at a time and splits the replies."""

    def __init__(self, box: ControlBox, *, version: int = 2) -> None:
        self.box = box
        self.session = RtdeSession(box, Faults())
        self.version = version
        if version == 2:
            assert self.flag(PacketType.REQUEST_PROTOCOL_VERSION, bytes([0, 2]))

    def ask(self, kind: int, payload: bytes = b"") -> list[Frame]:
        reader = FrameReader()
        reader.feed(self.session.receive(frame(kind, payload)))
        frames = []
        while (packet := reader.take_frame()) is not None:
            frames.append(packet)
        assert not reader.buffer
        return frames

    def reply(self, kind: int, payload: bytes = b"") -> bytes:
        (answer,) = self.ask(kind, payload)
        assert answer.kind == kind
        return answer.payload

    def flag(self, kind: int, payload: bytes = b"") -> bool:
        return decode_flag(self.reply(kind, payload))

    def outputs(self, *names: str, frequency: float = 500.0) -> Recipe | None:
        request = encode_output_setup(names, frequency if self.version == 2 else None)
        reply = decode_setup_reply(
            self.reply(PacketType.SETUP_OUTPUTS, request), numbered=self.version == 2
        )
        if not reply.accepted:
            return None
        kinds: tuple[ValueKind, ...] = tuple(FIELDS[name].kind for name in names)
        assert reply.kinds == kinds
        return Recipe(names, kinds, reply.recipe_id)

    def tick(self) -> bytes:
        self.box.step()
        return self.session.data_package()


@pytest.fixture
def client(box: ControlBox) -> Client:
    return Client(box)


def test_versions(client: Client) -> None:
    for version, accepted in ((1, True), (2, True), (3, False), (0, False)):
        request = bytes([0, version])
        assert client.flag(PacketType.REQUEST_PROTOCOL_VERSION, request) == accepted
    reply = client.reply(PacketType.GET_CONTROLLER_VERSION)
    assert decode_controller_version(reply) == (5, 11, 1, 0)


def test_data_packages_hold_the_values_of_their_tick(client: Client) -> None:
    recipe = client.outputs("timestamp", "actual_q", "robot_mode", "joint_mode")
    assert recipe is not None
    assert client.flag(PacketType.START)
    for cycle in (1, 2, 3):
        (record,) = recipe.unpack_many(client.tick())
        expected = client.box.arm.outputs
        assert record["timestamp"] == pytest.approx(60 + cycle / 500)
        np.testing.assert_array_equal(record["actual_q"], expected["actual_q"])
        np.testing.assert_array_equal(record["joint_mode"], np.array(expected["joint_mode"], int))
        assert record["robot_mode"] == 7


@pytest.mark.parametrize(
    ("version", "name", "available"),
    [
        ("box", "actual_current_as_torque", False),  # since 5.23
        ("box", "ft_raw_wrench", True),
        ("cb3_box", "ft_raw_wrench", False),  # e-Series only
        ("cb3_box", "payload_inertia", True),
        ("box", "no_such_field", False),
    ],
)
def test_fields_follow_the_software_version(
    version: str, name: str, available: bool, request: pytest.FixtureRequest
) -> None:
    client = Client(request.getfixturevalue(version))
    payload = encode_output_setup(("timestamp", name), 125.0)
    reply = decode_setup_reply(client.reply(PacketType.SETUP_OUTPUTS, payload))
    assert reply.kinds[0] == "DOUBLE"
    assert (reply.kinds[1] != "NOT_FOUND") == available
    assert (reply.recipe_id != 0) == available
    assert client.flag(PacketType.START) == available


def test_start_pause_and_start_again(client: Client) -> None:
    assert not client.flag(PacketType.START)
    assert client.flag(PacketType.PAUSE)
    assert client.outputs("timestamp", "no_such_field") is None
    assert not client.flag(PacketType.START)
    assert client.outputs("timestamp") is not None  # repeated after NOT_FOUND
    assert client.tick() == b""
    for kind, data in (
        (PacketType.START, True),
        (PacketType.START, True),
        (PacketType.PAUSE, False),
    ):
        assert client.flag(kind)
        assert (client.tick() != b"") == data


@pytest.mark.parametrize(
    ("frequency", "decimation"),
    [(500, 1), (125, 4), (100, 5), (300, 1), (200, 2), (25, 20), (1000, 1), (0, 1), (-1, 1)],
)
def test_decimation_is_the_whole_part_of_the_ratio(
    client: Client, frequency: float, decimation: int
) -> None:
    recipe = client.outputs("timestamp", frequency=frequency)
    assert recipe is not None
    client.flag(PacketType.START)
    packages = [client.tick() for _ in range(100)]
    due = [i for i, package in enumerate(packages) if package]
    assert len(due) == 100 // decimation
    assert set(np.diff(due)) <= {decimation}


def test_version_1_has_no_frequency_and_no_recipe_number(box: ControlBox) -> None:
    client = Client(box, version=1)
    recipe = client.outputs("timestamp", "actual_q")
    assert recipe is not None
    assert recipe.recipe_id is None
    assert client.flag(PacketType.START)
    package = client.tick()
    assert len(package) == 3 + 8 + 48
    assert recipe.unpack_many(package)["timestamp"] == pytest.approx(60.002)


def test_inputs_reach_the_control_box_and_can_be_read_back(client: Client) -> None:
    names = ("input_int_register_3", "input_double_register_40", "input_bit_register_64")
    reply = decode_setup_reply(client.reply(PacketType.SETUP_INPUTS, ",".join(names).encode()))
    assert reply.kinds == ("INT32", "DOUBLE", "BOOL")
    recipe = Recipe(names, ("INT32", "DOUBLE", "BOOL"), reply.recipe_id)
    package = recipe.pack(dict(zip(names, (-5, 2.5, True), strict=True)))
    assert client.session.receive(package) == b"", "input is not answered, nor does it need start"
    readable = client.outputs(*names)
    assert readable is not None
    client.flag(PacketType.START)
    assert readable.unpack_many(client.tick())[0].item() == (-5, 2.5, True)


def test_an_input_field_belongs_to_one_client_until_it_disconnects(box: ControlBox) -> None:
    first, second = Client(box), Client(box)
    names = b"input_int_register_0,input_int_register_1,"  # clients end with a comma
    assert decode_setup_reply(first.reply(PacketType.SETUP_INPUTS, names)).accepted
    other = b"input_int_register_1,input_int_register_2"
    refused = decode_setup_reply(second.reply(PacketType.SETUP_INPUTS, other))
    assert refused == (0, ("IN_USE", "INT32"))
    free = decode_setup_reply(first.reply(PacketType.SETUP_INPUTS, b"input_int_register_2"))
    assert free.accepted, "a refused setup claims nothing"
    unknown = b"input_int_register_48,input_int_register_0,actual_q"
    reply = decode_setup_reply(first.reply(PacketType.SETUP_INPUTS, unknown))
    assert reply == (0, ("NOT_FOUND", "INT32", "NOT_FOUND"))
    first.session.disconnected()
    assert decode_setup_reply(second.reply(PacketType.SETUP_INPUTS, other)).accepted


def test_input_without_a_recipe_or_of_wrong_length_is_ignored(client: Client) -> None:
    client.reply(PacketType.SETUP_INPUTS, b"input_int_register_0")
    for payload in (b"", b"\x07\x00\x00\x00\x01", b"\x01\x00\x00", b"\x01" + bytes(9)):
        assert client.ask(PacketType.DATA_PACKAGE, payload) == []
    assert client.box.values["input_int_register_0"] == 0


def test_signals_set_by_input(client: Client) -> None:
    names = (
        "speed_slider_mask",
        "speed_slider_fraction",
        "standard_digital_output_mask",
        "standard_digital_output",
        "configurable_digital_output_mask",
        "configurable_digital_output",
        "standard_analog_output_mask",
        "standard_analog_output_type",
        "standard_analog_output_0",
        "standard_analog_output_1",
    )
    reply = decode_setup_reply(client.reply(PacketType.SETUP_INPUTS, ",".join(names).encode()))
    recipe = Recipe(names, reply.kinds, reply.recipe_id)  # type: ignore[arg-type]
    values = dict(
        zip(names, (1, 0.25, 0b101, 0b111, 0b10, 0b10, 0b11, 0b10, 0.5, 0.5), strict=True)
    )
    client.session.receive(recipe.pack(values))
    client.box.step()
    assert client.box.arm.commands == [SpeedSlider(0.25)]  # type: ignore[attr-defined]
    assert client.box.values["actual_digital_output_bits"] == 0b10_0000_0101
    assert client.box.values["standard_analog_output0"] == pytest.approx(0.012)  # A
    assert client.box.values["standard_analog_output1"] == pytest.approx(5.0)  # V


def test_equal_recipes_are_packed_once_a_tick(box: ControlBox) -> None:
    first, second = Client(box), Client(box)
    for client in (first, second):
        client.outputs("timestamp", "actual_q")
        client.flag(PacketType.START)
    box.step()
    package = first.session.data_package()
    assert second.session.data_package() is package
    box.step()
    assert first.session.data_package() is not package


def test_what_is_no_rtde_is_refused_and_unknown_packets_are_answered(client: Client) -> None:
    (answer,) = client.ask(ord("x"), b"?")
    assert answer.kind == PacketType.TEXT_MESSAGE
    assert "120" in decode_text_message(answer.payload).text
    for packet in (b"\x00\x01V", frame(PacketType.SETUP_OUTPUTS, b"123")):
        with pytest.raises(ProtocolError):
            Client(client.box).session.receive(packet)
