# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sources of a history: a bag or a live writer, its record, and its part in each file.

The footer of every file of a store states which sources its rows come from
(`SourcePart`), with the record of each bag. Files that are joined keep these statements,
so that lost records can be made again from the files that are left.
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
"""Tables whose rows a record counts; the number for `joint_seconds` follows from `seconds`."""


@dataclass(frozen=True)
class SourceRecord:
    """A bag whose rows are in the store: a row of the table `sources`.

    Attributes:
        source: name of the source in all tables: SHA-256 of the bag.
        bag: path of the bag when it was added.
        arm: name of the arm.
        robot: type of the arm, such as ur5e.
        model: key of the model with which its energies were computed.
        start: begin of the bag [ns since 1970 UTC].
        end: end of the bag [ns since 1970 UTC].
        host_time: whether begin and end are times of the host's clock.
        rows: numbers of rows by table of COUNTED.
        energy: energy at the supply [J].
        accounted: time integrated over [s].
        left_out: time that other sources cover [s].
        settings: settings of `BagWork` that rows depend on, as JSON; None for none.
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

    @classmethod
    def of(cls, rows: pa.Table) -> list[Self]:
        """Records from rows of the table `sources`."""
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
        counts = {name: record.rows.get(name) for name in COUNTED}
        microseconds = {"start": record.start // 1000, "end": record.end // 1000}
        rows.append(asdict(record) | counts | microseconds)
    return pa.Table.from_pylist(rows, arrow_schema("sources"))


def nanoseconds(time: datetime) -> int:
    """Nanoseconds from 1970 to a time in UTC, which has microseconds."""
    return int(np.datetime64(time.replace(tzinfo=None), "us").astype(np.int64)) * 1000


# The parts of sources in a file.


@dataclass(frozen=True)
class SourcePart:
    """The part of a source that a file contains.

    Attributes:
        rows: number of rows.
        covered: host time that they cover [ns since 1970 UTC]; none in other tables than
            `seconds`.
        record: record of the source; None for a live writer.
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


Parts = Mapping[str, SourcePart]
"""The parts of all sources in a file, by name of the source."""

PARTS = b"ur_energy_model.sources"
"""Key in the footer of a file: its `Parts` as JSON."""


def joined(several: Iterable[Parts]) -> dict[str, SourcePart]:
    """The parts of a file that has the rows of several files, from their parts."""
    found: dict[str, SourcePart] = {}
    for parts in several:
        for source, part in parts.items():
            found[source] = part.with_rows_of(found[source]) if source in found else part
    return found


def covered_by(parts: Parts) -> TimeRanges:
    """Host time that the rows of all sources cover."""
    pairs: list[tuple[int, int]] = []
    for part in parts.values():
        pairs += part.covered.pairs()
    return TimeRanges.of(pairs)


def parts_text(parts: Parts) -> bytes:
    """Parts as JSON for the footer of a file, see `PARTS`."""
    content = {}
    for source, part in parts.items():
        content[source] = {
            "rows": part.rows,
            "covered": part.covered.pairs(),
            "record": None if part.record is None else asdict(part.record),
            "model": part.model,
        }
    return json.dumps(content).encode()


def parts_from_text(text: bytes) -> dict[str, SourcePart]:
    """Parts from a footer.

    Args:
        text: JSON, as `parts_text` writes it.

    Raises:
        ValueError: the text is no JSON.
        KeyError, TypeError, AttributeError: the JSON does not state parts.
    """
    parts = {}
    for source, part in json.loads(text).items():
        record = part["record"]
        parts[source] = SourcePart(
            rows=int(part["rows"]),
            covered=ranges_from(part["covered"]),
            record=None if record is None else SourceRecord(**record),
            model=part["model"],
        )
    return parts


def ranges_from(pairs: Iterable[Iterable[int]]) -> TimeRanges:
    """Ranges of time from begins and ends in JSON [ns]."""
    return TimeRanges.of((int(start), int(end)) for start, end in pairs)


def without(parts: Parts, source: str) -> dict[str, SourcePart]:
    """The parts of all sources but one."""
    return {name: part for name, part in parts.items() if name != source}
