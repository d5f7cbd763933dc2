# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sources of a history: a bag or a live writer, its record, and its part in each file.

The footer of every file of a store states which sources its rows are of (`SourcePart`),
with the record of each bag: files that are joined keep that, and what is lost can be made
again from what is left. Files of earlier versions lack it; there it is found from the
rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges
from ur_energy_model.plant.schema import arrow_schema
from ur_energy_model.typing import Self

COUNTED = ("seconds", "cycles", "health", "program_nodes")
"""Tables whose rows a record counts; those of `joint_seconds` follow from `seconds`."""
UNKNOWN_BAG = "unknown"
"""Path in a record that was made from rows alone, after all that named the bag was lost."""


@dataclass(frozen=True)
class SourceRecord:
    """A source: a row of the table `sources`, see there; `bag` is "" for a live writer.

    `start` and `end` are ns since 1970 UTC, `rows` numbers of rows by table, without
    those that an earlier version did not count; `settings` (JSON) are those of `BagWork`
    that rows depend on.
    """

    source: str
    bag: str
    arm: str
    robot: str
    model: str
    start: int
    end: int
    host_time: bool
    rows: dict[str, int]
    energy: float
    accounted: float
    left_out: float
    settings: str | None = None

    def table(self) -> pa.Table:
        """As a row."""
        return records_table([self])

    @classmethod
    def of(cls, rows: pa.Table) -> list[Self]:
        """From rows."""
        found = []
        for row in rows.to_pylist():
            counts = {name: row.pop(name) for name in COUNTED}
            known = {name: count for name, count in counts.items() if count is not None}
            times = {name: nanoseconds(row[name]) for name in ("start", "end")}
            found.append(cls(rows=known, **row | times))
        return found

    @classmethod
    def from_rows(cls, source: str, seconds: pa.Table, rows: Mapping[str, int]) -> Self:
        """What the rows of `seconds` [at least one] of a source tell of it, and its row counts."""
        begins = seconds["second"].cast("int64").to_numpy() * 1000
        return cls(
            source=source,
            bag=UNKNOWN_BAG,
            arm=seconds["arm"][0].as_py(),
            robot=seconds["robot"][0].as_py(),
            model=seconds["model"][0].as_py(),
            start=int(begins.min()),
            end=int(begins.max()) + SECOND,
            host_time=bool(begins.min() > 0),
            rows=dict(rows),
            energy=float(np.sum(seconds["total_energy"].to_numpy())),
            accounted=float(np.sum(seconds["accounted"].to_numpy())),
            left_out=0.0,
        )


def records_table(records: Iterable[SourceRecord]) -> pa.Table:
    """Records as rows of the table `sources`."""
    rows = []
    for record in records:
        row = asdict(record) | {name: record.rows.get(name) for name in COUNTED}
        for name in ("start", "end"):
            row[name] //= 1000  # microseconds
        rows.append(row)
    return pa.Table.from_pylist(rows, arrow_schema("sources"))


def nanoseconds(time: datetime) -> int:
    """Of a time in UTC, since 1970."""
    return int(np.datetime64(time.replace(tzinfo=None), "us").astype(np.int64)) * 1000


# The parts of sources in a file.


@dataclass(frozen=True)
class SourcePart:
    """What a file has of a source: number of rows, and the host time that they cover.

    Rows of other tables than `seconds` cover none. `record` is that of the source, None
    for a live writer, `model` the row of the table `models` without its content; None
    where it is not known.
    """

    rows: int
    covered: TimeRanges = NOTHING
    record: SourceRecord | None = None
    model: Mapping[str, Any] | None = None

    def with_rows_of(self, other: SourcePart) -> SourcePart:
        """The part of the same source in a file that has the rows of two."""
        return SourcePart(
            self.rows + other.rows,
            TimeRanges.of([*self.covered.pairs(), *other.covered.pairs()]),
            self.record or other.record,
            self.model or other.model,
        )


