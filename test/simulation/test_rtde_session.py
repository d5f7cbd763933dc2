# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One RTDE session: what the controller answers, packet by packet."""

from __future__ import annotations

import numpy as np
import pytest

from test.simulation.conftest import make_box
from ur_energy_model.errors import ProtocolError
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.rtde_session import RtdeSession
from ur_energy_model.telemetry.fields import FIELDS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import (
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    SetupReply,
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
        self.version = version
        self.session = RtdeSession(box, Faults())
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

    def inputs(self, names: str) -> SetupReply:
        return decode_setup_reply(self.reply(PacketType.SETUP_INPUTS, names.encode()))

    def outputs(self, *names: str, frequency: float = 500.0) -> Recipe | None:
        request = encode_output_setup(names, frequency if self.version == 2 else None)
        payload = self.reply(PacketType.SETUP_OUTPUTS, request)
        reply = decode_setup_reply(payload, numbered=self.version == 2)
        if "NOT_FOUND" in reply.kinds:
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


def test_fields_follow_the_version_and_packages_the_ratio_of_rates() -> None:
    for box, name, available in (
        (make_box(), "actual_current_as_torque", False),  # since 5.23
        (make_box(), "ft_raw_wrench", True),
        (make_box("ur5", (3, 15, 8)), "ft_raw_wrench", False),  # e-Series only
        (make_box(), "no_such_field", False),
    ):
        assert (Client(box).outputs("timestamp", name) is not None) == available
    client = Client(make_box())
    for frequency, decimation in {125: 4, 300: 1, 1000: 1, 0: 1, -1: 1}.items():
        client.outputs("timestamp", frequency=frequency)
        client.flag(PacketType.START)
        due = [i for i in range(40) if client.tick()]
        assert len(due) == 40 // decimation
        assert set(np.diff(due)) <= {decimation}


def test_inputs_reach_the_control_box_and_can_be_read_back(client: Client) -> None:
    values = {
        "input_int_register_3": -5, "input_double_register_40": 2.5, "input_bit_register_64": True,
    }  # fmt: skip
    reply = client.inputs(",".join(values))
    recipe = Recipe(tuple(values), reply.kinds, reply.recipe_id)  # type: ignore[arg-type]
    assert client.session.receive(recipe.pack(values)) == b"", (
        "not answered, needs no start"
    )
    readable = client.outputs(*values)
    assert readable is not None
    client.flag(PacketType.START)
    assert readable.unpack_many(client.tick())[0].item() == tuple(values.values())
    client.inputs("input_int_register_0")
    for payload in (b"", b"\x07\x00\x00\x00\x01", b"\x02\x00\x00", b"\x02" + bytes(9)):
        # no recipe, or another length
        assert client.ask(PacketType.DATA_PACKAGE, payload) == []
    assert client.box.values["input_int_register_0"] == 0


def test_what_is_no_rtde_is_refused_and_unknown_packets_are_answered(
    client: Client,
) -> None:
    (answer,) = client.ask(ord("x"), b"?")
    assert answer.kind == PacketType.TEXT_MESSAGE
    assert "120" in decode_text_message(answer.payload).text
    many = encode_output_setup(("actual_q",) * 2000, 500.0)
    for packet in (
        b"\x00\x01V",
        frame(PacketType.SETUP_OUTPUTS, b"123"),
        frame(PacketType.SETUP_OUTPUTS, many),
        frame(PacketType.SETUP_INPUTS, b"x," * 20_000),
    ):
        with pytest.raises(ProtocolError):
            Client(client.box).session.receive(packet)
