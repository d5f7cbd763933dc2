"""Writes the bags of the tests."""

import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos

from ur_energy_model.telemetry.bag.mcap_format import MAGIC, PREFIX, Op, pack
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import DYNAMIC_JOINT_STATE, TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.writer import BagWriter


def write_bag(path: Path, telemetry, *, batch=25, **options) -> Path:
    with BagWriter(path, telemetry.info, tuple(telemetry.columns), **options) as bag:
        for start in range(0, len(telemetry), batch):
            part = telemetry.cut(slice(start, start + batch))
            gaps = [gap for gap in telemetry.gaps if start <= gap.index < start + batch]
            bag.write(
                replace(part, gaps=tuple(replace(gap, index=gap.index - start) for gap in gaps))
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


def chunk_record(size: int, packed: bytes, compression: str = "zstd", checksum: int = 0) -> bytes:
    """A chunk that claims to unpack to so many bytes."""
    return pack(Op.CHUNK, 0, 0, size, checksum, compression, packed)


def write_file(path: Path, *records: bytes) -> Path:
    path.write_bytes(MAGIC + pack(Op.HEADER, "ros2", "x") + b"".join(records))
    return path


def in_sqlite(path: Path, telemetry) -> Path:
    write_bag(path, telemetry)
    with closing(sqlite3.connect(path / "bag_0.db3")) as file, file:
        file.execute(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, "
            "serialization_format TEXT)"
        )
        file.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, "
            "data BLOB)"
        )
        topic = (1, TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name, "cdr")
        file.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", topic)
        for block in McapReader(path / f"{path.name}_0.mcap").blocks(TELEMETRY_TOPIC):
            rows = [
                (int(at), row.tobytes()) for at, row in zip(block.time, block.payload, strict=True)
            ]
            file.executemany(
                "INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)", rows
            )
    metadata = (path / "metadata.yaml").read_text()
    metadata = metadata.replace("storage_identifier: mcap", "storage_identifier: sqlite3")
    (path / "metadata.yaml").write_text(metadata.replace(f"{path.name}_0.mcap", "bag_0.db3"))
    (path / f"{path.name}_0.mcap").unlink()
    return path
