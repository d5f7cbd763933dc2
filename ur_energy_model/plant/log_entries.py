# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Entries of the logs: files that count, as rows of a table (`FILES`) and as actions of Delta Lake.

An entry is believed if the path of the file has the form of the store's own paths. Table,
day, arm and checksum are taken from the path, all else from the entry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from ur_energy_model.plant.schema import TABLES, UNDIVIDED, arrow_schema
from ur_energy_model.plant.sources import ranges_from
from ur_energy_model.plant.store_files import OWN_PATHS, StoredFile

STORE = "_store"
"""Folder of the store's log; Delta Lake leaves out names that begin with an
underscore."""
MOST_RANGES = 200
"""Stretches of the time that a file covers, up to which an entry of a log states them."""
_INSTANT = pa.timestamp("us", tz="UTC")
_STORE_SCHEMA = pa.schema(
    [
        ("arm", pa.string()),
        ("source", pa.string()),
        ("time", _INSTANT),
        ("covered", pa.string()),
        ("table", pa.string()),
        ("day", pa.string()),
        ("lost", pa.string()),
    ]
)
"""Columns of the log of the store. They only have statistics about files: no file of the store
has these columns."""
FILES = pa.schema(
    [
        ("path", pa.string()),
        ("table", pa.string()),
        ("day", pa.string()),
        ("arm", pa.string()),
        ("crc32", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("first_source", pa.string()),
        ("last_source", pa.string()),
        ("start", pa.int64()),  # of the first and the last row [us]
        ("end", pa.int64()),
        ("covered", pa.string()),
        ("lost", pa.bool_()),
        ("written", pa.int64()),  # when the file was first named [ms]
    ]
)
"""Table of the files that a log names, a row each, see `StoredFile`."""


def delta_schema(table: str) -> pa.Schema:
    """Schema of a table as its log has it: with arm and day, and every column nullable."""
    columns = [column.with_nullable(True) for column in arrow_schema(table)]
    if table not in UNDIVIDED:
        columns = [pa.field("arm", pa.string()), *columns, pa.field("day", pa.date32())]
    return pa.schema(columns)


def partitions(name: str) -> list[str] | None:
    """Columns by which a log is divided; None for a log that is not divided.

    Args:
        name: name of a table, or STORE.
    """
    if name == STORE:
        return ["table", "day", "lost"]
    return None if name in UNDIVIDED else ["day"]


def log_schema(name: str) -> pa.Schema:
    """Schema of a log, by the name of its table or STORE."""
    return _STORE_SCHEMA if name == STORE else delta_schema(name)


# Files as rows of FILES.


def stored_files(files: pa.Table) -> list[StoredFile]:
    """Files from rows of `FILES`; ranges of time that make no sense count as unknown."""
    found = []
    for row in files.to_pylist():
        times = None
        if row["start"] is not None and row["end"] is not None:
            times = (row["start"] * 1000, row["end"] * 1000)
        covered = None
        if row["covered"] is not None:
            with suppress(ValueError, TypeError):
                covered = ranges_from(json.loads(row["covered"]))
        written = None
        if row["written"] is not None:
            written = row["written"] * 10**6
        file = StoredFile(
            path=row["path"],
            size=row["size"],
            crc32=int(row["crc32"], 16),
            rows=row["rows"],
            day=row["day"],
            arm=row["arm"],
            sources=(row["first_source"] or "", row["last_source"] or ""),
            times=times,
            covered=covered,
            lost=row["lost"],
            written=written,
        )
        found.append(file)
    return found


def named(files: pa.Table) -> dict[str, tuple[int | None, bool]]:
    """Size [bytes] and whether it is lost, of each file of rows of `FILES`, by path."""
    paths = files["path"].to_pylist()
    sizes = files["size"].to_pylist()
    lost = files["lost"].to_pylist()
    return dict(zip(paths, zip(sizes, lost, strict=True), strict=True))


def files_of_log(name: str, actions: pa.Table) -> pa.Table:
    """Files that a log names, as far as their paths are the store's own.

    Args:
        name: name of the log: a table, or STORE.
        actions: what Delta Lake gives of the files that count, with flat columns; a
            column may be missing where no file has a value of it.

    Returns:
        Rows of `FILES`, in the order of the actions.
    """
    source = _source_column(name)
    instant = "time" if name == STORE else TABLES[name][0].name

    def column(heading: str, kind: pa.DataType) -> pa.ChunkedArray:
        """A column of the actions; nulls if it is missing, or of another kind."""
        if heading in actions.schema.names:
            with suppress(pa.ArrowException):
                return actions[heading].cast(kind)
        return pa.chunked_array([pa.nulls(len(actions), kind)])

    def times(heading: str) -> pa.ChunkedArray:
        """A column of times as microseconds since 1970; texts are not believed."""
        if heading in actions.schema.names and pa.types.is_string(actions[heading].type):
            return pa.chunked_array([pa.nulls(len(actions), pa.int64())])
        return column(heading, _INSTANT).cast(pa.int64())

    path = column("path", pa.string())
    if name != STORE:
        path = pc.binary_join_element_wise(f"{name}/", path, "")
    from_path = pa.nulls(len(actions), pa.string())  # `checked` fills these columns
    lost = pc.equal(column("partition.lost", pa.string()), "true")
    found = {
        "path": path,
        "table": from_path,
        "day": from_path,
        "arm": from_path,
        "crc32": from_path,
        "size": column("size_bytes", pa.int64()),
        "rows": column("num_records", pa.int64()),
        "first_source": column(f"min.{source}", pa.string()),
        "last_source": column(f"max.{source}", pa.string()),
        "start": times(f"min.{instant}"),
        "end": times(f"max.{instant}"),
        "covered": column("min.covered", pa.string()),
        "lost": pc.fill_null(lost, False),
        "written": column("modification_time", pa.int64()),
    }
    return checked(pa.table(found, schema=FILES))


def _source_column(name: str) -> str:
    """Column of a table or of STORE whose first and last value a log states of each file."""
    return "model" if name == "models" else "source"


def checked(files: pa.Table) -> pa.Table:
    """Files whose paths are the store's own, with table, day, arm and checksum of the path.

    Args:
        files: rows of `FILES`.
    """
    path = files["path"].combine_chunks()
    stated = [pc.extract_regex(path, pattern) for pattern in OWN_PATHS]
    for name in ("table", "day", "arm", "crc32"):
        having = [groups for groups in stated if groups.type.get_field_index(name) >= 0]
        values = pc.coalesce(*(pc.struct_field(groups, name) for groups in having))
        files = files.set_column(files.schema.get_field_index(name), name, values)
    days = files["day"].unique().to_pylist()
    good_days = [day for day in days if day is None or _is_day(day)]
    has_good_day = pc.is_in(
        files["day"], pa.array(good_days, pa.string()), skip_nulls=False
    )
    return files.filter(pc.and_(pc.is_valid(files["table"]), has_good_day))


def _is_day(text: str) -> bool:
    """Whether a text is a date of the calendar, YYYY-MM-DD."""
    with suppress(ValueError):
        return datetime.strptime(text, "%Y-%m-%d").year >= 1
    return False


def row_of(table: str, path: str, add: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `FILES` from an action of a damaged log.

    Args:
        table: table whose log it is, or STORE.
        path: path in the store.
        add: the action: what Delta Lake has written of a file.

    Raises:
        TypeError, KeyError, ValueError, AttributeError: the action does not name a file.
    """
    stats = json.loads(add.get("stats") or "{}")
    low = stats.get("minValues", {})
    high = stats.get("maxValues", {})
    source = _source_column(table)
    instant = TABLES[table][0].name
    return {
        "path": path,
        "size": int(add["size"]),
        "rows": stats.get("numRecords"),
        "first_source": low.get(source),
        "last_source": high.get(source),
        "start": _microseconds(low.get(instant)),
        "end": _microseconds(high.get(instant)),
        "lost": False,
        "written": add.get("modificationTime"),
    }


def _microseconds(text: Any) -> int | None:
    """A time in ISO 8601 as microseconds since 1970; None if it is no such time."""
    with suppress(ValueError, AttributeError):
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return round(moment.astimezone(timezone.utc).timestamp() * 1e6)
    return None


def without_replaced(files: Sequence[StoredFile]) -> list[str]:
    """Paths of files, without those that a file of the same live writer has replaced.

    Args:
        files: files that are left in a damaged log.
    """
    replaced = set()
    for file in files:
        if file.live and any(_replaces(other, file) for other in files):
            replaced.add(file.path)
    return [file.path for file in files if file.path not in replaced]


def _replaces(other: StoredFile, file: StoredFile) -> bool:
    """Whether a file has more rows over a time that contains the time of another file.

    Both have rows of one writer, arm and day.
    """
    of_file = (file.sources, file.arm, file.day)
    if (other.sources, other.arm, other.day) != of_file:
        return False
    if other.times is None or file.times is None:
        return False
    contains = other.times[0] <= file.times[0] and file.times[1] <= other.times[1]
    return contains and (other.rows or 0) > (file.rows or 0)


# Actions of the logs.


def _instant_text(nanoseconds: int) -> str:
    """A time [ns since 1970] as ISO 8601 in UTC with microseconds, as Delta Lake writes it."""
    moment = datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)
    moment = moment.replace(microsecond=nanoseconds // 1000 % 10**6)
    return moment.isoformat().replace("+00:00", "Z")


def _instant_texts(times: tuple[int, int]) -> tuple[str, str]:
    """First and last time [ns since 1970] as texts."""
    first, last = times
    return _instant_text(first), _instant_text(last)


def _add_action(
    path: str,
    file: StoredFile,
    partition: dict[str, str | None],
    names: Mapping[str, Any],
) -> AddAction:
    """An action that adds a file to a log.

    Args:
        path: path of the file, as the log names it.
        file: what is added.
        partition: values of the columns by which the log is divided.
        names: first and last value of other columns, by which readers select files.
    """
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    for column, (first, last) in names.items():
        if first not in (None, ""):
            lowest[column] = first
        if last not in (None, ""):
            highest[column] = last
    stats = {"numRecords": file.rows, "minValues": lowest, "maxValues": highest}
    written = time.time_ns() if file.written is None else file.written
    milliseconds = written // 10**6
    return AddAction(
        path, file.size or 0, partition, milliseconds, True, json.dumps(stats)
    )


def store_partition(file: StoredFile) -> dict[str, str | None]:
    """Values of the columns by which the log of the store is divided."""
    return {
        "table": file.table,
        "day": file.day,
        "lost": "true" if file.lost else "false",
    }


def store_action(file: StoredFile) -> AddAction:
    """An action that names a file in the log of the store."""
    covered = None
    if file.covered is not None and len(file.covered.edges) <= MOST_RANGES:
        covered = json.dumps(file.covered.pairs())
    names = {
        "arm": (file.arm, file.arm),
        "source": file.sources,
        "covered": (covered, None),
    }
    if file.times is not None:
        names["time"] = _instant_texts(file.times)
    return _add_action(file.path, file, store_partition(file), names)


def table_action(file: StoredFile) -> AddAction:
    """An action that names a file in the log of its table."""
    names: dict[str, Any] = {_source_column(file.table): file.sources}
    if file.arm is not None:
        names["arm"] = (file.arm, file.arm)
    if file.times is not None:
        instant = TABLES[file.table][0].name
        names[instant] = _instant_texts(file.times)
    partition: dict[str, str | None] = {"day": file.day} if file.day else {}
    return _add_action(file.inside, file, partition, names)
