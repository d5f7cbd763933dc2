"""Messages decoded with other libraries, by the schemas that travel with them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory  # type: ignore[import-untyped]
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.message_encoder import MessageType


def decoded(messages: Messages) -> list[dict[str, Any]]:
    """Each message as a dictionary of its fields."""
    payloads = [payload.tobytes() for payload in messages.payload]
    return [decode(messages.topic.kind, payload) for payload in payloads]


def decode(kind: MessageType, payload: bytes) -> dict[str, Any]:
    """A message as a dictionary of its fields."""
    if kind.message_encoding == "protobuf":
        made = message_factory.GetMessageClass(_descriptor(kind.name, kind.definition_bytes))()
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
