# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mender: makes again what a store has lost and what follows from its other files.

Rows of joints follow from `seconds`, records of bags and rows of models from the footers
of all files. Other files that are lost are marked as lost in the log of the store: they
do not count from then on, so that other programs can read the rest, and `compare` still
reports them. A file that is back counts again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ur_energy_model.plant.energy_parts import NOTHING
from ur_energy_model.plant.losses import BadFiles, bad_files, is_made_up_for, unrecorded
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.plant.schema import UNDIVIDED, ModelRow, SourceKeys, model_row
from ur_energy_model.plant.sources import SourceRecord, joined, records_table
from ur_energy_model.plant.store_content import FileChange, StoreContent, joined_name
from ur_energy_model.plant.store_files import StoredFile
from ur_energy_model.plant.store_log import State

MADE_AGAIN = "made-again"
"""Begin of the names of files with records that were made again."""
ArmDay = tuple[str | None, str | None]
"""Name of an arm, and UTC day (YYYY-MM-DD); None in tables without days."""


class Mender:
    """Finds what is lost in a state of a store, and writes files with what can be made again.

    Args:
        content: content of the store.
        state: files that count.

    Attributes:
        change: what has to be committed; None if all is well.
    """

    def __init__(self, content: StoreContent, state: State) -> None:
        self._content = content
        self._files = content.files
        self._state = state
        self._all = state.select()
        self._bad = bad_files(self._files, self._all)
        self._good: list[StoredFile] = []
        self._lost: list[StoredFile] = []
        for file in self._all:
            files = self._lost if file.path in self._bad.words else self._good
            files.append(file)
        self._records = content.records(state)
        self.change = self._made_again()

    def _made_again(self) -> FileChange | None:
        """Write what can be made again.

        Returns:
            New files, and files to mark as lost or found again; with the lost files that
            need not be named any more. None if all is well.
        """
        records = self._lost_records()
        models = self._lost_models(records)
        joints, gone = self._lost_joints()
        made = [*models, *joints]
        if records:
            rows = records_table(records)
            made.append(self._files.write("sources", "", "", MADE_AGAIN, rows, {}))
        gone += [file for file in self._lost if self._is_replaced(file, records)]
        done = {file.path for file in (*made, *gone)}
        marked = [file for file in _marked(self._all, self._bad) if file.path not in done]
        if not made and not gone and not marked:
            return None
        return FileChange([*made, *marked], gone)

    def _is_replaced(self, file: StoredFile, records: Sequence[SourceRecord]) -> bool:
        """Whether other files have what a lost file had, so that it need not be named.

        Args:
            file: a lost one; files of `joint_seconds` are replaced by `_lost_joints`.
            records: records that are made again.
        """
        if file.table == "models":
            return True
        if file.table == "sources":
            if not file.source:  # of several bags
                return len(records) >= (file.rows or 0)
            known = (*self._records, *records)
            return any(record.source == file.source for record in known)
        return file.live and is_made_up_for(self._files, file, self._good, self._lost)

    # Records

    def _lost_records(self) -> list[SourceRecord]:
        """Records of bags that have rows in good files, and are in no good file of `sources`."""
        found = []
        for source in sorted(unrecorded(self._files, self._good, self._records)):
            record = self._stated_record(source)
            if record is not None:
                found.append(record)
        return found

    def _stated_record(self, source: str) -> SourceRecord | None:
        """The record of a bag that the footers of files state; None if no footer does."""
        for file in self._good:
            if file.table not in UNDIVIDED and not file.live and file.may_hold(source):
                part = self._files.parts(file).get(source)
                if part is not None and part.record is not None:
                    return part.record
        return None

    # Models

    def _lost_models(self, records: Sequence[SourceRecord]) -> list[StoredFile]:
        """Write files of rows of models that sources name, and that are lost.

        Args:
            records: records that are made again.
        """
        named = {(record.model, record.robot) for record in (*self._records, *records)}
        there = self._content.model_names(self._state)
        rows: dict[tuple[str, str], ModelRow] = {}
        if not named <= there or any(file.table == "models" for file in self._lost):
            rows = self._stated_models()
        for model, robot in named - rows.keys():
            rows[model, robot] = {"model": model, "robot": robot}
        missing = [_with_content(row) for name, row in rows.items() if name not in there]
        return self._content.write_models(self._state, missing)

    def _stated_models(self) -> dict[tuple[str, str], ModelRow]:
        """Rows of models in the footers of good files of `seconds`, by model and robot."""
        rows: dict[tuple[str, str], ModelRow] = {}
        for file in self._good:
            if file.table != "seconds":
                continue
            for part in self._files.parts(file).values():
                if part.model is not None:
                    name = str(part.model["model"]), str(part.model["robot"])
                    rows[name] = {**part.model, **rows.get(name, {})}
        return rows

    # Joints

    def _lost_joints(self) -> tuple[list[StoredFile], list[StoredFile]]:
        """Make rows of joints again from `seconds`, for arms and days that lack some.

        Returns:
            New files of `joint_seconds`, and the lost ones that they replace.
        """
        seconds = _by_arm_and_day(self._good, "seconds")
        joints = _by_arm_and_day(self._good, "joint_seconds")
        gone = [file for file in self._lost if file.table == "joint_seconds"]
        lacking = {(file.arm, file.day) for file in gone}
        joint_counts: dict[str | None, int] = {}  # numbers of joints by arm
        for (arm, day), files in seconds.items():
            if not joint_counts.get(arm):
                joint_counts[arm] = self._joint_count(files[0])
            if _rows(joints[arm, day]) < joint_counts[arm] * _rows(files):
                lacking.add((arm, day))
        made = []
        for place in lacking & seconds.keys():
            for live in (False, True):
                own = [file for file in seconds[place] if file.live == live]
                there = [file for file in joints[place] if file.live == live]
                file = self._missing_joints(own, there) if own else None
                if file is not None:
                    made.append(file)
        return made, gone

    def _joint_count(self, file: StoredFile) -> int:
        """Number of joints of an arm, by the first row of a file of `seconds`.

        It is 0 if the file has no rows.
        """
        first = self._files.dataset("seconds", [file]).head(1, columns=["joints"])
        rows = first.to_pylist()
        return len(rows[0]["joints"] or ()) if rows else 0

    def _missing_joints(
        self, seconds: Sequence[StoredFile], there: Sequence[StoredFile]
    ) -> StoredFile | None:
        """Write the rows of joints that are missing.

        Args:
            seconds: files of `seconds` of one arm and day, at least one.
            there: good files of `joint_seconds` of that arm and day.

        Returns:
            A file with the missing rows; None if there are none.
        """
        rows = self._files.rows("seconds", seconds)
        dataset = self._files.dataset("joint_seconds", there)
        known = set(_keys(dataset.to_table(columns=["source", "second"])))
        missing = [key not in known for key in _keys(rows)]
        if not any(missing):
            return None
        made = joint_rows(rows.filter(pa.array(missing)))
        counts = Counter(made["source"].to_pylist())
        parts = {}
        for source, part in joined(map(self._files.parts, seconds)).items():
            if counts[source]:
                parts[source] = replace(part, rows=counts[source], covered=NOTHING)
        name = next(iter(parts)) if len(parts) == 1 else joined_name(seconds)
        arm = seconds[0].arm or ""
        day = seconds[0].day or ""
        return self._files.write("joint_seconds", arm, day, name, made, parts)


