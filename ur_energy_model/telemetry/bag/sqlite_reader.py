"""Telemetry messages of bags with sqlite3 storage, hostile ones too, in bounded memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.message_decoder import MAX_MESSAGE
from ur_energy_model.telemetry.bag.message_types import DYNAMIC_JOINT_STATE
from ur_energy_model.typing import Bytes

_GROUP = 1000
"""Messages of one size that are decoded together."""
_LARGEST = 1 << 30
"""Largest text or value that sqlite may build [bytes]; telemetry is checked before it is read."""
_LIMIT_LENGTH = 0
"""Number of that limit in sqlite's interface; Python names it from 3.11 on."""
_REMEDY = "convert the bag to MCAP storage"
_TABLES = {"topics": {"id", "name", "type"}, "messages": {"topic_id", "timestamp", "data"}}
_TOPICS = "SELECT id, name FROM topics WHERE substr(name, -length(?1)) = ?1 AND type = ?2"
_SIZES = (
    "SELECT rowid FROM messages WHERE topic_id = ? AND (typeof(data) != 'blob' OR length(data) > ?)"
)
_MESSAGES = "SELECT data FROM messages WHERE topic_id = ? ORDER BY timestamp, rowid"


def sqlite_messages(files: Sequence[Path]) -> Iterator[tuple[str, Bytes]]:
    """Telemetry messages in order, as arrays [n, size] of equal size, with the name of the topic.

    Args:
        files: of the bag, in order.

    Raises:
        RecordingError: a file cannot be read, is no bag, or has rows that are no messages.
    """
    for path in files:
        yield from _file_messages(path)


def _file_messages(path: Path) -> Iterator[tuple[str, Bytes]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            yield from _messages(path, file)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise RecordingError(path, f"cannot be read ({error})", _REMEDY) from None


def _messages(path: Path, file: sqlite3.Connection) -> Iterator[tuple[str, Bytes]]:
    _check_tables(path, file)
    found = file.execute(_TOPICS, (TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name)).fetchall()
    for number, topic in found:
        wrong = file.execute(_SIZES, (number, MAX_MESSAGE)).fetchone()
        if wrong is not None:
            problem = f"row {str(wrong[0])[:20]} of its messages is no telemetry"
            raise RecordingError(path, problem, _REMEDY)
        group: list[bytes] = []
        for (data,) in file.execute(_MESSAGES, (number,)):
            if group and (len(data) != len(group[0]) or len(group) == _GROUP):
                yield topic, _stack(group)
                group = []
            group.append(data)
        if group:
            yield topic, _stack(group)


def _check_tables(path: Path, file: sqlite3.Connection) -> None:
    """Accept only plain tables: views and computed columns can make any amount of data."""
    if hasattr(file, "setlimit"):  # Python 3.11
        file.setlimit(_LIMIT_LENGTH, _LARGEST)
    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA temp_store = FILE")
    for table, needed in _TABLES.items():
        kinds = file.execute(
            "SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchall()
        plain = len(kinds) == 1 and kinds[0][0] == "table"
        plain = plain and str(kinds[0][1]).upper().startswith("CREATE TABLE")
        columns = file.execute(f"PRAGMA table_xinfo({table})").fetchall() if plain else []
        names = {column[1] for column in columns}
        if not needed <= names or any(column[6] for column in columns):
            raise RecordingError(
                path, f"has no table '{table}' as bags have it", "name a bag that ROS 2 recorded"
            )


def _stack(group: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(group), np.uint8).reshape(len(group), -1)
