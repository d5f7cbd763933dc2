"""StoreLog: which files of a store count, in one log for all tables, and in a copy per table.

    STORE/_store/_delta_log/     the log of the store: files of all tables
    STORE/<table>/_delta_log/    the log of a table, as other programs read it

Both are logs of Delta Lake. A change of the store is one commit in the first one, whatever tables it
concerns: it is seen whole or not at all. Each commit has a number, and is made only if it follows the
one that was read (`commit`). The logs of the tables follow it (`publish`); each states the number of
the last change that it contains. So a log that is lost, damaged or behind is made again from the
other one:

- a log of a table from that of the store;
- the log of the store from those of the tables, if it is not there (in stores of earlier versions,
  which have none), cannot be read, or lacks commits that a table contains. There a source counts
  once the log of `seconds` has its application transaction.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ur_energy_model.plant.schema import TABLES, UNDIVIDED, arrow_schema
from ur_energy_model.plant.sources import ranges_from
from ur_energy_model.plant.store_files import (
    OWN_PATHS,
    StoredFile,
    StoreFiles,
    json_of,
    own_path,
    sync,
)

STORE = "_store"
"""Folder of the store's log; Delta Lake leaves out names that begin with an underscore."""
NUMBER = "store"
"""Application transaction with the number of the last commit, or of that a table contains."""
HIGHEST = 2**62  # number that no store reaches: above it, a log is damaged
MOST_TRIES = 30  # of following the log of the store beside other processes
MOST_RANGES = 200  # of the time that a file covers, in a log
KEPT_HOURS = 24  # for which files that were replaced stay, for those who read them
CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 12 hours",
    # Twice as long as they stay: compaction, once a day, finds each of them in the log.
    "delta.deletedFileRetentionDuration": f"interval {2 * KEPT_HOURS} hours",
}
"""Of all logs; fifty estimators commit 70,000 times a day."""
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
_PARTITIONS = ["table", "day", "lost"]
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
    ]
)
"""Files that a log names, see `StoredFile`."""


class ConflictError(Exception):
    """Another process has changed the store since its log was read."""


class DamagedLogError(Exception):
    """A log that cannot be believed."""


@dataclass(frozen=True)
class State:
    """A store at one moment: files that count [`FILES`], after `number` commits.

    `behind` are tables whose own logs have to be made again or to follow, with what is wrong, "" if
    a process has not published its commit yet. `known` are the files that the log of the store names
    itself, `log` is that, None if it is lost, which `damage` states if it was there.
    """

    number: int
    files: pa.Table
    behind: Mapping[str, str]
    known: pa.Table
    log: DeltaTable | None
    damage: str | None = None

    def select(
        self, table: str | None = None, *, arm: str | None = None, path: set[str] | None = None
    ) -> list[StoredFile]:
        """Files of a table, of an arm, with some paths; all where these are None."""
        chosen = self.files
        for name, value in (("table", table), ("arm", arm)):
            if value is not None:
                chosen = chosen.filter(pc.equal(chosen[name], value))
        if path is not None:
            chosen = chosen.filter(pc.is_in(chosen["path"], pa.array(sorted(path), pa.string())))
        return stored_files(chosen)


@dataclass(frozen=True)
class _Log:
    """One log as it is now; without `table` it is lost, or damaged, which is stated then.

    Of a damaged one, `files` and `sources` (application transactions) are what is left of it.
    """

    files: pa.Table
    table: DeltaTable | None = None
    damage: str | None = None
    sources: frozenset[str] = frozenset()

    def number(self, name: str = NUMBER) -> int:
        """Number of the last commit, 0 without any."""
        return 0 if self.table is None else self.table.transaction_version(name) or 0

    def has(self, source: str) -> bool:
        """Whether it has the application transaction of a source."""
        if self.table is None:
            return source in self.sources
        return self.table.transaction_version(source) is not None


