# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writes the bags of the tests."""

import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mcap.records import Chunk, Header
from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from test.layouts.viewers import STORE
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, PREFIX, packed
from ur_energy_model.telemetry.bag.writer import BagWriter


def write_bag(path: Path, telemetry, *, batch=25, **options) -> Path:
    with BagWriter(path, telemetry.info, tuple(telemetry.columns), **options) as bag:
        for start in range(0, len(telemetry), batch):
            part = telemetry.cut(slice(start, start + batch))
            gaps = [gap for gap in telemetry.gaps if start <= gap.index < start + batch]
            bag.write(
                replace(
                    part,
                    gaps=tuple(replace(gap, index=gap.index - start) for gap in gaps),
                )
            )
    return path


def offered_qos(connection: Connection) -> Qos:
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    (profile,) = connection.ext.offered_qos_profiles
    return profile


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def record(op: int, content: bytes) -> bytes:
    return PREFIX.pack(op, len(content)) + content


def chunk_record(
    size: int, data: bytes, compression: str = "zstd", checksum: int = 0
) -> bytes:
    """A chunk that claims to unpack to so many bytes."""
    chunk = Chunk(
        compression=compression,
        data=data,
        message_end_time=0,
        message_start_time=0,
        uncompressed_crc=checksum,
        uncompressed_size=size,
    )
    return packed([chunk])


def write_file(path: Path, *records: bytes) -> Path:
    path.write_bytes(MAGIC + packed([Header("ros2", "x")]) + b"".join(records))
    return path


def in_sqlite(path: Path, source: Path) -> Path:
    """A copy of a bag by another library, without what this package notes about a recording."""
    sqlite = StoragePlugin.SQLITE3
    with Reader(source) as reader, Writer(path, version=8, storage_plugin=sqlite) as out:
        copies = {
            each.topic: out.add_connection(
                each.topic,
                each.msgtype,
                typestore=STORE,
                offered_qos_profiles=[offered_qos(each)],
            )
            for each in reader.connections
        }
        for connection, time, raw in reader.messages():
            out.write(copies[connection.topic], time, raw)
    return path


def change_rows(bag: Path, *statements: str) -> None:
    """Execute statements in the storage file of a bag in sqlite."""
    with closing(sqlite3.connect(next(bag.glob("*.db3")))) as file, file:
        for statement in statements:
            file.execute(statement)
