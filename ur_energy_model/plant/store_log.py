# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""StoreLog: which files of a store count, in one log for all tables, and in a copy per table.

    STORE/_store/_delta_log/     the log of the store: files of all tables
    STORE/<table>/_delta_log/    the log of a table, as other programs read it

Both are logs of Delta Lake. A change of the store is one commit in the first one,
whatever tables it concerns: it is seen whole or not at all. Each commit has a number, and
is made only if it follows the commit that was read (`commit`). The logs of the tables
follow the log of the store (`publish`); each states the number of the last change that it
contains. So a log that is lost, damaged or behind is made again from the other ones:

- the log of a table from the log of the store;
- the log of the store from the logs of the tables, if it is not there, cannot be read, or
  lacks commits that a table contains. Then a source counts if the log of `seconds` has
  its application transaction, which is published last.
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
        number: number of the last commit.
        files: files that count, rows of `FILES`.
        behind: tables whose own logs have to be made again or to follow, with what is
            wrong; "" if a process has not published its commit yet.
        known: files that the log of the store names itself, rows of `FILES`.
        log: the log of the store; None if it is lost.
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
            path: paths of the files in the store; None for all.
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
        files: files of the store.
    """

    def __init__(self, files: StoreFiles) -> None:
        self._logs = DeltaLogs(files)

    def read(self) -> State:
        """The store as it is now.

        The logs of the tables are read first: none of them is then ahead of the log of
        the store, unless the latter has lost commits.
        """
        tables = {table: self._logs.read(table) for table in TABLES}
        seconds = tables["seconds"]
        store = self._logs.read(STORE)
        number = max(log.number() for log in (store, *tables.values()))
        chosen = []
        behind = {}
        if store.table is None:
            for table, log in tables.items():
                chosen.append(_complete(log.files, seconds))
                behind[table] = log.damage or ""
            files = pa.concat_tables(chosen)
            return State(number, files, behind, FILES.empty_table(), None, store.damage)
        for table, log in tables.items():
            known = store.files.filter(pc.equal(store.files["table"], table))
            lost = known.filter(known["lost"])
            counting = known.filter(pc.invert(known["lost"]))
            changed = store.number(f"table:{table}")
            published = log.number()
            if log.table is None:
                chosen.append(known)
                # The process of the last commit may not have made this log yet.
                is_lost = changed < store.number() and len(known) > 0
                behind[table] = log.damage or ("it is lost" if is_lost else "")
            elif published > changed:  # the log of the store has lost commits
                chosen += [_complete(log.files, seconds), lost]
                behind[table] = ""
            else:
                chosen.append(known)
                if published < changed or named(log.files) != named(counting):
                    behind[table] = ""
        return State(number, pa.concat_tables(chosen), behind, store.files, store.table)

    # Changing the store

    def commit(
        self, state: State, added: Sequence[StoredFile], removed: Sequence[StoredFile]
    ) -> None:
        """Make one commit that follows a state.

        Files that the log of the store has lost, and that the logs of the tables still
        name, are a part of the commit.

        Args:
            state: state in which the store was read.
            added: files that count from now on.
            removed: files that do not count any more.

        Raises:
            ConflictError: another process was faster; nothing has changed.
        """
        log = state.log or self._logs.created(STORE, again=state.damage is not None)
        new = {file.path: file for file in added}
        gone = {file.path: file for file in removed if file.path not in new}
        in_log = named(state.known)
        counting = named(state.files)
        if in_log != counting:
            for file in stored_files(state.files):
                if file.path not in gone and in_log.get(file.path) != counting[file.path]:
                    new.setdefault(file.path, file)
            for file in stored_files(state.known):
                if file.path not in counting and file.path not in new:
                    gone[file.path] = file
        actions: list[Any] = [store_action(file) for file in new.values()]
        now = int(time.time() * 1e3)
        for file in gone.values():
            if file.path in in_log:
                values = store_partition(file)
                actions.append(RemoveAction(file.path, True, now, file.size or 0, values))
        numbers = {NUMBER: state.number + 1}
        for file in (*new.values(), *gone.values()):
            numbers[f"table:{file.table}"] = state.number + 1
        self._logs.transact(STORE, log, actions, numbers)

    def publish(self) -> None:
        """Let the logs of the tables follow the log of the store, MOST_TRIES times at most."""
        for _ in range(MOST_TRIES):
            state = self.read()
            if state.log is None or not state.behind:
                return
            # `seconds` is last: its application transactions mark complete sources.
            tables = [table for table in state.behind if table != "seconds"]
            if "seconds" in state.behind:
                tables.append("seconds")
            for table in tables:
                with suppress(ConflictError):  # another process does the same
                    self._follow(table, state)

    def checkpoint(self) -> None:
        """Sum up each log in one file."""
        for name in (STORE, *TABLES):
            log = self._logs.read(name).table
            if log is not None:
                log.create_checkpoint()

    def replaced(self) -> Iterator[str]:
        """Paths of files that were replaced KEPT_HOURS ago or before."""
        for table in TABLES:
            log = self._logs.read(table).table
            if log is None:
                continue
            replaced = log.vacuum(
                KEPT_HOURS, dry_run=True, enforce_retention_duration=False
            )
            for inside in replaced:
                path = f"{table}/{inside}"
                if own_path(path) is not None:
                    yield path

    def _follow(self, table: str, state: State) -> None:
        """Let the log of a table name the files of the state.

        Args:
            table: name of the table.
            state: state of the store, whose log exists.

        Raises:
            ConflictError: another process has changed the log meanwhile.
        """
        assert state.log is not None
        changed = state.log.transaction_version(f"table:{table}") or 0
        own = self._logs.read(table)
        if own.number() > changed:  # another process has published a later commit
            raise ConflictError
        log = own.table
        if log is None:
            log = self._logs.created(table, again=own.damage is not None)
            own = DeltaLog(FILES.empty_table(), log)
        if _add_columns(table, log):
            own = self._logs.read(table)
            if own.table is None:
                raise ConflictError
            log = own.table
        in_table = pc.equal(state.files["table"], table)
        counts = pc.invert(state.files["lost"])
        counting = state.files.filter(pc.and_(in_table, counts))
        before = named(own.files)
        after = named(counting)
        numbers = {NUMBER: changed}
        actions: list[Any] = []
        for file in stored_files(counting):
            if before.get(file.path) != after[file.path]:
                actions.append(table_action(file))
                if table == "seconds" and file.source:
                    numbers[file.source] = 1
        now = int(time.time() * 1e3)
        for file in stored_files(own.files):
            if file.path not in after:
                values: dict[str, str | None] = {"day": file.day} if file.day else {}
                actions.append(
                    RemoveAction(file.inside, True, now, file.size or 0, values)
                )
        self._logs.transact(table, log, actions, numbers)


def _add_columns(table: str, log: DeltaTable) -> bool:
    """Add columns that this version has and the log of a table lacks.

    Returns:
        Whether there were any.
    """
    known = {field.name for field in log.schema().fields}
    missing = [field for field in delta_schema(table) if field.name not in known]
    if missing:
        log.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
    return bool(missing)


def _complete(files: pa.Table, seconds: DeltaLog) -> pa.Table:
    """Files whose sources are complete: the log of `seconds` has their transactions.

    Records, rows of models and files of several sources are complete: files are joined
    only when their sources are.

    Args:
        files: files of one table, rows of `FILES`.
        seconds: the log of `seconds`.
    """
    first = files["first_source"]
    last = files["last_source"]
    one_source = pc.fill_null(pc.equal(first, last), False)
    undivided = pc.is_in(files["table"], pa.array(UNDIVIDED))
    in_question = pc.and_(one_source, pc.invert(undivided))
    names = first.filter(in_question).unique().to_pylist()
    complete = pa.array([name for name in names if seconds.has(name)], pa.string())
    return files.filter(pc.or_(pc.invert(in_question), pc.is_in(first, complete)))
