# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Query: SQL of a user on a history, in a process of its own with limits of memory and time.

DuckDB's own limit leaves out much of the memory that it allocates (texts, lists,
aggregates), and DuckDB rarely checks whether it has been interrupted. Here the operating
system bounds the memory of the process that runs the SQL, and the process is killed when
its time is over, at Ctrl-C, and with its parent. It sends the result in messages of
bounded size; no more is computed until they are read.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from multiprocessing.connection import Connection, Pipe
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import (
    HistoryDatabase,
    Period,
    SqlError,
    TooLargeError,
)
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.processes import start_main
from ur_energy_model.typing import ClosedOnExit

MEMORY = 2_000_000_000
"""Memory of the process, with Python and libraries (200 MB) [bytes]."""
DATABASE_GB = 1.4
"""Memory as DuckDB counts it [GB]: it raises an error before an allocation fails."""
TIMEOUT = 60.0  # longest time of the computation [s]
MOST_CORES = 4  # each thread takes memory
MOST_BYTES = 8_000_000  # largest size of a message with more than one row [bytes]
LARGEST_ROW = 16_000_000  # largest size of a row of the result [bytes]
START = 120.0  # time in which the process must have opened the store [s]
SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
"""Environment of the process: no allocator that reserves gigabytes, which the limit
would count."""


class _Message(NamedTuple):
    """A message of the process.

    Attributes:
        kind: one byte, such as `_ROWS`.
        content: JSON, or rows in Arrow's stream format.
    """

    kind: bytes
    content: bytes


_OPENED = b"o"  # JSON: warnings and losses of the store
_SCHEMA = b"s"  # the schema of the result
_ROWS = b"r"  # some rows
_DONE = b"d"  # nothing: the result is complete
_REFUSED = b"x"  # JSON: name of the error, source, problem, remedy


