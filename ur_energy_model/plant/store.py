# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""HistoryStore: the history of many arms as Delta Lake tables, in a folder or on an S3 server.

    STORE/_store/_delta_log/                                     the log of the store, see StoreLog
    STORE/<table>/_delta_log/                                    a copy of it for other programs
    STORE/<table>/day=<YYYY-MM-DD>/<arm>/<source>-<crc>.parquet  rows of a source on a day
    STORE/models/, STORE/sources/                                tables without days

A change of the store (a bag, a minute of a live writer, files that are joined) is one
commit for all tables. What a killed process wrote before that does not count, and is
replaced when the source is added again. Commits follow each other: who finds that another
process was faster looks again at what others cover, so that no time of an arm counts
twice.

A bag whose rows are lost is added again with the model and settings of the first time,
and all its rows are replaced; rows of other sources are never removed. What follows from
other files (joints, records, rows of models, logs) is made again without the bag
(`mend`). Nothing that the logs do not name is ever removed.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import GENERIC, generic_model
from ur_energy_model.model.model_file import load_model
from ur_energy_model.plant.delta_logs import ConflictError
from ur_energy_model.plant.energy_parts import TimeRanges
from ur_energy_model.plant.holdings import Holdings, compare
from ur_energy_model.plant.mending import Mender
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.plant.schema import (
    LIVE,
    UNDIVIDED,
    ModelRow,
    SourceKeys,
    arrow_schema,
    content_key,
    model_key,
    model_row,
)
from ur_energy_model.plant.sources import (
    COUNTED,
    SourcePart,
    SourceRecord,
    joined,
    without,
)
from ur_energy_model.plant.store_content import (
    FileChange,
    StoreContent,
    joined_name,
    may_have_had,
)
from ur_energy_model.plant.store_files import (
    StoredFile,
    StoreError,
    StoreFiles,
    divided,
    own_path,
    with_arm,
)
from ur_energy_model.plant.store_log import State, StoreLog

MOST_WAIT = 60.0  # for a commit beside those of other processes [s]
PAUSE = (0.01, 0.5)  # shortest and longest one before a commit is tried again [s]
MOST_SMALL = 64  # files of a table and day from which adding compacts them
DAYS_AT_ONCE = 16  # days whose files are joined in one commit
MOST_DAYS = 400  # of one source: a recording that seems to be longer has a damaged clock


class OverlapError(Exception):
    """Another source covers some of the time of the rows that were to be written."""


class LivePart(NamedTuple):
    """Rows of a live writer on one day.

    Attributes:
        day: UTC day, YYYY-MM-DD.
        rows: of a table.
        covered: host time that they cover [ns since 1970 UTC].
    """

    day: str
    rows: pa.Table
    covered: TimeRanges


