# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RtdeConnection: one connection that negotiates and then receives packets in batches."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import cast

from ur_energy_model.addresses import is_address
from ur_energy_model.errors import ControllerError, ProtocolError, printable
from ur_energy_model.telemetry.fields import FIELDS, WIDTH, ValueKind
from ur_energy_model.telemetry.rtde.protocol import (
    CHECK_PORT,
    IN_USE,
    NOT_FOUND,
    PROTOCOL_VERSIONS,
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    Records,
    TextMessage,
    decode_controller_version,
    decode_flag,
    decode_setup_reply,
    decode_text_message,
    encode_output_setup,
    frame,
)

PORT = 30004  # TCP port of RTDE
CYCLE_RATE = 500.0  # highest rate of e-Series controllers, one packet for each cycle [Hz]
CYCLE_RATE_CB3 = 125.0  # the same of CB3 controllers [Hz]
CONNECT_TIMEOUT = 3.0  # longest time for the connection [s]
REPLY_TIMEOUT = 2.0  # longest time for the reply to a request [s]
RECEIVE_SIZE = 1 << 18  # most that is received at once [bytes]
MAX_MESSAGES = 200
"""Most messages of the controller that are kept: a late burst has many."""
MAX_EARLY = 1 << 20  # bytes of data packages that may come in front of a reply
MOST_IN_A_ROW = 20
"""Packets without a sample among them that may be left out: more are no packets of RTDE, such as
where the bounds of packets were lost."""
LARGEST_OTHER = 4096  # bytes of a packet that is no sample; a text message has 518
_REFUSED = (NOT_FOUND, IN_USE)
"""Answers of a controller in place of the type of a field that it does not send."""


