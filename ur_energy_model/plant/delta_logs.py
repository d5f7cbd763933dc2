# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""DeltaLogs: the logs of a store, read as they are now, also where they are damaged, and written.

A log that is there and cannot be believed is damaged: commits or checkpoints of it are
lost or changed, it contains links, names files elsewhere or has impossible numbers.
Nothing is committed to a damaged log; the rest of it can be read, and a new log takes its
place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ur_energy_model.plant.log_entries import (
    FILES,
    STORE,
    checked,
    files_of_log,
    log_schema,
    partitions,
    row_of,
    stored_files,
    without_replaced,
)
from ur_energy_model.plant.schema import TABLES
from ur_energy_model.plant.store_files import StoreFiles, json_of, sync

NUMBER = "store"
"""Application transaction with the number of a commit of the store: of the last commit in the
log of the store, of the last commit that it contains in the log of a table."""
HIGHEST = 2**62  # number that no store reaches: above it, a log is damaged
MOST_TRIES = 30  # most tries of following the log of the store beside other processes
KEPT_HOURS = 24  # hours that replaced files stay, as other processes may still read them
CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 12 hours",
    # Twice as long as they stay: compaction, once a day, finds each of them in the log.
    "delta.deletedFileRetentionDuration": f"interval {2 * KEPT_HOURS} hours",
}
"""Settings of all logs; fifty estimators commit 70,000 times a day."""


Stamp = tuple[int, int]
"""Number and time of the last change [ns] of a file, which differ in another file."""


class ConflictError(Exception):
    """Another process has changed the store since its log was read."""


class DamagedLogError(Exception):
    """A log that cannot be believed."""


@dataclass(frozen=True)
class DeltaLog:
    """One log as it is now, or what is left of a damaged log.

    Attributes:
        files: files that the log names, rows of `FILES`.
        table: the log; None if it is lost or damaged.
        damage: what is wrong with it, in words; None for a good log, or if there is none.
        sources: application transactions that a damaged log has.
        numbers: numbers of the last application transactions by name; Delta Lake takes long to
            look up a number.
    """

    files: pa.Table
    table: DeltaTable | None = None
    damage: str | None = None
    sources: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(default_factory=dict)

    def number(self, name: str = NUMBER) -> int:
        """Number in an application transaction, 0 without the transaction or the log."""
        return self.numbers.get(name, 0)

    def has(self, source: str) -> bool:
        """Whether it has the application transaction of a source."""
        if self.table is None:
            return source in self.sources
        return self.table.transaction_version(source) is not None


