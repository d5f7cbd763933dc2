"""HistoryDatabase: the tables of a store in DuckDB, for SQL that only reads them.

Arrow reads the files, whether they are in a folder or on an S3 server; DuckDB sees the tables and
nothing else: it has no access to files, networks, settings or variables of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ur_energy_model.errors import InputError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.period import Period
from ur_energy_model.plant.history.rows_in_period import in_period
from ur_energy_model.plant.history.schema import TABLES
from ur_energy_model.typing import Self

if TYPE_CHECKING:
    import pyarrow

    from ur_energy_model.plant.history.store import HistoryStore

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
class Answer:
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
        MissingPackageError: duckdb or pyarrow is not installed.
    """

    def __init__(
        self,
        store: HistoryStore,
        period: Period | None = None,
        *,
        arms: tuple[str, ...] = (),
        memory_gb: float = MEMORY_GB,
    ) -> None:
        with needed_here():
            import duckdb
        self.period = period or Period()
        self._memory_gb = memory_gb
        self._thread = ThreadPoolExecutor(1)
        self._connection = duckdb.connect(":memory:")
        try:
            holdings = store.holdings(*self.period.days, arms)
            self.warnings = holdings.warnings
            for table in TABLES:
                rows, columns = store.rows(table, holdings), "*"
                if table == "joint_seconds":  # stores of earlier versions have no files of it
                    continue
                if table != "models":
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
        import pyarrow

        with self.stream(sql) as batches:
            table = pyarrow.Table.from_batches(batches, batches.schema)
        return {name: table[name].to_numpy() for name in table.column_names}

    @contextmanager
    def stream(self, sql: str) -> Iterator[Answer]:
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
            yield Answer(schema, self._batches(reader, schema.names))

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
        import pyarrow

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
    import pyarrow

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
