# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mender: makes again what a store has lost and what follows from its other files.

Rows of joints follow from `seconds`, records of bags and rows of models from the footers
of all files. Other files that are lost are marked as such in the log of the store: they
do not count from then on, so that other programs can read the rest, and `compare` still
states them. A file that is back counts again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ur_energy_model.plant.energy_parts import NOTHING
from ur_energy_model.plant.holdings import BadFiles, bad_files, is_made_up_for, unrecorded
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.plant.schema import UNDIVIDED, ModelRow, SourceKeys, model_row
from ur_energy_model.plant.sources import SourceRecord, joined, records_table
from ur_energy_model.plant.store_content import FileChange, StoreContent, joined_name
from ur_energy_model.plant.store_files import StoredFile
from ur_energy_model.plant.store_log import State

MADE_AGAIN = "made-again"
"""Begin of the names of files with records that were made again."""
ArmDay = tuple[str | None, str | None]
"""Name of an arm, and UTC day; None in tables without days."""


class Mender:
    """Finds what is lost in a state of a store, and writes files with what can be made again.

    Args:
        content: of the store.
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
        self._good = [file for file in self._all if file.path not in self._bad.words]
        self.change = self._made_again()

    def _made_again(self) -> FileChange | None:
        records = self._lost_records()
        models = self._lost_models(records)
        joints, gone = self._lost_joints()
        made = [*models, *joints]
        if records:
            rows = records_table(records)
            made.append(self._files.write("sources", "", "", MADE_AGAIN, rows, {}))
        known = {
            record.source for record in (*self._content.records(self._state), *records)
        }
        lost = [file for file in self._all if file.path in self._bad.words]
        for file in lost:
            again = (
                file.table == "models"
                or (file.table == "sources" and _all_known(file, known, records))
                or (file.live and is_made_up_for(self._files, file, self._good, lost))
            )
            if again:
                gone.append(file)
        done = {file.path for file in (*made, *gone)}
        marked = [file for file in _marked(self._all, self._bad) if file.path not in done]
        if not made and not gone and not marked:
            return None
        return FileChange([*made, *marked], gone)

    # Records

    def _lost_records(self) -> list[SourceRecord]:
        """Records of bags that have rows in good files, and are in no good file of `sources`."""
        records = self._content.records(self._state)
        found = []
        for source in sorted(unrecorded(self._files, self._good, records)):
            record = self._stated_record(source)
            found += [] if record is None else [record]
        return found

    def _stated_record(self, source: str) -> SourceRecord | None:
        """The record of a bag in the footer of a file with rows of it."""
        for file in self._good:
            if file.table not in UNDIVIDED and not file.live and file.may_hold(source):
                part = self._files.parts(file).get(source)
                if part is not None and part.record is not None:
                    return part.record
        return None

    # Models

    def _lost_models(self, records: Sequence[SourceRecord]) -> list[StoredFile]:
        """Files of rows of models that sources name, and that are lost."""
        bags = (*self._content.records(self._state), *records)
        wanted = {(record.model, record.robot) for record in bags}
        there = self._content.model_names(self._state)
        lost = any(
            file.table == "models" and file.path in self._bad.words for file in self._all
        )
        rows: dict[tuple[str, str], ModelRow] = {}
        if lost or not wanted <= there:
            for row in self._named_models():
                name = str(row["model"]), str(row["robot"])
                rows[name] = {**row, **rows.get(name, {})}
        for model, robot in wanted - there - rows.keys():
            rows[model, robot] = {"model": model, "robot": robot}
        missing = [_with_content(row) for name, row in rows.items() if name not in there]
        return self._content.write_models(self._state, missing)

    def _named_models(self) -> Iterator[ModelRow]:
        """What good files of `seconds` state of the models of their rows."""
        for file in self._good:
            if file.table != "seconds":
                continue
            for part in self._files.parts(file).values():
                if part.model is not None:
                    yield part.model

    # Joints

    def _lost_joints(self) -> tuple[list[StoredFile], list[StoredFile]]:
        """New files of `joint_seconds` from `seconds`, and the lost ones that they replace."""
        seconds = _by_place(file for file in self._good if file.table == "seconds")
        joints = _by_place(file for file in self._good if file.table == "joint_seconds")
        gone = [
            file
            for file in self._all
            if file.table == "joint_seconds" and file.path in self._bad.words
        ]
        lacking = {(file.arm, file.day) for file in gone}
        counts: dict[str | None, int] = {}  # joints of each arm
        for place, files in seconds.items():
            arm = place[0]
            counts[arm] = counts.get(arm) or self._joints(files[0])
            if _rows(joints[place]) < counts[arm] * _rows(files):
                lacking.add(place)
        made: list[StoredFile] = []
        for place in lacking & seconds.keys():
            for live in (False, True):
                own = [file for file in seconds[place] if file.live == live]
                known = [file for file in joints[place] if file.live == live]
                made += self._joints_of(own, known)
        return made, gone

    def _joints(self, file: StoredFile) -> int:
        """Number of joints of an arm, by the first row of a file of `seconds`; 0 without any."""
        rows = (
            self._files.dataset("seconds", [file]).head(1, columns=["joints"]).to_pylist()
        )
        return len(rows[0]["joints"] or ()) if rows else 0

    def _joints_of(
        self, seconds: Sequence[StoredFile], there: Sequence[StoredFile]
    ) -> Iterator[StoredFile]:
        """A file with the rows of joints of some files of `seconds` that are not there."""
        if not seconds:
            return
        rows = self._files.rows("seconds", seconds)
        known = self._files.dataset("joint_seconds", there).to_table(
            columns=["source", "second"]
        )
        keys = set(_keys(known))
        rows = rows.filter(pa.array([key not in keys for key in _keys(rows)], pa.bool_()))
        if not len(rows):
            return
        made = joint_rows(rows)
        counts = Counter(made["source"].to_pylist())
        parts = {
            source: replace(part, rows=counts[source], covered=NOTHING)
            for source, part in joined(map(self._files.parts, seconds)).items()
            if counts[source]
        }
        name = next(iter(parts)) if len(parts) == 1 else joined_name(seconds)
        arm = seconds[0].arm or ""
        day = seconds[0].day or ""
        yield self._files.write("joint_seconds", arm, day, name, made, parts)


def _marked(files: Sequence[StoredFile], bad: BadFiles) -> Iterator[StoredFile]:
    """Files as the log should name them: lost, found again, or of another size."""
    for file in files:
        if file.path in bad.words:
            if not file.lost:
                yield replace(file, lost=True)
        elif file.lost or file.path in bad.sizes:
            yield replace(file, lost=False, size=bad.sizes.get(file.path, file.size))


def _all_known(
    file: StoredFile, known: Collection[str], made: Sequence[SourceRecord]
) -> bool:
    """Whether there are as many records now as a lost file of `sources` had."""
    return file.source in known if file.source else len(made) >= (file.rows or 0)


def _by_place(files: Iterator[StoredFile]) -> Mapping[ArmDay, list[StoredFile]]:
    found = defaultdict[ArmDay, list[StoredFile]](list)
    for file in files:
        found[file.arm, file.day].append(file)
    return found


def _rows(files: Sequence[StoredFile]) -> int:
    return sum(file.rows or 0 for file in files)


def _keys(rows: pa.Table) -> list[tuple[str, int]]:
    """What identifies rows of `seconds`, in their order: source and second."""
    begins = rows["second"].cast("int64").to_pylist()
    return list(zip(rows["source"].to_pylist(), begins, strict=True))


def _with_content(row: ModelRow) -> ModelRow:
    """A row of a model with the content of its file, if that is still there."""
    path = row.get("path")
    if path is None:
        return row
    keys = SourceKeys("", str(row["robot"]), str(row["model"]))
    return {**row, "content": model_row(keys, None, Path(path))["content"]}
