"""Rows of a source as Parquet files, one per table and day."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.second_rows import joint_rows
from ur_energy_model.plant.history.source_record import NAME
from ur_energy_model.plant.history.time_ranges import NOTHING, TimeRanges

if TYPE_CHECKING:
    import pyarrow

RANGES = b"ur_energy_model.ranges"
"""Key in the footer: begins and ends of the time that the rows of a file cover [ns]."""
DAY = 86_400 * 1_000_000_000
"""ns."""
MOST_DAYS = 400
"""Of one source: a recording that seems to be longer has a damaged clock."""


def day_files(
    arm: str, source: str, tables: Mapping[str, pyarrow.Table], ranges: TimeRanges
) -> dict[str, bytes]:
    """Contents of files by their names in the store.

    Args:
        arm: name of the arm.
        source: name of the source.
        tables: rows by name of the table; the first column of each is its time. Rows of
            joint_seconds are made from those of seconds.
        ranges: host time that the rows cover.

    Raises:
        RecordingError: more than MOST_DAYS days.
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow as pa
    files = {}
    for table, rows in tables.items():
        times = rows.column(0).cast("int64").to_numpy() * 1000
        days = times // DAY
        found = np.unique(days)
        if len(found) > MOST_DAYS:
            raise RecordingError(
                source, f"its stamps are on {len(found)} days", "record again with a host clock"
            )
        for day in found.tolist():
            start = day * DAY
            part, within = rows.filter(days == day), ranges.within(start, start + DAY)
            place = f"day={day_name(start)}/{arm}/{source}.parquet"
            # As a column: outside, a folder named arm=0123 would be the number 123.
            part = part.add_column(0, "arm", pa.repeat(pa.scalar(arm), len(part)))
            files[f"{table}/{place}"] = parquet_file(part, within, f"{table}/{place}")
            if table == "seconds":
                joints = parquet_file(joint_rows(part), NOTHING, f"joint_seconds/{place}")
                files[f"joint_seconds/{place}"] = joints
    return files


def parquet_file(
    rows: pyarrow.Table, ranges: TimeRanges = NOTHING, name: str | None = None
) -> bytes:
    """Content of a file with rows that cover some time; its footer has its name, if that is given.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow.parquet
    metadata = {**(rows.schema.metadata or {}), RANGES: json.dumps(ranges.pairs()).encode()}
    if name is not None:
        metadata[b"ur_energy_model.file"] = NAME + name.encode()
    out = io.BytesIO()
    pyarrow.parquet.write_table(
        rows.replace_schema_metadata(metadata), out, compression="zstd", version="2.6"
    )
    return out.getvalue()


def covered_time(content: bytes) -> TimeRanges:
    """Host time that the rows of a file cover.

    Raises:
        ValueError, OSError: it is not a file of the history.
        MissingPackageError: pyarrow is not installed.
    """
    with needed_here():
        import pyarrow.parquet
    metadata = pyarrow.parquet.read_schema(io.BytesIO(content)).metadata or {}
    pairs = json.loads(metadata.get(RANGES, b"[]"))
    return TimeRanges.of((int(start), int(end)) for start, end in pairs) if pairs else NOTHING


def day_name(time: int) -> str:
    """UTC day YYYY-MM-DD of a host time [ns]."""
    return str(np.datetime64(time, "ns").astype("datetime64[D]"))


def days_of(ranges: TimeRanges) -> list[str]:
    """UTC days on which the ranges lie, those before the first and after the last included."""
    if not ranges:
        return []
    first, last = int(ranges.edges[0, 0]) // DAY - 1, int(ranges.edges[-1, 1]) // DAY + 1
    return [day_name(day * DAY) for day in range(first, min(last, first + MOST_DAYS) + 1)]