class StoreLog:
    """The logs of a store; all methods raise OSError and DeltaError if they cannot be used."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._opened: dict[str, tuple[DeltaTable, tuple[int, int] | None]] = {}
        """Logs that were read, each with the stamp of its last commit."""
        self._known: dict[str, tuple[DeltaTable, int, _Log]] = {}
        """What they contain, with their versions."""

    def read(self) -> State:
        """The store as it is now.

        The logs of the tables are read first: none of them then is ahead of that of the store,
        unless that has lost commits.
        """
        tables = {table: self._read(table) for table in TABLES}
        store = self._read(STORE)
        number = max(log.number() for log in (store, *tables.values()))
        if store.table is None:
            files = pa.concat_tables(
                [_complete(log.files, tables["seconds"]) for log in tables.values()]
            )
            behind = {table: log.damage or "" for table, log in tables.items()}
            return State(number, files, behind, FILES.empty_table(), None, store.damage)
        chosen, behind = [], {}
        for table, log in tables.items():
            known = store.files.filter(pc.equal(store.files["table"], table))
            lost = known.filter(known["lost"])
            here, there = _named(known.filter(pc.invert(known["lost"]))), _named(log.files)
            changed, published = store.number(f"table:{table}"), log.number()
            foreign = FILES.empty_table()
            if log.table is not None and published == changed:
                # An earlier version of this package may have written beside this one.
                unknown = sorted(there.keys() - here.keys() - set(lost["path"].to_pylist()))
                foreign = log.files.filter(
                    pc.is_in(log.files["path"], pa.array(unknown, pa.string()))
                )
                foreign = _complete(foreign, tables["seconds"])
            if log.table is not None and (published > changed or len(foreign)):
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

        Raises:
            ConflictError: another process was faster; nothing has changed.
        """
        log = state.log or self._created(STORE, again=state.damage is not None)
        new = {file.path: file for file in added}
        gone = {file.path: file for file in removed if file.path not in new}
        before, after = _named(state.known), _named(state.files)
        if before != after:
            for file in stored_files(state.files):
                if file.path not in gone and before.get(file.path) != after[file.path]:
                    new.setdefault(file.path, file)
            for file in stored_files(state.known):
                if file.path not in after and file.path not in new:
                    gone[file.path] = file
        actions: list[Any] = [_store_action(file) for file in new.values()]
        now = int(time.time() * 1e3)
        for file in gone.values():
            if file.path in before:
                values = _store_partition(file)
                actions.append(RemoveAction(file.path, True, now, file.size or 0, values))
        changed = {file.table for file in (*new.values(), *gone.values())}
        numbers = {NUMBER: state.number + 1}
        numbers |= {f"table:{table}": state.number + 1 for table in changed}
        self._transact(STORE, log, actions, numbers)

    def publish(self) -> State:
        """Let the logs of the tables follow that of the store; returns the state."""
        for _ in range(MOST_TRIES):
            state = self.read()
            if state.log is None or not state.behind:
                break
            for table in sorted(state.behind, key=lambda table: table == "seconds"):  # it is last
                with suppress(ConflictError):  # another process does the same
                    self._follow(table, state)
        return state

    def checkpoint(self) -> None:
        """Sum up each log in one file."""
        for name in (STORE, *TABLES):
            log = self._read(name).table
            if log is not None:
                log.create_checkpoint()

    def replaced(self) -> Iterator[str]:
        """Paths of files that were replaced KEPT_HOURS ago."""
        for table in TABLES:
            log = self._read(table).table
            if log is None:
                continue
            for inside in log.vacuum(KEPT_HOURS, dry_run=True, enforce_retention_duration=False):
                if own_path(path := f"{table}/{inside}") is not None:
                    yield path

    def _follow(self, table: str, state: State) -> None:
        """Let the log of a table name the files of the state."""
        assert state.log is not None
        changed = state.log.transaction_version(f"table:{table}") or 0
        own = self._read(table)
        log = own.table
        if log is None:
            log = self._created(table, again=own.damage is not None)
            own = _Log(FILES.empty_table(), log)
        missing = set(delta_schema(table).names) - {field.name for field in log.schema().fields}
        if missing:  # columns that this version adds
            fields = [field for field in delta_schema(table) if field.name in missing]
            log.alter.add_columns(Schema.from_arrow(pa.schema(fields)).fields)
            own = self._read(table)
            if own.table is None:
                raise ConflictError
            log = own.table
        counting = state.files.filter(
            pc.and_(pc.equal(state.files["table"], table), pc.invert(state.files["lost"]))
        )
        before, after = _named(own.files), _named(counting)
        new = [f for f in stored_files(counting) if before.get(f.path) != after[f.path]]
        actions: list[Any] = [_table_action(file) for file in new]
        now = int(time.time() * 1e3)
        for file in stored_files(own.files):
            if file.path not in after:
                values: dict[str, str | None] = {"day": file.day} if file.day else {}
                actions.append(RemoveAction(file.inside, True, now, file.size or 0, values))
        numbers = {NUMBER: changed}
        if table == "seconds":
            numbers |= {file.source: 1 for file in new if file.source}
        self._transact(table, log, actions, numbers)

    def _transact(
        self, name: str, log: DeltaTable, actions: Sequence[Any], numbers: Mapping[str, int]
    ) -> None:
        """One commit of a log, with application transactions."""
        store = name == STORE
        schema = _STORE_SCHEMA if store else delta_schema(name)
        transactions = [Transaction(key, number) for key, number in numbers.items()]
        try:
            log.create_write_transaction(
                list(actions),
                "append",
                schema,
                _PARTITIONS if store else _table_partitions(name),
                commit_properties=CommitProperties(
                    app_transactions=transactions, max_commit_retries=MOST_TRIES
                ),
            )
        except CommitFailedError:
            raise ConflictError from None
        if store and self._files.folder is not None:  # logs of tables are made again from it
            place = self._files.folder / name / "_delta_log"
            sync(max(place.glob("*.json")), place)

    # Reading and making single logs

    def _read(self, name: str) -> _Log:
        """A log as it is now."""
        try:
            table = self._open(name)
            if table is None:
                return _Log(FILES.empty_table())
            before, version, known = self._known.get(name, (None, -1, None))
            if known is not None and before is table and version == table.version():
                return known
            files = _files_of(name, table)
            numbers = [NUMBER, *(f"table:{each}" for each in TABLES if name == STORE)]
            if any(not 0 <= (table.transaction_version(n) or 0) < HIGHEST for n in numbers):
                raise DamagedLogError("it has an impossible number")
            self._known[name] = table, table.version(), _Log(files, table)
            return self._known[name][2]
        except DamagedLogError as error:
            self._opened.pop(name, None)
            rest = (FILES.empty_table(), frozenset[str]()) if name == STORE else self._rest(name)
            return _Log(rest[0], None, str(error), rest[1])

    def _open(self, name: str) -> DeltaTable | None:
        """A log; None if there is none. DamagedLogError: it cannot be read, although it is there."""
        place = None if self._files.folder is None else self._files.folder / name / "_delta_log"
        if place is not None:
            if place.parent.is_symlink() or place.is_symlink():
                raise DamagedLogError("a link is in its place")
            if not place.is_dir():
                return None
            if any(entry.is_symlink() for entry in place.iterdir()):
                raise DamagedLogError("it contains a link")
        # A log grows with every bag: only what is new is read, unless the store is another one.
        known, stamp = self._opened.pop(name, (None, None))
        with suppress(DeltaError):  # commits since then may be in a checkpoint alone
            if known is not None and stamp is not None and stamp == self._stamp(name, known):
                following = place and place / f"{known.version() + 1:020}.json"
                if following is None or following.exists():
                    known.update_incremental()
                self._opened[name] = known, self._stamp(name, known)
                return known
        try:
            found = DeltaTable(f"{self._files.address}/{name}", storage_options=self._files.options)
        except TableNotFoundError:
            if self._names(name):
                raise DamagedLogError("its first commit is lost") from None
            return None
        except DeltaError as error:
            self._names(name)  # raises OSError if the files cannot be read at all
            raise DamagedLogError(_short(error)) from None
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

    def _created(self, name: str, *, again: bool) -> DeltaTable:
        """A new log in place of none, or of a damaged one."""
        if again:
            if self._read(name).table is not None:  # another process has made it
                raise ConflictError
            self._files.discard_log(name)
        address = f"{self._files.address}/{name}"
        if self._files.folder is not None:
            self._files.path(f"{name}/_delta_log/x").parent.mkdir(parents=True, exist_ok=True)
        store = name == STORE
        with suppress(CommitFailedError):  # another process makes it
            DeltaTable.create(
                address,
                _STORE_SCHEMA if store else delta_schema(name),
                mode="ignore",
                partition_by=_PARTITIONS if store else _table_partitions(name),
                configuration=CONFIGURATION,
                storage_options=self._files.options,
            )
        made = self._read(name)
        if made.table is None or made.number() != 0 or len(made.files):
            raise ConflictError
        return made.table

    def _rest(self, name: str) -> tuple[pa.Table, frozenset[str]]:
        """Files that count by what is left of a damaged log, and its application transactions.

        Each commit is a list of files that count from then on, or do not count any more. Without one
        of them files can be named that a lost commit has replaced: of live writers, those whose rows
        another one has. Bags with too many rows are found by their records.
        """
        named: dict[str, dict[str, Any]] = {}
        sources: set[str] = set()
        for action in self._actions(name):
            add, remove, transaction = (action.get(kind) for kind in ("add", "remove", "txn"))
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
                rows.append(_row_of(name, path, add))
        files = _checked(pa.Table.from_pylist(rows, FILES))
        kept = _without_replaced(stored_files(files))
        return files.filter(pc.is_in(files["path"], pa.array(kept, pa.string()))), frozenset(
            sources
        )

    def _actions(self, name: str) -> Iterator[dict[str, Any]]:
        """Actions of the newest checkpoint of a log that can be read, and of the commits after it."""
        names, begin = sorted(self._files.log_names(name)), -1
        for each in reversed(names):
            if match := re.fullmatch(r"(\d{20})\.checkpoint\.parquet", each):
                with suppress(OSError, pa.ArrowException):
                    content = self._files.read(f"{name}/_delta_log/{each}")
                    table = pq.read_table(pa.BufferReader(content))
                    known = [n for n in ("add", "remove", "txn") if n in table.schema.names]
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


