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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ur_energy_model.errors import RecordingError, UrEnergyError
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
    OWN_NAME,
    OldSource,
    SourceRecord,
    StoredFile,
    StoreError,
    StoreFiles,
    divided,
    nanoseconds,
    sync,
    with_arm,
)

MOST_LINES = 20  # warnings; of more, the number
MOST_CHECKED = 256_000_000  # of larger files together, sizes are compared, not contents [bytes]
MOST_TRIES = 30  # of a commit beside those of other processes
MOST_SMALL = 64  # files of a table and day from which adding compacts them
STILL_WRITTEN = 3 * 3600 * 10**9
"""Files of live writers of the last hours [ns] are not compacted: the writer replaces them."""
MOST_DAYS = 400  # of one source: a recording that seems to be longer has a damaged clock
KEPT_HOURS = 24  # for which files that were replaced stay, for those who read them
CONFIGURATION: dict[str, str | None] = {
    "delta.logRetentionDuration": "interval 12 hours",
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
}
"""Of the tables; fifty estimators commit 70,000 times a day."""


class OverlapError(Exception):
    """Another source covers some of the time of the rows that were to be written."""


@dataclass(frozen=True)
class Holdings:
    """What a store holds: files that count by table; what is lost or foreign, a line each."""

    files: Mapping[str, Sequence[StoredFile]]
    warnings: tuple[str, ...]