class RtdeConnection:
    """A connected socket that speaks RTDE.

    Every method raises ControllerError where there is no connection, it is lost, or the
    controller refuses or gives no reply in time; ProtocolError, one of these, for what is
    not RTDE.

    Args:
        host: address of the controller.
        port: TCP port of RTDE.

    Attributes:
        messages: text messages of the controller, which the owner takes out.
        recipe: fields that the controller agreed to send, see `subscribe`.
        rate: rate at which the controller sends the fields [Hz].
        missing: requested fields that the controller lacks.
        version: version of the controller's software: major, minor, bugfix and build.
        skipped: number of packets left out so far: of unknown type, of another recipe,
            malformed.
        skip_reason: what the last of these packets was; None if there were none.
    """

    def __init__(self, host: str, port: int = PORT) -> None:
        self.messages: list[TextMessage] = []
        self.recipe = Recipe((), ())
        self.rate = 0.0
        self.missing: tuple[str, ...] = ()
        self.version = 0, 0, 0, 0
        self.skipped = 0
        self.skip_reason: str | None = None
        self._in_a_row = 0  # packets left out since the last sample
        self._host = host
        self._reader = FrameReader(host)
        self._protocol_version = 2
        self._fault: ProtocolError | None = None  # error that ends the next `receive`
        self._buffer = memoryview(bytearray(RECEIVE_SIZE))
        try:
            if not is_address(host) or not 0 < port < 1 << 16:
                raise ValueError  # the system would take another address or port
            self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT)
        except ValueError:  # also a UnicodeError, for "192.168..10"
            problem = f"is not the address of a controller (port {port})"
            raise ControllerError(
                printable(host) or "''", problem, "check the address"
            ) from None
        except OSError as error:
            reason = _reason(error)
            if isinstance(error, TimeoutError):
                reason = "does not answer"
            problem = f"no connection to port {port} ({reason})"
            remedy = "check that the robot is switched on, its address, and the network"
            raise ControllerError(host, problem, remedy) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def subscribe(self, fields: Sequence[str], rate: float | None = None) -> None:
        """Negotiate fields and rate of the data; the controller sends none before `start`.

        Args:
            fields: RTDE names to request, of the table; fields that the controller lacks
                are left out (`missing`).
            rate: requested rate [Hz]; None for every cycle of the controller.

        Raises:
            ControllerError: no answer, or an answer that is not RTDE.
        """
        for offered in PROTOCOL_VERSIONS:
            self._protocol_version = offered
            reply = self._ask(PacketType.REQUEST_PROTOCOL_VERSION, bytes([0, offered]))
            if decode_flag(reply, self._host):
                break
        reply = self._ask(PacketType.GET_CONTROLLER_VERSION, b"")
        self.version = decode_controller_version(reply, self._host)
        major = self.version[0]
        self.rate = CYCLE_RATE if major >= 5 else CYCLE_RATE_CB3
        has_rate = self._protocol_version == 2
        if has_rate and rate is not None:  # the controller leaves out whole cycles
            self.rate /= max(1, int(self.rate / rate + 1e-9))
        self.recipe = self._agree_on_recipe(fields)
        names = self.recipe.names
        self.missing = tuple(name for name in fields if name not in names)

    def _agree_on_recipe(self, fields: Sequence[str]) -> Recipe:
        """The layout of the data packages, of those fields that the controller has.

        Args:
            fields: RTDE names to request, of the table.

        Raises:
            ControllerError: no answer, one that is not RTDE, no time among the fields, or
                the controller refuses to send them.
        """
        numbered = self._protocol_version == 2
        names = [name for name in fields if FIELDS[name].available(self.version)]
        # A controller that lacks fields names them, and accepts no field of the request.
        while names:
            request = encode_output_setup(names, self.rate if numbered else None)
            payload = self._ask(PacketType.SETUP_OUTPUTS, request)
            recipe_id, kinds = decode_setup_reply(
                payload, numbered=numbered, peer=self._host
            )
            if len(kinds) != len(names):
                raise self._not_rtde(
                    f"answers {len(names)} names with {len(kinds)} types"
                )
            answered = zip(names, kinds, strict=True)
            lacking = {name for name, kind in answered if kind in _REFUSED}
            if not lacking:
                break
            names = [name for name in names if name not in lacking]
        if "timestamp" not in names:
            raise ControllerError(self._host, "offers no field 'timestamp'", CHECK_PORT)
        if recipe_id == 0:
            remedy = "close other RTDE clients or request fewer fields"
            raise ControllerError(self._host, "refuses the output recipe", remedy)
        for name, kind in zip(names, kinds, strict=True):
            expected = FIELDS[name].kind
            if kind not in WIDTH or WIDTH[kind] != WIDTH[expected]:
                raise self._not_rtde(
                    f"sends {name} as {kind[:40]!r} instead of {expected}"
                )
        known_kinds = cast("tuple[ValueKind, ...]", kinds)
        return Recipe(tuple(names), known_kinds, recipe_id)

    def start(self, batch: int = 1) -> None:
        """Start the data.

        Args:
            batch: number of packets for which `receive` waits; the kernel wakes the
                process up for so many (SO_RCVLOWAT), which takes a tenth of the processor
                time.

        Raises:
            ControllerError: no answer, or the controller refuses to send data.
        """
        if not decode_flag(self._ask(PacketType.START, b""), self._host):
            raise ControllerError(
                self._host, "refuses to send data", "restart its RTDE interface"
            )
        self._reader.largest = max(LARGEST_OTHER, self.recipe.frame_size)
        low_water = min(batch * self.recipe.frame_size, RECEIVE_SIZE // 2)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def receive(self, timeout: float) -> Records | None:
        """Records of the packets that have arrived.

        Args:
            timeout: longest time to wait for a batch [s].

        Returns:
            Records [n >= 1], None if none came.
        """
        if self._fault is not None:
            raise self._fault
        records = self._take_records()
        if records is None:
            self._read(timeout)
            records = self._take_records()
        return records

    def _read(self, timeout: float) -> None:
        """Read once, when a batch has arrived or the time is up."""
        self._poller.poll(max(0.0, timeout) * 1000.0)
        try:
            count = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(_reason(error)) from None
        if count == 0:
            raise self._lost("closed by the controller")
        self._reader.feed(self._buffer[:count])

    def _take_records(self) -> Records | None:
        """Data packages that were fed; after them, what is not RTDE is the fault of later calls.

        Well-formed packets that cannot be used are left out and counted.
        """
        reader = self._reader
        found: list[Records] = []
        try:
            while reader.buffer:
                records = reader.take_records(self.recipe)
                if records is not None:
                    found.append(records)
                    self._in_a_row = 0
                    continue
                packet = reader.take_frame()
                if packet is None:
                    break
                try:
                    self._note(packet)
                except ProtocolError as refusal:
                    self._skip(refusal)
        except ProtocolError as error:
            if not found:
                raise
            self._fault = error
        return self.recipe.join(found) if found else None

    def _skip(self, refusal: ProtocolError) -> None:
        """Count a packet that cannot be used.

        Args:
            refusal: error that states why the packet cannot be used.

        Raises:
            ProtocolError: there were too many in a row.
        """
        self.skipped += 1
        self.skip_reason = refusal.problem
        self._in_a_row += 1
        if self._in_a_row > MOST_IN_A_ROW:
            problem = f"sent {self._in_a_row} packets in a row that are none of samples"
            raise self._not_rtde(f"{problem}; the last: {refusal.problem}")

    def _note(self, packet: Frame) -> None:
        """Keep a text message; ignore other packets of known type.

        Args:
            packet: no sample of the recipe: those are taken before
                (`FrameReader.take_records`), so that any other data package is malformed.

        Raises:
            ProtocolError: it is malformed, or of unknown type.
        """
        if packet.kind == PacketType.DATA_PACKAGE:
            size = len(packet.payload)
            raise self._not_rtde(
                f"sent a data package of {size} bytes that fits no recipe"
            )
        if packet.kind not in PacketType.__members__.values():
            raise self._not_rtde(f"sent a packet of unknown type {packet.kind}")
        if packet.kind == PacketType.TEXT_MESSAGE:
            message = decode_text_message(
                packet.payload, self._protocol_version, self._host
            )
            if len(self.messages) < MAX_MESSAGES:
                self.messages.append(message)

    def _ask(self, kind: PacketType, payload: bytes) -> bytes:
        """Send a request and wait for its reply; data packages before the reply are kept.

        Args:
            kind: kind of the request and its reply.
            payload: content of the request.

        Returns:
            The payload of the reply.

        Raises:
            ControllerError: no reply within REPLY_TIMEOUT, or the connection is lost.
        """
        deadline = time.monotonic() + REPLY_TIMEOUT
        early = bytearray()
        try:
            self._socket.sendall(frame(kind, payload))
        except OSError as error:
            raise self._lost(_reason(error)) from None
        while True:
            while (packet := self._reader.take_frame()) is not None:
                if packet.kind == kind:
                    self._reader.buffer[:0] = early
                    return packet.payload
                if packet.kind == PacketType.DATA_PACKAGE:
                    if len(early) < MAX_EARLY:
                        early += frame(packet.kind, packet.payload)
                    continue
                try:
                    self._note(packet)
                except ProtocolError as refusal:
                    if packet.kind != PacketType.TEXT_MESSAGE:
                        raise
                    self._skip(refusal)
            rest = deadline - time.monotonic()
            if rest <= 0:
                problem = f"accepts connections but does not answer ({kind.name.lower()})"
                remedy = "restart the controller, or " + CHECK_PORT
                raise ControllerError(self._host, problem, remedy)
            self._read(rest)

    def _not_rtde(self, problem: str) -> ProtocolError:
        """The error about a peer that sends what is not RTDE."""
        return ProtocolError(self._host, problem, CHECK_PORT)

    def _lost(self, reason: str) -> ControllerError:
        """The error about a connection that ended, with the reason in words."""
        return ControllerError(
            self._host, f"connection lost ({reason})", "check the network and the robot"
        )


def _reason(error: OSError) -> str:
    """Why a system call failed, in the system's words."""
    return (error.strerror or str(error) or type(error).__name__).lower()
