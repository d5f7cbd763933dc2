"""A WebSocket server for Foxglove and programs that know its protocol."""

from __future__ import annotations

import logging
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Sequence

import foxglove
from foxglove.websocket import ChannelView, Client, ServerListener, WebSocketServer

from ur_energy_model.energy_topics.bag_messages import CYCLE
from ur_energy_model.sinks.address import Address
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.foxglove.origin_gate import OriginGate, hidden_host
from ur_energy_model.sinks.foxglove.reading_messages import ReadingMessages
from ur_energy_model.sinks.queued_sink import QueuedSink
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.message_types import BagTopic

# Clients that break off are no matter for the terminal; a program may add its own handler.
logging.getLogger("foxglove").addHandler(logging.NullHandler())

SERVER_NAME = "ur_energy_model"
BACKLOG = 512
"""Messages that wait for a slow client; the oldest is dropped for a new one."""


def foxglove_sink(address: Address, origins: Sequence[str] = ()) -> QueuedSink:
    """A Foxglove server as a sink."""
    return QueuedSink(FoxgloveDelivery(address, origins))


class FoxgloveDelivery:
    """Serves readings at an address; see queued_sink.Delivery.

    Args:
        address: port 0 takes a free one, which `address` then has.
        origins: further pages that may connect, see `is_allowed`.
    """

    def __init__(self, address: Address, origins: Sequence[str] = ()) -> None:
        self.address, self._origins = address, tuple(origins)
        self._gate: OriginGate | None = None
        self._messages = ReadingMessages()
        # Channels belong to the context and outlive a server that had to be opened again.
        self._context = foxglove.Context()
        self._channels: dict[BagTopic, foxglove.Channel] = {}
        self._kept: dict[str, Messages] = {}
        self._listener = _Listener()
        self._server: WebSocketServer | None = None

    @property
    def name(self) -> str:
        """Kind and address."""
        return f"foxglove {self.address}"

    @property
    def clients(self) -> int:
        """Number of clients with a subscription."""
        return self._listener.clients

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions of all clients."""
        return self._listener.total

    def open(self) -> None:
        """Begin to listen; before the first reading, only check that this is possible.

        Raises:
            OSError: the port is in use, or the address is not one of this machine.
        """
        if self._channels:
            self._listen()
        else:
            address = (self.address.host, self.address.port)
            family = socket.AF_INET6 if ":" in self.address.host else socket.AF_INET
            socket.create_server(address, family=family).close()

    def deliver(self, reading: ArmReading) -> None:
        """Send one reading to every client; clients never make this wait.

        Raises:
            OSError: the server cannot listen with the first reading.
        """
        encoded = self._messages.of_reading(reading)
        self._make_channels([CYCLE, *(messages.topic for messages in encoded)])
        for topic in self._listener.take_new():
            if topic in self._kept:
                self._send(self._kept[topic])
        for messages in encoded:
            if messages.topic.latched:
                self._kept[messages.topic.name] = messages
            self._send(messages)

    def close(self) -> None:
        """Disconnect all clients and free the port."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _listen(self) -> None:
        self._listener = _Listener()
        host = hidden_host()
        server = foxglove.start_server(
            name=SERVER_NAME,
            host=host,
            port=0,
            context=self._context,
            server_listener=self._listener,
            message_backlog_size=BACKLOG,
        )
        try:
            self._gate = OriginGate(self.address, (host, server.port), self._origins)
        except OSError:
            server.stop()
            raise
        self._server = server
        self.address = Address(self.address.host, self._gate.port)

    def _make_channels(self, wanted: Iterable[BagTopic]) -> None:
        """Make the channels that are missing: those of an arm with its first reading.

        The server listens from then on: the SDK refuses subscriptions that come at once after the
        advertisement of a channel to a client that is connected.
        """
        for topic in wanted:
            if topic not in self._channels:
                kind = topic.kind
                self._channels[topic] = foxglove.Channel(
                    topic.name,
                    schema=foxglove.Schema(
                        name=kind.name, encoding=kind.schema_encoding, data=kind.definition_bytes
                    ),
                    message_encoding=kind.message_encoding,
                    context=self._context,
                )
        if self._server is None:
            self._listen()

    def _send(self, messages: Messages) -> None:
        channel = self._channels[messages.topic]
        for stamp, payload in zip(messages.stamp.tolist(), messages.payload, strict=True):
            channel.log(payload.tobytes(), log_time=stamp)


class _Listener(ServerListener):
    """Counts subscriptions by client; called from the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: Counter[int] = Counter()
        self._new: set[str] = set()

    @property
    def clients(self) -> int:
        """Number of clients with a subscription."""
        return len(self._subscriptions)

    @property
    def total(self) -> int:
        """Number of subscriptions."""
        with self._lock:
            return self._subscriptions.total()

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        """A client subscribes to a topic."""
        with self._lock:
            self._subscriptions[client.id] += 1
            self._new.add(channel.topic)

    def on_unsubscribe(self, client: Client, channel: ChannelView) -> None:
        """A client unsubscribes or disconnects."""
        with self._lock:
            self._subscriptions[client.id] -= 1
            if self._subscriptions[client.id] <= 0:
                del self._subscriptions[client.id]

    def take_new(self) -> set[str]:
        """Topics subscribed to since the last call."""
        with self._lock:
            new, self._new = self._new, set()
        return new