Parts = Mapping[str, SourcePart]  # by source

PARTS = b"ur_energy_model.sources"
"""Key in the footer of a file: its `Parts` as JSON."""
RANGES = b"ur_energy_model.ranges"
"""The same in files of earlier versions: begins and ends of the time that all rows cover [ns]."""


def joined(several: Iterable[Parts]) -> dict[str, SourcePart]:
    """The parts of a file that has the rows of several files."""
    found: dict[str, SourcePart] = {}
    for parts in several:
        for source, part in parts.items():
            found[source] = part.with_rows_of(found[source]) if source in found else part
    return found


def covered_by(parts: Parts) -> TimeRanges:
    """Host time that the rows of all sources cover."""
    return TimeRanges.of(pair for part in parts.values() for pair in part.covered.pairs())


def parts_text(parts: Parts) -> bytes:
    """Parts as JSON for a footer."""
    content = {
        source: {
            "rows": part.rows,
            "covered": part.covered.pairs(),
            "record": None if part.record is None else asdict(part.record),
            "model": part.model,
        }
        for source, part in parts.items()
    }
    return json.dumps(content).encode()


def parts_from_text(text: bytes) -> dict[str, SourcePart]:
    """Parts from a footer; ValueError, KeyError or TypeError: it has none."""
    return {
        source: SourcePart(
            int(part["rows"]),
            ranges_from(part["covered"]),
            None if part["record"] is None else SourceRecord(**part["record"]),
            part["model"],
        )
        for source, part in json.loads(text).items()
    }


def ranges_from(pairs: Iterable[Iterable[int]]) -> TimeRanges:
    """From begins and ends in JSON [ns]."""
    return TimeRanges.of((int(start), int(end)) for start, end in pairs)


def parts_from_rows(
    rows: pa.Table, time: str, covered: TimeRanges
) -> dict[str, SourcePart]:
    """Parts of a file of an earlier version from its columns `source` and time (and `accounted`).

    `covered` is the time that all its rows cover; NOTHING for other tables than
    `seconds`. Where two sources share a second, each has as much of it as it accounts
    for, on the side of its other rows.
    """
    sources = np.array(rows["source"].to_pylist(), dtype=object)
    begins = rows[time].cast("int64").to_numpy() * 1000
    found = {}
    for source in dict.fromkeys(sources.tolist()):
        own = sources == source
        ranges = NOTHING
        if covered:
            known = rows["accounted"].to_numpy()[own]
            others = set(begins[~own].tolist())
            ranges = _within(_seconds_covered(begins[own], known, others), covered)
        found[source] = SourcePart(int(own.sum()), ranges)
    return found


def _seconds_covered(
    begins: np.ndarray, accounted: np.ndarray, others: set[int]
) -> TimeRanges:
    """Time of rows of `seconds` with these begins [ns] and accounted times [s] of one source.

    `others` are begins of seconds [ns] in which other sources have rows, too.
    """
    own = set(begins.tolist())
    pairs = []
    for begin, seconds in zip(begins.tolist(), accounted.tolist(), strict=True):
        start = begin
        end = begin + SECOND
        length = round(seconds * SECOND)
        if begin in others and begin + SECOND in own:
            start = end - length
        elif begin in others:
            end = start + length
        pairs.append((start, end))
    return TimeRanges.of(pairs)


def _within(ranges: TimeRanges, limits: TimeRanges) -> TimeRanges:
    """The parts of ranges that are in others."""
    return TimeRanges.of(
        pair for limit in limits.pairs() for pair in ranges.within(*limit).pairs()
    )


def without(parts: Parts, source: str) -> dict[str, SourcePart]:
    """The parts of all other sources."""
    return {name: part for name, part in parts.items() if name != source}


def counted(record: SourceRecord, rows: Mapping[str, int]) -> SourceRecord:
    """The record with numbers of rows of all tables that it counts."""
    return replace(record, rows={name: rows.get(name, 0) for name in COUNTED})
