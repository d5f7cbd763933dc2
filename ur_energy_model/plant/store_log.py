# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""StoreLog: which files of a store count, in one log for all tables, and in a copy per table.

    STORE/_store/_delta_log/     the log of the store: files of all tables
    STORE/<table>/_delta_log/    the log of a table, as other programs read it

Both are logs of Delta Lake. A change of the store is one commit in the first one,
whatever tables it concerns: it is seen whole or not at all. Each commit has a number, and
is made only if it follows the one that was read (`commit`). The logs of the tables follow
it (`publish`); each states the number of the last change that it contains. So a log that
is lost, damaged or behind is made again from the other one:

- a log of a table from that of the store;
- the log of the store from those of the tables, if it is not there, cannot be read, or
  lacks commits that a table contains.
  There a source counts once the log of `seconds` has its application transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.transaction import RemoveAction

from ur_energy_model.plant.delta_logs import (
    KEPT_HOURS,
    MOST_TRIES,
    NUMBER,
    ConflictError,
    DeltaLog,
    DeltaLogs,
)
from ur_energy_model.plant.log_entries import (
    FILES,
    STORE,
    delta_schema,
    named,
    store_action,
    store_partition,
    stored_files,
    table_action,
)
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.store_files import StoredFile, StoreFiles, own_path


@dataclass(frozen=True)
class State:
    """A store at one moment.

    Attributes:
        number: of the last commit.
        files: that count [`FILES`].
        behind: tables whose own logs have to be made again or to follow, with what is
            wrong; "" if a process has not published its commit yet.
        known: files that the log of the store names itself [`FILES`].
        log: that of the store; None if it is lost.
        damage: what is wrong with a log of the store that is there; None for nothing.
    """

    number: int
    files: pa.Table
    behind: Mapping[str, str]
    known: pa.Table
    log: DeltaTable | None
    damage: str | None = None

    def select(
        self,
        table: str | None = None,
        *,
        arm: str | None = None,
        path: set[str] | None = None,
    ) -> list[StoredFile]:
        """Files that count.

        Args:
            table: name of their table; None for all.
            arm: name of their arm; None for all.
            path: paths in the store, of which files are wanted; None for all.
        """
        chosen = self.files
        for name, value in (("table", table), ("arm", arm)):
            if value is not None:
                chosen = chosen.filter(pc.equal(chosen[name], value))
        if path is not None:
            chosen = chosen.filter(
                pc.is_in(chosen["path"], pa.array(sorted(path), pa.string()))
            )
        return stored_files(chosen)