def _short(error: Exception) -> str:
    """What a library says about a log, in one line."""
    text = " ".join(re.sub("\x1b\\[\\d*m", "", str(error)).split())
    return f"it cannot be read: {text[:120]}"


def delta_schema(table: str) -> pa.Schema:
    """Schema of a table as its log has it: arm and day included; anything may be missing."""
    columns = [column.with_nullable(True) for column in arrow_schema(table)]
    if table not in UNDIVIDED:
        columns = [pa.field("arm", pa.string()), *columns, pa.field("day", pa.date32())]
    return pa.schema(columns)


def _table_partitions(table: str) -> list[str] | None:
    return None if table in UNDIVIDED else ["day"]


# Files as rows of FILES.


def stored_files(files: pa.Table) -> list[StoredFile]:
    """From rows of FILES."""
    found = []
    for row in files.to_pylist():
        known = row["start"] is not None and row["end"] is not None
        covered = None
        with suppress(ValueError, TypeError):
            covered = None if row["covered"] is None else ranges_from(json.loads(row["covered"]))
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
            )
        )
    return found


def _named(files: pa.Table) -> dict[str, tuple[int | None, bool]]:
    """Size and loss of files by path."""
    columns = (files[name].to_pylist() for name in ("path", "size", "lost"))
    return {path: (size, lost) for path, size, lost in zip(*columns, strict=True)}


