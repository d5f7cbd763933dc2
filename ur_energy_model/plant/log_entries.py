# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Entries of the logs: files that count, as rows of a table (`FILES`) and as actions of Delta Lake.

What a log states of a file is believed as far as its path is one of the store's own;
table, day, arm and checksum are those in the path.
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
"""Folder of the store's log; Delta Lake leaves out names that begin with an underscore."""
MOST_RANGES = 200  # of the time that a file covers, in a log
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
"""Of the log of the store: columns of statistics about files, which are not a table."""
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
"""Files that a log names, see `StoredFile`."""


def delta_schema(table: str) -> pa.Schema:
    """Schema of a table as its log has it: with arm and day, and every column nullable."""
    columns = [column.with_nullable(True) for column in arrow_schema(table)]
    if table not in UNDIVIDED:
        columns = [pa.field("arm", pa.string()), *columns, pa.field("day", pa.date32())]
    return pa.schema(columns)


def partitions(name: str) -> list[str] | None:
    """Columns by which a log is divided."""
    if name == STORE:
        return ["table", "day", "lost"]
    return None if name in UNDIVIDED else ["day"]


def log_schema(name: str) -> pa.Schema:
    """Schema of a log."""
    return _STORE_SCHEMA if name == STORE else delta_schema(name)


# Files as rows of FILES.


def stored_files(files: pa.Table) -> list[StoredFile]:
    """From rows of FILES."""
    found = []
    for row in files.to_pylist():
        known = row["start"] is not None and row["end"] is not None
        covered = None
        with suppress(ValueError, TypeError):
            covered = (
                None
                if row["covered"] is None
                else ranges_from(json.loads(row["covered"]))
            )
        found.append(
            StoredFile(
                path=row["path"],
                size=row["size"],
                crc32=int(row["crc32"], 16),
                rows=row["rows"],
                day=row["day"],
                arm=row["arm"],
                sources=(row["first_source"] or "", row["last_source"] or ""),
                times=(row["start"] * 1000, row["end"] * 1000) if known else None,
                covered=covered,
                lost=row["lost"],
                written=None if row["written"] is None else row["written"] * 10**6,
            )
        )
    return found


def named(files: pa.Table) -> dict[str, tuple[int | None, bool]]:
    """Size and loss of files by path."""
    columns = (files[name].to_pylist() for name in ("path", "size", "lost"))
    return {path: (size, lost) for path, size, lost in zip(*columns, strict=True)}


def files_of_log(name: str, actions: pa.Table) -> pa.Table:
    """Files that a log names, those of the store's own.

    Args:
        name: of the log: a table, or STORE.
        actions: what Delta Lake gives of the files that count, with flat columns; a
            column may be missing where no file has a value of it.

    Returns:
        Rows of `FILES`, in the order of the actions.
    """
    store = name == STORE
    source = "model" if name == "models" else "source"
    instant = "time" if store else TABLES[name][0].name

    def column(*names: str, kind: pa.DataType) -> pa.ChunkedArray:
        for each in names:
            if each in actions.schema.names:
                with suppress(pa.ArrowException):
                    return actions[each].cast(kind)
        return pa.chunked_array([pa.nulls(len(actions), kind)])

    def times(end: str) -> pa.ChunkedArray:
        found = f"{end}.{instant}"
        if found not in actions.schema.names or pa.types.is_string(actions[found].type):
            return pa.chunked_array([pa.nulls(len(actions), pa.int64())])
        return column(found, kind=_INSTANT).cast(pa.int64())

    path = column("path", kind=pa.string())
    if not store:
        path = pc.binary_join_element_wise(f"{name}/", path, "")
    empty = pa.nulls(len(actions), pa.string())
    found = {
        "path": path,
        **dict.fromkeys(("table", "day", "arm", "crc32"), empty),
        "size": column("size_bytes", kind=pa.int64()),
        "rows": column("num_records", kind=pa.int64()),
        "first_source": column(f"min.{source}", kind=pa.string()),
        "last_source": column(f"max.{source}", kind=pa.string()),
        "start": times("min"),
        "end": times("max"),
        "covered": column("min.covered", kind=pa.string()),
        "lost": pc.fill_null(
            pc.equal(column("partition.lost", kind=pa.string()), "true"), False
        ),
        "written": column("modification_time", kind=pa.int64()),
    }
    return checked(pa.table(found, schema=FILES))


