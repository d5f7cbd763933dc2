"""A WebSocket server for Foxglove and programs that know its protocol."""

from __future__ import annotations

import ipaddress
import logging
import random
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import foxglove
from foxglove.websocket import ChannelView, Client, ServerListener, WebSocketServer

from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.sinks.foxglove_messages import ReadingMessages
from ur_energy_model.sinks.options import Address, SinkOptions, server_address
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.message_encoder import BagTopic

# OriginGate: in front of the Foxglove server; keeps pages of foreign sites from reading the arm.
#
# A browser lets any page connect to a WebSocket server of the user's machine or network, and names
# the page's site in the header Origin (RFC 6455, 10.2), which the SDK's server does not look at.

FOXGLOVE_SITE = "foxglove.dev"
"""Of the application in the browser; its subdomains too."""
DEADLINE = 5.0
"""Longest time for a client to send its request [s]."""
PATIENCE = 60.0
"""Longest time for which a client may not read anything [s]."""
MOST_HEADER = 16_384
"""Bytes of the longest request."""
MOST_CLIENTS = 64
"""Connections at one time; others are closed at once."""
_PIECE = 65_536
_REFUSAL = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def is_allowed(origin: str, host: str, allowed: Iterable[str]) -> bool:
    """Whether a page of this origin may connect.

    Pages of this machine, of the host that the client has connected to, and of Foxglove may; so may
    programs that are no page of a site, such as the desktop applications (file://, app://).

    Args:
        origin: header Origin; empty where a program sends none.
        host: header Host.
        allowed: further origins, such as http://dashboards.example; "*" for all.
    """
    if not origin or origin in allowed or "*" in allowed:
        return True
    if origin == "null":  # a page whose site the browser hides
        return False
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https"):
        return True
    name = parts.hostname or ""
    if name == FOXGLOVE_SITE or name.endswith(f".{FOXGLOVE_SITE}"):
        return parts.scheme == "https"
    # An address only: any name may be made to point at this machine.
    try:
        own = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return own.is_loopback or name == urlsplit(f"//{host}").hostname


def hidden_host() -> str:
    """Loopback address for the server behind the gate; if possible one that cannot be guessed."""
    if not sys.platform.startswith("linux"):
        return "127.0.0.1"
    return f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"


class OriginGate:
    """Passes connections on to a server, those of foreign pages excepted.

    Args:
        address: to listen on; port 0 takes a free one.
        server: host and port of the server.
        allowed: see `is_allowed`.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, address: Address, server: tuple[str, int], allowed: Iterable[str]) -> None:
        self._server, self._allowed = server, tuple(allowed)
        self._listener = address.listener()
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name="foxglove gate", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Stop listening; connections end with the server's."""
        self._closing = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if not self._closing:
                    time.sleep(0.05)  # too many open files: some may be closed
                continue
            if not self._free.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                request = _request(client)
                headers = _headers(request)
                host = headers.get("host", "")
                if not request:
                    return
                if not is_allowed(headers.get("origin", ""), host, self._allowed):
                    client.sendall(_REFUSAL)
                    return
                with socket.create_connection(self._server, DEADLINE) as server:
                    server.sendall(request)
                    _pass(client, server)
        finally:
            self._free.release()


def _request(client: socket.socket) -> bytes:
    """What a client sends up to the end of its headers, or more; empty if it does not in time."""
    deadline, request = time.monotonic() + DEADLINE, b""
    while b"\r\n\r\n" not in request and len(request) < MOST_HEADER:
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        piece = client.recv(4096)
        if not piece:
            return b""
        request += piece
    return request if b"\r\n\r\n" in request else b""


def _headers(request: bytes) -> dict[str, str]:
    """Headers by name in small letters; of several Origins, one that no page has."""
    lines = request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    out: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        out[key] = "null" if key == "origin" and key in out else value.strip()
    return out


def _pass(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes in both directions until one side ends.

    A client that does not read makes this wait; the server then drops its oldest messages.
    """
    for each in (client, server):
        each.settimeout(PATIENCE)
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    other = {client: server, server: client}
    while True:
        for ready in select.select([client, server], [], [])[0]:
            piece = ready.recv(_PIECE)
            if not piece:
                return
            other[ready].sendall(piece)


# Clients that break off are no matter for the terminal; a program may add its own handler.
logging.getLogger("foxglove").addHandler(logging.NullHandler())

SERVER_NAME = "ur_energy_model"
BACKLOG = 512
"""Messages that wait for a slow client; the oldest is dropped for a new one."""


def foxglove_sink(text: str, options: SinkOptions, actions: ArmActions | None = None) -> QueuedSink:
    """A Foxglove server as a sink; its text is ADDRESS:PORT."""
    address = server_address("foxglove", text, options)
    return QueuedSink(FoxgloveDelivery(address, options.foxglove_origins))


class FoxgloveDelivery:
    """Serves readings at an address; see sink.Delivery.

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
            self.address.listener().close()

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
