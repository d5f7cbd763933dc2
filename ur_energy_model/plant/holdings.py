# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Holdings: what a store has, and what it has lost, as data and in words with what mends it.

Rows of a bag are lost if a file that contains them is lost or changed, or if there are
fewer than the record of the bag states; `history add` of the bag makes them again. Rows
of joints, records, rows of models and logs follow from other files: `history compact`
makes them again. Rows of a live writer cannot be made again, except by a recording of the
same time.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ur_energy_model.plant.energy_parts import SECOND, TimeRanges
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.sources import COUNTED, SourceRecord
from ur_energy_model.plant.store_content import may_have_had
from ur_energy_model.plant.store_files import StoredFile, StoreFiles, own_path
from ur_energy_model.plant.store_log import State

MOST_LINES = 20  # warnings that are stated; further warnings are only counted
MOST_CHECKED = 256_000_000
"""Size of all files up to which their contents are compared, not their sizes alone
[bytes]."""
MOST_NAMED = 20  # bags in a command of a warning; the JSON names all bags
DERIVED = ("joint_seconds", "sources", "models")
"""Tables that follow from other files."""


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
        command: that mends the loss; None if nothing does.
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
            "from": _text(self.start),
            "to": _text(self.end),
            "rows": self.rows,
            "files": list(self.files),
            "reason": self.reason,
            "command": self.command,
        }


