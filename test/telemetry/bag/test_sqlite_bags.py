"""Bags with sqlite3 storage: read like others, refused in one line if they are damaged."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from contextlib import closing, suppress

import numpy as np
import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.message_encoder import DYNAMIC_JOINT_STATE
from ur_energy_model.telemetry.bag.reader import read_bag

TABLES = (
    "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT)",
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)",
    "CREATE INDEX timestamp_idx ON messages (timestamp ASC)",
)


def in_sqlite(path, telemetry):
    """A bag with sqlite3 storage."""
    write_bag(path, telemetry)
    blocks = list(McapReader(path / "bag_0.mcap").blocks(TELEMETRY_TOPIC))
    with closing(sqlite3.connect(path / "bag_0.db3")) as file, file:
        for table in TABLES:
            file.execute(table)
        topic = (1, TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name, "cdr")
        file.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", topic)
        file.executemany(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)",
            (
                (int(at), row.tobytes())
                for block in blocks
                for at, row in zip(block.time, block.payload, strict=True)
            ),
        )
    metadata = (path / "metadata.yaml").read_text()
    metadata = metadata.replace("storage_identifier: mcap", "storage_identifier: sqlite3")
    (path / "metadata.yaml").write_text(metadata.replace("bag_0.mcap", "bag_0.db3"))
    (path / "bag_0.mcap").unlink()
    return path


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A bag with sqlite3 storage, and the samples in it."""
    telemetry = make_telemetry(1000, fields=("actual_q", "payload"))
    return in_sqlite(tmp_path_factory.mktemp("sqlite") / "bag", telemetry), telemetry


@pytest.fixture
def bag(intact, tmp_path):
    return shutil.copytree(intact[0], tmp_path / "bag")


def change(bag, *statements):
    with closing(sqlite3.connect(bag / "bag_0.db3")) as file, file:
        for statement in statements:
            file.execute(statement)


def test_samples_are_read_bit_for_bit(bag, intact):
    read = read_bag(bag)
    assert np.array_equal(read["actual_q"], intact[1]["actual_q"])
    assert read.stamp is not None
    assert np.array_equal(read.stamp, intact[1].stamp)


ENDLESS = (
    "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS id, 1 AS topic_id, i AS timestamp, zeroblob(1000) AS data FROM n"
)
COMPUTED = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INT, timestamp INT, "
    "data BLOB AS (zeroblob(100000000)))"
)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["UPDATE messages SET data = 'text' WHERE id = 10"], "row 10 of its messages"),
        (["UPDATE messages SET data = 7 WHERE id = 10"], "row 10 of its messages"),
        (["UPDATE messages SET data = NULL WHERE id = 10"], "row 10 of its messages"),
        (["UPDATE messages SET data = zeroblob(300000) WHERE id = 10"], "row 10 of its messages"),
        (["UPDATE messages SET data = x'00' WHERE id = 10"], "row 10 of its messages"),
        (["UPDATE topics SET name = CAST(x'ff2f' AS TEXT)"], "holds no samples"),
        (["DELETE FROM messages WHERE id > 500"], "truncated: 500 of 1000"),
        (["DROP TABLE topics"], "no table 'topics'"),
        (["DROP TABLE messages", ENDLESS], "no table 'messages'"),
        (["DROP TABLE messages", COMPUTED], "no table 'messages'"),
    ],
)
def test_what_is_no_recording_is_refused(bag, statements, problem):
    change(bag, *statements)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RecordingError, match=problem) as refusal:
        read_bag(bag)
    assert "\n" not in str(refusal.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # kB


@pytest.mark.parametrize("place", [0, 40, 1000, 5000, 20_000])
def test_damage_is_refused_or_harmless(bag, place):
    path = bag / "bag_0.db3"
    data = bytearray(path.read_bytes())
    data[place : place + 3000] = b"x" * 3000
    path.write_bytes(data)
    with suppress(RecordingError):
        assert len(read_bag(bag)) == 1000
