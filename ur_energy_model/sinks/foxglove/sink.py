# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sinks of Foxglove's messages: a WebSocket server, and MCAP files."""

from __future__ import annotations

import logging
import resource
import threading
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

import foxglove
from foxglove.websocket import ChannelView, Client, ServerListener, WebSocketServer

from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.errors import InputError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.foxglove.messages import ReadingMessages
from ur_energy_model.sinks.foxglove.room import FOXGLOVE
from ur_energy_model.sinks.options import Address, common_options, server_address
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_bag import ExtraMessages
from ur_energy_model.telemetry.bag.messages import BagTopic, Messages

# The server.

# The SDK logs clients that break off; without a handler these lines would appear on the
# terminal. A program may add its own handler.
logging.getLogger("foxglove").addHandler(logging.NullHandler())

SERVER_NAME = "ur_energy_model"
BACKLOG = 512
"""Messages that wait for a slow client; the oldest is dropped for a new one."""


def foxglove_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> QueuedSink:
    """A Foxglove server as a sink, see `SinkFactory`.

    Args:
        place: ADDRESS:PORT.
        given: holds the common options, which permit other addresses than loopback.
        actions: not used: clients can read only.
        state_file: not used.

    Raises:
        InputError: no such address, or an address that other machines reach, without
            permission.
    """
    address = server_address(FOXGLOVE, place, common_options(given))
    return QueuedSink(FoxgloveDelivery(address))


def allow_many_connections() -> None:
    """Raise this process's limit of open files to the largest that the system permits.

    Each connection of a client takes an open file. The SDK accepts any number of
    connections, and stops listening when no file can be opened.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class FoxgloveDelivery(ServerListener):
    """Serves readings to any number of clients; see `Delivery`.

    Every client that reaches the address may read, also a page of any site in a browser
    of this machine: the SDK does not check the header Origin. Clients can read only.

    Attributes:
        address: address at which the server listens.
        subscriptions: number of subscriptions of each client, by its number.
    """

    def __init__(self, address: Address) -> None:
        """A server that does not listen yet.

        Args:
            address: where it listens; with port 0, at a port that the system chooses.
        """
        self.address = address
        self._messages = ReadingMessages()
        # Channels belong to the context and outlive a server that had to be opened again.
        self._context = foxglove.Context()
        self._channels: dict[BagTopic, foxglove.Channel] = {}
        self._kept: dict[str, Messages] = {}  # last messages of latched topics, by name
        self._server: WebSocketServer | None = None
        self._lock = threading.Lock()
        self.subscriptions: Counter[int] = Counter()
        self._new_topics: set[str] = set()  # subscribed to since the last reading

    @property
    def name(self) -> str:
        """Kind and address."""
        return f"foxglove {self.address}"

    @property
    def clients(self) -> int:
        """Number of clients with a subscription."""
        return len(self.subscriptions)

    def open(self) -> None:
        """Begin to listen; before the first reading, only check that this is possible."""
        if self._channels:
            self._listen()
        else:
            self.address.listener().close()

    def deliver(self, reading: ArmReading) -> None:
        """Send one reading to every client; clients never make this wait.

        The server listens from the first reading on. Channels are made from this reading,
        before clients connect, because the SDK refuses subscriptions that follow at once
        when a new channel is advertised to a connected client.
        """
        encoded = self._messages.of_reading(reading)
        # The channel of CYCLE is made with the others, before the first cycle has ended.
        for topic in [CYCLE, *(messages.topic for messages in encoded)]:
            if topic not in self._channels:
                self._channels[topic] = self._channel(topic)
        if self._server is None:
            self._listen()
        with self._lock:
            new_topics = self._new_topics & self._kept.keys()
            self._new_topics = set()
        # The SDK has no latched topics: a new client gets the last message once more.
        repeated = [self._kept[topic] for topic in new_topics]
        for messages in [*repeated, *encoded]:
            if messages.topic.latched:
                self._kept[messages.topic.name] = messages
            channel = self._channels[messages.topic]
            rows = zip(messages.stamp.tolist(), messages.payload, strict=True)
            for stamp, payload in rows:
                channel.log(payload.tobytes(), log_time=stamp)

    def _channel(self, topic: BagTopic) -> foxglove.Channel:
        """A channel of the SDK for the messages of a topic."""
        kind = topic.kind
        schema = foxglove.Schema(
            name=kind.name,
            encoding=kind.schema_encoding,
            data=kind.definition_bytes,
        )
        return foxglove.Channel(
            topic.name,
            schema=schema,
            message_encoding=kind.message_encoding,
            context=self._context,
        )

    def close(self) -> None:
        """Disconnect all clients and free the port."""
        server = self._server
        self._server = None
        if server is not None:
            server.stop()

    def _listen(self) -> None:
        """Start the server.

        Raises:
            OSError: the server cannot listen.
        """
        with self._lock:
            self.subscriptions.clear()
        allow_many_connections()
        try:
            self._server = foxglove.start_server(
                name=SERVER_NAME,
                host=self.address.host,
                port=self.address.port,
                context=self._context,
                server_listener=self,
                message_backlog_size=BACKLOG,
            )
        except RuntimeError as error:  # the SDK's own, such as "Failed to bind port"
            raise OSError(str(error)) from None
        self.address = Address(self.address.host, self._server.port)

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        """A client subscribes to a topic; called from the server's threads."""
        with self._lock:
            self.subscriptions[client.id] += 1
            self._new_topics.add(channel.topic)

    def on_unsubscribe(self, client: Client, channel: ChannelView) -> None:
        """A client unsubscribes or disconnects; called from the server's threads."""
        with self._lock:
            self.subscriptions[client.id] -= 1
            if self.subscriptions[client.id] <= 0:
                del self.subscriptions[client.id]