def _files_of(name: str, log: DeltaTable) -> pa.Table:
    """Files that a log names. DamagedLogError: its content makes no sense."""
    try:
        actions = pa.table(log.get_add_actions(flatten=True))
    except (DeltaError, pa.ArrowException, ValueError) as error:
        raise DamagedLogError(_short(error)) from None
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
        "lost": pc.fill_null(pc.equal(column("partition.lost", kind=pa.string()), "true"), False),
    }
    checked = _checked(pa.table(found, schema=FILES))
    if len(checked) < len(actions):
        raise DamagedLogError("it names files that are not of the store")
    return checked


def _checked(files: pa.Table) -> pa.Table:
    """Those files whose paths are of the store's own, with what the paths state."""
    path = files["path"].combine_chunks()
    stated = [pc.extract_regex(path, pattern) for pattern in OWN_PATHS]

    def of(name: str) -> pa.Array:
        columns = [
            pc.struct_field(each, name) for each in stated if each.type.get_field_index(name) >= 0
        ]
        return pc.coalesce(*columns)

    for name in ("table", "day", "arm", "crc32"):
        files = files.set_column(files.schema.get_field_index(name), name, of(name))
    days = [day for day in files["day"].unique().to_pylist() if day is None or _is_day(day)]
    known = pc.and_(
        pc.is_valid(files["table"]),
        pc.is_in(files["day"], pa.array(days, pa.string()), skip_nulls=False),
    )
    return files.filter(known)


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return datetime.strptime(text, "%Y-%m-%d").year >= 1
    return False