class Query(ClosedOnExit):
    """The result of one SELECT statement; a context manager.

    Args:
        address: address of the store.
        sql: the statement.
        period: period of the rows.
        arms: arms of the rows, () for all.
        timeout: longest time until the whole result has been read [s]; time in `paused`
            is not counted.

    Attributes:
        warnings: warnings about the store, as in `Holdings`.
        lost: what the store has lost, as entries of `Loss`.
        schema: schema of the result, with unique names of columns.
        pid: number of the process.

    Raises:
        StoreError: the store cannot be read.
        SqlError: the statement is not a single SELECT, fails, or needs more memory or
            time than it may have; also while the rows are read.
    """

    def __init__(
        self,
        address: str,
        sql: str,
        period: Period | None = None,
        *,
        arms: Sequence[str] = (),
        timeout: float = TIMEOUT,
    ) -> None:
        self._timeout = timeout
        self._end = 0.0
        if sql != sql.encode(errors="replace").decode():
            raise SqlError("is not UTF-8 text", "repair the query")
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = start_main(__name__, theirs, environment=SPARING)
        self.pid = self._process.pid
        try:
            with suppress(BrokenPipeError):
                self._pipe.send_bytes(_request(address, sql, period or Period(), arms))
            self._end = time.monotonic() + START
            opened = json.loads(self._receive(_OPENED).content)
            self._end = time.monotonic() + timeout
            self.warnings = tuple(opened["warnings"])
            self.lost = tuple(opened["lost"])
            with pa.ipc.open_stream(self._receive(_SCHEMA).content) as stream:
                self.schema = stream.schema
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in batches, as they are computed; read once."""
        while (message := self._receive(_ROWS)).kind == _ROWS:
            with pa.ipc.open_stream(message.content) as stream:
                yield from stream

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block whose time is not counted, such as one in which a reader of the result waits."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._end += time.monotonic() - began

    def _receive(self, kind: bytes) -> _Message:
        """The next message.

        Args:
            kind: kind of message that is expected, unless the result is complete.

        Raises:
            StoreError: the store cannot be read.
            SqlError: the statement is refused, or needs too much memory or time.
        """
        try:
            left = self._end - time.monotonic()
            if left < 0.0 or not self._pipe.poll(left):
                if kind == _OPENED:
                    raise SqlError(
                        "cannot begin: the store is not open yet", "try again later"
                    )
                remedy = "query fewer days or arms, or give --timeout SECONDS"
                raise SqlError(f"takes longer than {self._timeout:g} s", remedy)
            received = self._pipe.recv_bytes()
        except (EOFError, ConnectionError):  # the process ended: an allocation failed
            raise TooLargeError(MEMORY / 1e9) from None
        message = _Message(received[:1], received[1:])
        if message.kind == _REFUSED:
            raise _refusal(message)
        assert message.kind in (kind, _DONE), message.kind
        return message


def _refusal(message: _Message) -> InputError:
    """The error in a message of the kind _REFUSED."""
    name, source, problem, remedy = json.loads(message.content)
    if name == TooLargeError.__name__:
        return TooLargeError(MEMORY / 1e9)
    if name == SqlError.__name__:
        return SqlError(problem, remedy)
    return StoreError(source, problem, remedy)


def _request(address: str, sql: str, period: Period, arms: Sequence[str]) -> bytes:
    """A query as JSON for the process, see `main`."""
    start = None if period.start is None else period.start.isoformat()
    end = None if period.end is None else period.end.isoformat()
    query = [address, sql, start, end, period.zone.key, list(arms)]
    return json.dumps(query).encode()


# In the process.


def main(handle: int) -> None:
    """Run the query that the parent sends; for the process that `Query` starts.

    Args:
        handle: file descriptor of the process's end of the pipe.
    """
    with Connection(handle) as pipe:
        address, sql, start, end, zone, arms = json.loads(pipe.recv_bytes())
        try:
            _limit()
            period = Period(
                None if start is None else datetime.fromisoformat(start),
                None if end is None else datetime.fromisoformat(end),
                ZoneInfo(zone),
            )
            for message in _answer(HistoryStore(address), sql, period, tuple(arms)):
                pipe.send_bytes(message.kind + message.content)
            return
        except InputError as error:
            name = type(error).__name__
            stated = [name, str(error.source), error.problem, error.remedy]
        except MemoryError:
            stated = [TooLargeError.__name__, "", "", ""]
        except Exception as error:  # whatever a library raises, the parent states it
            problem = f"cannot be run ({type(error).__name__}: {error})"
            stated = [SqlError.__name__, "", problem, "write the query in another way"]
        pipe.send_bytes(_REFUSED + json.dumps(stated).encode())


def _limit() -> None:
    """Bound the memory and the threads of this process."""
    pa.set_cpu_count(min(pa.cpu_count(), MOST_CORES))
    pa.set_io_thread_count(MOST_CORES)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    with suppress(OSError, ValueError):  # no such limit on this system
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(
    store: HistoryStore, sql: str, period: Period, arms: tuple[str, ...]
) -> Iterator[_Message]:
    """Messages with the result: state of the store, schema, rows, and the end."""
    database = HistoryDatabase(
        store,
        period,
        arms=arms,
        memory_gb=DATABASE_GB,
        threads=min(os.cpu_count() or 1, MOST_CORES),
    )
    with database:
        holdings = database.holdings
        lost = [loss.entry() for loss in holdings.lost]
        opened = {"warnings": list(holdings.warnings), "lost": lost}
        yield _Message(_OPENED, json.dumps(opened).encode())
        with database.stream(sql) as result:
            yield _Message(_SCHEMA, _stream(result.schema, ()))
            for batch in result.batches:
                for piece in _pieces(batch):
                    yield _Message(_ROWS, _stream(result.schema, (piece,)))
        yield _Message(_DONE, b"")


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parts of a batch that are small enough for a message.

    Raises:
        SqlError: a row is larger than LARGEST_ROW.
    """
    if batch.nbytes <= MOST_BYTES or len(batch) == 1:
        if batch.nbytes > LARGEST_ROW:
            problem = f"has a row of more than {LARGEST_ROW / 1e6:.0f} MB"
            raise SqlError(problem, "select less of it, such as its length")
        yield batch
        return
    half = len(batch) // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    """Batches of rows, or the schema alone, in Arrow's stream format."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    content: Any = out.getvalue()
    return bytes(content)
