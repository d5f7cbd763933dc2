# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Holdings: what a store has, and what it has lost, in words that name what mends it.

The losses themselves are found in `losses`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ur_energy_model.plant.losses import (
    Loss,
    LossCheck,
    all_files,
    bad_files,
    history_command,
    time_text,
)
from ur_energy_model.plant.schema import TABLES, UNDIVIDED
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store_files import StoredFile, StoreFiles, own_path
from ur_energy_model.plant.store_log import State

MOST_LINES = 20  # warnings that are stated; further warnings are only counted
MOST_NAMED = 20  # bags in a command of a warning; the JSON names all bags


@dataclass(frozen=True)
class Holdings:
    """Contents of a store, and its losses.

    Attributes:
        files: files that the logs name and that are whole, by table.
        lost: rows that are lost.
        warnings: what is lost, and which files do not belong to the store, one line each.
        repairs: commands that mend what can be mended, in the order to run them.
    """

    files: Mapping[str, Sequence[StoredFile]]
    lost: tuple[Loss, ...]
    warnings: tuple[str, ...]
    repairs: tuple[str, ...]


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
        state: what the logs of the store state.
        records: records of the sources of the store.
        first: first UTC day that matters, YYYY-MM-DD; None for all before the last.
        last: last UTC day that matters, YYYY-MM-DD; None for all after the first.
        arms: names of the arms that matter; () for all.
    """
    files = state.select()
    bad = bad_files(store, files)

    def matters(arm: str | None, begin: str | None, end: str | None) -> bool:
        """Whether an arm between two days (YYYY-MM-DD) matters.

        An arm or a day that is not known matters.
        """
        if arms and arm is not None and arm not in arms:
            return False
        ends_before = first is not None and end is not None and end < first
        begins_after = last is not None and begin is not None and begin > last
        return not ends_before and not begins_after

    check = LossCheck(store, files, records, bad.words)
    losses = (*check.bags(), *check.live(), *check.derived())
    lost = [
        each for each in losses if matters(each.arm, _day(each.start), _day(each.end))
    ]
    warnings = [
        *_lines(lost, store.address),
        *_damaged(state, store.address),
        *_foreign(store, files),
    ]
    more = len(warnings) - MOST_LINES
    if more > 0:
        warnings[MOST_LINES:] = [f"and {more} more of this kind"]
    good: dict[str, list[StoredFile]] = {table: [] for table in TABLES}
    for file in files:
        whole = file.path not in bad.words
        if whole and (file.table in UNDIVIDED or matters(file.arm, file.day, file.day)):
            good[file.table].append(file)
    repairs = _repairs(lost, state, store.address)
    return Holdings(good, tuple(lost), tuple(warnings), repairs)


def _day(nanoseconds: int | None) -> str | None:
    """UTC day of a time [ns since 1970], YYYY-MM-DD; None stays."""
    text = time_text(nanoseconds)
    return None if text is None else text[:10]


def _repairs(lost: Sequence[Loss], state: State, address: str) -> tuple[str, ...]:
    """Commands that mend losses and logs, in the order to run them."""
    repairs = []
    compact = history_command("compact", address)
    damaged_logs = state.damage is not None or any(state.behind.values())
    if damaged_logs or any(loss.command == compact for loss in lost):
        repairs.append(compact)
    bags = list(dict.fromkeys(loss.bag for loss in lost if loss.bag and loss.command))
    if bags:
        repairs.append(history_command("add", address, *bags))
    return tuple(repairs)


def _lines(lost: Sequence[Loss], address: str) -> Iterator[str]:
    """A line for each group of losses with the same files and the same remedy."""
    groups: dict[tuple[str, tuple[str, ...], str | None], list[Loss]] = defaultdict(list)
    without_files: list[Loss] = []  # losses of bags: rows are missing in existing files
    for loss in lost:
        if loss.bag and not loss.files:
            without_files.append(loss)
        else:
            remedy = "bag" if loss.bag else loss.command
            groups[loss.reason, loss.files, remedy].append(loss)
    for (reason, files, _), group in groups.items():
        if files:
            where = _some(files)
            several = len(files) > 1
        else:
            where = f"{_some([str(loss.source) for loss in group])} in sources"
            several = len(group) > 1
        verb = "are" if several else "is"
        yield f"{where} {verb} {reason}, {_consequence(group, address)}"
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
            span = f", between {time_text(min(starts))} and {time_text(max(ends))}"
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
        address: address of the store.
    """
    first = group[0]
    if first.bag is None and first.command is None:
        span = (
            f" from {time_text(first.start)} to {time_text(first.end)}"
            if first.start
            else ""
        )
        return (
            f"the sums lack the rows that the estimator wrote there{span}; only a "
            "recording of that time, added with history add, replaces them"
        )
    if first.bag is None:
        return f"it follows from other files; {first.command} makes it again"
    bags = _bags(group)
    command = history_command("add", address, *bags[:MOST_NAMED])
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
    command = history_command("compact", address)
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

    No line is about a file whose path has the form of the store's own paths: such files
    are left behind by processes that were killed, and stay for a while after they were
    replaced.
    """
    known = {file.path for file in files}
    names = {path.rpartition("/")[2] for path in known}
    foreign: dict[str, list[str]] = {}  # paths by name of the file
    for path, size in all_files(store).items():
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
