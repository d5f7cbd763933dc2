"""Writers and readers of bags for the benchmark: ours, `mcap` and `rosbags`."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import mcap.reader
import mcap.stream_reader
import mcap.writer
import numpy as np
from mcap.exceptions import McapError
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_reader import McapReader, budget_of
from ur_energy_model.telemetry.bag.message_decoder import TelemetryDecoder
from ur_energy_model.telemetry.bag.message_encoder import DYNAMIC_JOINT_STATE, TOPICS
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

RATE, SECONDS, BATCH = 500.0, 60.0, 25
START = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Message:
    """One encoded message of a channel in TOPICS."""

    channel: int
    time: int
    data: bytes


def telemetry() -> Telemetry:
    """A minute of slowly changing values with noise in every digit."""
    count = round(RATE * SECONDS)
    rng = np.random.default_rng(1)
    clock = 1000.0 + np.arange(count) / RATE
    columns = {}
    for name in ENERGY_FIELDS:
        width = FIELDS[name].width
        phase = rng.uniform(0.0, 6.0, width)
        values = np.sin(clock[:, None] + phase) + 1e-3 * rng.normal(size=(count, width))
        if FIELDS[name].kind not in {"DOUBLE", "VECTOR3D", "VECTOR6D"}:
            values = np.rint(values)
        columns[name] = values[:, 0] if width == 1 else values
    columns["timestamp"] = clock
    info = RecordingInfo(source="memory", robot="ur5e", rate=RATE)
    stamp = START + np.arange(count) * np.int64(1e9 / RATE)
    return Telemetry(clock, columns, info, stamp=stamp)


def write_ours(path: Path, samples: Telemetry, crash_after: int | None = None) -> None:
    """Write a bag in batches; a crash leaves the file as it is on the disk."""
    bag = BagWriter(path, samples.info, ENERGY_FIELDS, name="bag")
    for start in range(0, len(samples) if crash_after is None else crash_after, BATCH):
        bag.write(samples.cut(slice(start, start + BATCH)))
    if crash_after is None:
        bag.close()
    else:
        bag.abandon()


def write_mcap(path: Path, messages: Iterable[Message], *, crash: bool = False) -> None:
    """The same messages by the mcap library; a crash leaves the file as it is on the disk."""
    path.mkdir()
    target = path / "bag_0.mcap"
    file = target.open("wb")
    writer = mcap.writer.Writer(file)
    writer.start("ros2", "benchmark")
    _add_messages(writer, messages)
    if crash:
        on_disk = target.read_bytes()
        file.close()
        target.write_bytes(on_disk)
    else:
        writer.finish()
        file.close()


class FailingDisk(io.FileIO):
    """A file whose third large write fails, as on a disk that is full for a moment."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self.large = 0

    def write(self, data: Any) -> int:
        """Write, or fail."""
        self.large += len(data) > 10_000
        if self.large == 3:
            self.large += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def fail_mcap(path: Path, messages: Iterable[Message]) -> int:
    """Samples in a file of the mcap library after one failed write and all later messages."""
    path.mkdir()
    with FailingDisk(path / "one.mcap") as file:
        writer = mcap.writer.Writer(file)
        writer.start("ros2", "benchmark")
        _add_messages(writer, messages)
        writer.finish()
    return stream_mcap(path)


def fail_ours(path: Path, samples: Telemetry) -> int:
    """Samples in our bag after one failed write and a retry in the next file."""
    bag = BagWriter(path, samples.info, ENERGY_FIELDS, name="bag")
    failures = iter([False, False, True])

    def pwrite(file: int, data: Any, place: int, write: Any = os.pwrite) -> int:
        if next(failures, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(write(file, data, place))

    with mock.patch.object(os, "pwrite", pwrite):
        for start in range(0, len(samples), BATCH):
            with suppress(OSError):
                bag.write(samples.cut(slice(start, start + BATCH)))
        bag.split()
        bag.close()
    return len(read_bag(path))


def _add_messages(writer: mcap.writer.Writer, messages: Iterable[Message]) -> None:
    channels = {}
    for number, topic in TOPICS.items():
        kind = topic.kind
        schema = writer.register_schema(kind.name, "ros2msg", kind.definition_bytes)
        channels[number] = writer.register_channel(topic.name, "cdr", schema)
    for message in messages:
        with suppress(OSError):
            channel = channels[message.channel]
            writer.add_message(channel, message.time, message.data, message.time)


def write_rosbags(path: Path, messages: Iterable[Message]) -> None:
    """The same messages by the rosbags library."""
    store = typestore()
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            number: writer.add_connection(topic.name, topic.kind.name, typestore=store)
            for number, topic in TOPICS.items()
        }
        for message in messages:
            writer.write(connections[message.channel], message.time, message.data)