def _complete(files: pa.Table, seconds: _Log) -> pa.Table:
    """Those files whose sources the log of `seconds` has, and all records.

    Files of several sources have complete ones only.
    """
    first, last = files["first_source"], files["last_source"]
    alone = pc.fill_null(pc.equal(first, last), False)
    alone = pc.and_(alone, pc.invert(pc.is_in(files["table"], pa.array(UNDIVIDED))))
    names = first.filter(alone).unique().to_pylist()
    done = pa.array([name for name in names if seconds.has(name)], pa.string())
    return files.filter(pc.or_(pc.invert(alone), pc.is_in(first, done)))


def _row_of(table: str, path: str, add: Mapping[str, Any]) -> dict[str, Any]:
    """A row of FILES from an action of a log; raises any of several errors if it is none."""
    stats = json.loads(add.get("stats") or "{}")
    low, high = stats.get("minValues", {}), stats.get("maxValues", {})
    name, instant = "model" if table == "models" else "source", TABLES[table][0].name
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
    }


def _without_replaced(files: Sequence[StoredFile]) -> list[str]:
    """Paths of files without those of live writers whose time another file of the same writer has."""
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
    path: str, file: StoredFile, partition: dict[str, str | None], names: Mapping[str, Any]
) -> AddAction:
    """An action with the first and last values of columns, by which readers select files."""
    ends: list[dict[str, Any]] = [{}, {}]
    for column, values in names.items():
        for end, value in zip(ends, values, strict=True):
            if value not in (None, ""):
                end[column] = value
    stats = {"numRecords": file.rows, "minValues": ends[0], "maxValues": ends[1]}
    now = int(time.time() * 1e3)
    return AddAction(path, file.size or 0, partition, now, True, json.dumps(stats))


def _store_partition(file: StoredFile) -> dict[str, str | None]:
    return {"table": file.table, "day": file.day, "lost": "true" if file.lost else "false"}


def _store_action(file: StoredFile) -> AddAction:
    covered = None
    if file.covered is not None and len(file.covered.edges) <= MOST_RANGES:
        covered = json.dumps(file.covered.pairs())
    names = {
        "arm": (file.arm, file.arm),
        "source": file.sources,
        "time": [None, None] if file.times is None else list(map(_instant_text, file.times)),
        "covered": (covered, None),
    }
    return _add_action(file.path, file, _store_partition(file), names)


def _table_action(file: StoredFile) -> AddAction:
    name, instant = "model" if file.table == "models" else "source", TABLES[file.table][0].name
    names: dict[str, Any] = {name: file.sources}
    if file.arm is not None:
        names["arm"] = (file.arm, file.arm)
    if file.times is not None:
        names[instant] = list(map(_instant_text, file.times))
    partition: dict[str, str | None] = {"day": file.day} if file.day else {}
    return _add_action(file.inside, file, partition, names)
