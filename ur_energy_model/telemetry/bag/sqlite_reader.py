# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reads the messages of sqlite3 storage, hostile databases too, in bounded memory and time."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import open_regular
from ur_energy_model.typing import Bytes

GROUP = 1000  # messages of one size that are read together
_LARGEST = 1 << 30
"""Largest text or value that sqlite may build [bytes]; telemetry is checked before it is read."""
_LIMIT_LENGTH = 0
"""Number of that limit in sqlite's interface; Python names it from 3.11 on."""
_REMEDY = "convert the bag to MCAP storage"
_TABLES = {
    "topics": {"id", "name", "type"},
    "messages": {"topic_id", "timestamp", "data"},
}
_KINDS = "SELECT type, sql FROM sqlite_master WHERE name = ?"
_TOPICS = "SELECT id, name FROM topics WHERE substr(name, -length(?1)) = ?1 AND type = ?2"
_SIZES = (
    "SELECT rowid FROM messages WHERE topic_id = ? AND (typeof(data) != 'blob' "
    "OR length(data) NOT BETWEEN 12 AND ?)"
)
_MESSAGES = "SELECT data FROM messages WHERE topic_id = ? ORDER BY timestamp, rowid"
_WRITE_AHEAD_LOG = "-wal"
_SIDE_FILES = (_WRITE_AHEAD_LOG, "-journal")
"""Files that a killed recorder leaves beside a database: messages that are not in it yet."""
_WRITE_AHEAD = 2  # version of databases with a write-ahead log
_VERSION_PLACE = 18  # place of the version in the file [bytes]


class SqliteMessages(NamedTuple):
    """Messages of one topic and one size.

    Attributes:
        topic: name of the topic.
        messages: messages in order of their log times [n, size].
    """

    topic: str
    messages: Bytes


def sqlite_messages(
    path: Path, end: str, kind: str, largest: int
) -> Iterator[SqliteMessages]:
    """Messages of some topics, topic by topic, each in order of its log times.

    Args:
        path: path of the database.
        end: end of the names of the topics.
        kind: type of the messages.
        largest: size of the largest possible message [bytes].

    Yields:
        Up to GROUP messages of one topic and one size.

    Raises:
        RecordingError: it cannot be read, or is no database of rosbag2.
    """
    try:
        with _opened(path) as file:
            _check_tables(path, file)
            for number, topic in file.execute(_TOPICS, (end, kind)).fetchall():
                wrong = file.execute(_SIZES, (number, largest)).fetchone()
                if wrong is not None:
                    problem = f"row {str(wrong[0])[:20]} of its messages is no telemetry"
                    raise RecordingError(path, problem, _REMEDY)
                rows = file.execute(_MESSAGES, (number,))
                for size, group in groupby((data for (data,) in rows), len):
                    while part := b"".join(islice(group, GROUP)):
                        messages = np.frombuffer(part, np.uint8).reshape(-1, size)
                        yield SqliteMessages(topic, messages)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise RecordingError(path, f"cannot be read ({error})", _REMEDY) from None


def _check_tables(path: Path, file: sqlite3.Connection) -> None:
    """Refuse a database without the tables of rosbag2.

    Views and computed columns are refused too: they can make any amount of data.
    """
    for table, needed in _TABLES.items():
        found = file.execute(_KINDS, (table,))
        plain = [str(sql).upper()[:12] for kind, sql in found if kind == "table"]
        names = set[str]()
        is_computed = False
        for column in file.execute(f"PRAGMA table_xinfo({table})"):
            _number, name, _type, _not_null, _default, _in_key, hidden = column
            names.add(name)
            is_computed |= bool(hidden)
        if plain != ["CREATE TABLE"] or needed - names or is_computed:
            problem = f"has no table '{table}' as bags have it"
            raise RecordingError(path, problem, "name a bag that ROS 2 recorded")


def lacks_its_log(path: Path) -> bool:
    """Whether the write-ahead log of a database, which may hold its last messages, is missing."""
    with open_regular(path) as file:
        version = file.read(_VERSION_PLACE + 1)[_VERSION_PLACE:]
    has_log = path.with_name(f"{path.name}{_WRITE_AHEAD_LOG}").exists()
    return version == bytes([_WRITE_AHEAD]) and not has_log


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; of a copy where sqlite would have to write to the bag.

    What a killed recorder left in a log beside the database belongs to it. To read that,
    sqlite writes into the folder of the bag, which may be read-only, or, after a crash in
    the middle of a change, into the database itself. A bag is never changed by reading
    it: a copy is read then.
    """
    sides = [path.with_name(f"{path.name}{end}") for end in _SIDE_FILES]
    sides = [side for side in sides if side.is_file() and side.stat().st_size]
    with closing(_connected(path)) as file:
        try:
            file.execute(_KINDS, ("messages",)).fetchall()
            is_readable = True
        except sqlite3.OperationalError:
            is_readable = not sides  # without them, the next query shows the problem
        if is_readable:
            yield file
            return
    with tempfile.TemporaryDirectory(prefix="ur_energy-") as folder:
        try:
            for each in (path, *sides):
                shutil.copyfile(each, Path(folder) / each.name)
        except OSError as error:
            problem = f"cannot be copied to {folder} with its log ({error.strerror})"
            raise RecordingError(
                path, problem, "set TMPDIR to a folder with more room"
            ) from None
        with closing(_connected(Path(folder) / path.name, writable=True)) as file:
            yield file


def _connected(path: Path, *, writable: bool = False) -> sqlite3.Connection:
    """A connection with limits for what hostile databases can do."""
    mode = "rw" if writable else "ro"
    file = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True)
    if hasattr(file, "setlimit"):  # Python 3.11
        file.setlimit(_LIMIT_LENGTH, _LARGEST)
    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA temp_store = FILE")
    return file
