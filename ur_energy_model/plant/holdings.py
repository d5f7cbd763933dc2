# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Holdings: what a store has, and what it has lost, as data and in words with what mends it.

Rows of a bag are lost if a file with them is lost or changed, or if there are fewer than
the record of the bag states; `history add` of the bag makes them again. What follows from
other files (rows of joints, records, rows of models, logs) is made again by `history
compact`. Rows of a live writer cannot be made again, except by a recording of the same
time.
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
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store_content import may_have_had
from ur_energy_model.plant.store_files import StoredFile, StoreFiles, own_path
from ur_energy_model.plant.store_log import State

MOST_LINES = 20  # warnings; of more, the number
# of larger files together, sizes are compared, not contents [bytes]
MOST_CHECKED = 256_000_000
MOST_NAMED = 20  # bags in a command of a warning; the JSON has all
DERIVED = ("joint_seconds", "sources", "models")  # tables that follow from other files


@dataclass(frozen=True)
class Loss:
    """Rows that a store had, and has no more; what is not known of them is None.

    Attributes:
        table: name of the table.
        arm: name of the arm.
        source: name of the source.
        bag: path of the bag; None for rows that are of none.
        start: begin of the time in which they were [ns since 1970 UTC].
        end: end of that time [ns since 1970 UTC].
        rows: their number.
        files: paths of the files that are lost or changed.
        reason: "lost" or "changed".
        command: that mends the loss; None if nothing does.
        there: whether the bag is where it was.
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
    if nanoseconds is None:
        return None
    moment = datetime.fromtimestamp(nanoseconds // SECOND, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Holdings:
    """What a store holds, and what it has lost.

    Attributes:
        files: that count and are whole, by table.
        lost: rows that are lost.
        warnings: what is lost and what is foreign in words, one line each.
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
        sizes: right sizes by path [bytes], where a log has others of good files.
    """

    words: Mapping[str, str]
    sizes: Mapping[str, int]


def bad_files(store: StoreFiles, files: Sequence[StoredFile]) -> BadFiles:
    """Compare files that a log names with those that are there.

    Contents are compared in a folder, up to MOST_CHECKED bytes of all; beyond that and
    on an S3 server, sizes are.

    Args:
        store: its files.
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
    return {name: size for table in TABLES for name, size in store.listing(table).items()}


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
        store: its files.
        state: what its logs state.
        records: of its sources.
        first: day that matters, YYYY-MM-DD, or None; so is `last`.
        last: see `first`.
        arms: that matter, () for all.
    """
    files = state.select()
    bad = bad_files(store, files)
    check = _Check(store, state, files, records, bad.words)

    def matters(arm: str | None, begin: str | None, end: str | None) -> bool:
        return (
            (not arms or arm is None or arm in arms)
            and (first is None or end is None or end >= first)
            and (last is None or begin is None or begin <= last)
        )

    lost = tuple(
        loss
        for loss in (*check.bags(), *check.live(), *check.derived())
        if matters(loss.arm, _day(loss.start), _day(loss.end))
    )
    lines = [
        *_lines(lost, store.address),
        *_damaged(state, store.address),
        *_foreign(store, files),
    ]
    if (more := len(lines) - MOST_LINES) > 0:
        lines[MOST_LINES:] = [f"and {more} more of this kind"]
    good: dict[str, list[StoredFile]] = {table: [] for table in TABLES}
    for file in files:
        whole = file.path not in bad.words
        if whole and (file.table in UNDIVIDED or matters(file.arm, file.day, file.day)):
            good[file.table].append(file)
    return Holdings(good, lost, tuple(lines), _repairs(lost, state, store.address))


def _day(nanoseconds: int | None) -> str | None:
    text = _text(nanoseconds)
    return None if text is None else text[:10]


class _Check:
    """Looks for rows that are lost; `bad` is what is wrong with files by path."""

    def __init__(
        self,
        store: StoreFiles,
        state: State,
        files: Sequence[StoredFile],
        records: Sequence[SourceRecord],
        bad: Mapping[str, str],
    ) -> None:
        self._store = store
        self._state = state
        self._records = records
        self._words = bad
        self._good = [file for file in files if file.path not in bad]
        self._bad = [file for file in files if file.path in bad]

    def bags(self) -> Iterator[Loss]:
        """Rows of bags."""
        rows = self._rows_of_bags()
        for record in self._records:
            if not record.bag:
                continue
            own = [
                f for f in self._bad if f.table not in DERIVED and may_have_had(f, record)
            ]
            for table in dict.fromkeys((*record.rows, *(file.table for file in own))):
                files = tuple(file.path for file in own if file.table == table)
                expected = record.rows.get(table)
                have = rows.get((record.source, table), 0)
                if expected == have or (expected is None and not files):
                    continue
                words = {self._words[path] for path in files}
                there = Path(record.bag).exists()
                yield Loss(
                    table=table,
                    arm=record.arm,
                    source=record.source,
                    bag=record.bag,
                    start=record.start,
                    end=record.end,
                    rows=None if expected is None else max(expected - have, 0),
                    files=files,
                    reason=words.pop() if len(words) == 1 else "lost",
                    command=self._add(record.bag),
                    there=there,
                )

    def _rows_of_bags(self) -> dict[tuple[str, str], int]:
        """Numbers of good rows by source and table.

        Footers are read only where the sums by arm are not those of the records.
        """
        expected: Counter[tuple[str, str]] = Counter()
        have: Counter[tuple[str, str]] = Counter()
        uncounted: set[tuple[str, str]] = set()
        for record in self._records:
            for table in (
                (*TABLES.keys() - {*UNDIVIDED, "joint_seconds"},) if record.bag else ()
            ):
                if table in record.rows:
                    expected[record.arm, table] += record.rows[table]
                else:
                    uncounted.add((record.arm, table))
        files: dict[tuple[str, str], list[StoredFile]] = defaultdict(list)
        for file in self._good:
            if file.table not in DERIVED and not file.live:
                key = (file.arm or "", file.table)
                have[key] += file.rows or 0
                files[key].append(file)
        exact = {key for key in expected if have[key] == expected[key]} - uncounted
        rows: Counter[tuple[str, str]] = Counter()
        for record in self._records:
            for table, count in record.rows.items():
                if (record.arm, table) in exact:
                    rows[record.source, table] = count
        for key in files.keys() - exact:
            for file in files[key]:
                for source, part in self._store.parts(file).items():
                    rows[source, file.table] += part.rows
        return dict(rows)

    def live(self) -> Iterator[Loss]:
        """Rows of live writers that no other source has made up for."""
        for file in self._bad:
            if file.live and file.table not in DERIVED:
                if is_made_up_for(self._store, file, self._good, self._bad):
                    continue
                yield self._loss(file, file.source, command=None)

    def derived(self) -> Iterator[Loss]:
        """Rows that follow from other files."""
        command = shlex.join(["ur_energy", "history", "compact", self._store.address])
        for file in self._bad:
            if file.table in DERIVED:
                source = None if file.table == "models" else file.source
                yield self._loss(file, source, command)
        for source in sorted(unrecorded(self._store, self._good, self._records)):
            yield Loss("sources", None, source, None, None, None, 1, (), "lost", command)

    def _loss(self, file: StoredFile, source: str | None, command: str | None) -> Loss:
        """The rows of one file, which no bag is known of."""
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

    def _add(self, bag: str) -> str:
        return shlex.join(["ur_energy", "history", "add", self._store.address, bag])


def unrecorded(
    store: StoreFiles, good: Sequence[StoredFile], records: Sequence[SourceRecord]
) -> set[str]:
    """Bags that have rows in good files of `seconds`, and no record.

    Footers of files of several bags are read only of arms with more rows than the records
    state.
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
    """Whether other sources have rows in place of those of a lost file of a live writer.

    Of `seconds`, they cover all its time but for a second. Of another table, they cover
    some of its time, and the writer has no rows of `seconds` of that time, nor lost ones
    that are lacking.

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
        near = other.span is None or (other.span[0] < span[1] and span[0] < other.span[1])
        return other.table == "seconds" and other.arm == file.arm and near

    parts = [
        part for other in good if meets(other) for part in store.parts(other).items()
    ]
    others = TimeRanges.of(
        p for name, part in parts if name != source for p in part.covered.pairs()
    )
    if file.table == "seconds":
        left = (file.covered or TimeRanges.of([span])).without(others)
        return sum(end - start for start, end in left.pairs()) <= SECOND
    own = any(name == source and part.covered.within(*span) for name, part in parts)
    lacking = any(
        meets(other)
        and other.may_hold(source)
        and not is_made_up_for(store, other, good, bad)
        for other in bad
    )
    return bool(others.within(*span)) and not own and not lacking


def _repairs(lost: Sequence[Loss], state: State, address: str) -> tuple[str, ...]:
    """Commands that mend losses and logs."""
    compact = shlex.join(["ur_energy", "history", "compact", address])
    logs = state.damage is not None or any(state.behind.values())
    again = logs or any(loss.command == compact for loss in lost)
    bags = list(dict.fromkeys(loss.bag for loss in lost if loss.bag and loss.command))
    add = shlex.join(["ur_energy", "history", "add", address, *bags])
    return (*([compact] if again else []), *([add] if bags else []))


# In words.


def _lines(lost: Sequence[Loss], address: str) -> Iterator[str]:
    """A line for each group of losses that one command mends, or none."""
    groups: dict[tuple[str, tuple[str, ...], str | None], list[Loss]] = defaultdict(list)
    for loss in lost:
        kind = "bag" if loss.bag else loss.command
        groups[loss.reason, loss.files, kind].append(loss)
    short: list[Loss] = []  # of bags whose rows are missing in files that are there
    for (reason, files, _), group in groups.items():
        if not files and group[0].bag:
            short += group
            continue
        where = (
            _some(files)
            if files
            else f"{_some([str(loss.source) for loss in group])} in sources"
        )
        many = len(files) > 1 or (not files and len(group) > 1)
        yield f"{where} {'are' if many else 'is'} {reason}, {_consequence(group, address)}"
    if short:
        tables = ", ".join(dict.fromkeys(loss.table for loss in short))
        bags = list(dict.fromkeys(str(loss.bag) for loss in short))
        yield f"rows of {tables} of {_some(bags)} are lost, {_consequence(short, address)}"


def lost_sentences(holdings: Holdings) -> Iterator[str]:
    """What of the figures is lost, in a sentence for bags and one for live writers."""
    bags = [loss for loss in holdings.lost if loss.bag is not None]
    if bags:
        count = len({loss.bag for loss in bags})
        repair = f": {holdings.repairs[-1]}" if holdings.repairs else ""
        yield (
            f"Rows of {count} recording{'s' * (count > 1)} are lost ({_numbers(bags)}), and not in "
            f"these figures until the recording{'s' * (count > 1)} are added again{repair}"
        )
    live = [loss for loss in holdings.lost if loss.bag is None and loss.command is None]
    if live:
        starts = [loss.start for loss in live if loss.start is not None]
        ends = [loss.end for loss in live if loss.end is not None]
        span = (
            f", between {_text(min(starts))} and {_text(max(ends))}"
            if starts and ends
            else ""
        )
        yield (
            f"Rows that estimators wrote are lost ({_numbers(live)}){span}; nothing but recordings "
            "of that time can replace them."
        )


def _numbers(lost: Sequence[Loss]) -> str:
    """Numbers of rows by table."""
    rows: Counter[str] = Counter()
    for loss in lost:
        rows[loss.table] += loss.rows or 0
    return ", ".join(f"{count} of {table}" for table, count in rows.items())


def _consequence(group: Sequence[Loss], address: str) -> str:
    """What some losses mean, and what mends them."""
    first = group[0]
    if first.bag is None and first.command is None:
        span = f" from {_text(first.start)} to {_text(first.end)}" if first.start else ""
        return (
            f"the sums lack the rows that the estimator wrote there{span}; only a recording of "
            "that time, added with history add, replaces them"
        )
    if first.bag is None:
        return f"it follows from other files; {first.command} makes it again"
    bags = list(dict.fromkeys(str(loss.bag) for loss in group if loss.command))
    if not bags:
        return "the sums lack them; add the recordings of that time again"
    command = shlex.join(["ur_energy", "history", "add", address, *bags[:MOST_NAMED]])
    command += f" and {len(bags) - MOST_NAMED} more" if len(bags) > MOST_NAMED else ""
    missing = list(dict.fromkeys(str(loss.bag) for loss in group if not loss.there))
    place = f" ({_some(missing)}: not found on this machine)" if missing else ""
    return f"the sums lack them; {command} makes them again{place}"


def _damaged(state: State, address: str) -> Iterator[str]:
    """Lines about logs that have to be made again."""
    command = shlex.join(["ur_energy", "history", "compact", address])
    if state.damage is not None:
        yield f"the log of the store is damaged ({state.damage}); {command} makes it again"
    for table, damage in state.behind.items():
        if damage:
            yield (
                f"the log of {table} is damaged ({damage}), other programs cannot read the table; "
                f"{command} makes it again"
            )


def _foreign(store: StoreFiles, files: Sequence[StoredFile]) -> Iterator[str]:
    """Lines about files that no log names, but those of killed processes and replaced ones."""
    known = {file.path for file in files}
    names = {path.rpartition("/")[2] for path in known}
    copies: dict[str, list[str]] = {}
    for path, size in _listing(store).items():
        name = path.rpartition("/")[2]
        if store.folder is not None and (store.folder / path).is_symlink():
            yield f"{path} is a link: nothing is read or written there; remove the link"
            continue
        ours = size is not None and own_path(path) is not None and name not in names
        if path not in known and not ours:
            copies.setdefault(name, []).append(path)
    for paths in copies.values():
        yield (
            f"{_some(paths)}: no log of the store names it (a copy?); it does not count, and is "
            "left as it is"
        )


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} more"
