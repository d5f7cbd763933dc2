"""HistoryDatabase: the tables of a store in DuckDB, for SQL that only reads them.

Arrow reads the files, whether they are in a folder or on an S3 server; DuckDB sees the tables and
nothing else: it has no access to files, networks, settings or variables of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset

from ur_energy_model.errors import InputError
from ur_energy_model.files import cell_text, new_file
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.typing import Progress, Self

# Period: the days of the history that a question is about, in a time zone, and its shifts.

UTC = ZoneInfo("UTC")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Period:
    """A period of time.

    Attributes:
        start: first instant; None for the begin of the history.
        end: first instant after it; None for the end of the history.
        zone: in which days, hours and shifts begin.
    """

    start: datetime | None = None
    end: datetime | None = None
    zone: ZoneInfo = field(default=UTC)

    @classmethod
    def from_text(
        cls, first: str | None = None, last: str | None = None, zone: str = "UTC"
    ) -> Period:
        """The period that a user gives.

        Args:
            first: ISO 8601 date or time at which it starts.
            last: ISO 8601 date that is its last day, or time at which it ends.
            zone: IANA name; that of dates, and of times without offset.

        Raises:
            InputError: no date, no known zone, or an end that is not after the start.
        """
        where = time_zone(zone)
        start = None if first is None else instant(first, "--from", where)
        end = None if last is None else instant(last, "--to", where, end=True)
        if start is not None and end is not None and start >= end:
            raise InputError("--to", f"{last} is before --from {first}", "exchange them")
        return cls(start, end, where)

    @property
    def days(self) -> tuple[str | None, str | None]:
        """First and last UTC day that it touches, YYYY-MM-DD; None where it is open."""
        first = None if self.start is None else f"{self.start.astimezone(timezone.utc):%Y-%m-%d}"
        if self.end is None:
            return first, None
        last = self.end.astimezone(timezone.utc) - timedelta(microseconds=1)
        return first, f"{last:%Y-%m-%d}"


def time_zone(name: str) -> ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        InputError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(
            "--time-zone", f"{name!r} is not known", "give a name such as Europe/Berlin or UTC"
        ) from None


def shift_starts(text: str) -> tuple[int, ...]:
    """Begins of the shifts of a day, "06:00,14:00,22:00", in minutes since midnight, ascending.

    Raises:
        InputError: no such list.
    """
    found = [_CLOCK.fullmatch(part.strip()) for part in text.split(",")]
    minutes = sorted({60 * int(match[1]) + int(match[2]) for match in found if match})
    if len(minutes) != len(found):
        raise InputError("--shifts", f"{text!r} is no list of times", "give 06:00,14:00,22:00")
    return tuple(minutes)


def instant(text: str, option: str, zone: ZoneInfo = UTC, *, end: bool = False) -> datetime:
    """The time that a date or time names; of a date as an end, the midnight after it.

    Raises:
        InputError: no date; the message names the option.
    """
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            found = datetime.combine(day, time(), zone)
        else:
            found = datetime.fromisoformat(text.replace("Z", "+00:00"))
            found = found if found.tzinfo is not None else found.replace(tzinfo=zone)
        found.astimezone(timezone.utc)
        return found
    except (ValueError, OverflowError):
        raise InputError(
            option, f"{text!r} is no date before 9999", "give YYYY-MM-DD or YYYY-MM-DDTHH:MM"
        ) from None


# Which rows of a table of the history are in a period, for Arrow.


def in_period(table: str, period: Period, arms: tuple[str, ...]) -> pyarrow.compute.Expression:
    """Which rows of a table begin in a period, of some arms (() for all).

    The condition also selects files, so that those of other days and arms are not opened.
    """
    first, last = period.days
    time, day = pyarrow.dataset.field(TABLES[table][0].name), pyarrow.dataset.field("day")
    found = pyarrow.dataset.scalar(True)
    if period.start is not None:
        start = pyarrow.scalar(period.start, pyarrow.timestamp("us", tz="UTC"))
        found = found & (day >= first) & (time >= start)
    if period.end is not None:
        end = pyarrow.scalar(period.end, pyarrow.timestamp("us", tz="UTC"))
        found = found & (day <= last) & (time < end)
    return found & pyarrow.dataset.field("arm").isin(list(arms)) if arms else found


MEMORY_GB = 2.0
"""That DuckDB may use; buffers of Arrow come on top of it."""
BATCH = 10_000
"""Rows of a result that are in memory at a time."""
LOCKED = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET preserve_insertion_order = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""A query that needs more than the memory ends with an error; it does not fill the disk."""
JOINT_SECONDS = """
SELECT arm, day, second, unnest(joints) AS joint, unnest(joint_energy) AS energy,
    unnest(joint_mechanical_energy) AS mechanical_energy,
    unnest(joint_friction_energy) AS friction_energy,
    unnest(joint_copper_energy) AS copper_energy,
    unnest(joint_temperature) AS temperature, source
FROM seconds"""
"""One row per second and joint."""
REGENERATION = """, coalesce(regeneration_energy,
    total_energy - standby_energy - driver_energy - list_sum(joint_energy)) AS regeneration_energy
"""
"""Files of earlier versions lack it: it is what the other parts lack of the total."""