class StoreLog:
    """The logs of a store: which files count.

    All methods raise OSError and DeltaError if the logs cannot be used.

    Args:
        files: of the store.
    """

    def __init__(self, files: StoreFiles) -> None:
        self._logs = DeltaLogs(files)

    def read(self) -> State:
        """The store as it is now.

        The logs of the tables are read first: none of them then is ahead of that of the
        store, unless that has lost commits.
        """
        tables = {table: self._logs.read(table) for table in TABLES}
        store = self._logs.read(STORE)
        number = max(log.number() for log in (store, *tables.values()))
        if store.table is None:
            files = pa.concat_tables(
                [_complete(log.files, tables["seconds"]) for log in tables.values()]
            )
            behind = {table: log.damage or "" for table, log in tables.items()}
            return State(number, files, behind, FILES.empty_table(), None, store.damage)
        chosen = []
        behind = {}
        for table, log in tables.items():
            known = store.files.filter(pc.equal(store.files["table"], table))
            lost = known.filter(known["lost"])
            here = named(known.filter(pc.invert(known["lost"])))
            there = named(log.files)
            changed = store.number(f"table:{table}")
            published = log.number()
            if log.table is not None and published > changed:
                chosen += [_complete(log.files, tables["seconds"]), lost]
                behind[table] = ""
                continue
            chosen.append(known)
            if log.table is None:
                late = changed < store.number() and len(known) > 0
                behind[table] = log.damage or ("it is lost" if late else "")
            elif published < changed or there != here:
                behind[table] = ""
        return State(number, pa.concat_tables(chosen), behind, store.files, store.table)

    # Changing the store

    def commit(
        self, state: State, added: Sequence[StoredFile], removed: Sequence[StoredFile]
    ) -> None:
        """Make one commit that follows a state; what was adopted from the tables is a part of it.

        Args:
            state: as it was read.
            added: files that count from now on.
            removed: files that do not count any more.

        Raises:
            ConflictError: another process was faster; nothing has changed.
        """
        log = state.log or self._logs.created(STORE, again=state.damage is not None)
        new = {file.path: file for file in added}
        gone = {file.path: file for file in removed if file.path not in new}
        before = named(state.known)
        after = named(state.files)
        if before != after:
            for file in stored_files(state.files):
                if file.path not in gone and before.get(file.path) != after[file.path]:
                    new.setdefault(file.path, file)
            for file in stored_files(state.known):
                if file.path not in after and file.path not in new:
                    gone[file.path] = file
        actions: list[Any] = [store_action(file) for file in new.values()]
        now = int(time.time() * 1e3)
        for file in gone.values():
            if file.path in before:
                values = store_partition(file)
                actions.append(RemoveAction(file.path, True, now, file.size or 0, values))
        changed = {file.table for file in (*new.values(), *gone.values())}
        numbers = {NUMBER: state.number + 1}
        numbers |= {f"table:{table}": state.number + 1 for table in changed}
        self._logs.transact(STORE, log, actions, numbers)

    def publish(self) -> State:
        """Let the logs of the tables follow that of the store; returns the state."""
        for _ in range(MOST_TRIES):
            state = self.read()
            if state.log is None or not state.behind:
                break
            # it is last
            for table in sorted(state.behind, key=lambda table: table == "seconds"):
                with suppress(ConflictError):  # another process does the same
                    self._follow(table, state)
        return state

    def checkpoint(self) -> None:
        """Sum up each log in one file."""
        for name in (STORE, *TABLES):
            log = self._logs.read(name).table
            if log is not None:
                log.create_checkpoint()

    def replaced(self) -> Iterator[str]:
        """Paths of files that were replaced KEPT_HOURS ago."""
        for table in TABLES:
            log = self._logs.read(table).table
            if log is None:
                continue
            for inside in log.vacuum(
                KEPT_HOURS, dry_run=True, enforce_retention_duration=False
            ):
                if own_path(path := f"{table}/{inside}") is not None:
                    yield path

    def _follow(self, table: str, state: State) -> None:
        """Let the log of a table name the files of the state."""
        assert state.log is not None
        changed = state.log.transaction_version(f"table:{table}") or 0
        own = self._logs.read(table)
        if own.number() > changed:  # another process has published a later commit
            raise ConflictError
        log = own.table
        if log is None:
            log = self._logs.created(table, again=own.damage is not None)
            own = DeltaLog(FILES.empty_table(), log)
        missing = set(delta_schema(table).names) - {
            field.name for field in log.schema().fields
        }
        if missing:  # columns that this version adds
            fields = [field for field in delta_schema(table) if field.name in missing]
            log.alter.add_columns(Schema.from_arrow(pa.schema(fields)).fields)
            own = self._logs.read(table)
            if own.table is None:
                raise ConflictError
            log = own.table
        counting = state.files.filter(
            pc.and_(pc.equal(state.files["table"], table), pc.invert(state.files["lost"]))
        )
        before = named(own.files)
        after = named(counting)
        new = [f for f in stored_files(counting) if before.get(f.path) != after[f.path]]
        actions: list[Any] = [table_action(file) for file in new]
        now = int(time.time() * 1e3)
        for file in stored_files(own.files):
            if file.path not in after:
                values: dict[str, str | None] = {"day": file.day} if file.day else {}
                actions.append(
                    RemoveAction(file.inside, True, now, file.size or 0, values)
                )
        numbers = {NUMBER: changed}
        if table == "seconds":
            numbers |= {file.source: 1 for file in new if file.source}
        self._logs.transact(table, log, actions, numbers)


def _complete(files: pa.Table, seconds: DeltaLog) -> pa.Table:
    """Those files whose sources the log of `seconds` has, and all records.

    Files of several sources have complete ones only.
    """
    first = files["first_source"]
    last = files["last_source"]
    alone = pc.fill_null(pc.equal(first, last), False)
    alone = pc.and_(alone, pc.invert(pc.is_in(files["table"], pa.array(UNDIVIDED))))
    names = first.filter(alone).unique().to_pylist()
    done = pa.array([name for name in names if seconds.has(name)], pa.string())
    return files.filter(pc.or_(pc.invert(alone), pc.is_in(first, done)))