def _text(nanoseconds: int | None) -> str | None:
    """A time [ns since 1970] as ISO 8601 in UTC; None stays."""
    if nanoseconds is None:
        return None
    moment = datetime.fromtimestamp(nanoseconds // SECOND, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Holdings:
    """Contents of a store, and its losses.

    Attributes:
        files: that count and are whole, by table.
        lost: rows that are lost.
        warnings: what is lost and which files are not the store's, one line each.
        repairs: commands that mend what can be mended, in the order to run them.
    """

    files: Mapping[str, Sequence[StoredFile]]
    lost: tuple[Loss, ...]
    warnings: tuple[str, ...]
    repairs: tuple[str, ...]


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
        files: that the log names.
    """
    there = _listing(store)
    local = store.folder is not None
    read = local and sum(file.size or 0 for file in files) <= MOST_CHECKED
    words: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for file in files:
        size = there.get(file.path)
        if size is None:
            words[file.path] = "changed" if file.path in there else "lost"
        elif read or (local and file.size not in (None, size)):
            if not store.is_good(file):
                words[file.path] = "changed"
            elif file.crc32 is not None and file.size != size:
                sizes[file.path] = size
        elif file.size not in (None, size):
            words[file.path] = "changed"
    return BadFiles(words, sizes)


def _listing(store: StoreFiles) -> dict[str, int | None]:
    """Sizes of all files of a store [bytes] by path, from `StoreFiles.listing`."""
    found: dict[str, int | None] = {}
    for table in TABLES:
        found |= store.listing(table)
    return found


def compare(
    store: StoreFiles,
    state: State,
    records: Sequence[SourceRecord],
    first: str | None,
    last: str | None,
    arms: Collection[str],
) -> Holdings:
    """Compare what the logs state with what the store holds.

    Args:
        store: files of the store.
        state: what its logs state.
        records: of its sources.
        first: first UTC day that matters, YYYY-MM-DD; None for all before the last.
        last: last UTC day that matters, YYYY-MM-DD; None for all after the first.
        arms: that matter, () for all.
    """
    files = state.select()
    bad = bad_files(store, files)
    check = _LossCheck(store, files, records, bad.words)

    def matters(arm: str | None, begin: str | None, end: str | None) -> bool:
        """Whether an arm between two days (YYYY-MM-DD) matters.

        An arm or a day that is not known matters.
        """
        if arms and arm is not None and arm not in arms:
            return False
        ends_before = first is not None and end is not None and end < first
        begins_after = last is not None and begin is not None and begin > last
        return not ends_before and not begins_after

    found = (*check.bags(), *check.live(), *check.derived())
    lost = [each for each in found if matters(each.arm, _day(each.start), _day(each.end))]
    lines = [
        *_lines(lost, store.address),
        *_damaged(state, store.address),
        *_foreign(store, files),
    ]
    more = len(lines) - MOST_LINES
    if more > 0:
        lines[MOST_LINES:] = [f"and {more} more of this kind"]
    good: dict[str, list[StoredFile]] = {table: [] for table in TABLES}
    for file in files:
        whole = file.path not in bad.words
        if whole and (file.table in UNDIVIDED or matters(file.arm, file.day, file.day)):
            good[file.table].append(file)
    repairs = _repairs(lost, state, store.address)
    return Holdings(good, tuple(lost), tuple(lines), repairs)


def _day(nanoseconds: int | None) -> str | None:
    """UTC day of a time [ns since 1970], YYYY-MM-DD; None stays."""
    text = _text(nanoseconds)
    return None if text is None else text[:10]


_ArmTable = tuple[str, str]
"""Name of an arm, and name of a table."""


class _LossCheck:
    """Finds rows that are lost.

    Args:
        store: files of the store.
        files: that its logs name.
        records: of its sources.
        bad: "lost" or "changed", by path of the files that are not as they were.
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
        """Rows of a bag in a table.

        Args:
            record: of the bag.
            table: name of the table.
            rows: number of rows that are lost; None if it is not known.
            paths: of bad files that may have had them.
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
            command=_command("add", self._store.address, record.bag),
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
        command = _command("compact", self._store.address)
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
        """The rows of one file, whose bag is not known.

        Args:
            file: a file that is lost or changed.
            source: name of the source; None if it is not known.
            command: that mends the loss; None if nothing does.
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


def _command(name: str, *arguments: str) -> str:
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
        records: of the bags of the store.

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


def _repairs(lost: Sequence[Loss], state: State, address: str) -> tuple[str, ...]:
    """Commands that mend losses and logs, in the order to run them."""
    repairs = []
    compact = _command("compact", address)
    damaged_logs = state.damage is not None or any(state.behind.values())
    if damaged_logs or any(loss.command == compact for loss in lost):
        repairs.append(compact)
    bags = list(dict.fromkeys(loss.bag for loss in lost if loss.bag and loss.command))
    if bags:
        repairs.append(_command("add", address, *bags))
    return tuple(repairs)


# In words.


def _lines(lost: Sequence[Loss], address: str) -> Iterator[str]:
    """A line for each group of losses with the same files and the same remedy."""
    groups: dict[tuple[str, tuple[str, ...], str | None], list[Loss]] = defaultdict(list)
    without_files: list[Loss] = []  # of bags: rows are missing in files that are there
    for loss in lost:
        if loss.bag and not loss.files:
            without_files.append(loss)
        else:
            kind = "bag" if loss.bag else loss.command
            groups[loss.reason, loss.files, kind].append(loss)
    for (reason, files, _), group in groups.items():
        if files:
            where = _some(files)
            many = len(files) > 1
        else:
            where = f"{_some([str(loss.source) for loss in group])} in sources"
            many = len(group) > 1
        yield f"{where} {'are' if many else 'is'} {reason}, {_consequence(group, address)}"
    if without_files:
        tables = ", ".join(dict.fromkeys(loss.table for loss in without_files))
        bags = _some(_bags(without_files))
        consequence = _consequence(without_files, address)
        yield f"rows of {tables} of {bags} are lost, {consequence}"


def lost_sentences(holdings: Holdings) -> Iterator[str]:
    """Sentences about lost rows for a report: one about bags, and one about live writers.

    Rows that follow from other files are not mentioned, as figures do not need them.
    """
    bags = [loss for loss in holdings.lost if loss.bag is not None]
    if bags:
        count = len({loss.bag for loss in bags})
        recordings = "recording" if count == 1 else "recordings"
        repair = f": {holdings.repairs[-1]}" if holdings.repairs else ""
        yield (
            f"Rows of {count} {recordings} are lost ({_numbers(bags)}), and not in "
            f"these figures until the {recordings} are added again{repair}"
        )
    live = [loss for loss in holdings.lost if loss.bag is None and loss.command is None]
    if live:
        starts = [loss.start for loss in live if loss.start is not None]
        ends = [loss.end for loss in live if loss.end is not None]
        span = ""
        if starts and ends:
            span = f", between {_text(min(starts))} and {_text(max(ends))}"
        yield (
            f"Rows that estimators wrote are lost ({_numbers(live)}){span}; nothing but "
            "recordings of that time can replace them."
        )


def _numbers(lost: Sequence[Loss]) -> str:
    """Numbers of lost rows by table, in words."""
    rows: Counter[str] = Counter()
    for loss in lost:
        rows[loss.table] += loss.rows or 0
    return ", ".join(f"{count} of {table}" for table, count in rows.items())


def _consequence(group: Sequence[Loss], address: str) -> str:
    """What losses mean for the figures, and what mends them.

    Args:
        group: losses with the same remedy.
        address: of the store.
    """
    first = group[0]
    if first.bag is None and first.command is None:
        span = f" from {_text(first.start)} to {_text(first.end)}" if first.start else ""
        return (
            f"the sums lack the rows that the estimator wrote there{span}; only a "
            "recording of that time, added with history add, replaces them"
        )
    if first.bag is None:
        return f"it follows from other files; {first.command} makes it again"
    bags = _bags(group)
    command = _command("add", address, *bags[:MOST_NAMED])
    if len(bags) > MOST_NAMED:
        command += f" and {len(bags) - MOST_NAMED} more"
    missing = _bags([loss for loss in group if not loss.there])
    place = f" ({_some(missing)}: not found on this machine)" if missing else ""
    return f"the sums lack them; {command} makes them again{place}"


def _bags(lost: Sequence[Loss]) -> list[str]:
    """Paths of the bags whose rows are lost, each once."""
    return list(dict.fromkeys(str(loss.bag) for loss in lost))


def _damaged(state: State, address: str) -> Iterator[str]:
    """Lines about logs that have to be made again."""
    command = _command("compact", address)
    if state.damage is not None:
        yield f"the log of the store is damaged ({state.damage}); {command} makes it again"
    for table, damage in state.behind.items():
        if damage:
            yield (
                f"the log of {table} is damaged ({damage}), other programs cannot read "
                f"the table; {command} makes it again"
            )


def _foreign(store: StoreFiles, files: Sequence[StoredFile]) -> Iterator[str]:
    """Lines about links, and about files that no log names.

    Files that have the form of the store's own are no copies, as killed processes leave
    them behind, and replaced ones stay for a while: no line is about them.
    """
    known = {file.path for file in files}
    names = {path.rpartition("/")[2] for path in known}
    foreign: dict[str, list[str]] = {}  # paths by name of the file
    for path, size in _listing(store).items():
        name = path.rpartition("/")[2]
        if store.folder is not None and (store.folder / path).is_symlink():
            yield f"{path} is a link: nothing is read or written there; remove the link"
            continue
        own = size is not None and own_path(path) is not None and name not in names
        if path not in known and not own:
            foreign.setdefault(name, []).append(path)
    for paths in foreign.values():
        yield (
            f"{_some(paths)}: no log of the store names it (a copy?); it does not count, "
            "and is left as it is"
        )


def _some(names: Sequence[str]) -> str:
    """The first of one or more names, and how many more there are."""
    more = len(names) - 1
    return f"{names[0]} and {more} more" if more else names[0]