# An MCAP file with the messages that the Foxglove server sends.

CHUNK_SECONDS = 1.0
"""Time between two writes, and so the most that a killed process loses [s]."""
MOST_CHUNKS = 3600
"""Chunks of a file, written in an hour. Their index is in memory until the file is complete."""


def mcap_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> QueuedSink:
    """An MCAP file as a sink, see `SinkFactory`.

    Args:
        place: path of the file.
        given: not used.
        actions: not used.
        state_file: not used: a file is never continued after a restart.

    Raises:
        InputError: the file exists already, or its folder does not exist.
    """
    path = Path(place)
    if path.exists():
        raise InputError(path, "exists already", "name another file")
    if not path.parent.is_dir():
        raise InputError(path.parent, "is not a folder", "make it, or name another one")
    return QueuedSink(McapDelivery(path))


class McapDelivery:
    """Writes readings into files; see `Delivery`.

    A file is complete after every chunk: every reader opens it while it grows, and after
    a crash. Each hour, and after a failure, another file follows, whose name has the next
    free number, such as live_1.mcap after live.mcap. All methods raise OSError where the
    disk fails.

    Attributes:
        path: path of the first file.
        clients: None, because a file has no clients.
    """

    clients = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: McapWriter | None = None
        self._written = 0  # stamp of the reading of the last write [ns]

    @property
    def name(self) -> str:
        """Kind and path of the present file."""
        path = self.path if self._file is None else self._file.path
        return f"mcap {path}"

    def open(self) -> None:
        """Create the next file."""
        # New encoders, because every file begins with the URDF and defines its channels.
        self._messages = ReadingMessages()
        self._waiting = ExtraMessages()
        for number in count():
            name = self.path.name
            if number:
                name = f"{self.path.stem}_{number}{self.path.suffix}"
            with suppress(FileExistsError):
                self._file = McapWriter(self.path.with_name(name), profile="")
                return

    def deliver(self, reading: ArmReading) -> None:
        """Keep one reading, and write the readings that wait once a second."""
        for messages in self._messages.of_reading(reading):
            self._waiting.append(messages)
        since_write = 1e-9 * (reading.stamp - self._written)
        if not 0.0 <= since_write < CHUNK_SECONDS:  # negative where a clock was set back
            self._write()
            self._written = reading.stamp
        if self._file is not None and len(self._file.summary.chunks) >= MOST_CHUNKS:
            self.close()
            self.open()

    def close(self) -> None:
        """Write the readings that wait, and complete the file."""
        file = self._file
        if file is None:
            return
        try:
            self._write()
            file.close()
        finally:
            file.abandon()
            self._file = None

    def _write(self) -> None:
        """Write the readings that wait as one chunk."""
        if self._file is not None and self._waiting:
            blocks = self._waiting.blocks(self._file, self._file.summary.end_time)
            self._file.write_chunk(blocks)
            self._waiting.confirm()
