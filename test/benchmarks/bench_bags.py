"""Our bag writer and reader beside the `mcap` and `rosbags` libraries, on the same messages.

Writing: a minute of 500 Hz telemetry with all fields of the logger; the libraries get encoded
messages, as they have no encoder for arrays. Reading: columns of all samples, and the messages as
bytes. Crashes: what each reader finds in a file whose writer was killed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcap.reader
import mcap.stream_reader
import mcap.writer
import numpy as np
from mcap.exceptions import McapError
from mcap_ros2.decoder import DecoderFactory
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

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


def _add_messages(writer: mcap.writer.Writer, messages: Iterable[Message]) -> None:
    channels = {}
    for number, topic in TOPICS.items():
        kind = topic.kind
        schema = writer.register_schema(kind.name, "ros2msg", kind.definition_bytes)
        channels[number] = writer.register_channel(topic.name, "cdr", schema)
    for message in messages:
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


def cpu_seconds(action: Callable[[], object], *, repeats: int = 3) -> float:
    """Least processor time of an action [s]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def report(name: str, seconds: float, ours: float, remark: str = "") -> None:
    """One line: processor time and its ratio to ours."""
    print(f"  {name:44} {seconds:7.2f} s  {seconds / ours:6.1f} x  {remark}")


def found(read: Callable[[Path], int], path: Path) -> str:
    """Number of samples that a reader finds, or why it finds none."""
    try:
        return str(read(path))
    except (UrEnergyError, McapError, ReaderError, EOFError, ValueError, OSError) as error:
        return f"refused ({type(error).__name__})"


def main() -> None:
    """Print processor times, sizes and what survives a crash."""
    samples = telemetry()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _compare_writing(folder, samples)
        _compare_reading(folder)
        _compare_crashes(folder, samples)


def _compare_writing(folder: Path, samples: Telemetry) -> None:
    print(f"writing {len(samples)} samples and {len(samples) // 10} joint states:")
    number = iter(range(100))

    def fresh() -> Path:
        return folder / f"run{next(number)}"

    ours = cpu_seconds(lambda: write_ours(fresh(), samples))
    write_ours(folder / "ours", samples)
    messages = messages_of(folder / "ours")
    write_mcap(folder / "mcap", messages)
    shutil.copy(folder / "ours" / "metadata.yaml", folder / "mcap")
    write_rosbags(folder / "rosbags", messages)
    size = {each: _megabytes(folder / each) for each in ("ours", "mcap", "rosbags")}
    report("ours, encoding included", ours, ours, f"{size['ours']:.1f} MB")
    seconds = cpu_seconds(lambda: write_mcap(fresh(), messages))
    report("mcap Writer, messages encoded already", seconds, ours, f"{size['mcap']:.1f} MB")
    seconds = cpu_seconds(lambda: write_rosbags(fresh(), messages))
    report("rosbags Writer, messages encoded already", seconds, ours, f"{size['rosbags']:.1f} MB")
    layout = TelemetryLayout.of_fields(ENERGY_FIELDS)
    batches = [samples.cut(slice(i, i + BATCH)) for i in range(0, len(samples), BATCH)]
    seconds = cpu_seconds(lambda: [layout.encode(b.stamp, b.columns) for b in batches])  # type: ignore[arg-type]
    report("ours, encoding the samples alone", seconds, ours)
    store, kind = typestore(), DYNAMIC_JOINT_STATE.name
    encoded = [m.data for m in messages if TOPICS[m.channel].name == TELEMETRY_TOPIC]
    objects = [store.deserialize_cdr(data, kind) for data in encoded]
    seconds = cpu_seconds(lambda: [store.serialize_cdr(each, kind) for each in objects])
    report("rosbags, encoding the samples alone", seconds, ours)


def _compare_reading(folder: Path) -> None:
    path = folder / "ours"
    print("reading all samples as columns:")
    ours = cpu_seconds(lambda: read_bag(path))
    report("ours", ours, ours)
    seconds = cpu_seconds(lambda: read_mcap_with_ours(path))
    report("mcap with our decoder", seconds, ours)
    report("mcap with mcap_ros2", cpu_seconds(lambda: read_mcap(path), repeats=1), ours)
    report("rosbags", cpu_seconds(lambda: read_rosbags(path), repeats=1), ours)
    report("mcap, bytes only", cpu_seconds(lambda: read_mcap_bytes(path)), ours)
    report("rosbags, bytes only", cpu_seconds(lambda: read_rosbags_bytes(path)), ours)


def _compare_crashes(folder: Path, samples: Telemetry) -> None:
    half = len(samples) // 2
    write_ours(folder / "killed_ours", samples, crash_after=half)
    messages = [m for m in messages_of(folder / "ours") if m.time < int(samples.stamp[half])]  # type: ignore[index]
    write_mcap(folder / "killed_mcap", messages, crash=True)
    shutil.copy(folder / "killed_ours" / "metadata.yaml", folder / "killed_mcap")
    cases = {"killed_ours": half, "killed_mcap": half}
    readers: dict[str, Callable[[Path], int]] = {
        "ours": lambda path: len(read_bag(path)),
        "ours after recovery": lambda path: recover_bag(path).samples,
        "mcap": read_mcap_bytes,
        "mcap StreamReader": stream_mcap,
        "rosbags": read_rosbags_bytes,
    }
    for case, expected in cases.items():
        print(f"samples in {case.replace('_', ' file of ')} (about {expected}):")
        for name, read in readers.items():
            path = folder / f"{case} {name}"
            shutil.copytree(folder / case, path)
            print(f"  {name:44} {found(read, path)}")


def _megabytes(path: Path) -> float:
    return sum(file.stat().st_size for file in path.iterdir()) / 1e6


if __name__ == "__main__":
    main()
