# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""HistoryStore: the history of many arms as Delta Lake tables, in a folder or on an S3 server.

    STORE/_store/_delta_log/                the log of the store, see `StoreLog`
    STORE/<table>/_delta_log/               a copy of it for other programs
    STORE/<table>/day=<YYYY-MM-DD>/<arm>/<source>-<crc>.parquet
                                            rows of a source on a day
    STORE/models/, STORE/sources/           tables without days

A change of the store (a bag, a minute of a live writer, files that are joined) is one
commit for all tables. What a killed process wrote before that does not count, and is
replaced when the source is added again. Commits follow each other: a process that finds
that another process was faster reads again what other sources cover, so that no time of
an arm counts twice.

A bag whose rows are lost is added again with the model and settings of the first time,
and all its rows are replaced; rows of other sources are never removed. What follows from
other files (joints, records, rows of models, logs) is made again without the bag
(`mend`). Nothing that the logs do not name is ever removed.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from ur_energy_model.plant.energy_parts import TimeRanges
from ur_energy_model.plant.holdings import Holdings, compare
from ur_energy_model.plant.mending import Mender
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.plant.schema import (
    ModelRow,
    SourceKeys,
    content_key,
    model_key,
    model_row,
)
from ur_energy_model.plant.sources import (
    COUNTED,
    SourcePart,
    SourceRecord,
    records_table,
)
from ur_energy_model.plant.store_changes import StoreChanges
from ur_energy_model.plant.store_content import FileChange, StoreContent
from ur_energy_model.plant.store_files import (
    StoredFile,
    StoreError,
    StoreFiles,
    divided,
    own_path,
    with_arm,
)
from ur_energy_model.plant.store_log import State, StoreLog

MOST_SMALL = 64  # files of a table and day from which adding compacts them
DAYS_AT_ONCE = 16  # days whose files are joined in one commit
MOST_DAYS = 400
"""Most days of one source: a recording that seems to be longer has a damaged clock."""