def _marked(files: Sequence[StoredFile], bad: BadFiles) -> Iterator[StoredFile]:
    """Files whose entry in the log has to change: lost, found again, or of another size.

    Args:
        files: files that the log names.
        bad: what is wrong with some of the files.

    Yields:
        The files as the log should name them.
    """
    for file in files:
        if file.path in bad.words:
            if not file.lost:
                yield replace(file, lost=True)
        elif file.lost or file.path in bad.sizes:
            yield replace(file, lost=False, size=bad.sizes.get(file.path, file.size))


def _by_arm_and_day(
    files: Sequence[StoredFile], table: str
) -> Mapping[ArmDay, list[StoredFile]]:
    """Files of a table by arm and day; an empty list where there are none."""
    found = defaultdict[ArmDay, list[StoredFile]](list)
    for file in files:
        if file.table == table:
            found[file.arm, file.day].append(file)
    return found


def _rows(files: Sequence[StoredFile]) -> int:
    """Number of rows of files."""
    return sum(file.rows or 0 for file in files)


def _keys(rows: pa.Table) -> list[tuple[str, int]]:
    """Source and second (in microseconds since 1970) of rows, which identify rows of `seconds`."""
    begins = rows["second"].cast("int64").to_pylist()
    return list(zip(rows["source"].to_pylist(), begins, strict=True))


def _with_content(row: ModelRow) -> ModelRow:
    """A row of `models` with the content of the model file, if the file is still there."""
    path = row.get("path")
    if path is None:
        return row
    keys = SourceKeys("", str(row["robot"]), str(row["model"]))
    return {**row, "content": model_row(keys, None, Path(path))["content"]}
