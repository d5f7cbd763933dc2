# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Our bag writer and reader beside the `mcap` and `rosbags` libraries, on the same messages.

Writing: a minute of 500 Hz telemetry with all fields of the logger; the libraries get
encoded messages, as they have no encoder for arrays. Reading: columns of all samples.
Crashes: what each reader finds in our file of a killed writer, and in that of mcap.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcap.reader
import mcap.writer
import numpy as np
from mcap.exceptions import McapError
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from test.benchmarks.meters import least_cpu, size
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import (
    DYNAMIC_JOINT_STATE,
    TELEMETRY_TOPIC,
    TOPICS,
    TelemetryLayout,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

RATE = 500.0
SECONDS = 60.0
BATCH = 25
START = 1_700_000_000_000_000_000
STORE = get_typestore(Stores.ROS2_JAZZY)
KIND = DYNAMIC_JOINT_STATE.name
STORE.register(get_types_from_msg(DYNAMIC_JOINT_STATE.definition_bytes.decode(), KIND))


class Message(NamedTuple):
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
    return Telemetry(
        clock, columns, info, stamp=START + np.arange(count) * np.int64(1e9 / RATE)
    )


def batches(samples: Telemetry) -> list[Telemetry]:
    """As the logger writes them."""
    return [samples.cut(slice(k, k + BATCH)) for k in range(0, len(samples), BATCH)]


def write_ours(path: Path, samples: Telemetry, *, crash: bool = False) -> None:
    """Write a bag in batches; a crash leaves the file as it is on the disk."""
    bag = BagWriter(path, samples.info, ENERGY_FIELDS, name="bag")
    for batch in batches(samples):
        bag.write(batch)
    bag.abandon() if crash else bag.close()


def write_mcap(path: Path, messages: Iterable[Message], *, crash: bool = False) -> None:
    """The same messages by the mcap library."""
    path.mkdir()
    target = path / "bag_0.mcap"
    channels = {}
    with target.open("wb") as file:
        writer = mcap.writer.Writer(file)
        writer.start("ros2", "benchmark")
        for number, topic in TOPICS.items():
            kind = topic.kind
            schema = writer.register_schema(kind.name, "ros2msg", kind.definition_bytes)
            channels[number] = writer.register_channel(topic.name, "cdr", schema)
        for channel, time, data in messages:
            writer.add_message(channels[channel], time, data, time)
        on_disk = target.read_bytes()
        if not crash:
            writer.finish()
    if crash:
        target.write_bytes(on_disk)


def write_rosbags(path: Path, messages: Iterable[Message]) -> None:
    """The same messages by the rosbags library."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            number: writer.add_connection(topic.name, topic.kind.name, typestore=STORE)
            for number, topic in TOPICS.items()
        }
        for channel, time, data in messages:
            writer.write(connections[channel], time, data)


def messages_of(path: Path) -> list[Message]:
    """All messages of one of our bags in the order of time."""
    found = [
        Message(block.channel, int(at), row.tobytes())
        for file in sorted(path.glob("*.mcap"))
        for block in McapReader(file).blocks()
        for at, row in zip(block.time, block.payload, strict=True)
    ]
    return sorted(found, key=lambda message: message.time)


def mcap_messages(path: Path) -> Iterator[Any]:
    """Messages that mcap reads and mcap_ros2 decodes."""
    with next(path.glob("*.mcap")).open("rb") as file:
        reader = mcap.reader.make_reader(file, decoder_factories=(DecoderFactory(),))
        for *_, message in reader.iter_decoded_messages(topics=[TELEMETRY_TOPIC]):
            yield message


def rosbags_messages(path: Path) -> Iterator[Any]:
    """Messages that rosbags reads and decodes."""
    with Reader(path) as reader:
        wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
        for _, _, data in reader.messages(wanted):
            yield STORE.deserialize_cdr(data, KIND)


def samples_of(messages: Iterable[Any]) -> int:
    """Rows of the array [n, values] of decoded DynamicJointState messages."""
    return len(
        np.array([[v for g in m.interface_values for v in g.values] for m in messages])
    )


READERS: dict[str, Callable[[Path], int]] = {
    "ours": lambda path: len(read_bag(path)),
    "mcap": lambda path: samples_of(mcap_messages(path)),
    "rosbags": lambda path: samples_of(rosbags_messages(path)),
}


def report(title: str, actions: dict[str, Callable[[], object]]) -> None:
    """A line for each action: processor time and its ratio to the first one, which is ours."""
    print(title)
    ours = 0.0
    for name, action in actions.items():
        seconds = least_cpu(action, repeats=3 if "ours" in name else 1)
        ours = ours or seconds
        print(f"  {name:44} {seconds:7.2f} s  {seconds / ours:6.1f} x")


def found_by(read: Callable[[Path], int], path: Path) -> str:
    """Samples that a reader finds, or how it refuses."""
    try:
        return str(read(path))
    except (
        UrEnergyError,
        McapError,
        ReaderError,
        EOFError,
        ValueError,
        OSError,
    ) as error:
        return f"refused ({type(error).__name__})"


def main() -> None:
    """Print processor times, sizes and what survives a crash."""
    samples = telemetry()
    number = itertools.count()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def fresh() -> Path:
            return folder / f"run{next(number)}"

        bag = fresh()
        layout = TelemetryLayout.of_fields(ENERGY_FIELDS)
        parts = batches(samples)
        write_ours(bag, samples)
        messages = messages_of(bag)
        encoded = [m.data for m in messages if TOPICS[m.channel].name == TELEMETRY_TOPIC]
        objects = [STORE.deserialize_cdr(data, KIND) for data in encoded]
        writers: dict[str, Callable[[], object]] = {
            "ours, encoding included": lambda: write_ours(fresh(), samples),
            "mcap, messages encoded already": lambda: write_mcap(fresh(), messages),
            "rosbags, messages encoded already": lambda: write_rosbags(fresh(), messages),
            "ours, encoding alone": lambda: [
                layout.encode(each.stamp, each.columns)  # type: ignore[arg-type]
                for each in parts
            ],
            "rosbags, encoding alone": lambda: [
                STORE.serialize_cdr(o, KIND) for o in objects
            ],
        }
        report(f"writing {len(samples)} samples, {size(bag) / 1e6:.1f} MB:", writers)
        reading = {title: lambda read=read: read(bag) for title, read in READERS.items()}
        report("reading all samples as columns:", reading)  # type: ignore[arg-type]
        half = len(samples) // 2
        killed = {"ours": fresh(), "mcap": fresh()}
        write_ours(killed["ours"], samples.cut(slice(0, half)), crash=True)
        write_mcap(killed["mcap"], messages[: len(messages) // 2], crash=True)
        shutil.copy(killed["ours"] / "metadata.yaml", killed["mcap"])
        for writer, path in killed.items():
            found = (f"{title} {found_by(read, path)}" for title, read in READERS.items())
            print(
                f"samples in a killed file of {writer} (about {half}): {', '.join(found)}"
            )