class DeltaLogs:
    """The logs of a store, one by one.

    All methods raise OSError where files cannot be read or written, and DeltaError where
    Delta Lake refuses.

    Args:
        files: files of the store.
    """

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._opened: dict[str, tuple[DeltaTable, Stamp | None]] = {}
        """Logs that were read, each with the stamp of its last commit."""
        self._known: dict[str, tuple[DeltaTable, int, DeltaLog]] = {}
        """Contents of logs that were read, each with its table and version."""

    def read(self, name: str) -> DeltaLog:
        """A log as it is now; only commits since the last call are read.

        Args:
            name: name of a table, or STORE.
        """
        try:
            table = self._open(name)
            if table is None:
                return DeltaLog(FILES.empty_table())
            before, version, known = self._known.get(name, (None, -1, None))
            if known is not None and before is table and version == table.version():
                return known
            files = _named_files(name, table)
            names = [NUMBER]
            if name == STORE:
                names += [f"table:{each}" for each in TABLES]
            numbers = {each: table.transaction_version(each) or 0 for each in names}
            if any(not 0 <= number < HIGHEST for number in numbers.values()):
                raise DamagedLogError("it has an impossible number")
            log = DeltaLog(files, table, numbers=numbers)
            self._known[name] = table, table.version(), log
            return log
        except DamagedLogError as error:
            self._opened.pop(name, None)
            if name == STORE:
                return DeltaLog(FILES.empty_table(), damage=str(error))
            files, sources = self._rest(name)
            return DeltaLog(files, damage=str(error), sources=sources)

    def _open(self, name: str) -> DeltaTable | None:
        """A log as it is now; None if there is none.

        A log grows with every bag: only what is new is read, unless the store is another
        one.

        Args:
            name: name of a table, or STORE.

        Raises:
            DamagedLogError: the log is there and cannot be read.
        """
        place = None
        if self._files.folder is not None:
            place = self._files.folder / name / "_delta_log"
            if place.parent.is_symlink() or place.is_symlink():
                raise DamagedLogError("a link is in its place")
            if not place.is_dir():
                return None
            if any(entry.is_symlink() for entry in place.iterdir()):
                raise DamagedLogError("it contains a link")
        known, stamp = self._opened.pop(name, (None, None))
        if known is not None and stamp is not None and stamp == self._stamp(name, known):
            with suppress(DeltaError):  # commits since then may be in a checkpoint alone
                following = place and place / f"{known.version() + 1:020}.json"
                if following is None or following.exists():
                    known.update_incremental()
                self._opened[name] = known, self._stamp(name, known)
                return known
        try:
            found = DeltaTable(
                f"{self._files.address}/{name}", storage_options=self._files.options
            )
        except TableNotFoundError:
            if self._names(name):
                raise DamagedLogError("its first commit is lost") from None
            return None
        except DeltaError as error:
            self._names(name)  # raises OSError if the files cannot be read at all
            raise DamagedLogError(_short(error)) from None
        if f"{found.version():020}.json" not in self._files.log_names(name):
            raise DamagedLogError("its last commits are lost")
        self._opened[name] = found, self._stamp(name, found)
        return found

    def _stamp(self, name: str, table: DeltaTable) -> Stamp | None:
        """Stamp of the last commit of a log; None if the commit is not there.

        It differs if another store has taken the place of the folder. On an S3 server all
        stamps are the same.
        """
        if self._files.folder is None:
            return 0, 0
        place = self._files.folder / name / "_delta_log" / f"{table.version():020}.json"
        with suppress(FileNotFoundError):
            status = place.stat()
            return status.st_ino, status.st_mtime_ns
        return None

    def _names(self, name: str) -> list[str]:
        """Names of the files of a log.

        Raises:
            OSError: one of the files cannot be read.
        """
        names = self._files.log_names(name)
        for each in names:
            self._files.read(f"{name}/_delta_log/{each}")
        return names

    def created(self, name: str, *, again: bool) -> DeltaTable:
        """A new log.

        Args:
            name: name of a table, or STORE.
            again: whether it takes the place of a damaged one, which is removed.

        Raises:
            ConflictError: another process has made it, and changed it since.
        """
        if again:
            if self.read(name).table is not None:  # another process has made it
                raise ConflictError
            self._files.discard_log(name)
        address = f"{self._files.address}/{name}"
        if self._files.folder is not None:
            self._files.path(f"{name}/_delta_log/x").parent.mkdir(
                parents=True, exist_ok=True
            )
        with suppress(CommitFailedError):  # another process makes it
            DeltaTable.create(
                address,
                log_schema(name),
                mode="ignore",
                partition_by=partitions(name),
                configuration=CONFIGURATION,
                storage_options=self._files.options,
            )
        made = self.read(name)
        if made.table is None or made.number() != 0 or len(made.files):
            raise ConflictError
        return made.table

    def _rest(self, name: str) -> tuple[pa.Table, frozenset[str]]:
        """Files that count by what is left of a damaged log, and its application transactions.

        Each commit is a list of files that count from then on, or do not count any more.
        Where a commit is lost, files that it has replaced are still named. Such files of
        live writers are left out if another file has their rows; bags with too many rows
        are found by their records.

        Args:
            name: name of a table.

        Returns:
            Rows of `FILES`, and names of the transactions.
        """
        named: dict[str, dict[str, Any]] = {}
        sources: set[str] = set()
        for action in self._actions(name):
            with suppress(TypeError, KeyError):
                if action.get("add") is not None:
                    named[f"{name}/{action['add']['path']}"] = action["add"]
                elif action.get("remove") is not None:
                    named.pop(f"{name}/{action['remove']['path']}", None)
                elif action.get("txn") is not None:
                    sources.add(str(action["txn"]["appId"]))
        rows = []
        for path, add in named.items():
            with suppress(TypeError, KeyError, ValueError, AttributeError):
                rows.append(row_of(name, path, add))
        files = checked(pa.Table.from_pylist(rows, FILES))
        kept = pa.array(without_replaced(stored_files(files)), pa.string())
        return files.filter(pc.is_in(files["path"], kept)), frozenset(sources)

    def _actions(self, name: str) -> Iterator[dict[str, Any]]:
        """Actions of the newest checkpoint that can be read, and of the commits after it."""
        names = sorted(self._files.log_names(name))
        begin = -1
        for each in reversed(names):
            match = re.fullmatch(r"(\d{20})\.checkpoint\.parquet", each)
            if match is None:
                continue
            with suppress(OSError, pa.ArrowException):
                content = self._files.read(f"{name}/_delta_log/{each}")
                table = pq.read_table(pa.BufferReader(content))
                kinds = {"add", "remove", "txn"} & set(table.schema.names)
                yield from table.select(sorted(kinds)).to_pylist()
                begin = int(match[1])
                break
        for each in names:
            match = re.fullmatch(r"(\d{20})\.json", each)
            if match is None or int(match[1]) <= begin:
                continue
            for line in self._files.read(f"{name}/_delta_log/{each}").splitlines():
                with suppress(ValueError):
                    action = json_of(line)
                    if isinstance(action, dict):
                        yield action

    def transact(
        self,
        name: str,
        log: DeltaTable,
        actions: Sequence[Any],
        numbers: Mapping[str, int],
    ) -> None:
        """Make one commit of a log.

        Args:
            name: name of a table, or STORE.
            log: log in the state in which it was read; a commit of another process since
                then is a conflict.
            actions: actions of Delta Lake: files that are added and removed.
            numbers: application transactions, by name.

        Raises:
            ConflictError: another process was faster; nothing has changed.
        """
        transactions = [Transaction(key, number) for key, number in numbers.items()]
        try:
            log.create_write_transaction(
                list(actions),
                "append",
                log_schema(name),
                partitions(name),
                commit_properties=CommitProperties(
                    app_transactions=transactions, max_commit_retries=MOST_TRIES
                ),
            )
        except CommitFailedError:
            raise ConflictError from None
        # The logs of the tables are made again from the log of the store.
        if name == STORE and self._files.folder is not None:
            place = self._files.folder / name / "_delta_log"
            sync(max(place.glob("*.json")), place)


def _named_files(name: str, log: DeltaTable) -> pa.Table:
    """Files that a log names, rows of `FILES`.

    Raises:
        DamagedLogError: the content of the log makes no sense.
    """
    try:
        actions = pa.table(log.get_add_actions(flatten=True))
        files = files_of_log(name, actions)
    except (DeltaError, pa.ArrowException, ValueError) as error:
        raise DamagedLogError(_short(error)) from None
    if len(files) < len(actions):
        raise DamagedLogError("it names files that are not of the store")
    return files


def _short(error: Exception) -> str:
    """A message of a library about a log, in one line."""
    text = " ".join(re.sub("\x1b\\[\\d*m", "", str(error)).split())
    return f"it cannot be read: {text[:120]}"
