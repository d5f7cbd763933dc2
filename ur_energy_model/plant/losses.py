# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Losses: rows that a store had and has lost, found from what its logs and records state.

Rows of a bag are lost if a file that contains them is lost or changed, or if there are
fewer than the record of the bag states; `history add` of the bag makes them again. Rows
of joints, records, rows of models and logs follow from other files: `history compact`
makes them again. Rows of a live writer cannot be made again, except by a recording of the
same time.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ur_energy_model.plant.energy_parts import SECOND, TimeRanges
from ur_energy_model.plant.schema import TABLES
from ur_energy_model.plant.sources import COUNTED, SourceRecord
from ur_energy_model.plant.store_content import may_have_had
from ur_energy_model.plant.store_files import StoredFile, StoreFiles

DERIVED = ("joint_seconds", "sources", "models")
"""Tables that follow from other files."""
MOST_CHECKED = 256_000_000
"""Size of all files up to which their contents are compared [bytes]; of more, only sizes
are compared."""


@dataclass(frozen=True)
class Loss:
    """Rows that a store had and has lost; attributes that are not known are None.

    Attributes:
        table: name of the table.
        arm: name of the arm.
        source: name of the source.
        bag: path of the bag; None for rows that come from no bag.
        start: begin of the time of the rows [ns since 1970 UTC].
        end: end of the time of the rows [ns since 1970 UTC].
        rows: number of rows.
        files: paths of the files that are lost or changed.
        reason: "lost" or "changed".
        command: command that mends the loss; None if none does.
        there: whether the bag still exists at its path.
    """

    table: str
    arm: str | None
    source: str | None
    bag: str | None
    start: int | None
    end: int | None
    rows: int | None
    files: tuple[str, ...]
    reason: str
    command: str | None
    there: bool = True

    def entry(self) -> dict[str, Any]:
        """For JSON; times are ISO 8601 in UTC."""
        return {
            "table": self.table,
            "arm": self.arm,
            "source": self.source,
            "bag": self.bag,
            "from": time_text(self.start),
            "to": time_text(self.end),
            "rows": self.rows,
            "files": list(self.files),
            "reason": self.reason,
            "command": self.command,
        }


