"""A WebSocket server for Foxglove and programs with its protocol."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import sys
import threading
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from urllib.parse import urlsplit

import foxglove
from foxglove.websocket import ChannelView, Client, ServerListener, WebSocketServer

from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.sinks.foxglove_messages import ReadingMessages
from ur_energy_model.sinks.options import Address, SinkOptions, server_address
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink
from ur_energy_model.telemetry.bag.messages import BagTopic, Messages

# Clients that break off are no matter for the terminal; a program may add its own handler.
logging.getLogger("foxglove").addHandler(logging.NullHandler())

SERVER_NAME = "ur_energy_model"
BACKLOG = 512  # messages that wait for a slow client; the oldest is dropped for a new one


def foxglove_sink(text: str, options: SinkOptions, actions: ArmActions | None = None) -> QueuedSink:
    """A Foxglove server as a sink; its text is ADDRESS:PORT."""
    address = server_address("foxglove", text, options)
    return QueuedSink(FoxgloveDelivery(address, options.foxglove_origins))


class FoxgloveDelivery(ServerListener):
    """Serves readings at an address, whose port 0 takes a free one; see sink.Delivery."""

    def __init__(self, address: Address, origins: Sequence[str] = ()) -> None:
        self.address, self._origins = address, tuple(origins)
        self._gate: OriginGate | None = None
        self._messages = ReadingMessages()
        # Channels belong to the context and outlive a server that had to be opened again.
        self._context = foxglove.Context()
        self._channels: dict[BagTopic, foxglove.Channel] = {}
        self._kept: dict[str, Messages] = {}
        self._server: WebSocketServer | None = None
        self._lock = threading.Lock()
        self.subscriptions: Counter[int] = Counter()  # number of subscriptions of each client
        self._new_topics: set[str] = set()

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

        The server listens from the first reading on, which makes the channels: the SDK refuses
        subscriptions that come at once after the advertisement of a channel to a client that is
        connected.
        """
        encoded = self._messages.of_reading(reading)
        for topic in (CYCLE, *(messages.topic for messages in encoded)):
            if topic not in self._channels:
                kind = topic.kind
                schema = foxglove.Schema(
                    name=kind.name, encoding=kind.schema_encoding, data=kind.definition_bytes
                )
                self._channels[topic] = foxglove.Channel(
                    topic.name,
                    schema=schema,
                    message_encoding=kind.message_encoding,
                    context=self._context,
                )
        if self._server is None:
            self._listen()
        with self._lock:
            late, self._new_topics = self._new_topics & self._kept.keys(), set()
        for messages in (*(self._kept[topic] for topic in late), *encoded):
            if messages.topic.latched:
                self._kept[messages.topic.name] = messages
            channel = self._channels[messages.topic]
            for stamp, payload in zip(messages.stamp.tolist(), messages.payload, strict=True):
                channel.log(payload.tobytes(), log_time=stamp)

    def close(self) -> None:
        """Disconnect all clients and free the port."""
        gate, server = self._gate, self._server
        self._gate = self._server = None
        if gate is not None:
            gate.close()
        if server is not None:
            server.stop()

    def _listen(self) -> None:
        with self._lock:
            self.subscriptions.clear()
        # Behind the gate, on a loopback address that cannot be guessed where there are many.
        host = "127.0.0.1"
        if sys.platform.startswith("linux"):
            host = ".".join(map(str, [127, *(random.randint(2, 254) for _ in range(3))]))
        server = foxglove.start_server(
            name=SERVER_NAME,
            host=host,
            port=0,
            context=self._context,
            server_listener=self,
            message_backlog_size=BACKLOG,
        )
        try:
            self._gate = OriginGate(self.address, (host, server.port), self._origins)
        except OSError:
            server.stop()
            raise
        self._server = server
        self.address = Address(self.address.host, self._gate.port)

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


# OriginGate: in front of the Foxglove server; keeps pages of foreign sites from reading the arm.
#
# A browser lets any page connect to a WebSocket server of the user's machine or network, and names
# the page's site in the header Origin (RFC 6455, 10.2), which the SDK's server does not check.

FOXGLOVE_SITE = "foxglove.dev"  # of the application in the browser; its subdomains too
DEADLINE = 5.0  # longest time for a client to send its request [s]
PATIENCE = 60.0  # longest time for which a client may not read anything [s]
MOST_HEADER = 16_384  # bytes of the longest request
MOST_CLIENTS = 64  # connections at one time; others are closed at once
_PIECE = 65_536
_REFUSAL = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def is_allowed(origin: str, host: str, allowed: Iterable[str]) -> bool:
    """Whether a page of this origin may connect.

    Pages of this machine, of the host that the client has connected to (header Host), and of
    Foxglove may; so may programs that are no page of a site, such as the desktop applications
    (file://, app://). "*" allows all.
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


class OriginGate:
    """Passes connections on to a server, those of foreign pages excepted; a thread of its own.

    Listens on an address, whose port 0 takes a free one; see `is_allowed` for the origins.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, address: Address, server: tuple[str, int], allowed: Iterable[str]) -> None:
        self._server, self._allowed = server, tuple(allowed)
        self._listener = address.listener()
        self.port: int = self._listener.getsockname()[1]
        self._clients: set[StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="foxglove gate", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and end all connections."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    def _run(self) -> None:
        async def listen() -> None:
            server = await asyncio.start_server(self._serve, sock=self._listener, limit=MOST_HEADER)
            await self._closed.wait()
            server.close()
            for each in self._clients:
                each.transport.abort()  # which ends its task
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left, timeout=1.0)
            await asyncio.sleep(0.01)  # transports that were closed last release their sockets

        with closing(self._loop) as loop:
            loop.run_until_complete(listen())

    async def _serve(self, client: StreamReader, answer: StreamWriter) -> None:
        self._clients.add(answer)
        try:
            if len(self._clients) <= MOST_CLIENTS:
                await self._pass_on(client, answer)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            pass  # a client that goes away, or sends no request in time
        finally:
            self._clients.remove(answer)
            answer.close()

    async def _pass_on(self, client: StreamReader, answer: StreamWriter) -> None:
        request = await asyncio.wait_for(client.readuntil(b"\r\n\r\n"), DEADLINE)
        headers: dict[str, str] = {}
        for line in request.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            key = name.strip().lower()
            # Of several Origins, one that no page has.
            headers[key] = "null" if key == "origin" and key in headers else value.strip()
        if not is_allowed(headers.get("origin", ""), headers.get("host", ""), self._allowed):
            answer.write(_REFUSAL)
            return
        server, question = await asyncio.open_connection(*self._server)
        question.write(request)
        ways = (client, question), (server, answer)
        await asyncio.gather(*(_pass(*way) for way in ways), return_exceptions=True)


async def _pass(source: StreamReader, target: StreamWriter) -> None:
    """Pass bytes on; where a client does not read, the server drops its oldest messages."""
    try:
        while piece := await source.read(_PIECE):
            target.write(piece)
            await asyncio.wait_for(target.drain(), PATIENCE)
    except (OSError, asyncio.TimeoutError):
        target.transport.abort()  # without what is left to send
        raise
    finally:  # which ends the other way
        target.close()
