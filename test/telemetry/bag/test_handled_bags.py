# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags after ordinary handling: reindexed, packed, renamed, converted, copied without a part."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode

from test.layouts.viewers import STORE
from test.telemetry.bag.bag_files import offered_qos, write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from test.telemetry.recorded_events import read_events
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag import mcap_reader
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Event

FIELDS = ("actual_q", "actual_qd", "robot_mode")
COUNT = 500
SAMPLES = make_telemetry(COUNT, fields=FIELDS)
EVENT = Event(
    int(SAMPLES.stamp[7] if SAMPLES.stamp is not None else 0), "mark", "gripper changed"
)
MCAP = StoragePlugin.MCAP
SQLITE = StoragePlugin.SQLITE3
Order = Callable[[int], Sequence[int]]


def by_another_library(
    path: Path,
    source: Path,
    plugin: StoragePlugin,
    mode: CompressionMode | None = None,
    order: Order = range,
) -> Path:
    """A copy of a bag, its messages packed and in another order."""
    with Reader(source) as reader:
        messages = [
            (each.topic, time, bytes(raw)) for each, time, raw in reader.messages()
        ]
        writer = Writer(path, version=9 if plugin is MCAP else 8, storage_plugin=plugin)
        if mode is not None:
            writer.set_compression(mode, CompressionFormat.ZSTD)
        with writer:
            copies = {
                each.topic: writer.add_connection(
                    each.topic,
                    each.msgtype,
                    typestore=STORE,
                    offered_qos_profiles=[offered_qos(each)],
                )
                for each in reader.connections
            }
            for number in order(len(messages)):
                topic, time, raw = messages[number]
                writer.write(copies[topic], time, raw)
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "bag"
    with BagWriter(path, SAMPLES.info, FIELDS) as bag:
        bag.write(SAMPLES)
        bag.write_event(EVENT)
    return path


def in_metadata(pattern: str, text: str) -> Callable[[Path], None]:
    def change(bag: Path) -> None:
        path = bag / "metadata.yaml"
        path.write_text(re.sub(pattern, text, path.read_text()))

    return change


def without_metadata(bag: Path) -> None:
    (bag / "metadata.yaml").unlink()


def renamed(bag: Path) -> None:
    for path in [each for each in bag.iterdir() if each.name != "metadata.yaml"]:
        path.rename(bag / f"monday{''.join(path.suffixes)}")


def unpacked(bag: Path) -> None:
    for path in list(bag.glob("*.zstd")):
        with path.open("rb") as packed, path.with_suffix("").open("wb") as plain:
            zstandard.ZstdDecompressor().copy_stream(packed, plain)
        path.unlink()