def time_text(nanoseconds: int | None) -> str | None:
    """A time [ns since 1970] as ISO 8601 in UTC; None stays."""
    if nanoseconds is None:
        return None
    moment = datetime.fromtimestamp(nanoseconds // SECOND, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class BadFiles:
    """Files that are not as the log of a store names them.

    Attributes:
        words: "lost" or "changed", by path.
        sizes: sizes of good files whose size in the log is wrong, by path [bytes].
    """

    words: Mapping[str, str]
    sizes: Mapping[str, int]


def bad_files(store: StoreFiles, files: Sequence[StoredFile]) -> BadFiles:
    """Compare files that a log names with files that exist.

    In a folder, contents are compared by their checksums, if all files together have at
    most MOST_CHECKED bytes. In larger folders and on an S3 server, sizes are compared.

    Args:
        store: files of the store.
        files: files that the log names.
    """
    there = all_files(store)
    local = store.folder is not None
    compare_all = local and sum(file.size or 0 for file in files) <= MOST_CHECKED
    words: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for file in files:
        if file.path not in there:
            words[file.path] = "lost"
            continue
        size = there[file.path]
        if size is None:  # a link, pipe or device has taken its place
            words[file.path] = "changed"
            continue
        other_size = file.size not in (None, size)
        if compare_all or (local and other_size):
            if not store.is_good(file):
                words[file.path] = "changed"
            elif file.crc32 is not None and file.size != size:
                sizes[file.path] = size
        elif other_size:
            words[file.path] = "changed"
    return BadFiles(words, sizes)


def all_files(store: StoreFiles) -> dict[str, int | None]:
    """Sizes of all files of a store [bytes] by path; None for links, pipes and devices."""
    found: dict[str, int | None] = {}
    for table in TABLES:
        found |= store.listing(table)
    return found


_ArmTable = tuple[str, str]
"""Name of an arm, and name of a table."""


class LossCheck:
    """Finds the rows that a store has lost.

    Args:
        store: files of the store.
        files: files that the logs of the store name.
        records: records of the sources of the store.
        bad: "lost" or "changed", by path of the files that are not as they were written.
    """

    def __init__(
        self,
        store: StoreFiles,
        files: Sequence[StoredFile],
        records: Sequence[SourceRecord],
        bad: Mapping[str, str],
    ) -> None:
        self._store = store
        self._records = records
        self._words = bad
        self._good = [file for file in files if file.path not in bad]
        self._bad = [file for file in files if file.path in bad]

    def bags(self) -> Iterator[Loss]:
        """Rows of bags: a loss per bag and table."""
        rows = self._rows_of_bags()
        for record in self._records:
            if not record.bag:
                continue
            files: dict[str, list[str]] = {table: [] for table in record.rows}
            for file in self._bad:
                if file.table not in DERIVED and may_have_had(file, record):
                    files.setdefault(file.table, []).append(file.path)
            for table, paths in files.items():
                expected = record.rows.get(table)
                there = rows.get((record.source, table), 0)
                if expected != there and (expected is not None or paths):
                    missing = None if expected is None else max(expected - there, 0)
                    yield self._loss_of_bag(record, table, missing, paths)

    def _loss_of_bag(
        self, record: SourceRecord, table: str, rows: int | None, paths: Sequence[str]
    ) -> Loss:
        """The loss of rows of a bag in a table.

        Args:
            record: record of the bag.
            table: name of the table.
            rows: number of rows that are lost; None if it is not known.
            paths: paths of bad files that may have had the rows.
        """
        words = {self._words[path] for path in paths}
        return Loss(
            table=table,
            arm=record.arm,
            source=record.source,
            bag=record.bag,
            start=record.start,
            end=record.end,
            rows=rows,
            files=tuple(paths),
            reason=words.pop() if len(words) == 1 else "lost",
            command=history_command("add", self._store.address, record.bag),
            there=Path(record.bag).exists(),
        )

    def _rows_of_bags(self) -> dict[tuple[str, str], int]:
        """Numbers of rows in good files, by source and table.

        Footers are read only where the sums by arm differ from the sums of the records.
        """
        files: dict[_ArmTable, list[StoredFile]] = defaultdict(list)
        there: Counter[_ArmTable] = Counter()
        for file in self._good:
            if file.table not in DERIVED and not file.live:
                key = (file.arm or "", file.table)
                files[key].append(file)
                there[key] += file.rows or 0
        complete = self._complete(there)
        rows: Counter[tuple[str, str]] = Counter()
        for record in self._records:
            for table, count in record.rows.items():
                if (record.arm, table) in complete:
                    rows[record.source, table] = count
        for key in files.keys() - complete:
            for file in files[key]:
                for source, part in self._store.parts(file).items():
                    rows[source, file.table] += part.rows
        return dict(rows)

    def _complete(self, there: Counter[_ArmTable]) -> set[_ArmTable]:
        """Arms and tables that have as many rows as the records of their bags state.

        Args:
            there: numbers of rows in good files.
        """
        expected: Counter[_ArmTable] = Counter()
        uncounted: set[_ArmTable] = set()  # an older version has written a record
        for record in self._records:
            if not record.bag:
                continue
            for table in COUNTED:
                if table in record.rows:
                    expected[record.arm, table] += record.rows[table]
                else:
                    uncounted.add((record.arm, table))
        return {key for key in expected if there[key] == expected[key]} - uncounted

    def live(self) -> Iterator[Loss]:
        """Rows of live writers that no other source has made up for."""
        for file in self._bad:
            if file.live and file.table not in DERIVED:
                if is_made_up_for(self._store, file, self._good, self._bad):
                    continue
                yield self._loss_of_file(file, file.source, command=None)

    def derived(self) -> Iterator[Loss]:
        """Rows that follow from other files."""
        command = history_command("compact", self._store.address)
        for file in self._bad:
            if file.table in DERIVED:
                source = None if file.table == "models" else file.source
                yield self._loss_of_file(file, source, command)
        for source in sorted(unrecorded(self._store, self._good, self._records)):
            yield Loss(
                table="sources",
                arm=None,
                source=source,
                bag=None,
                start=None,
                end=None,
                rows=1,
                files=(),
                reason="lost",
                command=command,
            )

    def _loss_of_file(
        self, file: StoredFile, source: str | None, command: str | None
    ) -> Loss:
        """The loss of all rows of one file, which no bag makes again.

        Args:
            file: a file that is lost or changed.
            source: name of the source; None if it is not known.
            command: command that mends the loss; None if no command does.
        """
        start, end = file.span or (None, None)
        return Loss(
            table=file.table,
            arm=file.arm,
            source=source,
            bag=None,
            start=start,
            end=end,
            rows=file.rows,
            files=(file.path,),
            reason=self._words[file.path],
            command=command,
        )


def history_command(name: str, *arguments: str) -> str:
    """A subcommand of `ur_energy history` with arguments, as one types it."""
    return shlex.join(["ur_energy", "history", name, *arguments])


def unrecorded(
    store: StoreFiles, good: Sequence[StoredFile], records: Sequence[SourceRecord]
) -> set[str]:
    """Bags that have rows in good files of `seconds`, and no record.

    Footers of files of several bags are read only for arms with more rows than the
    records state.

    Args:
        store: files of the store.
        good: files that are whole.
        records: records of the bags of the store.

    Returns:
        Names of the sources.
    """
    known = {record.source for record in records}
    rows: Counter[str | None] = Counter()
    files = [file for file in good if file.table == "seconds" and not file.live]
    for file in files:
        rows[file.arm] += file.rows or 0
    for record in records:
        rows[record.arm] -= record.rows.get("seconds", 0)
    found: set[str] = set()
    for file in files:
        if file.source:
            found.add(file.source)
        elif rows[file.arm]:
            found.update(store.parts(file))
    return found - known


def is_made_up_for(
    store: StoreFiles,
    file: StoredFile,
    good: Sequence[StoredFile],
    bad: Sequence[StoredFile],
) -> bool:
    """Whether other sources have rows of the time of a lost file of a live writer.

    They make up for a file of `seconds` if they cover all its time but for a second. They
    make up for a file of another table if they cover some of its time, and the writer has
    no rows of `seconds` in that time: neither good ones, nor lost ones that nothing makes
    up for.

    Args:
        store: the files.
        file: the lost one.
        good: files that are whole.
        bad: files that are lost or changed.
    """
    span = file.span
    source = file.source
    if span is None or source is None:
        return False

    def meets(other: StoredFile) -> bool:
        """Whether a file has seconds of the arm that may be in the time of the lost file."""
        if other.table != "seconds" or other.arm != file.arm:
            return False
        return other.span is None or (other.span[0] < span[1] and span[0] < other.span[1])

    covered_by_others = []
    covered_by_writer = False
    for other in good:
        if meets(other):
            for name, part in store.parts(other).items():
                if name != source:
                    covered_by_others += part.covered.pairs()
                elif part.covered.within(*span):
                    covered_by_writer = True
    others = TimeRanges.of(covered_by_others)
    if file.table == "seconds":
        left = (file.covered or TimeRanges.of([span])).without(others)
        return sum(end - start for start, end in left.pairs()) <= SECOND
    if covered_by_writer or not others.within(*span):
        return False
    lost = [other for other in bad if meets(other) and other.may_hold(source)]
    return all(is_made_up_for(store, other, good, bad) for other in lost)