def typestore() -> Any:
    """Message types of our bags."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for kind in (DYNAMIC_JOINT_STATE,):
        store.register(get_types_from_msg(kind.definition_bytes.decode(), kind.name))
    return store


def messages_of(path: Path) -> list[Message]:
    """All messages of one of our bags in the order of time."""
    found = [
        Message(block.channel, int(at), row.tobytes())
        for file in sorted(path.glob("*.mcap"))
        for block in McapReader(file).blocks()
        for at, row in zip(block.time, block.payload, strict=True)
    ]
    return sorted(found, key=lambda message: message.time)


def values_of(messages: Iterable[Any]) -> np.ndarray:
    """Array [n, values] of decoded DynamicJointState messages."""
    return np.array([[v for g in m.interface_values for v in g.values] for m in messages])


def read_mcap(path: Path) -> int:
    """Samples decoded by mcap and mcap_ros2."""
    return len(values_of(decoded for *_, decoded in _mcap_messages(path)))


def read_mcap_with_ours(path: Path) -> int:
    """Samples whose messages mcap reads and our decoder turns into columns."""
    decoder = TelemetryDecoder(path, None, budget_of(path, []))
    with next(path.glob("*.mcap")).open("rb") as file:
        messages = mcap.reader.make_reader(file).iter_messages([TELEMETRY_TOPIC])
        data = [message.data for _, _, message in messages]
    table = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)
    return sum(len(part.stamp) for part in decoder.decode(table, constant_layout=True))


def _mcap_messages(path: Path) -> Iterator[Any]:
    with next(path.glob("*.mcap")).open("rb") as file:
        reader = mcap.reader.make_reader(file, decoder_factories=[DecoderFactory()])
        yield from reader.iter_decoded_messages(topics=[TELEMETRY_TOPIC])


def read_mcap_bytes(path: Path) -> int:
    """Messages of mcap without decoding them."""
    with next(path.glob("*.mcap")).open("rb") as file:
        return sum(1 for _ in mcap.reader.make_reader(file).iter_messages([TELEMETRY_TOPIC]))


def stream_mcap(path: Path) -> int:
    """Messages that mcap's record reader finds before the first fault."""
    telemetry_ids, count = set(), 0
    with next(path.glob("*.mcap")).open("rb") as file:
        try:
            for record in mcap.stream_reader.StreamReader(file).records:
                if isinstance(record, mcap.records.Channel) and record.topic == TELEMETRY_TOPIC:
                    telemetry_ids.add(record.id)
                if isinstance(record, mcap.records.Message):
                    count += record.channel_id in telemetry_ids
        except (McapError, EOFError, ValueError):
            pass
    return count


def _rosbags_messages(path: Path) -> Iterator[tuple[Any, Any]]:
    with Reader(path) as reader:
        wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
        for connection, _, data in reader.messages(wanted):
            yield connection, data


def read_rosbags(path: Path) -> int:
    """Samples decoded by rosbags."""
    store = typestore()
    decoded = (store.deserialize_cdr(d, c.msgtype) for c, d in _rosbags_messages(path))
    return len(values_of(decoded))


def read_rosbags_bytes(path: Path) -> int:
    """Messages of rosbags without decoding them."""
    return sum(1 for _ in _rosbags_messages(path))


def read_ours(path: Path) -> int:
    """Samples of our reader."""
    return len(read_bag(path))


def recover_ours(path: Path) -> int:
    """Samples after our recovery."""
    return recover_bag(path).samples
