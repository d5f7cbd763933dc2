"""HistoryStore: the history of many arms as Delta Lake tables, in a folder or on an S3 server.

    STORE/<table>/_delta_log/                                    the log: which files count
    STORE/<table>/day=<YYYY-MM-DD>/<arm>/<source>-<crc>.parquet  rows of a source on a day
    STORE/models/, STORE/sources/                                tables without days

Each source (a bag, or a live writer) is one transaction per table, that of `seconds` last: a source
is in the store if the log of `seconds` has its application transaction. What a killed process wrote
before that does not count, and is replaced when the source is added again. A second application
transaction per arm lets two writers of one arm conflict, so that no time of it counts twice: the
later one reads again what others cover, which the footers of the files of `seconds` state.

What is lost, changed or foreign is reported (`holdings`) and does not count; adding a bag again
mends it. Nothing that the logs do not name is ever removed. Stores of earlier versions are read as
they are, and become tables with the first writing (`take_over`).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.plant.energy_parts import NOTHING, TimeRanges
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.plant.schema import (
    LIVE,
    TABLES,
    UNDIVIDED,
    SourceKeys,
    arrow_schema,
    model_row,
)
from ur_energy_model.plant.store_files import (
    COUNTED,
    OldSource,
    SourceRecord,
    StoredFile,
    StoreError,
    StoreFiles,
    by_day,
    sync,
    with_arm,
)

MOST_LINES = 20
"""Warnings; of more, the number."""
MOST_CHECKED = 256_000_000
"""Of larger files together, sizes are compared, not contents [bytes]."""
MOST_TRIES = 30
"""Of a commit beside those of other processes."""
MOST_SMALL = 64
"""Files of a table and day from which adding compacts them."""
STILL_WRITTEN = 3 * 3600 * 10**9
"""Files of live writers of the last hours [ns] are not compacted: the writer replaces them."""
KEPT_HOURS = 24
"""For which files that were replaced stay, for those who read them."""
CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 12 hours",
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
}
"""Of the tables; fifty estimators commit 70,000 times a day."""


class OverlapError(Exception):
    """Another source covers some of the time of the rows that were to be written."""


@dataclass(frozen=True)
class Holdings:
    """What a store holds.

    Attributes:
        files: those that count, by table.
        warnings: what is lost, changed, left out or foreign, in one line each.
    """

    files: Mapping[str, Sequence[StoredFile]]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Compaction:
    """Result of compacting a store.

    Attributes:
        files_before, files_after: number of files that count.
        removed: number of files that were replaced long ago.
    """

    files_before: int
    files_after: int
    removed: int


class HistoryStore:
    """A store in a folder, or below an s3:// address.

    Credentials and region come from the environment or the files of AWS (AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_REGION, ~/.aws), the server from AWS_ENDPOINT_URL.

    Args:
        address: folder, made by the first writing, or s3://BUCKET/PREFIX.

    Attributes:
        address: absolute path of the folder, or s3:// address.
        notes: what writing has found that a user should see.

    Raises:
        StoreError: no such address.
    """

    def __init__(self, address: str | Path) -> None:
        self._files = StoreFiles(str(address))
        self.address = self._files.address
        self.notes: list[str] = []
        self._logs: dict[str, tuple[DeltaTable, tuple[int, int] | None]] = {}
        """Tables of a folder, each with the stamp of its last commit."""
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self._models: set[str] = set()

    def has(self, source: str) -> bool:
        """Whether a source is complete: committed, and all its rows are there, as written.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            seconds = self._open("seconds")
            return seconds is not None and self._has(seconds, source)

    def sources(self) -> Iterator[SourceRecord]:
        """Records of all sources that are complete.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            seconds = self._open("seconds")
            for record in self._records():
                if seconds is not None and seconds.transaction_version(record.source) is not None:
                    yield record

    def covered(self, arm: str, start: int, *, besides: str) -> TimeRanges:
        """Time of an arm that the sources besides one cover from a host time [ns] on.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            return self._covered(self._open("seconds"), arm, start, besides)

    def holdings(
        self, first: str | None = None, last: str | None = None, arms: Collection[str] = ()
    ) -> Holdings:
        """Compare what the logs state with what the store holds.

        Args:
            first: first day that matters, YYYY-MM-DD; None for the first one.
            last: last day that matters; None for the last one.
            arms: names of the arms that matter; () for all.

        Raises:
            StoreError: the store cannot be read, or is none.
        """

        def matters(file: StoredFile) -> bool:
            return file.table in UNDIVIDED or (
                (first is None or str(file.day) >= first)
                and (last is None or str(file.day) <= last)
                and (not arms or file.arm in arms)
            )

        with self._problems("read"):
            seconds, logged = self._snapshot()
            before = list(self._files.old_sources())
            old = [each for each in before if not _taken_over(each, seconds)]
            if seconds is None and not old:
                raise StoreError(
                    self.address,
                    "is no history store, or holds nothing yet",
                    "add recordings with ur_energy history add",
                )
            done = self._complete(seconds, logged)
            files = [*filter(done.__contains__, logged), *(f for each in old for f in each.files)]
            records = {record.source: record for record in self._records()}
            wrong, foreign = self._compared(files, logged, before)
            lines = [
                *self._lost([file for file in files if matters(file)], wrong, records, old),
                *self._short(done, records),
                *foreign,
            ]
            good: dict[str, list[StoredFile]] = {table: [] for table in TABLES}
            for file in files:
                if matters(file) and file.path not in wrong:
                    good[file.table].append(file)
            more = len(lines) - MOST_LINES
            if more > 0:
                lines[MOST_LINES:] = [f"and {more} more of this kind"]
            return Holdings(good, tuple(lines))

    def rows(self, table: str, holdings: Holdings) -> ds.Dataset:
        """Rows of the files of a table that count, with the columns of today's schema.

        Columns that a file lacks are null; a table without files has no rows. Arm and day are text.
        """
        return self._files.dataset(table, holdings.files[table])

    def add(
        self,
        record: SourceRecord,
        tables: Mapping[str, pa.Table],
        ranges: TimeRanges,
        model: tuple[EnergyModel | None, Path | None] | None = None,
        *,
        checked: bool = True,
    ) -> SourceRecord | None:
        """Write a source; one whose files were lost or changed is written again.

        Args:
            record: of the source.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.
            model: with which its energies were computed, and its path, see `keep_model`.
            checked: whether other sources must not cover the same time.

        Returns:
            the record; None if the source is complete already.

        Raises:
            OverlapError: another source covers some of that time meanwhile; nothing counts.
            StoreError: the store cannot be written.
        """
        source, arm = record.source, record.arm
        with self._problems("written"):
            seconds = self._made("seconds")
            if self._has(seconds, source):
                return None
            before = seconds.transaction_version(source)
            record = replace(record, rows={name: len(rows) for name, rows in tables.items()})
            if model is not None:
                self.keep_model(SourceKeys(source, record.robot, record.model), *model)
            joints = joint_rows(with_arm(tables["seconds"], arm))
            rows = {**tables, "joint_seconds": joints, "sources": record.table()}
            rows["seconds"] = rows.pop("seconds")  # the last one to be committed
            actions = {
                table: [
                    self._files.write(table, arm, day, source, part, within)
                    for day, part, within in by_day(table, each, ranges, source)
                ]
                for table, each in rows.items()
            }
            for _ in range(MOST_TRIES):
                seconds = self._made("seconds")
                if seconds.transaction_version(source) != before:
                    return None  # another process was faster
                taken = self._covered(seconds, arm, record.start, source)
                if checked and any(taken.within(*pair) for pair in ranges.pairs()):
                    raise OverlapError
                if before is not None:
                    self._note(f"{record.bag}: files of it were lost or changed, it is added again")
                with suppress(CommitFailedError):
                    for table, added in actions.items():
                        log = seconds if table == "seconds" else self._made(table)
                        gone = self._spoilt(table, log, source)
                        rest = [] if before is None else self._without(gone, source, ranges)
                        self._commit(table, log, [*added, *rest], gone, source, arm)
                    return record
        raise self._busy()

    def write_live(
        self,
        table: str,
        arm: str,
        source: str,
        rows: tuple[str, pa.Table, TimeRanges],
        replaced: Collection[str] = (),
    ) -> list[str]:
        """Commit rows of a live writer, perhaps in place of some of its files.

        Args:
            table: of the rows.
            arm: name of the arm.
            source: name of the writer.
            rows: their day, the rows, and the time that they cover.
            replaced: paths of its files that the rows replace.

        Returns:
            paths of the new files.

        Raises:
            OverlapError: another source covers some of that time meanwhile.
            StoreError: the store cannot be written.
        """
        day, part, ranges = rows
        with self._problems("written"):
            new = [self._files.write(table, arm, day, source, part, ranges)] if len(part) else []
            for _ in range(MOST_TRIES):
                log = self._made(table)
                if ranges:
                    taken = self._covered(log, arm, ranges.pairs()[0][0], source)
                    if any(taken.within(*pair) for pair in ranges.pairs()):
                        raise OverlapError
                gone = [file for file in _logged(table, log) if file.path in replaced]
                with suppress(CommitFailedError):
                    self._commit(table, log, new, gone, source, arm)
                    return [f"{table}/{action.path}" for action in new]
        raise self._busy()

    def keep_model(self, keys: SourceKeys, model: EnergyModel | None, path: Path | None) -> None:
        """Write the row of a model, unless it is there.

        Args:
            keys: of a source whose energies were computed with the model.
            model: the model; None for the generic one.
            path: of its file; None for the generic one.

        Raises:
            StoreError: the store cannot be written.
        """
        name = re.sub(r"[^A-Za-z0-9._+-]", "_", f"{keys.model}-{keys.robot}")
        if name not in self._models:
            with self._problems("written"):
                self._keep_model(name, model_row(keys, model, path))
            self._models.add(name)

    def compact(self, *, least: int = 2) -> Compaction:
        """Write one file per arm and day in place of many, and remove what was replaced long ago.

        Args:
            least: files of a table and day (of all arms) from which they are compacted.

        Raises:
            StoreError: the store cannot be written.
        """
        self.take_over()
        with self._problems("written"):
            seconds, files = self._snapshot()
            complete, removed = self._complete(seconds, files), 0
            of_day = Counter((file.table, file.day) for file in files)
            recent = time.time_ns() - STILL_WRITTEN
            groups: dict[tuple[str, object, object, bool], list[StoredFile]] = {}
            for file in files:
                busy = file.live and file.times is not None and file.times[1] > recent
                # Files of several sources have complete ones only: readers rely on it.
                if file in complete and not busy and of_day[file.table, file.day] >= least:
                    key = (file.table, file.day, file.arm, file.live)
                    groups.setdefault(key, []).append(file)
            for (table, *_), group in groups.items():
                if len(group) > 1 and all(map(self._files.is_good, group)):
                    self._join(table, group)
            for table in TABLES:
                log = self._open(table)
                if log is not None:
                    log.create_checkpoint()
                    removed += len(log.vacuum(KEPT_HOURS, dry_run=False))
            return Compaction(len(files), len(self._snapshot()[1]), removed)

    def compact_if_many(self) -> None:
        """Compact the days of many files.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"):
            for table in ("seconds", "sources"):
                days = Counter(file.day for file in _logged(table, self._open(table)))
                if max(days.values(), default=0) > MOST_SMALL:
                    self.compact(least=MOST_SMALL)
                    return

    def take_over(self) -> None:
        """Make tables of what an earlier version wrote; killed meanwhile, it can be repeated.

        Raises:
            StoreError: the store cannot be read or written.
        """
        with self._problems("written"):
            for old in self._files.old_sources():
                if old.name:
                    tables, ranges = old.tables(self._files)
                    if old.record is not None or len(tables["seconds"]):
                        record = old.record or old.made_up(tables["seconds"])
                        self.add(record, tables, ranges, checked=False)
                else:
                    rows = self._files.dataset("models", old.files).to_table()
                    self._keep_model(Path(old.files[0].path).stem, rows)
                for name in filter(None, (*(file.path for file in old.files), old.name)):
                    self._files.remove(name)

    # The logs of the tables

    def _open(self, table: str, *, make: bool = False) -> DeltaTable | None:
        """The table as its log is now; None if there is none, or a link in its place.

        Args:
            table: its name.
            make: make it if there is none.
        """
        address, folder = f"{self.address}/{table}", self._files.folder
        log = Path() if folder is None else folder / table / "_delta_log"
        there = log.is_dir() and not log.is_symlink() and not log.parent.is_symlink()
        if table in self._logs:  # a log grows with every bag: only what is new is read
            known, stamp = self._logs.pop(table)
            if there and stamp is not None and stamp == _stamp(log, known):
                with suppress(DeltaError):  # commits since then may be in a checkpoint alone
                    if (log / f"{known.version() + 1:020}.json").exists():
                        known.update_incremental()
                    self._logs[table] = known, _stamp(log, known)
                    return known
        if folder is None or there:
            with suppress(TableNotFoundError):
                found = DeltaTable(address, storage_options=self._files.options)
                if folder is not None:
                    self._logs[table] = found, _stamp(log, found)
                return found
        if not make:
            return None
        if folder is not None:
            self._files.path(f"{table}/_delta_log/x").parent.mkdir(parents=True, exist_ok=True)
        with suppress(CommitFailedError):  # another process makes it
            DeltaTable.create(
                address,
                delta_schema(table),
                mode="ignore",
                partition_by=_partitions(table),
                configuration=CONFIGURATION,
                storage_options=self._files.options,
            )
        return DeltaTable(address, storage_options=self._files.options)

    def _made(self, table: str) -> DeltaTable:
        found = self._open(table, make=True)
        assert found is not None
        return found

    def _snapshot(self) -> tuple[DeltaTable | None, list[StoredFile]]:
        """The table `seconds`, and the files of all tables at one moment.

        A source is complete once `seconds` has it, and the other tables have it by then: they are
        read again if `seconds` has changed meanwhile.
        """
        for _ in range(MOST_TRIES):
            seconds = self._open("seconds")
            version = None if seconds is None else seconds.version()
            files = [
                file
                for table in TABLES
                for file in _logged(table, seconds if table == "seconds" else self._open(table))
            ]
            again = self._open("seconds")
            if version is None or again is None or again.version() == version:
                break
        return seconds, files

    def _complete(self, seconds: DeltaTable | None, files: Iterable[StoredFile]) -> set[StoredFile]:
        """Those files whose sources are complete."""
        files = list(files)
        known = {file.source for file in files if file.table == "seconds"}
        found = set()
        for file in files:
            source = file.source
            if file.table != "models" and source is not None and source not in known:
                if seconds is None or seconds.transaction_version(source) is None:
                    continue
                known.add(source)
            found.add(file)
        return found

    def _has(self, seconds: DeltaTable, source: str) -> bool:
        """Whether a source is committed and its rows are intact."""
        record = None
        if seconds.transaction_version(source) is not None:
            record = next(iter(self._records(source)), None)
        return record is not None and all(
            self._count(table, seconds if table == "seconds" else self._open(table), record)
            == record.rows[table]
            for table in COUNTED
        )

    def _count(self, table: str, log: DeltaTable | None, record: SourceRecord) -> int:
        """Rows of a source in the files of a table that are whole."""
        own = [
            file
            for file in _logged(table, log)
            if file.may_hold(record.source) and file.arm == record.arm and self._files.is_good(file)
        ]
        mixed = [file for file in own if file.source is None]
        count = sum(file.rows or 0 for file in own if file.source is not None)
        if mixed:
            of_source = ds.field("source") == record.source
            count += self._files.dataset(table, mixed).count_rows(filter=of_source)
        return count

    def _records(self, source: str | None = None) -> list[SourceRecord]:
        """Records of the table `sources`, of one source or all."""
        files = [
            file
            for file in _logged("sources", self._open("sources"))
            if (source is None or file.may_hold(source)) and self._files.is_good(file)
        ]
        condition = None if source is None else ds.field("source") == source
        return SourceRecord.of(self._files.dataset("sources", files).to_table(filter=condition))

    def _spoilt(self, table: str, log: DeltaTable, source: str) -> list[StoredFile]:
        """Files that adding a source replaces: earlier ones of it, and those of several."""
        own = ds.field("source") == source
        return [
            file
            for file in _logged(table, log)
            if file.source == source
            or (
                file.source is None
                and file.may_hold(source)
                and (
                    not self._files.is_good(file)
                    or self._files.dataset(table, [file]).count_rows(filter=own)
                )
            )
        ]

    def _without(
        self, files: Iterable[StoredFile], source: str, ranges: TimeRanges
    ) -> Iterator[AddAction]:
        """Rows of other sources in files of several that are whole, as files of their own."""
        others = ds.field("source") != source
        for file in files:
            if file.source is None and self._files.is_good(file):
                rows = self._files.dataset(file.table, [file]).to_table(filter=others)
                covered = NOTHING
                if file.table not in UNDIVIDED:
                    rows = rows.drop_columns(["day"])
                    covered = TimeRanges.of(self._files.ranges(file)).without(ranges)
                place = (file.table, file.arm or "", file.day or "")
                yield self._files.write(*place, "joined", rows, covered)

    def _commit(
        self,
        table: str,
        log: DeltaTable,
        added: Sequence[AddAction],
        gone: Iterable[StoredFile],
        source: str,
        arm: str,
    ) -> None:
        """One transaction of a source.

        Raises:
            CommitFailedError: a process has committed the same source since the log was read, or,
                to `seconds`, another one of the same arm.
        """
        kept, now = {action.path for action in added}, int(time.time() * 1e3)
        removed = [
            RemoveAction(file.inside, True, now, file.size, {"day": file.day} if file.day else {})
            for file in gone
            if file.inside not in kept
        ]
        names = [source, *([f"arm:{arm}"] if table == "seconds" else [])]
        transactions = [Transaction(n, (log.transaction_version(n) or 0) + 1) for n in names]
        log.create_write_transaction(
            [*added, *removed],
            "append",
            delta_schema(table),
            _partitions(table),
            commit_properties=CommitProperties(
                app_transactions=transactions, max_commit_retries=MOST_TRIES
            ),
        )
        if self._files.folder is not None:
            logs = self._files.folder / table / "_delta_log"
            sync(max(logs.glob("*.json")), logs)

    def _keep_model(self, name: str, rows: pa.Table) -> None:
        log = self._made("models")
        if log.transaction_version(name) is None:
            added = self._files.write("models", "", "", name, rows, NOTHING)
            with suppress(CommitFailedError):  # another process has written the same row
                self._commit("models", log, [added], (), name, "")

    def _join(self, table: str, group: Sequence[StoredFile]) -> None:
        """Replace files of complete sources of one arm and day by one."""
        rows = self._files.dataset(table, group).to_table()
        if table not in UNDIVIDED:
            rows = rows.drop_columns(["day"]).sort_by(TABLES[table][0].name)
        pairs = [pair for f in group if table == "seconds" for pair in self._ranges_of(f)]
        arm, day = group[0].arm or "", group[0].day or ""
        name = f"{LIVE if group[0].live else ''}joined"
        added = self._files.write(table, arm, day, name, rows, TimeRanges.of(pairs))
        log = self._made(table)
        if {file.path for file in _logged(table, log)}.issuperset(file.path for file in group):
            with suppress(CommitFailedError):  # who replaced one of them meanwhile is right
                self._commit(table, log, [added], group, f"joined:{arm}:{day}", arm)

    def _covered(
        self, seconds: DeltaTable | None, arm: str, start: int, besides: str
    ) -> TimeRanges:
        found: list[tuple[int, int]] = []
        for file in _logged("seconds", seconds):
            late = file.times is None or file.times[1] + 2 * 10**9 >= start
            if file.arm == arm and file.source != besides and late:
                found += self._ranges_of(file)
        return TimeRanges.of(found)

    def _ranges_of(self, file: StoredFile) -> list[tuple[int, int]]:
        """Time that a file of `seconds` covers; nothing if it does not count."""
        if file.path not in self._ranges:
            if not self._files.is_good(file):
                return []
            self._ranges[file.path] = self._files.ranges(file)
        return self._ranges[file.path]

    # What is wrong with a store, in words

    def _compared(
        self,
        files: Sequence[StoredFile],
        logged: Sequence[StoredFile],
        old: Sequence[OldSource],
    ) -> tuple[dict[str, str], list[str]]:
        """What is wrong with files ("lost", "changed") by path, and lines about foreign ones."""
        there = {n: size for table in TABLES for n, size in self._files.listing(table).items()}
        look = self._files.folder is not None and sum(f.size or 0 for f in files) <= MOST_CHECKED
        wrong = {}
        for file in files:
            size = there.get(file.path, -1)
            if size == -1:
                wrong[file.path] = "lost"
            elif (
                size is None
                or file.size not in (None, size)
                or (look and not self._files.is_good(file))
            ):
                wrong[file.path] = "changed"
        known = {file.path for file in (*logged, *files)} | {each.name for each in old}
        known |= {file.path for each in old for file in each.files}
        names = {path.rpartition("/")[2] for path in known}
        copies: dict[str, list[str]] = {}
        for path, size in there.items():
            name = path.rpartition("/")[2]
            # Of our files that no log names, some were replaced, some are of killed processes.
            ours = size is not None and StoredFile(path).ours and name not in names
            if path not in known and not ours:
                copies.setdefault(name, []).append(path)
        return wrong, [
            f"{_some(paths)}: no log of the store names it (a copy?); it does not count, and is "
            "left as it is"
            for paths in copies.values()
        ]

    def _lost(
        self,
        files: Sequence[StoredFile],
        wrong: Mapping[str, str],
        records: Mapping[str, SourceRecord],
        old: Sequence[OldSource],
    ) -> Iterator[str]:
        """Lines about files that are lost or changed."""
        records = {**records, **{each.record.source: each.record for each in old if each.record}}
        found: dict[tuple[str, ...], list[str]] = {}
        for file in files:
            if file.path in wrong:
                bags = [
                    record.bag
                    for record in records.values()
                    if file.source == record.source
                    or (file.source is None and file.arm == record.arm and _overlap(file, record))
                ]
                found.setdefault((wrong[file.path], *filter(None, bags)), []).append(file.path)
        for (word, *bags), paths in found.items():
            where = f"{_some(paths)} {'are' if len(paths) > 1 else 'is'} {word}, the sums lack"
            if bags:
                yield f"{where} its rows; add {' '.join(bags)} again"
            else:
                yield f"{where} the rows that the estimator wrote there"

    def _short(self, files: Iterable[StoredFile], records: Mapping[str, SourceRecord]) -> list[str]:
        """Lines about bags of which fewer rows are left than they had.

        Files of several bags that are lost are replaced when one of these is added again; then the
        rows of the others are still missing.
        """
        have = sum(f.rows or 0 for f in files if f.table == "seconds" and not f.live)
        bags = [record for record in records.values() if record.bag]
        if have >= sum(record.rows["seconds"] for record in bags):
            return []
        return [
            f"{record.bag}: rows of it are lost; add it again"
            for record in bags
            if self._open("seconds") is not None and not self.has(record.source)
        ]

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _busy(self) -> StoreError:
        return StoreError(
            self.address, "is written by others again and again", "repeat the command later"
        )

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        """Errors of files, servers and tables as one of this package."""
        try:
            yield
        except (OSError, ValueError, DeltaError, pa.ArrowException) as error:
            if isinstance(error, UrEnergyError):
                raise
            problem = error.strerror if isinstance(error, OSError) else None
            problem = problem or " ".join(re.sub("\x1b\\[\\d*m", "", str(error)).split())
            raise StoreError(
                self.address,
                f"cannot be {what} ({problem})",
                "check the place and its free space, then repeat the command",
            ) from error


def _stamp(log: Path, table: DeltaTable) -> tuple[int, int] | None:
    """Stamp of the last commit of a table, which differs in another store in its place."""
    with suppress(FileNotFoundError):
        status = (log / f"{table.version():020}.json").stat()
        return status.st_ino, status.st_mtime_ns
    return None


def delta_schema(table: str) -> pa.Schema:
    """Schema of a table as its log has it: arm and day included; anything may be missing."""
    columns = [column.with_nullable(True) for column in arrow_schema(table)]
    if table not in UNDIVIDED:
        columns.insert(0, pa.field("arm", pa.string()))
        columns.append(pa.field("day", pa.date32()))
    return pa.schema(columns)


def _partitions(table: str) -> list[str] | None:
    return None if table in UNDIVIDED else ["day"]


def _logged(table: str, log: DeltaTable | None) -> list[StoredFile]:
    """Files that count by the log of a table."""
    name, first = "model" if table == "models" else "source", TABLES[table][0].name
    actions = [] if log is None else pa.table(log.get_add_actions(flatten=True)).to_pylist()
    found = []
    for row in actions:
        low, high = row.get(f"min.{first}"), row.get(f"max.{first}")
        crc32 = re.search(r"-([0-9a-f]{8})\.parquet$", row["path"])
        found.append(
            StoredFile(
                path=f"{table}/{row['path']}",
                size=row["size_bytes"],
                crc32=None if crc32 is None else int(crc32[1], 16),
                rows=row["num_records"],
                day=None if table in UNDIVIDED else str(row["partition.day"]),
                arm=row.get("min.arm"),
                sources=(row.get(f"min.{name}") or "", row.get(f"max.{name}") or ""),
                times=(_ns(low), _ns(high)) if isinstance(low, datetime) and high else None,
            )
        )
    return found


def _taken_over(old: OldSource, seconds: DeltaTable | None) -> bool:
    """Whether a killed process has made tables of it, and has not removed its files yet."""
    source = Path(old.name).stem
    return bool(source and seconds and seconds.transaction_version(source) is not None)


def _overlap(file: StoredFile, record: SourceRecord) -> bool:
    first, last = file.times or (0, 0)
    return first <= record.end and record.start <= last + 10**9


def _ns(time: datetime) -> int:
    """Nanoseconds since 1970."""
    return int(np.datetime64(time.replace(tzinfo=None), "us").astype(np.int64)) * 1000


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} more file{'s' * (more > 1)}"