class HistoryStore:
    """A store in a folder, which the first writing makes, or below s3://BUCKET/PREFIX.

    `address` is the absolute path or s3:// address, `notes` what writing has found that a user
    should see. Credentials, region and server come from the environment or the files of AWS. All
    methods raise StoreError if the store cannot be read or written.

    Raises:
        StoreError: no such address.
    """

    def __init__(self, address: str | Path) -> None:
        self._files = StoreFiles(str(address))
        self.address = self._files.address
        self.notes: list[str] = []
        self._logs: dict[str, tuple[DeltaTable, tuple[int, int] | None]] = {}
        """Tables that were read, each with the stamp of its last commit."""
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self._models: set[str] = set()

    def has(self, source: str) -> bool:
        """Whether a source is committed, and all its rows are there as written."""
        with self._problems("read"):
            records = self._records(source) if _has(self._open("seconds"), source) else []
            return bool(records) and all(
                count
                == sum(
                    self._rows_of(source, file) or 0
                    for file in self._logged(table)
                    if file.arm == records[0].arm
                )
                for table, count in records[0].rows.items()
            )

    def covered(self, arm: str, start: int, *, besides: str) -> TimeRanges:
        """Time of an arm that the sources besides one cover from a host time [ns] on."""
        with self._problems("read"):
            return self._covered(self._logged("seconds"), arm, start, besides)

    def rows(self, table: str, holdings: Holdings) -> ds.Dataset:
        """Rows of the files that count, with the columns of today's schema, null in older files.

        Arm and day are text.
        """
        return self._files.dataset(table, holdings.files[table])

    # Writing

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
            record: of the source; returned, None if the source is complete already.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.
            model: with which its energies were computed, and its path, see `keep_model`.
            checked: whether other sources must not cover the same time.

        Raises:
            OverlapError: another source covers some of that time meanwhile; nothing counts.
        """
        source, arm = record.source, record.arm
        with self._problems("written"):
            before = self._made("seconds").transaction_version(source)
            if self.has(source):
                return None
            record = replace(record, rows={name: len(rows) for name, rows in tables.items()})
            if model is not None:
                self.keep_model(SourceKeys(source, record.robot, record.model), *model)
            joints = joint_rows(with_arm(tables["seconds"], arm))
            rows = {**tables, "joint_seconds": joints, "sources": record.table()}
            rows["seconds"] = rows.pop("seconds")  # the last one to be committed
            parts = {table: list(divided(table, each, ranges)) for table, each in rows.items()}
            if (days := len(parts["seconds"])) > MOST_DAYS:
                problem = f"its stamps are on {days} days"
                raise RecordingError(source, problem, "record again with a host clock")
            actions = {
                table: [self._files.write(table, arm, day, source, *own) for _, day, *own in each]
                for table, each in parts.items()
            }
            for _ in range(MOST_TRIES):
                seconds = self._made("seconds")
                if seconds.transaction_version(source) != before:
                    return None  # another process was faster
                if checked:
                    self._check_free(seconds, arm, source, ranges)
                note = f"{record.bag}: files of it were lost or changed, it is added again"
                if before is not None and note not in self.notes:
                    self.notes.append(note)
                with suppress(CommitFailedError):
                    for table, added in actions.items():
                        log = seconds if table == "seconds" else self._made(table)
                        files = _logged(table, log)
                        gone = [file for file in files if self._rows_of(source, file) != 0]
                        rest = [] if before is None else self._without(gone, source, ranges)
                        self._commit(table, log, [*added, *rest], gone, source, arm)
                    return record
        raise self._busy()

    def write_live(
        self,
        table: str,
        arm: str,
        source: str,
        rows: Sequence[tuple[str, pa.Table, TimeRanges]],
        replaced: Collection[str] = (),
    ) -> list[str]:
        """Commit rows of a live writer (their day, they, the time they cover) as a file each.

        They stand in place of its files at the paths `replaced`. Returns the paths of new files.

        Raises:
            OverlapError: another source covers some of that time meanwhile.
        """
        with self._problems("written"):
            new = [self._files.write(table, arm, day, source, *part) for day, *part in rows]
            for _ in range(MOST_TRIES):
                log = self._made(table)
                for _, _, ranges in rows:
                    self._check_free(log, arm, source, ranges)
                gone = [file for file in _logged(table, log) if file.path in replaced]
                with suppress(CommitFailedError):
                    self._commit(table, log, new, gone, source, arm)
                    return [f"{table}/{action.path}" for action in new]
        raise self._busy()

    def keep_model(self, keys: SourceKeys, model: EnergyModel | None, path: Path | None) -> None:
        """Write the row of a model, unless it is there; model and path are None if generic.

        `keys` are of a source whose energies were computed with the model.
        """
        name = re.sub(r"[^A-Za-z0-9._+-]", "_", f"{keys.model}-{keys.robot}")
        if name not in self._models:
            with self._problems("written"):
                self._keep_model(name, model_row(keys, model, path))
            self._models.add(name)

    def join(self, table: str, paths: Collection[str]) -> None:
        """Replace files of one arm and day by one."""
        with self._problems("written"):
            self._join([file for file in self._logged(table) if file.path in paths])

    def compact(self, *, least: int = 2) -> dict[str, int]:
        """Write one file per arm and day in place of many, and remove what was replaced long ago.

        Days with fewer files of a table than `least`, of all arms, stay as they are. Returns how
        many files counted before and after, and how many old ones were removed.
        """
        self.take_over()
        with self._problems("written"):
            seconds, files = self._snapshot()
            of_day = Counter((file.table, file.day) for file in files)
            recent = time.time_ns() - STILL_WRITTEN
            groups: dict[tuple[str, str | None, str | None, bool], list[StoredFile]] = {}
            # Files of several sources have complete ones only: readers rely on it.
            for file in _complete(seconds, files):
                busy = file.live and file.times is not None and file.times[1] > recent
                if not busy and of_day[file.table, file.day] >= least:
                    key = (file.table, file.day, file.arm, file.live)
                    groups.setdefault(key, []).append(file)
            for group in groups.values():
                self._join(group)
            removed = 0
            for log in filter(None, map(self._open, TABLES)):
                log.create_checkpoint()
                removed += len(log.vacuum(KEPT_HOURS, dry_run=False))
            after = len(self._snapshot()[1])
            return {"files_before": len(files), "files_after": after, "removed": removed}

    def compact_if_many(self) -> None:
        """Compact the days of many files."""
        with self._problems("written"):
            files = Counter((t, f.day) for t in ("seconds", "sources") for f in self._logged(t))
            if max(files.values(), default=0) > MOST_SMALL:
                self.compact(least=MOST_SMALL)

    def take_over(self) -> None:
        """Make tables of what an earlier version wrote; killed meanwhile, it can be repeated."""
        with self._problems("written"):
            for old in self._files.old_sources():
                if old.name:
                    self._take_over(old)
                else:
                    rows = self._files.dataset("models", old.files).to_table()
                    self._keep_model(Path(old.files[0].path).stem, rows)
                for name in filter(None, (*(file.path for file in old.files), old.name)):
                    self._files.remove(name)

    def _take_over(self, old: OldSource) -> None:
        good, record = list(filter(self._files.is_good, old.files)), old.record
        tables = {
            table: self._files.dataset(table, [file for file in good if file.table == table])
            .to_table()
            .drop_columns(["arm", "day"])
            for table in COUNTED
        }
        seconds = tables["seconds"]
        if record is None and len(seconds):  # of a live writer: made up from its rows
            first, last = (
                nanoseconds(end) for end in pc.min_max(seconds["second"]).as_py().values()
            )
            energy, accounted = (pc.sum(seconds[n]).as_py() for n in ("total_energy", "accounted"))
            robot, model = (seconds[name][0].as_py() for name in ("robot", "model"))
            place = (Path(old.name).stem, "", str(old.files[0].arm), robot, model)
            record = SourceRecord(
                *place, first, last + 10**9, True, {}, energy, accounted, left_out=0.0
            )
        if record is not None:
            pairs = [pair for f in good if f.table == "seconds" for pair in self._files.ranges(f)]
            self.add(record, tables, TimeRanges.of(pairs), checked=False)

    # The logs of the tables

    def _open(self, table: str) -> DeltaTable | None:
        """The table as its log is now; None if there is none, or a link in its place."""
        log = None if self._files.folder is None else self._files.folder / table / "_delta_log"
        if log is not None and (not log.is_dir() or log.is_symlink() or log.parent.is_symlink()):
            return None
        # A log grows with every bag: only what is new is read, unless the store is another one.
        known, stamp = self._logs.pop(table, (None, None))
        with suppress(DeltaError):  # commits since then may be in a checkpoint alone
            if known is not None and stamp is not None and stamp == _stamp(log, known):
                if log is None or (log / f"{known.version() + 1:020}.json").exists():
                    known.update_incremental()
                self._logs[table] = known, _stamp(log, known)
                return known
        with suppress(TableNotFoundError):
            found = DeltaTable(f"{self.address}/{table}", storage_options=self._files.options)
            self._logs[table] = found, _stamp(log, found)
            return found
        return None

    def _made(self, table: str) -> DeltaTable:
        """The table as its log is now, made if there is none."""
        if (found := self._open(table)) is not None:
            return found
        address, options = f"{self.address}/{table}", self._files.options
        if self._files.folder is not None:
            self._files.path(f"{table}/_delta_log/x").parent.mkdir(parents=True, exist_ok=True)
        with suppress(CommitFailedError):  # another process makes it
            DeltaTable.create(
                address,
                delta_schema(table),
                mode="ignore",
                partition_by=_partitions(table),
                configuration=CONFIGURATION,
                storage_options=options,
            )
        return DeltaTable(address, storage_options=options)

    def _logged(self, table: str) -> list[StoredFile]:
        """Files that count by the log of a table as it is now."""
        return _logged(table, self._open(table))

    def _snapshot(self) -> tuple[DeltaTable | None, list[StoredFile]]:
        """The table `seconds`, and the files of all tables at one moment.

        A source is complete once `seconds` has it, and the other tables have it by then: they are
        read again if `seconds` has changed meanwhile.
        """
        for _ in range(MOST_TRIES):
            seconds = self._open("seconds")
            version = None if seconds is None else seconds.version()
            files = _logged("seconds", seconds)
            files += [f for table in TABLES if table != "seconds" for f in self._logged(table)]
            again = self._open("seconds")
            if version is None or again is None or again.version() == version:
                break
        return seconds, files

    def _commit(
        self,
        table: str,
        log: DeltaTable,
        added: Sequence[AddAction],
        gone: Sequence[StoredFile],
        source: str,
        arm: str,
    ) -> None:
        """One transaction of a source.

        CommitFailedError: a process has committed the same source since the log was read, or, to
        `seconds`, another one of the same arm.
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
        if not _has(log := self._made("models"), name):
            added = self._files.write("models", "", "", name, rows, NOTHING)
            with suppress(CommitFailedError):  # another process has written the same row
                self._commit("models", log, [added], (), name, "")

    def _join(self, group: Sequence[StoredFile]) -> None:
        """Replace files of complete sources of one arm and day by one, if all are whole."""
        if len(group) < 2 or not all(map(self._files.is_good, group)):
            return
        table, arm, day = group[0].table, group[0].arm or "", group[0].day or ""
        rows = self._files.dataset(table, group).to_table()
        if table not in UNDIVIDED:
            rows = rows.drop_columns(["day"]).sort_by(TABLES[table][0].name)
        pairs = [pair for f in group if table == "seconds" for pair in self._ranges_of(f)]
        name = f"{LIVE if group[0].live else ''}joined"
        added = self._files.write(table, arm, day, name, rows, TimeRanges.of(pairs))
        log = self._made(table)
        if {file.path for file in _logged(table, log)}.issuperset(file.path for file in group):
            with suppress(CommitFailedError):  # who replaced one of them meanwhile is right
                self._commit(table, log, [added], group, f"joined:{arm}:{day}", arm)

    # What files contain

    def _records(self, source: str | None = None) -> list[SourceRecord]:
        """Records of the table `sources`, of one source or all."""
        files = [
            file
            for file in self._logged("sources")
            if (source is None or file.may_hold(source)) and self._files.is_good(file)
        ]
        condition = None if source is None else ds.field("source") == source
        return SourceRecord.of(self._files.dataset("sources", files).to_table(filter=condition))

    def _rows_of(self, source: str, file: StoredFile) -> int | None:
        """Number of rows of a source in a file; None if the file is lost or changed."""
        if not file.may_hold(source):
            return 0
        if not self._files.is_good(file):
            return None
        if file.source is not None:
            return file.rows
        own = ds.field("source") == source
        return int(self._files.dataset(file.table, [file]).count_rows(filter=own))

    def _without(
        self, files: Sequence[StoredFile], source: str, ranges: TimeRanges
    ) -> Iterator[AddAction]:
        """Rows of other sources in files of several that are whole, as files of their own."""
        for file in files:
            if file.source is None and self._files.is_good(file):
                data = self._files.dataset(file.table, [file])
                rows, covered = data.to_table(filter=ds.field("source") != source), NOTHING
                if file.table not in UNDIVIDED:
                    rows = rows.drop_columns(["day"])
                    covered = TimeRanges.of(self._files.ranges(file)).without(ranges)
                place = (file.table, file.arm or "", file.day or "")
                yield self._files.write(*place, "joined", rows, covered)

    def _check_free(self, seconds: DeltaTable, arm: str, source: str, ranges: TimeRanges) -> None:
        if ranges:
            files = _logged("seconds", seconds)
            taken = self._covered(files, arm, int(ranges.edges[0, 0]), source)
            if any(taken.within(*pair) for pair in ranges.pairs()):
                raise OverlapError

    def _covered(
        self, seconds: Sequence[StoredFile], arm: str, start: int, besides: str
    ) -> TimeRanges:
        found: list[tuple[int, int]] = []
        for file in seconds:
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

    # What is there, and what is wrong with it in words

    def holdings(
        self, first: str | None = None, last: str | None = None, arms: Collection[str] = ()
    ) -> Holdings:
        """Compare what the logs state with what the store holds.

        `first` and `last` are the days that matter, YYYY-MM-DD, or None; `arms` those that matter,
        () for all. A folder that is no store, or an empty one, is refused.
        """
        with self._problems("read"):
            seconds, logged = self._snapshot()
            old = list(self._files.old_sources())
            # A killed process has made tables of the others, and not removed their files.
            not_taken = [each for each in old if not _has(seconds, Path(each.name).stem)]
            if seconds is None and not not_taken:
                remedy = "add recordings with ur_energy history add"
                raise StoreError(self.address, "is no history store, or holds nothing yet", remedy)
            done = _complete(seconds, logged)
            files = [*done, *(file for each in not_taken for file in each.files)]
            wrong, foreign = self._compared(files, logged, old)
            matter = [
                file
                for file in files
                if file.table in UNDIVIDED
                or (
                    (first is None or str(file.day) >= first)
                    and (last is None or str(file.day) <= last)
                    and (not arms or file.arm in arms)
                )
            ]
            records = self._records()
            bags = [*records, *(each.record for each in not_taken if each.record is not None)]
            lines = [*_lost(matter, wrong, bags), *self._short(done, records), *foreign]
            if (more := len(lines) - MOST_LINES) > 0:
                lines[MOST_LINES:] = [f"and {more} more of this kind"]
            good: dict[str, list[StoredFile]] = {table: [] for table in TABLES}
            for file in matter:
                if file.path not in wrong:
                    good[file.table].append(file)
            return Holdings(good, tuple(lines))

    def _compared(
        self, files: Sequence[StoredFile], logged: Sequence[StoredFile], old: Sequence[OldSource]
    ) -> tuple[dict[str, str], list[str]]:
        """What is wrong with files ("lost", "changed") by path, and lines about foreign ones."""
        there = {n: size for table in TABLES for n, size in self._files.listing(table).items()}
        local = self._files.folder is not None
        read = local and sum(file.size or 0 for file in files) <= MOST_CHECKED
        wrong = {
            file.path: "changed" if file.path in there else "lost"
            for file in files
            if (size := there.get(file.path)) is None
            or file.size not in (None, size)
            or (read and not self._files.is_good(file))
        }
        known = {file.path for file in (*logged, *files, *(f for each in old for f in each.files))}
        known |= {each.name for each in old}
        names = {path.rpartition("/")[2] for path in known}
        copies: dict[str, list[str]] = {}
        for path, size in there.items():
            name = path.rpartition("/")[2]
            # Of our files that no log names, some were replaced, some are of killed processes.
            ours = size is not None and OWN_NAME.fullmatch(path) and name not in names
            if path not in known and not ours:
                copies.setdefault(name, []).append(path)
        return wrong, [
            f"{_some(paths)}: no log of the store names it (a copy?); it does not count, and is "
            "left as it is"
            for paths in copies.values()
        ]

    def _short(self, files: Sequence[StoredFile], records: Sequence[SourceRecord]) -> list[str]:
        """Lines about bags of which fewer rows are left than they had.

        Files of several bags that are lost are replaced when one of these is added again; then the
        rows of the others are still missing.
        """
        bags = [record for record in records if record.bag]
        have = sum(f.rows or 0 for f in files if f.table == "seconds" and not f.live)
        if have >= sum(record.rows["seconds"] for record in bags):
            return []
        lost = [record for record in bags if not self.has(record.source)]
        return [f"{record.bag}: rows of it are lost; add it again" for record in lost]

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
            remedy = "check the place and its free space, then repeat the command"
            raise StoreError(self.address, f"cannot be {what} ({problem})", remedy) from error


