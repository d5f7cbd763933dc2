"""Controller side of one RTDE connection: packets in, packets out, no I/O.

Source: the RTDE guide, and behaviour that public clients rely on (trailing commas in names,
repeated output setup after NOT_FOUND, start while started, input without start).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any, cast

from ur_energy_model.errors import ProtocolError
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.tcp_server import ClientSession
from ur_energy_model.telemetry.fields import FIELDS, INPUTS, ValueKind
from ur_energy_model.telemetry.rtde.protocol import (
    HEADER,
    IN_USE,
    MAX_FRAME,
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

SLOWEST_DECIMATION = 1e9
"""Largest number of cycles between data packages."""
MAX_INPUT_RECIPES = 255
MOST_SHARED = 256
"""Most recipes that clients share; more are packed for each client."""
ERROR_LEVEL = 1


@dataclass
class _Output:
    """Output recipe of a connection, and when it is due."""

    recipe: Recipe
    decimation: int
    phase: int = 0


@dataclass
class Packer:
    """Packs each recipe once per tick for all clients that share it."""

    _recipes: dict[Recipe, Recipe] = field(default_factory=dict)
    _frames: dict[int, bytes] = field(default_factory=dict)

    def share(self, recipe: Recipe) -> Recipe:
        """The first recipe equal to this one; equal recipes share one object."""
        if len(self._recipes) >= MOST_SHARED:  # clients that set up outputs again and again
            self._recipes.clear()
        return self._recipes.setdefault(recipe, recipe)

    def next_tick(self) -> None:
        """Discard the packages of the last tick."""
        self._frames.clear()

    def pack(self, recipe: Recipe, values: dict[str, Any]) -> bytes:
        """Data package of a shared recipe."""
        package = self._frames.get(id(recipe))
        if package is None:
            package = self._frames[id(recipe)] = recipe.pack(values)
        return package


class RtdeSession(ClientSession):
    """One RTDE client of the simulated box."""

    def __init__(self, box: ControlBox, packer: Packer, faults: Faults) -> None:
        self._box = box
        self._packer = packer
        self._faults = faults
        self._reader = FrameReader()
        self._version = 1
        self._output: _Output | None = None
        self._inputs: dict[int, Recipe] = {}
        self._started = False
        self._held_reply = b""

    def disconnected(self) -> None:
        """Release the input fields of this client."""
        owners = self._box.input_owners
        self._box.input_owners = {name: each for name, each in owners.items() if each is not self}

    def receive(self, data: bytes) -> bytes:
        """Replies to the completed packets.

        Raises:
            ProtocolError: the bytes are not RTDE.
        """
        if self._faults.active("half_open"):
            return b""
        self._reader.feed(data)
        replies = bytearray()
        while (packet := self._reader.take_frame()) is not None:
            replies += self._answer(packet)
        return bytes(replies)

    def data_package(self) -> bytes:
        """Data package of this tick, or empty."""
        output = self._output
        if output is None or not self._started:
            return b""
        output.phase += 1
        if output.phase < output.decimation:
            return b""
        output.phase = 0
        package = self._packer.pack(output.recipe, self._box.values)
        if self._held_reply:
            package, self._held_reply = package + self._held_reply, b""
        return package

    def message(self, message: TextMessage) -> bytes:
        """Encode a text message for this client."""
        return frame(PacketType.TEXT_MESSAGE, encode_text_message(message, self._version))

    def _answer(self, packet: Frame) -> bytes:
        kind, payload = packet
        match kind:
            case PacketType.DATA_PACKAGE:
                self._take_input(payload)
                return b""
            case PacketType.REQUEST_PROTOCOL_VERSION:
                return frame(kind, self._negotiate(payload))
            case PacketType.GET_CONTROLLER_VERSION:
                reply = frame(kind, struct.pack(">4I", *self._box.version))
                if self._faults.active("reordered_connect"):
                    return self.message(TextMessage("Safety is starting", "Safety", 3)) + reply
                return reply
            case PacketType.SETUP_OUTPUTS:
                return _reply(kind, self._set_up_outputs(payload))
            case PacketType.SETUP_INPUTS:
                return _reply(kind, self._set_up_inputs(payload))
            case PacketType.START:
                return self._start()
            case PacketType.PAUSE:
                self._started = False
                return frame(kind, b"\x01")
            case PacketType.TEXT_MESSAGE:
                return b""
        return self.message(TextMessage(f"packet type {kind} is unknown", "RTDE", ERROR_LEVEL))

    def _negotiate(self, payload: bytes) -> bytes:
        requested = decode_version_request(payload)
        highest = self._faults.active("wrong_version")
        accepted = requested in PROTOCOL_VERSIONS and (
            highest is None or requested <= highest.number
        )
        if accepted:
            self._version = requested
        return bytes([accepted])

    def _set_up_outputs(self, payload: bytes) -> bytes:
        frequency, names = decode_output_setup(payload, self._version)
        kinds = tuple(self._kind_of_output(name) for name in names)
        recipe_id: int | None = 1 if self._version == 2 else None
        if not names or NOT_FOUND in kinds:
            self._output = None
            return encode_setup_reply(SetupReply(None if recipe_id is None else 0, kinds))
        recipe = Recipe(names, cast("tuple[ValueKind, ...]", kinds), recipe_id)
        _check_size(recipe)
        decimation = 1
        if frequency is not None and math.isfinite(frequency) and frequency > 0:
            decimation = max(1, int(min(self._box.rate / frequency, SLOWEST_DECIMATION)))
        self._output = _Output(self._packer.share(recipe), decimation)
        return encode_setup_reply(SetupReply(recipe_id, kinds))

    def _kind_of_output(self, name: str) -> str:
        known = FIELDS.get(name)
        if known is None or name not in self._box.values:
            return NOT_FOUND
        return known.kind if known.available(self._box.version) else NOT_FOUND

    def _set_up_inputs(self, payload: bytes) -> bytes:
        """A field belongs to the first client that sets it up, until it disconnects."""
        names, owners = decode_names(payload), self._box.input_owners
        kinds = tuple(
            IN_USE if owners.get(name, self) is not self else INPUTS.get(name, NOT_FOUND)
            for name in names
        )
        recipe_id = len(self._inputs) + 1
        if not names or {IN_USE, NOT_FOUND} & set(kinds) or recipe_id > MAX_INPUT_RECIPES:
            return encode_setup_reply(SetupReply(0, kinds))
        owners.update(dict.fromkeys(names, self))
        self._inputs[recipe_id] = Recipe(names, cast("tuple[ValueKind, ...]", kinds), recipe_id)
        return encode_setup_reply(SetupReply(recipe_id, kinds))

    def _start(self) -> bytes:
        accepted = self._output is not None and not self._faults.active("refused_start")
        self._started = self._started or accepted
        reply = frame(PacketType.START, bytes([accepted]))
        if accepted and self._faults.active("reordered_connect"):
            self._held_reply = reply  # sent after the first data package
            return b""
        return reply

    def _take_input(self, payload: bytes) -> None:
        recipe = self._inputs.get(payload[0]) if payload else None
        if recipe is None or len(payload) != 1 + recipe.dtype.itemsize:
            return
        record = recipe.unpack_many(recipe.prefix[:-1] + payload)[0]
        self._box.write_inputs(dict(zip(recipe.names, record.item(), strict=True)))


def _reply(kind: int, payload: bytes) -> bytes:
    """A reply on the wire.

    Raises:
        ProtocolError: the request has so many names that its reply does not fit a packet.
    """
    if HEADER.size + len(payload) > MAX_FRAME:
        raise _oversized()
    return frame(kind, payload)


def _check_size(recipe: Recipe) -> None:
    """Raise ProtocolError if the data packages of a recipe do not fit a packet."""
    try:
        _ = recipe.frame_size
    except ValueError:
        raise _oversized() from None


def _oversized() -> ProtocolError:
    return ProtocolError("client", "requested more than fits a packet", "request fewer fields")
