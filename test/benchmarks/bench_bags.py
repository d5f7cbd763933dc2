"""Our bag writer and reader beside the `mcap` and `rosbags` libraries, on the same messages.

Writing: a minute of 500 Hz telemetry with all fields of the logger; the libraries get encoded
messages, as they have no encoder for arrays. Reading: columns of all samples, and the messages as
bytes. Crashes: what each reader finds in a file whose writer was killed.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcap.reader
import mcap.stream_reader
import mcap.writer
import numpy as np
from mcap.exceptions import McapError
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from test.benchmarks.meters import least_cpu, size
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
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
    return Telemetry(clock, columns, info, stamp=START + np.arange(count) * np.int64(1e9 / RATE))


def batches(samples: Telemetry) -> list[Telemetry]:
    """As the logger writes them."""
    return [samples.cut(slice(k, k + BATCH)) for k in range(0, len(samples), BATCH)]


# Writers. A crash leaves the file as it is on the disk.


def write_ours(path: Path, samples: Telemetry, *, crash: bool = False) -> None:
    """Write a bag in batches."""
    bag = BagWriter(path, samples.info, ENERGY_FIELDS, name="bag")
    for batch in batches(samples):
        bag.write(batch)
    bag.abandon() if crash else bag.close()


def write_mcap(path: Path, messages: Iterable[Message], *, crash: bool = False) -> None:
    """The same messages by the mcap library."""
    path.mkdir()
    target, channels = path / "bag_0.mcap", {}
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


# Readers: number of samples.


def values_of(messages: Iterable[Any]) -> int:
    """Rows of the array [n, values] of decoded DynamicJointState messages."""
    return len(np.array([[v for g in m.interface_values for v in g.values] for m in messages]))


def mcap_messages(path: Path, *factories: DecoderFactory) -> Iterator[Any]:
    """Messages of mcap, decoded where there is a decoder."""
    with next(path.glob("*.mcap")).open("rb") as file:
        reader = mcap.reader.make_reader(file, decoder_factories=factories)
        method = reader.iter_decoded_messages if factories else reader.iter_messages
        for *_, message in method(topics=[TELEMETRY_TOPIC]):
            yield message


def mcap_with_our_decoder(path: Path) -> int:
    """Samples whose messages mcap reads and our decoder turns into columns."""
    decoder = TelemetryDecoder(path, None, budget_of(path, []))
    data = [message.data for message in mcap_messages(path)]
    table = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)
    return sum(len(part.stamp) for part in decoder.decode(table, constant_layout=True))


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


def rosbags_messages(path: Path) -> Iterator[bytes]:
    """Messages of rosbags as bytes."""
    with Reader(path) as reader:
        wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
        for _, _, data in reader.messages(wanted):
            yield data


def count(messages: Iterable[Any]) -> int:
    """Number of messages."""
    return sum(1 for _ in messages)


READERS: dict[str, tuple[int, Callable[[Path], object]]] = {
    "ours": (3, read_bag),
    "mcap with our decoder": (3, mcap_with_our_decoder),
    "mcap with mcap_ros2": (1, lambda path: values_of(mcap_messages(path, DecoderFactory()))),
    "rosbags": (
        1,
        lambda path: values_of(STORE.deserialize_cdr(d, KIND) for d in rosbags_messages(path)),
    ),
    "mcap, bytes only": (3, lambda path: count(mcap_messages(path))),
    "rosbags, bytes only": (3, lambda path: count(rosbags_messages(path))),
}
"""Times that each is run, and the reader."""
OF_CRASHES: dict[str, Callable[[Path], int]] = {
    "ours": lambda path: len(read_bag(path)),
    "ours after recovery": lambda path: recover_bag(path).samples,
    "mcap": lambda path: count(mcap_messages(path)),
    "mcap StreamReader": stream_mcap,
    "rosbags": lambda path: count(rosbags_messages(path)),
}


def report(actions: dict[str, tuple[int, Callable[[], object]]], remarks: dict[str, str]) -> None:
    """A line for each action: processor time and its ratio to the first one, which is ours."""
    ours = 0.0
    for name, (repeats, action) in actions.items():
        seconds = least_cpu(action, repeats=repeats)
        ours = ours or seconds
        print(f"  {name:44} {seconds:7.2f} s  {seconds / ours:6.1f} x  {remarks.get(name, '')}")


def writing(folder: Path, samples: Telemetry, messages: list[Message]) -> None:
    """Times and sizes of the writers, and of encoding alone."""
    number = itertools.count()

    def fresh() -> Path:
        return folder / f"run{next(number)}"

    write_mcap(folder / "mcap", messages)
    shutil.copy(folder / "ours" / "metadata.yaml", folder / "mcap")
    write_rosbags(folder / "rosbags", messages)
    layout, parts = TelemetryLayout.of_fields(ENERGY_FIELDS), batches(samples)
    encoded = [m.data for m in messages if TOPICS[m.channel].name == TELEMETRY_TOPIC]
    objects = [STORE.deserialize_cdr(data, KIND) for data in encoded]
    names = [
        "ours, encoding included",
        "mcap Writer, messages encoded already",
        "rosbags Writer, messages encoded already",
    ]
    actions: list[Callable[[], object]] = [
        lambda: write_ours(fresh(), samples),
        lambda: write_mcap(fresh(), messages),
        lambda: write_rosbags(fresh(), messages),
        lambda: [layout.encode(b.stamp, b.columns) for b in parts],  # type: ignore[arg-type]
        lambda: [STORE.serialize_cdr(each, KIND) for each in objects],
    ]
    sizes = [f"{size(folder / each) / 1e6:.1f} MB" for each in ("ours", "mcap", "rosbags")]
    alone = ["ours, encoding the samples alone", "rosbags, encoding the samples alone"]
    timed = {name: (3, action) for name, action in zip([*names, *alone], actions, strict=True)}
    report(timed, dict(zip(names, sizes, strict=True)))


def main() -> None:
    """Print processor times, sizes and what survives a crash."""
    samples = telemetry()
    half = len(samples) // 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ours(folder / "ours", samples)
        messages = messages_of(folder / "ours")
        print(f"writing {len(samples)} samples and {len(samples) // 10} joint states:")
        writing(folder, samples, messages)
        print("reading all samples as columns:")
        report(
            {
                title: (repeats, lambda read=read: read(folder / "ours"))  # type: ignore[misc]
                for title, (repeats, read) in READERS.items()
            },
            {},
        )
        write_ours(folder / "killed_ours", samples.cut(slice(0, half)), crash=True)
        assert samples.stamp is not None
        before = [message for message in messages if message.time < samples.stamp[half]]
        write_mcap(folder / "killed_mcap", before, crash=True)
        shutil.copy(folder / "killed_ours" / "metadata.yaml", folder / "killed_mcap")
        for case in ("killed_ours", "killed_mcap"):
            print(f"samples in {case.replace('_', ' file of ')} (about {half}):")
            for title, read in OF_CRASHES.items():
                path = folder / f"{case} {title}"
                shutil.copytree(folder / case, path)
                try:
                    found = str(read(path))
                except (UrEnergyError, McapError, ReaderError, EOFError, ValueError, OSError) as e:
                    found = f"refused ({type(e).__name__})"
                print(f"  {title:44} {found}")
