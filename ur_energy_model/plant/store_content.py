# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""StoreContent: records, rows of each source, covered time and models in the files of a store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from ur_energy_model.plant.energy_parts import SECOND, TimeRanges
from ur_energy_model.plant.schema import LIVE, UNDIVIDED, ModelRow, arrow_schema
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store_files import StoredFile, StoreFiles
from ur_energy_model.plant.store_log import State


class FileChange(NamedTuple):
    """A change of a store, to be committed.

    Attributes:
        added: files that count from now on.
        removed: files that do not count any more.
    """

    added: Sequence[StoredFile]
    removed: Sequence[StoredFile] = ()


class StoreContent:
    """Contents of the files of a store; each file is read once.

    Args:
        files: files of the store.
    """

    def __init__(self, files: StoreFiles) -> None:
        self.files = files
        self._records: dict[str, list[SourceRecord]] = {}
        """Records that were read, by path of their file."""

    def records(self, state: State) -> list[SourceRecord]:
        """Records of the table `sources` that can be read."""
        found: list[SourceRecord] = []
        for file in state.select("sources"):
            found += self._records_of(file)
        return found

    def record(self, state: State, source: str) -> SourceRecord | None:
        """Record of a source.

        Args:
            state: state of the store.
            source: name of the source.

        Returns:
            Record of the source; None if there is none, or its file is lost.
        """
        for file in state.select("sources"):
            if file.may_hold(source):
                for record in self._records_of(file):
                    if record.source == source:
                        return record
        return None

    def _records_of(self, file: StoredFile) -> list[SourceRecord]:
        """Records of a file; none if it is lost."""
        if file.path not in self._records:
            if not self.files.is_good(file):
                return []
            rows = self.files.dataset("sources", [file]).to_table()
            self._records[file.path] = SourceRecord.of(rows)
        return self._records[file.path]

    def is_whole(self, state: State, source: str) -> bool:
        """Whether all rows of a source are there.

        Args:
            state: state of the store.
            source: name of the source.

        Returns:
            Whether files that are as they were written have as many rows of each table as
            the record of the source states; False without a record.
        """
        record = self.record(state, source)
        if record is None:
            return False
        rows: Counter[str] = Counter()
        for file in state.select(arm=record.arm):
            if not may_have_had(file, record):
                continue
            if file.lost or not self.files.is_good(file):
                continue
            if part := self.files.parts(file).get(source):
                rows[file.table] += part.rows
        return all(rows[table] == count for table, count in record.rows.items())

    def covered(self, state: State, arm: str, start: int, besides: str) -> TimeRanges:
        """Time of an arm that sources cover, by the files that are as they were written.

        Args:
            state: state of the store.
            arm: name of the arm.
            start: host time from which on it matters [ns since 1970 UTC].
            besides: a source whose time does not count.
        """
        found: list[tuple[int, int]] = []
        for file in state.select("seconds", arm=arm):
            # A row of a second may cover time until the end of the next one.
            if file.times is not None and file.times[1] + 2 * SECOND < start:
                continue
            if file.source == besides or file.lost or not self.files.is_good(file):
                continue
            for source, part in self.files.parts(file).items():
                if source != besides:
                    found += part.covered.pairs()
        return TimeRanges.of(found)

    def model_names(self, state: State) -> set[tuple[str, str]]:
        """Keys of models and types of arms of the rows of `models` in good files."""
        files = [file for file in state.select("models") if self.files.is_good(file)]
        rows = self.files.dataset("models", files).to_table(columns=["model", "robot"])
        return {(row["model"], row["robot"]) for row in rows.to_pylist()}

    def write_models(self, state: State, rows: Iterable[ModelRow]) -> list[StoredFile]:
        """Write a file for each row of the table `models` that is not there yet.

        Args:
            state: state of the store.
            rows: rows by model and robot.

        Returns:
            The files, which count once they are committed.
        """
        there = self.model_names(state)
        schema = arrow_schema("models")
        found = []
        for row in rows:
            if (row["model"], row["robot"]) not in there:
                name = re.sub(r"[^A-Za-z0-9._+-]", "_", f"{row['model']}-{row['robot']}")
                content = {column: row.get(column) for column in schema.names}
                table = pa.Table.from_pylist([content], schema)
                found.append(self.files.write("models", "", "", name, table, {}))
        return found


def may_have_had(file: StoredFile, record: SourceRecord) -> bool:
    """Whether rows of a source can be in a file, by names of sources, arm and times.

    Args:
        file: perhaps a lost one, so that only its entry in the log is known.
        record: record of the source.
    """
    if not file.may_hold(record.source):
        return False
    if file.source is not None or file.table in UNDIVIDED:
        return True
    if file.arm != record.arm or file.live != record.source.startswith(LIVE):
        return False
    return file.span is None or (
        file.span[0] <= record.end and record.start <= file.span[1]
    )


def joined_name(group: Sequence[StoredFile]) -> str:
    """Begin of the name of a file that has the rows of several files."""
    return f"{LIVE if group[0].live else ''}joined"