class SqlError(InputError):
    """SQL that cannot be run."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__("SQL", problem, remedy)


@dataclass(frozen=True)
class QueryResult:
    """Rows of a result, read once.

    Attributes:
        schema: names and types of the columns.
        batches: rows, as they are computed.
    """

    schema: pyarrow.Schema
    batches: Iterator[pyarrow.RecordBatch]

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self.batches


class HistoryDatabase:
    """Tables of a store as views `seconds`, `cycles`, `joint_seconds`, ...; a context manager.

    Tables that the store does not have yet are empty. Columns that older files lack are NULL.

    Args:
        store: whose rows are read.
        period: of which the rows are; also the time zone of dates and hours.
        arms: names of the arms of which the rows are; () for all.
        memory_gb: that queries may use.

    Attributes:
        period: as given.
        warnings: what is wrong with the store, see `HistoryStore.holdings`.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(
        self,
        store: HistoryStore,
        period: Period | None = None,
        *,
        arms: tuple[str, ...] = (),
        memory_gb: float = MEMORY_GB,
    ) -> None:
        import duckdb

        self.period = period or Period()
        self._memory_gb = memory_gb
        self._thread = ThreadPoolExecutor(1)
        self._connection = duckdb.connect(":memory:")
        try:
            holdings = store.holdings(*self.period.days, arms)
            self.warnings = holdings.warnings
            for table in TABLES:
                if table == "joint_seconds":  # for other readers; here it is a view of seconds
                    continue
                rows, columns = store.rows(table, holdings), "*"
                if table not in UNDIVIDED:
                    rows = rows.filter(in_period(table, self.period, arms))
                    more = REGENERATION if table == "seconds" else ""
                    columns = f"* REPLACE (CAST(day AS DATE) AS day {more})"
                self._connection.register(f"{table}_files", rows)
                self._connection.execute(
                    f"CREATE VIEW {table} AS SELECT {columns} FROM {table}_files"
                )
            self._connection.execute(f"CREATE VIEW joint_seconds AS {JOINT_SECONDS}")
            self._connection.execute(f"SET TimeZone = '{self.period.zone.key}'")
            self._connection.execute(f"SET memory_limit = '{memory_gb * 1000:.0f}MB'")
            for statement in LOCKED:
                self._connection.execute(statement)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release memory and files."""
        self._thread.shutdown()
        self._connection.close()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a small result by column name.

        Raises:
            SqlError: it is not a single SELECT, fails, or needs more memory than it may have.
        """
        with self.stream(sql) as batches:
            return [row for batch in batches for row in batch.to_pylist()]

    def columns(self, sql: str) -> dict[str, Any]:
        """Columns of a small result as arrays of numpy, by name; dates as datetime64.

        Raises:
            SqlError: as `rows`.
        """
        with self.stream(sql) as batches:
            table = pyarrow.Table.from_batches(batches, batches.schema)
        return {name: table[name].to_numpy() for name in table.column_names}

    @contextmanager
    def stream(self, sql: str) -> Iterator[QueryResult]:
        """Rows of a result of any length, in batches; names of columns are unique.

        Raises:
            SqlError: as `rows`; also while the batches are read.
        """
        with self._problems():
            self._check(sql)
            found = self._connection.sql(sql)
            if found is None:
                raise SqlError("has no result", "ask with SELECT")
            reader = self._wait_for(lambda: found.to_arrow_reader(BATCH))
            schema = with_names(reader.schema, unique(reader.schema.names))
            yield QueryResult(schema, self._batches(reader, schema.names))

    def _batches(
        self, reader: pyarrow.RecordBatchReader, names: list[str]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Batches of a result, as the engine computes them."""
        while True:
            try:
                batch = self._wait_for(reader.read_next_batch)
            except StopIteration:
                return
            yield batch.rename_columns(names)

    def _wait_for(self, work: Callable[[], Any]) -> Any:
        """Result of work of the engine, in a thread: Ctrl-C must be able to end it."""
        try:
            return self._thread.submit(work).result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            raise

    @staticmethod
    def _check(sql: str) -> None:
        """Refuse anything but one question."""
        import duckdb

        if sql != sql.encode(errors="replace").decode():
            raise SqlError("is not UTF-8 text", "repair the query")
        kinds = [statement.type.name for statement in duckdb.extract_statements(sql)]
        if kinds not in (["SELECT"], ["EXPLAIN"]):
            raise SqlError(
                "is not one SELECT statement", "the history can only be read: ask with SELECT"
            )

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """Errors of the engines as one of this package, in one line."""
        import duckdb

        try:
            yield
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None
        except (duckdb.OutOfMemoryException, MemoryError):
            raise SqlError(
                f"needs more than {self._memory_gb:g} GB of memory",
                "sum up in the query, or ask about fewer days or arms",
            ) from None
        except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
            text = str(error).partition("\n\nLINE ")[0].partition("LINE 1:")[0]
            raise SqlError(text.strip().rstrip("!."), "repair the query or the store") from None


def with_names(schema: pyarrow.Schema, names: list[str]) -> pyarrow.Schema:
    """A schema with other names of columns."""
    fields = zip(schema, names, strict=True)
    return pyarrow.schema([field.with_name(name) for field, name in fields])


def unique(names: list[str]) -> list[str]:
    """Names of columns; one that repeats an earlier one has a number behind it."""
    found: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in found:
            candidate, number = f"{name}_{number}", number + 1
        found[candidate] = None
    return list(found)


# Rows of a table of the history as CSV, in order of arm and time, one column per joint value.


def export_csv(
    store: HistoryStore,
    table: str,
    path: Path,
    *,
    period: Period | None = None,
    arms: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> tuple[int, tuple[str, ...]]:
    """Write rows of a table to a CSV file, one arm and day in memory at a time.

    A list of the joints becomes one column per joint that any arm has, `<joint>_energy` for
    `joint_energy`; times are UTC, ISO 8601.

    Returns:
        number of rows, and what is wrong with the store, see `HistoryStore.holdings`.

    Raises:
        StoreError: the store cannot be read.
        OSError: the file cannot be written.
    """
    period = period or Period()
    holdings = store.holdings(*period.days, arms)
    rows, condition = store.rows(table, holdings), in_period(table, period, arms)
    files = list(rows.get_fragments(filter=condition))
    joints = _joints(files, rows.schema)
    count = 0
    with new_file(path, "wb") as out:
        empty = _flat(rows.schema.empty_table(), joints)
        with pyarrow.csv.CSVWriter(out, empty.schema) as writer:
            for done, group in _by_arm_and_day(files):
                parts = [file.to_table(schema=rows.schema, filter=condition) for file in group]
                part = pyarrow.concat_tables(parts).sort_by(TABLES[table][0].name)
                writer.write_table(_flat(part, joints))
                count += len(part)
                if progress is not None:
                    progress(done, f"{count} rows")
    return count, holdings.warnings


def _by_arm_and_day(
    files: list[pyarrow.dataset.Fragment],
) -> Iterator[tuple[float, list[pyarrow.dataset.Fragment]]]:
    """Files of the same arm and day, in this order, and the share that is done by then."""
    from pyarrow.dataset import get_partition_keys

    def key(file: pyarrow.dataset.Fragment) -> tuple[str, str]:
        keys = get_partition_keys(file.partition_expression)
        return str(keys.get("arm", "")), str(keys.get("day", ""))

    done = 0
    for _, group in groupby(sorted(files, key=key), key):
        found = list(group)
        done += len(found)
        yield done / len(files), found


def _joints(files: list[pyarrow.dataset.Fragment], schema: pyarrow.Schema) -> tuple[str, ...]:
    """Names of the joints of all arms, in the order of the arms' lists."""
    names: dict[str, None] = {}
    for file in files:
        first = file.scanner(schema=schema, columns=["joints"]).head(1)
        names.update(dict.fromkeys(name for row in first["joints"].to_pylist() for name in row))
    return tuple(names)


def _flat(rows: pyarrow.Table, joints: tuple[str, ...]) -> pyarrow.Table:
    """Lists as one column per joint, arm and day first, times as ISO 8601 text."""
    rows = rows.combine_chunks()
    places = _places(rows["joints"], joints)
    columns: dict[str, pyarrow.ChunkedArray] = {}
    for name in ("arm", "day", *(n for n in rows.schema.names if n not in ("arm", "day"))):
        values, kind = rows[name], rows.schema.field(name).type
        if name == "joints":
            continue
        if pyarrow.types.is_list(kind):
            flat = pyarrow.compute.list_flatten(values)
            complete = (
                len(flat)
                == pyarrow.compute.sum(pyarrow.compute.list_value_length(rows["joints"])).as_py()
            )
            for joint in joints:
                of_joint = (
                    flat.take(places[joint]) if complete else pyarrow.nulls(len(rows), flat.type)
                )
                columns[f"{joint}_{name.removeprefix('joint_')}"] = of_joint
        elif pyarrow.types.is_timestamp(kind):
            columns[name] = pyarrow.compute.strftime(values, format="%Y-%m-%dT%H:%M:%SZ")
        else:
            columns[name] = values
    for name, column in columns.items():
        if pyarrow.types.is_string(column.type):
            columns[name] = pyarrow.compute.if_else(
                pyarrow.compute.match_substring_regex(column, r"^[=+\-@\t\r\n]"),
                pyarrow.compute.binary_join_element_wise("'", column, ""),
                column,
            )
    return pyarrow.table({cell_text(name): column for name, column in columns.items()})


def _places(lists: pyarrow.ChunkedArray, joints: tuple[str, ...]) -> dict[str, pyarrow.Array]:
    """Where the value of each joint is in the flat values, per row; null where there is none.

    Args:
        lists: names of the joints per row.
        joints: those of all arms.
    """
    names, parents = pyarrow.compute.list_flatten(lists), pyarrow.compute.list_parent_indices(lists)
    rows, flat = pyarrow.array(np.arange(len(lists))), pyarrow.array(np.arange(len(names)))
    found = {}
    for joint in joints:
        here = pyarrow.compute.equal(names, joint)
        found[joint] = flat.filter(here).take(pyarrow.compute.index_in(rows, parents.filter(here)))
    return found