class LivePart(NamedTuple):
    """Rows of a live writer on one day.

    Attributes:
        day: UTC day, YYYY-MM-DD.
        rows: rows of a table.
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
        self._changes = StoreChanges(self._files, self._log, self._content)
        self.address = self._files.address
        self.notes: list[str] = []
        self._models: dict[tuple[str, str], ModelRow] = {}
        """Rows of `models` that `keep_model` has written, by model and robot."""

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
            record: record of the source.
            given: key and model that the user gives, None for a generic one.

        Returns:
            The model, from the store, from the path of then, or as given where the keys
            are the same; and its row, None if that is not there.

        Raises:
            StoreError: the model is in none of these places.
        """
        key, model = given
        row = self._model_row(record)
        if record.model == GENERIC:
            return generic_model(record.robot), row
        if key == record.model and model is not None:
            return model, None
        place = ""
        if row is not None:
            content = row["content"]
            if content and content_key(content) == record.model:
                return _model_from_text(content), row
            if row["path"]:
                if model_key(Path(row["path"])) == record.model:
                    return load_model(row["path"]), row
                place = f" ({row['path']})"
        problem = (
            f"was added with model {record.model}{place}, which is not there any more"
        )
        raise StoreError(record.bag, problem, "add it again with --model and that file")

    def _model_row(self, record: SourceRecord) -> ModelRow | None:
        """The row of `models` for the model of a source; None if there is none, or it is lost."""
        with self._problems("read"):
            files = self._log.read().select("models")
            good = [file for file in files if self._files.is_good(file)]
            rows = self._files.dataset("models", good).to_table().to_pylist()
        for row in rows:
            if row["model"] == record.model and row["robot"] == record.robot:
                found: ModelRow = row
                return found
        return None

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
            arms: arms that matter; () for all.

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
            holdings: holdings of the store; columns that a file lacks are null in its
                rows.
        """
        return self._files.dataset(table, holdings.files[table])

    # Writing

    def add(
        self,
        record: SourceRecord,
        tables: Mapping[str, pa.Table],
        ranges: TimeRanges,
        model: ModelRow | None = None,
    ) -> SourceRecord | None:
        """Write a source; one whose rows were lost or changed is written again.

        Args:
            record: record of the source.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.
            model: row of the model with which the energies were computed.

        Returns:
            The record with its numbers of rows; None if the source is complete already.

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
            new = self._write_source(record, tables, ranges, model)
            again = False

            def change(state: State) -> FileChange | None:
                """The new files in place of rows of the source that were lost before."""
                nonlocal again
                if self._content.is_whole(state, source):
                    return None  # another process was faster
                self._changes.check_free(state, arm, source, ranges)
                again = self._content.record(state, source) is not None
                kept, gone = self._changes.cut_out(state, record)
                models = (
                    [] if model is None else self._content.write_models(state, [model])
                )
                return FileChange([*new, *kept, *models], gone)

            if not self._changes.commit(change):
                return None
            note = f"{record.bag}: rows of it were lost or changed, it is added again"
            if again and note not in self.notes:
                self.notes.append(note)
            return record

    def _write_source(
        self,
        record: SourceRecord,
        tables: Mapping[str, pa.Table],
        ranges: TimeRanges,
        model: ModelRow | None,
    ) -> list[StoredFile]:
        """Write files with the rows of a source and its record; they do not count yet.

        Args:
            record: record of the source.
            tables: rows by name of the table.
            ranges: host time that the rows cover.
            model: row of the model with which the energies were computed.

        Raises:
            RecordingError: the rows are on more than MOST_DAYS days.
        """
        source = record.source
        seconds = with_arm(tables["seconds"], record.arm)
        pieces = {
            table: list(divided(table, rows, ranges))
            for table, rows in {**tables, "joint_seconds": joint_rows(seconds)}.items()
        }
        days = len(pieces["seconds"])
        if days > MOST_DAYS:
            problem = f"its stamps are on {days} days"
            raise RecordingError(source, problem, "record again with a host clock")
        named = _without_content(model)
        files = [
            self._files.write("sources", "", "", source, records_table([record]), {})
        ]
        for table, parts in pieces.items():
            for _, day, rows, covered in parts:
                part = {source: SourcePart(len(rows), covered, record, named)}
                files.append(
                    self._files.write(table, record.arm, day, source, rows, part)
                )
        return files

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
        named = _without_content(model)
        with self._problems("written"):
            self._refuse_other_layout(self._log.read())
            new: dict[str, list[StoredFile]] = {table: [] for table in tables}
            for table, parts in tables.items():
                for part in parts:
                    own = {source: SourcePart(len(part.rows), part.covered, None, named)}
                    file = self._files.write(table, arm, part.day, source, part.rows, own)
                    new[table].append(file)

            def change(state: State) -> FileChange:
                """The new files, if their time is free."""
                for part in tables.get("seconds", ()):
                    self._changes.check_free(state, arm, source, part.covered)
                return FileChange([file for files in new.values() for file in files])

            self._changes.commit(change)
            return {table: [file.path for file in files] for table, files in new.items()}

    def keep_model(
        self, keys: SourceKeys, model: EnergyModel | None, path: Path | None
    ) -> ModelRow:
        """Write the row of a model, unless it is there.

        Args:
            keys: keys of a source whose energies were computed with the model.
            model: model of the arm; None for a generic model.
            path: path of the model file; None for a generic model.

        Returns:
            The row.
        """
        name = keys.model, keys.robot
        if name not in self._models:
            row = model_row(keys, model, path)

            def change(state: State) -> FileChange | None:
                """A file with the row, unless there is one."""
                files = self._content.write_models(state, [row])
                return FileChange(files) if files else None

            with self._problems("written"):
                self._changes.commit(change)
            self._models[name] = row
        return self._models[name]

    def join(self, paths: Collection[str]) -> None:
        """Replace files by one for each table, arm and day.

        Args:
            paths: paths of the files; a file that does not count any more has no effect.
        """
        with self._problems("written"):
            groups = defaultdict[object, list[StoredFile]](list)
            for file in self._log.read().select(path=set(paths)):
                groups[file.table, file.day, file.arm].append(file)
            self._changes.join(list(groups.values()))
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
            files_of_day = Counter((file.table, file.day) for file in files)
            days: dict[str | None, dict[object, list[StoredFile]]] = {}
            for file in files:
                if files_of_day[file.table, file.day] >= least:
                    groups = days.setdefault(file.day, {})
                    groups.setdefault((file.table, file.arm, file.live), []).append(file)
            groups_of_days = list(days.values())
            for begin in range(0, len(groups_of_days), DAYS_AT_ONCE):
                together = groups_of_days[begin : begin + DAYS_AT_ONCE]
                self._changes.join([group for day in together for group in day.values()])
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
        """Compact the days that have more than MOST_SMALL files of `seconds` or of `sources`."""
        files: Counter[tuple[str, str | None]] = Counter()
        with self._problems("written"):
            state = self._log.read()
            for table in ("seconds", "sources"):
                files.update((table, file.day) for file in state.select(table))
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

                def change(state: State) -> FileChange | None:
                    """Files that are made again or marked as lost."""
                    return Mender(self._content, state).change

                self._changes.commit(change, always=True)

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        """Raise errors of files, servers and tables in the block as StoreError.

        Args:
            what: what cannot be done with the store: "read" or "written".
        """
        try:
            yield
        except (OSError, ValueError, DeltaError, pa.ArrowException) as error:
            if isinstance(error, UrEnergyError):
                raise
            problem = error.strerror if isinstance(error, OSError) else None
            if not problem:
                without_colours = re.sub("\x1b\\[\\d*m", "", str(error))
                problem = " ".join(without_colours.split())
            remedy = "check the place and its free space, then repeat the command"
            raise StoreError(
                self.address, f"cannot be {what} ({problem})", remedy
            ) from error


def _model_from_text(content: str) -> EnergyModel:
    """The model in the content of a model file."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        return load_model(file.name)


def _without_content(model: ModelRow | None) -> ModelRow | None:
    """A row of `models` for the footer of a file, without the content of the model file."""
    if model is None:
        return None
    return {name: value for name, value in model.items() if name != "content"}
