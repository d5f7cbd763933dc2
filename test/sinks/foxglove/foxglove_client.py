# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A small client of the Foxglove WebSocket protocol, independent of the SDK, and of its messages.

Source: the published protocol. JSON messages advertise channels and subscribe to them; a
binary message of type 1 has the number of the subscription, the log time [ns], and the
payload.
"""

from __future__ import annotations

import json
import struct
from functools import lru_cache
from typing import Any, NamedTuple

import websocket
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ur_energy_model.telemetry.bag.messages import MessageType

SUBPROTOCOLS = ["foxglove.sdk.v1", "foxglove.websocket.v1"]
_DATA = struct.Struct("<BIQ")
_MESSAGE = 1
TIMEOUT = 60.0


class Received(NamedTuple):
    topic: str
    time: int
    payload: bytes


class FoxgloveClient:
    """A connection; `channels` are those advertised so far, by topic."""

    def __init__(self, port: int) -> None:
        self.channels: dict[str, dict[str, Any]] = {}
        self._topics: dict[int, str] = {}
        self._messages: list[Received] = []
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}", timeout=TIMEOUT, subprotocols=SUBPROTOCOLS
        )
        self.close = self._socket.close
        self.kill = self._socket.shutdown  # without a word
        self._take()

    def subscribe(self, *topics: str) -> None:
        """Subscribe, once the topics are advertised."""
        while not self.channels.keys() >= set(topics):
            self._take()
        wanted = {self.channels[topic]["id"]: topic for topic in topics}
        self._topics |= wanted
        asked = [{"id": each, "channelId": each} for each in wanted]
        self._socket.send(json.dumps({"op": "subscribe", "subscriptions": asked}))

    def message(self) -> Received:
        """The next message."""
        while not self._messages:
            self._take()
        return self._messages.pop(0)

    def until_time(self, time: int) -> Received:
        """The first message of this time [ns]; others before it are left out."""
        while (message := self.message()).time != time:
            pass
        return message

    def _take(self) -> None:
        data = self._socket.recv()
        if isinstance(data, bytes):
            kind, number, time = _DATA.unpack_from(data)
            if kind == _MESSAGE:
                self._messages.append(
                    Received(self._topics[number], time, data[_DATA.size :])
                )
            return
        if not data:
            raise ConnectionError("the server has closed the connection")
        message = json.loads(data)
        if message["op"] == "advertise":
            self.channels |= {
                channel["topic"]: channel for channel in message["channels"]
            }


def decode(kind: MessageType, payload: bytes) -> dict[str, Any]:
    """A message as a dictionary of its fields."""
    if kind.message_encoding == "protobuf":
        made = message_factory.GetMessageClass(
            _descriptor(kind.name, kind.definition_bytes)
        )()
        made.ParseFromString(payload)
        return dict(json_format.MessageToDict(made, preserving_proto_field_name=True))
    return dict(_fields(_store(kind).deserialize_cdr(payload, kind.name)))


@lru_cache
def _store(kind: MessageType) -> Any:
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(kind.definition_bytes.decode(), kind.name))
    return store


@lru_cache
def _descriptor(name: str, schema: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file:
        pool.Add(file)
    return pool.FindMessageTypeByName(name)


def _fields(value: Any) -> Any:
    """Messages as dictionaries, arrays as lists."""
    if hasattr(value, "__dataclass_fields__"):
        names = [name for name in value.__dataclass_fields__ if name != "__msgtype__"]
        return {name: _fields(getattr(value, name)) for name in names}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_fields(each) for each in value] if isinstance(value, list) else value
