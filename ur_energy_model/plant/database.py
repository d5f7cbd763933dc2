# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""HistoryDatabase: the tables of a store in DuckDB, for SQL that only reads them.

Arrow reads the files, whether they are in a folder or on an S3 server. DuckDB has access
to the tables and nothing else: neither to files, networks and settings, nor to variables
of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from ur_energy_model.energy.calendar import time_zone
from ur_energy_model.errors import InputError
from ur_energy_model.files import cell_text, new_file
from ur_energy_model.plant.holdings import Holdings
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.typing import ClosedOnExit, Progress

# Period: the days of the history that a question is about, in a time zone, and its
# shifts.

UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class Period:
    """A period of time that a question is about.

    Attributes:
        start: first instant; None if it is open.
        end: first instant after the period; None if it is open.
        zone: time zone in which days, hours and shifts begin.
    """

    start: datetime | None = None
    end: datetime | None = None
    zone: ZoneInfo = field(default=UTC)

    @classmethod
    def from_text(
        cls, first: str | None = None, last: str | None = None, zone: str = "UTC"
    ) -> Period:
        """The period between two dates or times that a user gives.

        Args:
            first: ISO 8601 date or time; None for an open begin.
            last: ISO 8601 date, which is included, or time; None for an open end.
            zone: IANA name of the time zone of times without one.

        Raises:
            InputError: no date, no known zone, or an end before the start.
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
        first = None
        if self.start is not None:
            first = f"{self.start.astimezone(timezone.utc):%Y-%m-%d}"
        last = None
        if self.end is not None:
            last_instant = self.end.astimezone(timezone.utc) - timedelta(microseconds=1)
            last = f"{last_instant:%Y-%m-%d}"
        return first, last


def instant(
    text: str, option: str, zone: ZoneInfo = UTC, *, end: bool = False
) -> datetime:
    """The time that a date or time names.

    Args:
        text: ISO 8601 date or time.
        option: option whose value the text is, for the error.
        zone: zone of a text without a zone.
        end: whether a date stands for the midnight after it, not for its begin.

    Raises:
        InputError: the text is no date.
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
        remedy = "give YYYY-MM-DD or YYYY-MM-DDTHH:MM"
        raise InputError(option, f"{text!r} is no date before 9999", remedy) from None


MEMORY_GB = 2.0  # memory that DuckDB may use, beside the buffers of Arrow [GB]
BATCH = 2_048
"""Rows of a result that are in memory at a time; DuckDB computes as many at once."""
LOCKED = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET preserve_insertion_order = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Settings of the connection. A query that needs more than the memory ends with an error, as
there is no directory for temporary files."""
_LISTS = [
    column.name
    for column in TABLES["joint_seconds"]
    if column.name not in ("second", "joint", "source")
]
"""Columns of joint_seconds that are lists of `seconds`, without their prefix "joint_"."""
_JOINT_SECONDS = ", ".join(
    ["unnest(joints) AS joint", *(f"unnest(joint_{name}) AS {name}" for name in _LISTS)]
)


class SqlError(InputError):
    """SQL that cannot be run.

    Args:
        problem: what is wrong with the statement.
        remedy: what the user can do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__("SQL", problem, remedy)


class TooLargeError(SqlError):
    """SQL that needs more memory than it may have.

    Args:
        memory_gb: memory that a statement may have [GB].
    """

    def __init__(self, memory_gb: float) -> None:
        remedy = "sum up in the query, or query fewer days or arms"
        super().__init__(f"needs more than {memory_gb:g} GB of memory", remedy)


