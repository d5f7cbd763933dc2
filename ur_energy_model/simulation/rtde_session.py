# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Controller side of one RTDE connection: packets in, packets out, no I/O.

Source: the RTDE guide, and behaviour that public clients rely on (trailing commas in
names, repeated output setup after NOT_FOUND, start while started, input without start).
"""

from __future__ import annotations

import math
import struct
from typing import cast

from ur_energy_model.errors import ProtocolError
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.tcp_server import ClientSession
from ur_energy_model.telemetry.fields import FIELDS, INPUTS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import (
    IN_USE,
    NOT_FOUND,
    PROTOCOL_VERSIONS,
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    SetupReply,
    TextMessage,
    decode_names,
    decode_output_setup,
    decode_version_request,
    encode_setup_reply,
    encode_text_message,
    frame,
)

SLOWEST_DECIMATION = 1e9  # largest number of cycles between data packages
MAX_INPUT_RECIPES = 255  # the number of a recipe is one byte
ERROR_LEVEL = 1  # level of a text message (RTDE guide, "Text message")
INFO_LEVEL = 3


class RtdeSession(ClientSession):
    """One RTDE client of the simulated box.

    Args:
        box: arm, program and values of the controller.
        faults: injected faults; some kinds disturb the protocol.
    """

    def __init__(self, box: ControlBox, faults: Faults) -> None:
        self._box = box
        self._faults = faults
        self._reader = FrameReader()
        self._version = 1
        self._output: Recipe | None = None
        self._decimation = 1  # number of cycles per data package
        self._phase = 1  # number of cycles since the last data package
        self._inputs: dict[int, Recipe] = {}
        self._started = False
        self._held_reply = b""  # reply to start that follows the first data package

    def disconnected(self) -> None:
        """Release the input fields of this client."""
        owners = self._box.input_owners
        self._box.input_owners = {
            name: owner for name, owner in owners.items() if owner is not self
        }

    def receive(self, data: bytes) -> bytes:
        """Replies to the completed packets.

        Args:
            data: the next bytes of the connection; a packet may arrive in pieces.

        Raises:
            ProtocolError: the bytes are not RTDE.
        """
        if self._faults.active("half_open"):
            return b""
        self._reader.feed(data)
        replies = bytearray()
        try:
            while (packet := self._reader.take_frame()) is not None:
                replies += self._answer(packet)
        except ValueError:
            problem = "requested more than fits a packet"
            raise ProtocolError("client", problem, "request fewer fields") from None
        return bytes(replies)

    def data_package(self) -> bytes:
        """Data package of this tick, or empty; packed once for all clients of equal recipes."""
        if self._output is None or not self._started:
            return b""
        self._phase += 1
        if self._phase < self._decimation:
            return b""
        self._phase = 0
        packages = self._box.packages
        if self._output not in packages:
            packages[self._output] = self._output.pack(self._box.values)
        package = packages[self._output]
        if self._held_reply:
            package = package + self._held_reply
            self._held_reply = b""
        return package

    def message(self, message: TextMessage) -> bytes:
        """Encode a text message for this client.

        Args:
            message: message for the controller's log.

        Returns:
            The packet, in the form of the client's version of the protocol.
        """
        return frame(PacketType.TEXT_MESSAGE, encode_text_message(message, self._version))

    def _answer(self, packet: Frame) -> bytes:
        """Reply to a packet; empty for none."""
        kind, payload = packet
        match kind:
            case PacketType.DATA_PACKAGE:
                self._take_input(payload)
                return b""
            case PacketType.REQUEST_PROTOCOL_VERSION:
                requested = decode_version_request(payload)
                newest = self._faults.active("wrong_version")
                refused = newest is not None and requested > newest.number
                accepted = requested in PROTOCOL_VERSIONS and not refused
                if accepted:
                    self._version = requested
                return frame(kind, bytes([accepted]))
            case PacketType.GET_CONTROLLER_VERSION:
                reply = frame(kind, struct.pack(">4I", *self._box.version))
                if self._faults.active("reordered_connect"):
                    starting = TextMessage("Safety is starting", "Safety", INFO_LEVEL)
                    return self.message(starting) + reply
                return reply
            case PacketType.SETUP_OUTPUTS:
                return frame(kind, self._set_up_outputs(payload))
            case PacketType.SETUP_INPUTS:
                return frame(kind, self._set_up_inputs(payload))
            case PacketType.START:
                return self._start()
            case PacketType.PAUSE:
                self._started = False
                return frame(kind, b"\x01")
            case PacketType.TEXT_MESSAGE:
                return b""
        unknown = TextMessage(f"packet type {kind} is unknown", "RTDE", ERROR_LEVEL)
        return self.message(unknown)

    def _set_up_outputs(self, payload: bytes) -> bytes:
        """Content of the reply to a setup of output fields; all of them must be known."""
        frequency, names = decode_output_setup(payload, self._version)
        known: dict[str, ValueKind] = {}
        for name in names:
            field = FIELDS.get(name)
            if field is None or name not in self._box.values:
                continue
            if field.available(self._box.version):
                known[name] = field.kind
        kinds = tuple(known.get(name, NOT_FOUND) for name in names)
        has_id = self._version == 2  # only protocol version 2 numbers the recipes
        if not names or NOT_FOUND in kinds:
            self._output = None
            return encode_setup_reply(SetupReply(0 if has_id else None, kinds))
        recipe_id = 1 if has_id else None
        recipe = Recipe(names, tuple(known[name] for name in names), recipe_id)
        _ = recipe.frame_size  # ValueError now, if the packages are too long for a frame
        self._output = recipe
        self._decimation = 1
        self._phase = 0
        if frequency is not None and math.isfinite(frequency) and frequency > 0:
            ratio = min(self._box.rate / frequency, SLOWEST_DECIMATION)
            self._decimation = max(1, int(ratio))
        return encode_setup_reply(SetupReply(recipe_id, kinds))

    def _set_up_inputs(self, payload: bytes) -> bytes:
        """Content of the reply to a setup of input fields.

        A field belongs to the first client that sets it up, until it disconnects.
        """
        names = decode_names(payload)
        owners = self._box.input_owners
        found: list[str] = []
        for name in names:
            is_free = owners.get(name, self) is self
            found.append(INPUTS.get(name, NOT_FOUND) if is_free else IN_USE)
        kinds = tuple(found)
        recipe_id = len(self._inputs) + 1
        refused = IN_USE in kinds or NOT_FOUND in kinds
        if not names or refused or recipe_id > MAX_INPUT_RECIPES:
            return encode_setup_reply(SetupReply(0, kinds))
        owners.update(dict.fromkeys(names, self))
        known = cast("tuple[ValueKind, ...]", kinds)
        self._inputs[recipe_id] = Recipe(names, known, recipe_id)
        return encode_setup_reply(SetupReply(recipe_id, kinds))

    def _start(self) -> bytes:
        """Reply to a request to start the data packages; refused without output fields."""
        accepted = self._output is not None and not self._faults.active("refused_start")
        self._started = self._started or accepted
        reply = frame(PacketType.START, bytes([accepted]))
        if accepted and self._faults.active("reordered_connect"):
            self._held_reply = reply  # sent after the first data package
            return b""
        return reply

    def _take_input(self, payload: bytes) -> None:
        """Write the input fields of a data package; packages of no recipe are ignored."""
        recipe = self._inputs.get(payload[0]) if payload else None
        if recipe is None or len(payload) != 1 + recipe.dtype.itemsize:
            return
        # The payload begins with the number of the recipe, which also ends the prefix.
        record = recipe.unpack_many(recipe.prefix[:-1] + payload)[0]
        self._box.write_inputs(dict(zip(recipe.names, record.item(), strict=True)))