class HistoryStore:
    """A store in a folder, which the first writing makes, or below s3://BUCKET/PREFIX.

    Credentials, region and server come from the environment or the files of AWS. All
    methods raise StoreError if the store cannot be read or written.

    Args:
        address: path of the folder, or s3://BUCKET/PREFIX.

    Attributes:
        address: absolute path, or s3:// address.
        notes: what writing has found that a user should see, one line each.

    Raises:
        StoreError: no such address.
    """

    def __init__(self, address: str | Path) -> None:
        self._files = StoreFiles(str(address))
        self._log = StoreLog(self._files)
        self._content = StoreContent(self._files)
        self.address = self._files.address
        self.notes: list[str] = []
        self._models: dict[tuple[str, str], ModelRow] = {}  # by model and robot, as kept

    # Questions

    def has(self, source: str) -> bool:
        """Whether a source is in the store, and all its rows are there as written."""
        with self._problems("read"):
            return self._content.is_whole(self._log.read(), source)

    def records(self) -> list[SourceRecord]:
        """Records of all bags."""
        with self._problems("read"):
            return self._content.records(self._log.read())

    def record(self, source: str) -> SourceRecord | None:
        """Record of a source that was added before; None if there is none, or it is lost."""
        with self._problems("read"):
            return self._content.record(self._log.read(), source)

    def model(
        self, record: SourceRecord, given: tuple[str, EnergyModel | None]
    ) -> tuple[EnergyModel, ModelRow | None]:
        """The model with which a source was added.

        Args:
            record: of the source.
            given: key and model that the user gives, None for a generic one.

        Returns:
            The model, from the store, from the path of then, or as given where the keys
            are the same; and its row, None if that is not there.

        Raises:
            StoreError: it is none of these.
        """
        key, model = given
        with self._problems("read"):
            files = [
                f for f in self._log.read().select("models") if self._content.is_good(f)
            ]
            found = self._files.dataset("models", files).to_table().to_pylist()
        name = record.model, record.robot
        row = next((row for row in found if (row["model"], row["robot"]) == name), None)
        if record.model == GENERIC:
            return generic_model(record.robot), row
        if key == record.model and model is not None:
            return model, None
        if row is not None and content_key(row["content"]) == record.model:
            with tempfile.NamedTemporaryFile(
                "w", suffix=".yaml", encoding="utf-8"
            ) as file:
                file.write(row["content"])
                file.flush()
                return load_model(file.name), row
        if (
            row is not None
            and row["path"]
            and model_key(Path(row["path"])) == record.model
        ):
            return load_model(row["path"]), row
        place = f" ({row['path']})" if row is not None and row["path"] else ""
        problem = (
            f"was added with model {record.model}{place}, which is not there any more"
        )
        raise StoreError(record.bag, problem, "add it again with --model and that file")

    def covered(self, arm: str, start: int, *, besides: str) -> TimeRanges:
        """Time of an arm that sources cover.

        Args:
            arm: name of the arm.
            start: host time from which on it matters [ns since 1970 UTC].
            besides: a source whose time does not count.
        """
        with self._problems("read"):
            return self._content.covered(self._log.read(), arm, start, besides)

    def holdings(
        self,
        first: str | None = None,
        last: str | None = None,
        arms: Collection[str] = (),
    ) -> Holdings:
        """What the store holds and what it has lost, see `compare`.

        Args:
            first: first UTC day that matters, YYYY-MM-DD; None for all before the last.
            last: last UTC day that matters, YYYY-MM-DD; None for all after the first.
            arms: that matter; () for all.

        Raises:
            StoreError: the folder is no store, or an empty one.
        """
        with self._problems("read"):
            state = self._log.read()
            self._refuse_nothing(state)
            records = self._content.records(state)
            return compare(self._files, state, records, first, last, arms)

    def _refuse_nothing(self, state: State) -> None:
        """Refuse a folder that is no store, or an empty one."""
        self._refuse_other_layout(state)
        if not len(state.files):
            remedy = "add recordings with ur_energy history add"
            raise StoreError(
                self.address, "is no history store, or holds nothing yet", remedy
            )

    def _refuse_other_layout(self, state: State) -> None:
        """Refuse a folder of rows without logs, to which nothing must be added."""
        if state.log is not None or len(state.files):
            return
        rows = [name for name in self._files.listing("seconds") if ".parquet" in name]
        foreign = [name for name in rows if own_path(name) is None]
        if foreign:
            raise StoreError(
                self.address,
                f"holds {foreign[0]}, but no log: a store of before the first release",
                "add its recordings to a new store with ur_energy history add",
            )

    def rows(self, table: str, holdings: Holdings) -> ds.Dataset:
        """Rows of the files that count; arm and day are text columns.

        Args:
            table: name of the table.
            holdings: of the store; columns that a file lacks are null in its rows.
        """
        return self._files.dataset(table, holdings.files[table])

    # Writing

    def add(
        self,
        record: SourceRecord,
        tables: Mapping[str, pa.Table],
        ranges: TimeRanges,
        model: ModelRow | None = None,
        *,
        checked: bool = True,
    ) -> SourceRecord | None:
        """Write a source; one whose rows were lost or changed is written again.

        Args:
            record: of the source; returned, None if the source is complete already.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.
            model: with which its energies were computed.
            checked: whether other sources must not cover the same time.

        Raises:
            OverlapError: another source covers some of that time meanwhile; nothing
                counts.
        """
        source = record.source
        arm = record.arm
        counts = {name: len(tables.get(name, ())) for name in COUNTED}
        record = replace(record, rows=counts)
        with self._problems("written"):
            if self._content.is_whole(self._log.read(), source):
                return None
            rows = {
                **tables,
                "joint_seconds": joint_rows(with_arm(tables["seconds"], arm)),
            }
            pieces = {
                table: list(divided(table, each, ranges)) for table, each in rows.items()
            }
            if (days := len(pieces["seconds"])) > MOST_DAYS:
                problem = f"its stamps are on {days} days"
                raise RecordingError(source, problem, "record again with a host clock")
            named = (
                None
                if model is None
                else {k: v for k, v in model.items() if k != "content"}
            )
            new = [self._files.write("sources", "", "", source, record.table(), {})]
            for table, parts in pieces.items():
                for _, day, part, covered in parts:
                    parts_of = {source: SourcePart(len(part), covered, record, named)}
                    new.append(self._files.write(table, arm, day, source, part, parts_of))
            again = False

            def change(state: State) -> FileChange | None:
                nonlocal again
                if self._content.is_whole(state, source):
                    return None  # another process was faster
                if checked:
                    self._check_free(state, arm, source, ranges)
                again = self._content.record(state, source) is not None
                kept, gone = self._cut_out(state, record)
                models = (
                    [] if model is None else self._content.write_models(state, [model])
                )
                return FileChange([*new, *kept, *models], gone)

            if not self._change(change):
                return None
            note = f"{record.bag}: rows of it were lost or changed, it is added again"
            if again and note not in self.notes:
                self.notes.append(note)
            return record

    def write_live(
        self,
        arm: str,
        source: str,
        tables: Mapping[str, Sequence[LivePart]],
        model: ModelRow | None = None,
    ) -> dict[str, list[str]]:
        """Commit rows of a live writer, a file for each part.

        Args:
            arm: name of the arm.
            source: name of the writer.
            tables: rows by name of the table.
            model: row of the model with which the energies were computed.

        Returns:
            Paths of the new files by table, in the order of the parts.

        Raises:
            OverlapError: another source covers some of that time meanwhile.
        """
        named = (
            None if model is None else {k: v for k, v in model.items() if k != "content"}
        )
        with self._problems("written"):
            self._refuse_other_layout(self._log.read())
            new: dict[str, list[StoredFile]] = {table: [] for table in tables}
            for table, parts in tables.items():
                for part in parts:
                    own = {source: SourcePart(len(part.rows), part.covered, None, named)}
                    file = self._files.write(table, arm, part.day, source, part.rows, own)
                    new[table].append(file)

            def change(state: State) -> FileChange:
                for part in tables.get("seconds", ()):
                    self._check_free(state, arm, source, part.covered)
                return FileChange([file for files in new.values() for file in files])

            self._change(change)
            return {table: [file.path for file in files] for table, files in new.items()}

    def keep_model(
        self, keys: SourceKeys, model: EnergyModel | None, path: Path | None
    ) -> ModelRow:
        """Write the row of a model, unless it is there.

        Args:
            keys: of a source whose energies were computed with the model.
            model: None for a generic one.
            path: of its file; None for a generic one.

        Returns:
            The row.
        """
        name = keys.model, keys.robot
        if name not in self._models:
            row = model_row(keys, model, path)
            with self._problems("written"):
                self._keep_models(
                    pa.Table.from_pylist([dict(row)], arrow_schema("models"))
                )
            self._models[name] = row
        return self._models[name]

    def _keep_models(self, rows: pa.Table) -> None:
        """Write rows of models that are not there yet."""

        def change(state: State) -> FileChange | None:
            files = self._content.write_models(state, rows.to_pylist())
            return FileChange(files) if files else None

        self._change(change)

    def join(self, paths: Collection[str]) -> None:
        """Replace files by one for each table, arm and day.

        Args:
            paths: of the files; those that do not count any more have no effect.
        """
        with self._problems("written"):
            groups = defaultdict[object, list[StoredFile]](list)
            for file in self._log.read().select(path=set(paths)):
                groups[file.table, file.day, file.arm].append(file)
            self._join(list(groups.values()))
            self._log.publish()

    def compact(self, *, least: int = 2) -> dict[str, int]:
        """Write one file per arm and day in place of many, and remove what was replaced long ago.

        What is lost is mended first, see `mend`.

        Args:
            least: files of a table and day, of all arms, below which they stay as they
                are.

        Returns:
            How many files counted before and after (`files_before`, `files_after`), and
            how many old ones were removed (`removed`).
        """
        with self._problems("read"):
            self._refuse_nothing(self._log.read())
        self.mend()
        with self._problems("written"):
            files = [file for file in self._log.read().select() if not file.lost]
            of_day = Counter((file.table, file.day) for file in files)
            days: dict[str | None, dict[object, list[StoredFile]]] = {}
            for file in files:
                if of_day[file.table, file.day] >= least:
                    groups = days.setdefault(file.day, {})
                    groups.setdefault((file.table, file.arm, file.live), []).append(file)
            each = list(days.values())
            for k in range(0, len(each), DAYS_AT_ONCE):
                together = each[k : k + DAYS_AT_ONCE]
                self._join([group for groups in together for group in groups.values()])
            self._log.publish()
            self._log.checkpoint()
            state = self._log.read()
            counting = set(state.files["path"].to_pylist())
            removed = [
                path
                for path in self._log.replaced()
                if path not in counting and self._files.remove(path)
            ]
            after = len(state.select())
            return {
                "files_before": len(files),
                "files_after": after,
                "removed": len(removed),
            }

    def compact_if_many(self) -> None:
        """Compact the days of many files."""
        with self._problems("written"):
            state = self._log.read()
            files = Counter(
                (t, f.day) for t in ("seconds", "sources") for f in state.select(t)
            )
        if max(files.values(), default=0) > MOST_SMALL:
            self.compact(least=MOST_SMALL)

    # Mending

    def mend(self) -> None:
        """Make again what is lost and follows from other files, and mark what is lost.

        Rows of joints follow from `seconds`, records and rows of models from the footers
        of all files, logs from each other. Other files that are lost do not count from
        now on: the logs of the tables leave them out, so that other programs can read the
        rest.
        """
        with self._problems("written"):
            state = self._log.read()
            self._refuse_other_layout(state)
            if len(state.files):
                self._change(
                    lambda state: Mender(self._content, state).change, always=True
                )

    # Changes of the log

    def _change(
        self,
        change: Callable[[State], FileChange | None],
        *,
        always: bool = False,
        publish: bool = True,
    ) -> bool:
        """Commit a change of the state, made anew as long as other processes are faster.

        Returns whether there was one. `always` brings logs up to date also without a
        change; `publish` is false where further changes follow at once.
        """
        end = time.monotonic() + MOST_WAIT
        pause, longest = PAUSE
        while True:
            state = self._log.read()
            found = change(state)
            settled = state.log is not None and not state.behind
            if found is None and (settled or not always):
                return False
            try:
                if found is not None or state.log is None:
                    self._log.commit(state, *(found or FileChange(())))
                if publish:
                    self._log.publish()
                for file in () if found is None else found.removed:
                    self._files.remove_stand_in(file.path)
                return found is not None
            except ConflictError:
                if time.monotonic() > end:
                    problem = "is written by others again and again"
                    raise StoreError(
                        self.address, problem, "repeat the command later"
                    ) from None
            time.sleep(random.uniform(0.0, pause))
            pause = min(2.0 * pause, longest)

    def _cut_out(
        self, state: State, record: SourceRecord
    ) -> tuple[list[StoredFile], list[StoredFile]]:
        """Files without the rows of a source, and those that they replace.

        Lost files of several bags are replaced with the last of these.
        """
        kept = []
        gone = []
        source = record.source
        for file in state.select():
            mine = file.table in UNDIVIDED or file.arm == record.arm
            if file.table == "models" or not mine or file.live != source.startswith(LIVE):
                continue
            if file.source is not None:
                gone += [file] if file.source == source else []
            elif file.lost or not self._content.is_good(file):
                gone += [file] if self._is_last_of(state, file, source) else []
            elif file.may_hold(source) and source in self._files.parts(file):
                rest = self._files.rows(file.table, [file], ds.field("source") != source)
                parts = without(self._files.parts(file), source)
                gone.append(file)
                if len(rest):
                    place = (file.table, file.arm or "", file.day or "")
                    kept.append(
                        self._files.write(*place, joined_name([file]), rest, parts)
                    )
        return kept, gone

    def _is_last_of(self, state: State, file: StoredFile, source: str) -> bool:
        """Whether all bags that can have had rows in a lost file, but for one, are whole."""
        others = [
            record
            for record in self._content.records(state)
            if record.source != source and may_have_had(file, record)
        ]
        return all(
            file.table in record.rows and self._content.is_whole(state, record.source)
            for record in others
        )

    def _join(self, groups: Sequence[Sequence[StoredFile]]) -> None:
        """Replace groups of files of one table, arm and day by one file each, in one commit.

        Groups with a file that is not whole stay as they are, and those of which another
        process replaces a file meanwhile.
        """
        made = []
        for group in groups:
            if len(group) < 2 or not all(map(self._content.is_good, group)):
                continue
            table = group[0].table
            arm = group[0].arm or ""
            day = group[0].day or ""
            rows = self._files.rows(table, group)
            parts = {} if table in UNDIVIDED else joined(map(self._files.parts, group))
            made.append(
                (
                    group,
                    self._files.write(table, arm, day, joined_name(group), rows, parts),
                )
            )

        def change(state: State) -> FileChange | None:
            there = set(state.files["path"].to_pylist())
            whole = [each for each in made if there.issuperset(f.path for f in each[0])]
            gone = [file for group, _ in whole for file in group]
            return FileChange([new for _, new in whole], gone) if whole else None

        if made:
            self._change(change, publish=False)

    def _check_free(
        self, state: State, arm: str, source: str, ranges: TimeRanges
    ) -> None:
        if ranges:
            taken = self._content.covered(state, arm, int(ranges.edges[0, 0]), source)
            if any(taken.within(*pair) for pair in ranges.pairs()):
                raise OverlapError

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
            raise StoreError(
                self.address, f"cannot be {what} ({problem})", remedy
            ) from error
