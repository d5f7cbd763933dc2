# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sources of a history: a bag or a live writer, its record, and its part in each file.

The footer of every file of a store states which sources its rows are of (`SourcePart`),
with the record of each bag: files that are joined keep that, and what is lost can be made
again from what is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ur_energy_model.plant.energy_parts import NOTHING, TimeRanges
from ur_energy_model.plant.schema import arrow_schema
from ur_energy_model.typing import Self

COUNTED = ("seconds", "cycles", "health", "program_nodes")
"""Tables whose rows a record counts; those of `joint_seconds` follow from `seconds`."""


@dataclass(frozen=True)
class SourceRecord:
    """A bag whose rows are in the store: a row of the table `sources`, see there.

    Attributes:
        source: name of the source in all tables.
        bag: path of the bag when it was added.
        arm: name of the arm.
        robot: description name of the arm.
        model: key of the model with which its energies were computed.
        start: begin of the bag [ns since 1970 UTC].
        end: end of the bag [ns since 1970 UTC].
        host_time: whether these are times of the host's clock.
        rows: numbers of rows by table of COUNTED.
        energy: at the supply [J].
        accounted: time integrated over [s].
        left_out: time that other sources cover [s].
        settings: those of `BagWork` that rows depend on, as JSON; None for none.
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
            times = {name: nanoseconds(row[name]) for name in ("start", "end")}
            found.append(cls(rows=counts, **row | times))
        return found


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
    """What a file has of a source.

    Attributes:
        rows: number of rows.
        covered: host time that they cover [ns since 1970 UTC]; none in other tables than
            `seconds`.
        record: of the source; None for a live writer.
        model: row of the table `models` without its content; None where it is not known.
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
    """Parts from a footer.

    Args:
        text: JSON, as of `parts_text`.

    Raises:
        ValueError: it is no JSON; KeyError, TypeError or AttributeError where it states
            something else.
    """
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


def without(parts: Parts, source: str) -> dict[str, SourcePart]:
    """The parts of all other sources."""
    return {name: part for name, part in parts.items() if name != source}