def _stamp(log: Path | None, table: DeltaTable) -> tuple[int, int] | None:
    """Stamp of the last commit in a folder, which differs in another store in its place."""
    if log is None:
        return 0, 0
    with suppress(FileNotFoundError):
        status = (log / f"{table.version():020}.json").stat()
        return status.st_ino, status.st_mtime_ns
    return None


def delta_schema(table: str) -> pa.Schema:
    """Schema of a table as its log has it: arm and day included; anything may be missing."""
    columns = [column.with_nullable(True) for column in arrow_schema(table)]
    if table not in UNDIVIDED:
        columns = [pa.field("arm", pa.string()), *columns, pa.field("day", pa.date32())]
    return pa.schema(columns)


def _partitions(table: str) -> list[str] | None:
    return None if table in UNDIVIDED else ["day"]


def _has(log: DeltaTable | None, name: str) -> bool:
    """Whether a table has the transaction of a source."""
    return log is not None and log.transaction_version(name) is not None


def _complete(seconds: DeltaTable | None, files: Sequence[StoredFile]) -> list[StoredFile]:
    """Those files whose sources are complete."""
    sources = {file.source for file in files if file.source is not None}
    done = {None, *(source for source in sources if _has(seconds, source))}
    return [file for file in files if file.table == "models" or file.source in done]


