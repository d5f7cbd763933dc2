"""A small client of the Foxglove WebSocket protocol, independent of the SDK.

Source: the published protocol. JSON messages advertise channels and subscribe to them; a binary
message of type 1 has the number of the subscription, the log time [ns], and the payload.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import websocket

SUBPROTOCOLS = ["foxglove.sdk.v1", "foxglove.websocket.v1"]
_DATA = struct.Struct("<BIQ")
_MESSAGE = 1
TIMEOUT = 20.0


@dataclass(frozen=True)
class Received:
    """One message."""

    topic: str
    time: int
    payload: bytes


class FoxgloveClient:
    """A connection.

    Attributes:
        server: what the server says about itself.
        channels: advertised so far, by topic.
    """

    def __init__(self, port: int) -> None:
        self.server: dict[str, Any] = {}
        self.channels: dict[str, dict[str, Any]] = {}
        self._topics: dict[int, str] = {}
        self._messages: list[Received] = []
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}", timeout=TIMEOUT, subprotocols=SUBPROTOCOLS
        )
        while not self.server:
            self._take()

    def advertised(self, topic: str) -> dict[str, Any]:
        """Wait until a topic is advertised."""
        while topic not in self.channels:
            self._take()
        return self.channels[topic]

    def subscribe(self, *topics: str) -> None:
        """Subscribe, once the topics are advertised."""
        wanted = []
        for topic in topics:
            channel = self.advertised(topic)["id"]
            self._topics[channel] = topic
            wanted.append({"id": channel, "channelId": channel})
        self._socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))

    def message(self) -> Received:
        """The next message."""
        while not self._messages:
            self._take()
        return self._messages.pop(0)

    def until_time(self, time: int) -> Received:
        """The first message of this time [ns]; others before it are left out."""
        while True:
            message = self.message()
            if message.time == time:
                return message

    def close(self) -> None:
        """Say goodbye and disconnect."""
        self._socket.close()

    def kill(self) -> None:
        """Break the connection without a word."""
        self._socket.shutdown()

    def _take(self) -> None:
        data = self._socket.recv()
        if isinstance(data, bytes):
            kind, number, time = _DATA.unpack_from(data)
            if kind == _MESSAGE:
                self._messages.append(Received(self._topics[number], time, data[_DATA.size :]))
            return
        if not data:
            raise ConnectionError("the server has closed the connection")
        message = json.loads(data)
        if message["op"] == "serverInfo":
            self.server = message
        elif message["op"] == "advertise":
            self.channels |= {channel["topic"]: channel for channel in message["channels"]}