def with_log(bag: Path) -> None:
    """As a killed recorder leaves a database: half of the messages are in its log only."""
    database = next(bag.glob("*.db3"))
    copy = bag / "killed"
    with closing(sqlite3.connect(database)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA wal_autocheckpoint = 0")
        rows = file.execute("SELECT * FROM messages").fetchall()
        marks = ",".join("?" * len(rows[0]))
        file.execute("DELETE FROM messages")
        file.commit()
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            file.executemany(f"INSERT INTO messages VALUES ({marks})", part)
            file.commit()
        copy.mkdir()
        for path in bag.glob("*.db3*"):
            shutil.copyfile(path, copy / path.name)
    for path in copy.iterdir():
        path.replace(bag / path.name)
    copy.rmdir()


def with_journal(bag: Path) -> None:
    """A recorder that was killed in the middle of a change, which sqlite takes back on opening."""
    database = next(bag.glob("*.db3"))
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        file.execute("PRAGMA cache_size = 1")  # so that changes reach the file at once
        file.execute("BEGIN")
        file.execute("UPDATE messages SET timestamp = timestamp + 1")
        copy = bag / "killed"
        copy.mkdir()
        for path in bag.glob("*.db3*"):
            shutil.copyfile(path, copy / path.name)
    for path in copy.iterdir():
        path.replace(bag / path.name)
    copy.rmdir()


HANDLED: dict[
    str, tuple[StoragePlugin, CompressionMode | None, Callable[[Path], None]]
] = {
    f"{plugin.name}, {name}": (plugin, mode, change)
    for plugin in (MCAP, SQLITE)
    for name, mode, change in (
        (
            "reindexed",
            None,
            in_metadata("storage_identifier: .*", "storage_identifier: ''"),
        ),
        ("without custom data", None, in_metadata("custom_data:.*", "custom_data: ~")),
        ("metadata.yaml missing", None, without_metadata),
        ("renamed", None, renamed),
        ("packed files", CompressionMode.FILE, lambda bag: None),
        ("packed files renamed", CompressionMode.FILE, renamed),
        ("packed files without metadata.yaml", CompressionMode.FILE, without_metadata),
        ("packed files unpacked by hand", CompressionMode.FILE, unpacked),
        ("packed messages", CompressionMode.MESSAGE, lambda bag: None),
        (
            "packed messages without metadata.yaml",
            CompressionMode.MESSAGE,
            without_metadata,
        ),
        (
            "packed messages, reindexed",
            CompressionMode.MESSAGE,
            in_metadata("compression_(mode|format): .*", r"compression_\1: ''"),
        ),
    )
} | {
    "log left behind": (SQLITE, None, with_log),
    "journal left behind": (SQLITE, None, with_journal),
    "packed chunks": (MCAP, CompressionMode.STORAGE, lambda bag: None),
}


@pytest.mark.parametrize("name", HANDLED)
def test_handled_bags_are_read(tmp_path: Path, source: Path, name: str) -> None:
    plugin, mode, change = HANDLED[name]
    bag = by_another_library(tmp_path / "bag", source, plugin, mode)
    change(bag)
    before = {path.name for path in bag.iterdir()}
    assert_same_samples(read_bag(bag), SAMPLES)
    assert read_bag(bag).gaps == ()
    assert read_events(bag) == [EVENT]
    assert {path.name for path in bag.iterdir()} <= before | {"bag.db3-shm"}


@pytest.mark.parametrize("plugin", [MCAP, SQLITE])
@pytest.mark.parametrize("mode", [None, CompressionMode.FILE])
def test_single_files_are_read(
    tmp_path: Path, source: Path, plugin: StoragePlugin, mode: CompressionMode | None
) -> None:
    bag = by_another_library(tmp_path / "bag", source, plugin, mode)
    (file,) = (path for path in bag.iterdir() if path.name != "metadata.yaml")
    assert_same_samples(read_bag(file), SAMPLES)


def shuffled(count: int) -> Sequence[int]:
    return np.random.default_rng(1).permutation(count).tolist()


def disordered(count: int) -> Sequence[int]:
    """As of a writer with several threads: up to some messages late."""
    late = np.random.default_rng(2).uniform(0.0, 5.0, count)
    return np.argsort(np.arange(count) + late).tolist()


def halves(count: int) -> Sequence[int]:
    return [*range(count // 2, count), *range(count // 2)]


@pytest.mark.parametrize("plugin", [MCAP, SQLITE])
@pytest.mark.parametrize("mode", [None, CompressionMode.MESSAGE])
@pytest.mark.parametrize("order", [shuffled, disordered, halves])
def test_messages_are_read_in_order_of_their_log_times(
    tmp_path: Path,
    source: Path,
    order: Order,
    mode: CompressionMode | None,
    plugin: StoragePlugin,
) -> None:
    bag = by_another_library(tmp_path / "bag", source, plugin, mode, order)
    assert_same_samples(read_bag(bag), SAMPLES)
    assert read_bag(bag).gaps == ()


def test_more_disorder_than_fits_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcap_reader, "_MOST_SORTED", 100_000)
    source = write_bag(tmp_path / "source", make_telemetry(6 * COUNT, fields=FIELDS))
    bag = by_another_library(tmp_path / "bag", source, MCAP, order=shuffled)
    with pytest.raises(RecordingError, match="ros2 bag convert"):
        read_bag(bag)


def refusal(path: Path) -> str:
    with pytest.raises(RecordingError) as caught:
        read_bag(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path, source: Path) -> None:
    bag = by_another_library(tmp_path / "bag", source, SQLITE)
    with_log(bag)
    next(bag.glob("*-wal")).unlink()
    for rest in bag.glob("*-shm"):
        rest.unlink()
    assert "bag.db3-wal" in refusal(bag)
    next(bag.glob("*.db3")).unlink()
    assert "bag.db3 is missing" in refusal(bag)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04" + b"x" * 300, "zip archive"),
        (b"\x1f\x8b" + b"x" * 300, "tar xzf"),
        (b"x" * 257 + b"ustar" + b"x" * 300, "tar archive"),
        (b"#ROSBAG V2.0\n", "ROS 1"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"", "is empty"),
        (b"rubbish" * 100, "neither an MCAP file nor a database"),
        (zstandard.compress(b"rubbish" * 100), "neither an MCAP file nor a database"),
        (zstandard.compress(b"rubbish" * 100)[:-20], "cannot be unpacked"),
        (zstandard.compress(zstandard.compress(b"x")), "packed twice"),
    ],
)
def test_other_files_are_named_with_what_to_do(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "bag_0.mcap"
    path.write_bytes(content)
    assert said in refusal(path)


def test_a_packed_file_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bag_0.mcap.zstd"
    with (
        path.open("wb") as file,
        zstandard.ZstdCompressor().stream_writer(file) as packer,
    ):
        for _ in range(700):
            packer.write(bytes(1 << 20))
    assert "more than is read" in refusal(path)


def test_samples_of_equal_times_and_other_values_are_no_repetitions(
    tmp_path: Path,
) -> None:
    """As of a bag that was made from a table with times in whole seconds."""
    time = np.floor(SAMPLES.time)
    columns = {**SAMPLES.columns, "timestamp": time}
    assert SAMPLES.stamp is not None
    coarse = replace(
        SAMPLES, time=time, columns=columns, stamp=SAMPLES.stamp // 10**9 * 10**9
    )
    bag = write_bag(tmp_path / "bag", coarse, batch=COUNT)
    assert "too coarse" in refusal(bag)
    some = SAMPLES.time.copy()
    some[100] = some[99]
    stamp = SAMPLES.stamp.copy()
    stamp[100] = stamp[99]
    few = replace(
        SAMPLES, time=some, columns={**SAMPLES.columns, "timestamp": some}, stamp=stamp
    )
    assert len(read_bag(write_bag(tmp_path / "few", few, batch=COUNT))) == COUNT - 1


@pytest.mark.parametrize(
    ("plugin", "mode", "said"),
    [(SQLITE, None, "sqlite3"), (MCAP, CompressionMode.FILE, "zstd -d")],
)
def test_what_cannot_be_recovered_is_left_alone(
    tmp_path: Path,
    source: Path,
    plugin: StoragePlugin,
    mode: CompressionMode | None,
    said: str,
) -> None:
    bag = by_another_library(tmp_path / "bag", source, plugin, mode)
    before = {path: path.read_bytes() for path in bag.iterdir()}
    for path in (
        bag,
        next(each for each in bag.iterdir() if each.name != "metadata.yaml"),
    ):
        with pytest.raises(RecordingError, match=said):
            recover_bag(path)
    assert {path: path.read_bytes() for path in bag.iterdir()} == before