def _logged(table: str, log: DeltaTable | None) -> list[StoredFile]:
    """Files that count by the log of a table."""
    name, first = "model" if table == "models" else "source", TABLES[table][0].name
    actions = [] if log is None else pa.table(log.get_add_actions(flatten=True)).to_pylist()
    found = []
    for row in actions:
        low, high = row.get(f"min.{first}"), row.get(f"max.{first}")
        path = f"{table}/{row['path']}"
        crc32 = OWN_NAME.fullmatch(path)
        dated = isinstance(low, datetime) and high
        found.append(
            StoredFile(
                path=path,
                size=row["size_bytes"],
                crc32=None if crc32 is None else int(crc32["crc32"], 16),
                rows=row["num_records"],
                day=None if table in UNDIVIDED else str(row["partition.day"]),
                arm=row.get("min.arm"),
                sources=(row.get(f"min.{name}") or "", row.get(f"max.{name}") or ""),
                times=(nanoseconds(low), nanoseconds(high)) if dated else None,
            )
        )
    return found


def _lost(
    files: Sequence[StoredFile], wrong: Mapping[str, str], records: Sequence[SourceRecord]
) -> Iterator[str]:
    """Lines about files that are lost or changed."""
    found: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        if file.path in wrong:
            first, last = file.times or (0, 0)
            bags = [
                each.bag
                for each in records
                if file.source == each.source
                or (
                    (file.source is None and file.arm == each.arm)
                    and first <= each.end
                    and each.start <= last + 10**9
                )
            ]
            found.setdefault((wrong[file.path], *filter(None, bags)), []).append(file.path)
    for (word, *bags), paths in found.items():
        where = f"{_some(paths)} {'are' if len(paths) > 1 else 'is'} {word}, the sums lack"
        again = f"its rows; add {' '.join(bags)} again"
        yield f"{where} {again if bags else 'the rows that the estimator wrote there'}"


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} more file{'s' * (more > 1)}"
