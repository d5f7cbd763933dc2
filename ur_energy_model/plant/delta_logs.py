# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""DeltaLogs: the logs of a store, read as they are now, also where they are damaged, and written.

A log that is there and cannot be believed is damaged: commits or checkpoints of it are
lost or changed, it contains links, names files elsewhere or has impossible numbers. It is
never written on; what is left of it can be read, and a new log takes its place.
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
"""Application transaction with the number of the last commit, or of that a table contains."""
HIGHEST = 2**62  # number that no store reaches: above it, a log is damaged
MOST_TRIES = 30  # of following the log of the store beside other processes
KEPT_HOURS = 24  # for which files that were replaced stay, for those who read them
CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 12 hours",
    # Twice as long as they stay: compaction, once a day, finds each of them in the log.
    "delta.deletedFileRetentionDuration": f"interval {2 * KEPT_HOURS} hours",
}
"""Of all logs; fifty estimators commit 70,000 times a day."""


class ConflictError(Exception):
    """Another process has changed the store since its log was read."""


class DamagedLogError(Exception):
    """A log that cannot be believed."""


@dataclass(frozen=True)
class DeltaLog:
    """One log as it is now; of a damaged log, what is left of it.

    Attributes:
        files: that it names [`FILES`].
        table: the log; None if it is lost or damaged.
        damage: what is wrong with it, in words; None for a good log, or if there is none.
        sources: application transactions that a damaged log has.
        numbers: of the last commits by name; Delta Lake takes long to look one up.
    """

    files: pa.Table
    table: DeltaTable | None = None
    damage: str | None = None
    sources: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(default_factory=dict)

    def number(self, name: str = NUMBER) -> int:
        """Number of the last commit, 0 without any."""
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
        files: of the store.
    """

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._opened: dict[str, tuple[DeltaTable, tuple[int, int] | None]] = {}
        """Logs that were read, each with the stamp of its last commit."""
        self._known: dict[str, tuple[DeltaTable, int, DeltaLog]] = {}
        """What they contain, with their versions."""

    def read(self, name: str) -> DeltaLog:
        """A log as it is now; only what is new since the last call is read.

        Args:
            name: of a table, or STORE.
        """
        try:
            table = self._open(name)
            if table is None:
                return DeltaLog(FILES.empty_table())
            before, version, known = self._known.get(name, (None, -1, None))
            if known is not None and before is table and version == table.version():
                return known
            files = _named_files(name, table)
            names = [NUMBER, *(f"table:{each}" for each in TABLES if name == STORE)]
            numbers = {each: table.transaction_version(each) or 0 for each in names}
            if any(not 0 <= number < HIGHEST for number in numbers.values()):
                raise DamagedLogError("it has an impossible number")
            log = DeltaLog(files, table, numbers=numbers)
            self._known[name] = table, table.version(), log
            return log
        except DamagedLogError as error:
            self._opened.pop(name, None)
            rest = (
                (FILES.empty_table(), frozenset[str]())
                if name == STORE
                else self._rest(name)
            )
            return DeltaLog(rest[0], None, str(error), rest[1])

    def _open(self, name: str) -> DeltaTable | None:
        """A log; None if there is none. DamagedLogError: it is there and cannot be read."""
        place = (
            None
            if self._files.folder is None
            else self._files.folder / name / "_delta_log"
        )
        if place is not None:
            if place.parent.is_symlink() or place.is_symlink():
                raise DamagedLogError("a link is in its place")
            if not place.is_dir():
                return None
            if any(entry.is_symlink() for entry in place.iterdir()):
                raise DamagedLogError("it contains a link")
        # A log grows with every bag: only what is new is read, unless the store is
        # another one.
        known, stamp = self._opened.pop(name, (None, None))
        with suppress(DeltaError):  # commits since then may be in a checkpoint alone
            if (
                known is not None
                and stamp is not None
                and stamp == self._stamp(name, known)
            ):
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

    def _stamp(self, name: str, table: DeltaTable) -> tuple[int, int] | None:
        """Stamp of the last commit in a folder, which differs in another store in its place."""
        if self._files.folder is None:
            return 0, 0
        place = self._files.folder / name / "_delta_log" / f"{table.version():020}.json"
        with suppress(FileNotFoundError):
            status = place.stat()
            return status.st_ino, status.st_mtime_ns
        return None

    def _names(self, name: str) -> list[str]:
        """Names of the files of a log; OSError: they cannot be read."""
        names = self._files.log_names(name)
        for each in names:
            self._files.read(f"{name}/_delta_log/{each}")
        return names

    def created(self, name: str, *, again: bool) -> DeltaTable:
        """A new log.

        Args:
            name: of a table, or STORE.
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
        Without one of them files can be named that a lost commit has replaced: of live
        writers, those whose rows another one has. Bags with too many rows are found by
        their records.
        """
        named: dict[str, dict[str, Any]] = {}
        sources: set[str] = set()
        for action in self._actions(name):
            add, remove, transaction = (
                action.get(kind) for kind in ("add", "remove", "txn")
            )
            with suppress(TypeError, KeyError):
                if add is not None:
                    named[f"{name}/{add['path']}"] = add
                elif remove is not None:
                    named.pop(f"{name}/{remove['path']}", None)
                elif transaction is not None:
                    sources.add(str(transaction["appId"]))
        rows = []
        for path, add in named.items():
            with suppress(TypeError, KeyError, ValueError, AttributeError):
                rows.append(row_of(name, path, add))
        files = checked(pa.Table.from_pylist(rows, FILES))
        kept = without_replaced(stored_files(files))
        return files.filter(
            pc.is_in(files["path"], pa.array(kept, pa.string()))
        ), frozenset(sources)

    def _actions(self, name: str) -> Iterator[dict[str, Any]]:
        """Actions of the newest checkpoint that can be read, and of the commits after it."""
        names = sorted(self._files.log_names(name))
        begin = -1
        for each in reversed(names):
            if match := re.fullmatch(r"(\d{20})\.checkpoint\.parquet", each):
                with suppress(OSError, pa.ArrowException):
                    content = self._files.read(f"{name}/_delta_log/{each}")
                    table = pq.read_table(pa.BufferReader(content))
                    known = [
                        n for n in ("add", "remove", "txn") if n in table.schema.names
                    ]
                    yield from table.select(known).to_pylist()
                    begin = int(match[1])
                    break
        for each in names:
            if (match := re.fullmatch(r"(\d{20})\.json", each)) and int(match[1]) > begin:
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
            name: of a table, or STORE.
            log: as it was read; a commit of another process since then is a conflict.
            actions: of Delta Lake: files that are added and removed.
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
        if (
            name == STORE and self._files.folder is not None
        ):  # logs of tables are made again from it
            place = self._files.folder / name / "_delta_log"
            sync(max(place.glob("*.json")), place)


def _named_files(name: str, log: DeltaTable) -> pa.Table:
    """Files that a log names. DamagedLogError: its content makes no sense."""
    try:
        actions = pa.table(log.get_add_actions(flatten=True))
        files = files_of_log(name, actions)
    except (DeltaError, pa.ArrowException, ValueError) as error:
        raise DamagedLogError(_short(error)) from None
    if len(files) < len(actions):
        raise DamagedLogError("it names files that are not of the store")
    return files


def _short(error: Exception) -> str:
    """What a library says about a log, in one line."""
    text = " ".join(re.sub("\x1b\\[\\d*m", "", str(error)).split())
    return f"it cannot be read: {text[:120]}"