def checked(files: pa.Table) -> pa.Table:
    """Those files whose paths are of the store's own, with what the paths state."""
    path = files["path"].combine_chunks()
    stated = [pc.extract_regex(path, pattern) for pattern in OWN_PATHS]

    def of(name: str) -> pa.Array:
        columns = [
            pc.struct_field(each, name)
            for each in stated
            if each.type.get_field_index(name) >= 0
        ]
        return pc.coalesce(*columns)

    for name in ("table", "day", "arm", "crc32"):
        files = files.set_column(files.schema.get_field_index(name), name, of(name))
    days = [
        day for day in files["day"].unique().to_pylist() if day is None or _is_day(day)
    ]
    known = pc.and_(
        pc.is_valid(files["table"]),
        pc.is_in(files["day"], pa.array(days, pa.string()), skip_nulls=False),
    )
    return files.filter(known)


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return datetime.strptime(text, "%Y-%m-%d").year >= 1
    return False


def row_of(table: str, path: str, add: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `FILES` from an action of a damaged log.

    Args:
        table: that the log is of.
        path: in the store.
        add: the action: what Delta Lake has written of a file.

    Raises:
        TypeError: it is no such action; as well KeyError, ValueError and AttributeError.
    """
    stats = json.loads(add.get("stats") or "{}")
    low = stats.get("minValues", {})
    high = stats.get("maxValues", {})
    name = "model" if table == "models" else "source"
    instant = TABLES[table][0].name
    times: list[int | None] = [None, None]
    for k, ends in enumerate((low, high)):
        with suppress(KeyError, ValueError, AttributeError):
            moment = datetime.fromisoformat(ends[instant].replace("Z", "+00:00"))
            times[k] = round(moment.astimezone(timezone.utc).timestamp() * 1e6)
    return {
        "path": path,
        "size": int(add["size"]),
        "rows": stats.get("numRecords"),
        "first_source": low.get(name),
        "last_source": high.get(name),
        "start": times[0],
        "end": times[1],
        "lost": False,
        "written": add.get("modificationTime"),
    }


def without_replaced(files: Sequence[StoredFile]) -> list[str]:
    """Paths of files, without those that a file of the same live writer has replaced.

    Args:
        files: that are left in a damaged log. A file is replaced if another one of its
            writer, arm and day has more rows over a time that contains its own.
    """
    kept = []
    for file in files:
        replaced = file.live and any(
            other is not file
            and other.sources == file.sources
            and (other.arm, other.day) == (file.arm, file.day)
            and other.times is not None
            and file.times is not None
            and other.times[0] <= file.times[0]
            and file.times[1] <= other.times[1]
            and (other.rows or 0) > (file.rows or 0)
            for other in files
        )
        if not replaced:
            kept.append(file.path)
    return kept


# Actions of the logs.


def _instant_text(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)
    moment = moment.replace(microsecond=nanoseconds // 1000 % 10**6)
    return moment.isoformat().replace("+00:00", "Z")


def _add_action(
    path: str,
    file: StoredFile,
    partition: dict[str, str | None],
    names: Mapping[str, Any],
) -> AddAction:
    """An action that adds a file to a log.

    Args:
        path: as the log names it.
        file: what is added.
        partition: values of the columns by which the log is divided.
        names: first and last value of other columns, by which readers select files.
    """
    ends: list[dict[str, Any]] = [{}, {}]
    for column, values in names.items():
        for end, value in zip(ends, values, strict=True):
            if value not in (None, ""):
                end[column] = value
    stats = {"numRecords": file.rows, "minValues": ends[0], "maxValues": ends[1]}
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
        "time": [None, None]
        if file.times is None
        else list(map(_instant_text, file.times)),
        "covered": (covered, None),
    }
    return _add_action(file.path, file, store_partition(file), names)


def table_action(file: StoredFile) -> AddAction:
    """An action that names a file in the log of its table."""
    name = "model" if file.table == "models" else "source"
    instant = TABLES[file.table][0].name
    names: dict[str, Any] = {name: file.sources}
    if file.arm is not None:
        names["arm"] = (file.arm, file.arm)
    if file.times is not None:
        names[instant] = list(map(_instant_text, file.times))
    partition: dict[str, str | None] = {"day": file.day} if file.day else {}
    return _add_action(file.inside, file, partition, names)