class QueryResult(NamedTuple):
    """Rows of a result.

    Attributes:
        schema: schema of the rows; names of columns are unique.
        batches: batches of rows, which are read once as they are computed.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class HistoryDatabase(ClosedOnExit):
    """Tables of a store as views `seconds`, `cycles`, `joint_seconds`, ...; a context manager.

    Tables that the store does not have yet are empty.

    Args:
        store: store whose tables are read.
        period: time of the rows; dates and hours are in its zone. None for all, in UTC.
        arms: names of the arms of the rows; () for all.
        memory_gb: memory that DuckDB may use [GB].
        threads: threads that DuckDB may use; None for one per core.

    Attributes:
        period: time of the rows.
        holdings: files that the rows are read from, and what is lost.

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
        threads: int | None = None,
    ) -> None:
        self.period = period or Period()
        self._memory_gb = memory_gb
        self._thread = ThreadPoolExecutor(1)
        self._connection = duckdb.connect(":memory:")
        try:
            first, last = self.period.days
            self.holdings = store.holdings(first, last, arms)
            for table in TABLES.keys() - {"joint_seconds"}:
                rows = store.rows(table, self.holdings)
                columns = "*"
                if table not in UNDIVIDED:
                    rows = self._selected(table, rows, arms)
                    columns = "* REPLACE (CAST(day AS DATE) AS day)"
                self._connection.register(f"{table}_files", rows)
                self._connection.execute(
                    f"CREATE VIEW {table} AS SELECT {columns} FROM {table}_files"
                )
            self._connection.execute(
                "CREATE VIEW joint_seconds AS "
                f"SELECT arm, day, second, {_JOINT_SECONDS}, source FROM seconds"
            )
            self._connection.execute(f"SET TimeZone = '{self.period.zone.key}'")
            self._connection.execute(f"SET memory_limit = '{memory_gb * 1000:.0f}MB'")
            if threads is not None:
                self._connection.execute(f"SET threads = {threads}")
            for statement in LOCKED:
                self._connection.execute(statement)
        except BaseException:
            self.close()
            raise

    def _selected(
        self, table: str, rows: ds.Dataset, arms: tuple[str, ...]
    ) -> ds.Dataset:
        """Rows of the period and of some arms.

        The conditions on day and arm also select files: files of other days and arms stay
        closed.

        Args:
            table: name of a table that is divided by day and arm.
            rows: rows of the table.
            arms: names of the arms; () for all.
        """
        first, last = self.period.days
        time = ds.field(TABLES[table][0].name)
        day = ds.field("day")
        instants = pa.timestamp("us", tz="UTC")
        if self.period.start is not None:
            start = pa.scalar(self.period.start, instants)
            rows = rows.filter((day >= first) & (time >= start))
        if self.period.end is not None:
            end = pa.scalar(self.period.end, instants)
            rows = rows.filter((day <= last) & (time < end))
        if arms:
            rows = rows.filter(ds.field("arm").isin(list(arms)))
        return rows

    def close(self) -> None:
        """Release memory and files."""
        self._thread.shutdown()
        self._connection.close()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a small result: values by name of the column, NULL as None.

        Raises:
            SqlError: the statement is not a single SELECT, fails, or needs more memory
                than it may have.
        """
        with self.stream(sql) as result:
            return [row for batch in result.batches for row in batch.to_pylist()]

    def columns(self, sql: str) -> dict[str, Any]:
        """Columns of a small result as arrays [rows], by name; NULL is NaN in columns of numbers.

        Raises:
            SqlError: raised as by `rows`.
        """
        with self.stream(sql) as result:
            table = pa.Table.from_batches(result.batches, result.schema)
        return {name: table[name].to_numpy() for name in table.column_names}

    @contextmanager
    def stream(self, sql: str) -> Iterator[QueryResult]:
        """Rows of a result of any length, in batches, for a `with` statement.

        Args:
            sql: one SELECT or EXPLAIN statement.

        Raises:
            SqlError: raised as by `rows`; also while the batches are read.
        """
        try:
            if sql != sql.encode(errors="replace").decode():
                raise SqlError("is not UTF-8 text", "repair the query")
            kinds = [statement.type.name for statement in duckdb.extract_statements(sql)]
            if kinds not in (["SELECT"], ["EXPLAIN"]):
                remedy = "the history can only be read: query with SELECT"
                raise SqlError("is not one SELECT statement", remedy)
            found = self._connection.sql(sql)
            if found is None:
                raise SqlError("has no result", "query with SELECT")
            reader = self._wait_for(lambda: found.to_arrow_reader(BATCH))
            names = unique(reader.schema.names)
            batches = iter(lambda: self._wait_for(lambda: next(reader, None)), None)
            schema = pa.schema(map(pa.Field.with_name, reader.schema, names))
            yield QueryResult(schema, (batch.rename_columns(names) for batch in batches))
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None
        except (duckdb.OutOfMemoryException, MemoryError):
            raise TooLargeError(self._memory_gb) from None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            text = str(error).partition("\n\nLINE ")[0].partition("LINE 1:")[0]
            raise SqlError(
                text.strip().rstrip("!."), "repair the query or the store"
            ) from None

    def _wait_for(self, work: Callable[[], Any]) -> Any:
        """Result of work of DuckDB, in a thread, so that Ctrl-C can interrupt it."""
        try:
            return self._thread.submit(work).result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            raise


def unique(names: list[str]) -> list[str]:
    """Names of columns; a name that repeats an earlier one gets a number behind it."""
    found: list[str] = []
    for name in names:
        candidate = name
        number = 1
        while candidate in found:
            candidate = f"{name}_{number}"
            number = number + 1
        found.append(candidate)
    return found


def _no_formula(name: str) -> str:
    """SQL of a column of texts, with a quote before texts that spreadsheets take for formulas."""
    formula = f"regexp_matches({name}, '^[=+\\-@\\t\\r\\n]')"
    return f"if({formula}, '''' || {name}, {name})"


def export_csv(
    store: HistoryStore,
    table: str,
    path: Path,
    *,
    period: Period | None = None,
    arms: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> tuple[int, Holdings]:
    """Write rows of a table to a CSV file in order of arm and time, a day in memory at a time.

    A list of the joints becomes one column per joint that any arm has, `<joint>_energy`
    for `joint_energy`; times are UTC, ISO 8601.

    Args:
        store: store whose rows are written.
        table: name of a table with joints.
        path: path of the file.
        period: time of the rows; None for all.
        arms: names of the arms of the rows; () for all.
        progress: called with the share that is done, and a text.

    Returns:
        Number of rows, and what the store holds.

    Raises:
        StoreError: the store cannot be read.
        SqlError: the store cannot be read, or needs more memory than it may have.
        OSError: the file cannot be written.
    """
    time = TABLES[table][0].name
    count = 0
    with (
        HistoryDatabase(store, period, arms=arms) as database,
        new_file(path, "wb") as out,
    ):
        lists = database.rows(
            f"SELECT joints FROM {table} GROUP BY 1 ORDER BY min(arm), 1"
        )
        joints: dict[str, None] = {}  # names in order, each once
        for row in lists:
            joints |= dict.fromkeys(row["joints"] or ())
        columns = _csv_columns(table, list(joints))
        headings = [cell_text(name) for name in columns]
        select = f"SELECT {', '.join(columns.values())} FROM {table}_files"
        days = database.rows(f"SELECT DISTINCT arm, day FROM {table}_files ORDER BY 1, 2")
        with database.stream(f"{select} LIMIT 0") as result:
            schema = pa.schema(zip(headings, result.schema.types, strict=True))
        with pyarrow.csv.CSVWriter(out, schema) as writer:
            for done, row in enumerate(days, start=1):
                arm = _quoted(row["arm"])
                of_day = f"WHERE arm = {arm} AND day = '{row['day']}' ORDER BY {time}"
                with database.stream(f"{select} {of_day}") as result:
                    for batch in result.batches:
                        writer.write_batch(
                            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                        )
                        count += len(batch)
                if progress is not None:
                    progress(done / len(days), f"{count} rows")
        return count, database.holdings


def _csv_columns(table: str, joints: list[str]) -> dict[str, str]:
    """Columns of a CSV file as SQL, by heading.

    Args:
        table: name of the table.
        joints: names of the joints of all arms.
    """
    columns = {"arm": _no_formula("arm"), "day": "day"}
    for name, kind, *_ in TABLES[table]:
        if kind == "numbers":
            quantity = name.removeprefix("joint_")
            for joint in joints:
                place = f"list_position(joints, {_quoted(joint)})"
                columns[f"{joint}_{quantity}"] = f"{name}[{place}]"
        elif kind == "time":
            utc = f"timezone('UTC', {name})"
            columns[name] = f"strftime({utc}, '%Y-%m-%dT%H:%M:%S.%fZ')"
        elif kind == "text":
            columns[name] = _no_formula(name)
        elif kind != "texts":
            columns[name] = name
    return columns


def _quoted(text: str) -> str:
    """A text as a literal of SQL."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
