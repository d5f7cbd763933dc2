"""SourceRecord: what the store keeps of a source, beside its rows; names and contents of files.

All names in a store are made and checked here: what does not have such a name, or is no such
record, was put there by somebody else. It is named, and neither read nor removed.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from typing import Any

import numpy as np
import pyarrow

from ur_energy_model.errors import RecordingError, optional_import
from ur_energy_model.plant.energy_parts import NOTHING, TimeRanges
from ur_energy_model.plant.rows import joint_rows
from ur_energy_model.typing import Self

NAME = b"ur_energy_model.name: "
"""Before the name of a file, in its footer."""
LARGEST_RECORD = 64_000_000
"""bytes."""
SOURCES, BEGUN, WRITERS, MODELS = "sources", "begun", "writers", "models"
"""Folders of the store besides its tables."""
_PLAIN = r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*"
_FILE = re.compile(
    rf"(?P<table>[a-z][a-z_]*)/(?:day=(?P<day>\d{{4}}-\d\d-\d\d)/(?P<arm>{_PLAIN})|"
    rf"arm=(?P<old_arm>{_PLAIN})/day=(?P<old_day>\d{{4}}-\d\d-\d\d))/(?P<source>{_PLAIN})\.parquet"
)
"""Before the arm was a column of the files, its folder was named arm=..., above that of the day."""
_RECORD = re.compile(rf"(?:{SOURCES}|{BEGUN}|{WRITERS})/(?P<source>{_PLAIN})\.json")
_MODEL = re.compile(rf"{MODELS}/{_PLAIN}\.parquet")
_LIVE_FILE = re.compile(r"(?P<writer>live-[0-9a-f]+-\d+)-\d+")


@dataclass(frozen=True)
class FileName:
    """What the name of a file of a table states.

    Attributes:
        table, arm, day: of its rows; the day is YYYY-MM-DD.
        source: whose file it is; of a live writer, with the number of the hour.
    """

    table: str
    arm: str
    day: str
    source: str

    @property
    def writer(self) -> str | None:
        """The live writer, as its record is named; None for a file of a bag."""
        found = _LIVE_FILE.fullmatch(self.source)
        return found and found["writer"]

    @classmethod
    def of(cls, name: str) -> Self | None:
        """What a name states; None if no file of a table has it."""
        found = _FILE.fullmatch(name)
        if found is None or found["table"] in (SOURCES, BEGUN, WRITERS, MODELS):
            return None
        arm, day = found["arm"] or found["old_arm"], found["day"] or found["old_day"]
        try:
            date.fromisoformat(day)
        except ValueError:
            return None
        return cls(found["table"], arm, day, found["source"])


def record_name(folder: str, source: str) -> str:
    """Name of a record; of one in SOURCES, BEGUN or WRITERS."""
    return f"{folder}/{source}.json"


def recorded_source(name: str) -> str | None:
    """The source that a record is of, by its name; None if no record has it."""
    found = _RECORD.fullmatch(name)
    return found and found["source"]


def model_file(model: str, robot: str) -> str:
    """Name of the file with the row of a model; the generic one has a row per robot."""
    text = f"{model}-{robot}"
    return f"{MODELS}/{re.sub(r'[^A-Za-z0-9._+-]', '_', text)}.parquet"


def is_model_file(name: str) -> bool:
    """Whether this is the name of the file of a model."""
    return _MODEL.fullmatch(name) is not None


@dataclass(frozen=True)
class Content:
    """What a file must contain: its size [bytes] and CRC-32, both None where they are not known.

    The file of a live writer, which is replaced every minute, itself names its owner. An error of
    a disk, of copying or of a hand is found; whoever can write files can also write records.
    """

    size: int | None = None
    crc32: int | None = None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Of these bytes."""
        return cls(len(data), zlib.crc32(data))

    def has_size(self, size: int) -> bool:
        """Whether a file of this size can be it."""
        return self.size is None or self.size == size

    def is_of(self, data: bytes, name: str) -> bool:
        """Whether these bytes are it, of the file with this name."""
        if self.crc32 is None:
            return NAME not in data or NAME + name.encode() in data
        return self.has_size(len(data)) and self.crc32 == zlib.crc32(data)


@dataclass(frozen=True)
class SourceRecord:
    """A source that is complete in the store.

    Attributes:
        source: SHA-256 of the bag.
        bag: absolute path where it was read.
        arm: name of the arm.
        robot: its type.
        model: that its energies were computed with, see `model_key`.
        start, end: host time of the first and last sample [ns since 1970 UTC].
        host_time: whether these are times of day; False where only the controller's clock is known.
        rows: number of rows by table.
        energy: sum of total_energy over the rows of `seconds` [J].
        accounted: time integrated over [s].
        left_out: time that other sources had covered [s].
        files: names in the store, and what they contain.
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
    files: Mapping[str, Content] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """As a file of the store."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes, source: str) -> Self:
        """From the file of a source in the store.

        Raises:
            ValueError: it is none, or one of another source.
        """
        values = _object(content)
        found: dict[str, Any] = {}
        for each in fields(cls):
            value = values.get(each.name)
            if each.name != "files" and not isinstance(value, _KINDS[str(each.type)]):
                raise ValueError(f"{each.name} is missing or of another type")
            found[each.name] = value
        if found["source"] != source:
            raise ValueError("is of another source")
        return cls(**{**found, "files": read_files(values.get("files"), source)})


_KINDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "dict[str, int]": dict,
}


def files_of(content: bytes, source: str) -> dict[str, Content]:
    """Files in a record of a live writer, or of what is begun.

    Raises:
        ValueError: it is none, or names files of others.
    """
    return read_files(json_value(content), source)


def read_files(values: object, source: str) -> dict[str, Content]:
    """Files of a source or live writer; a list of names is that of an earlier version.

    Raises:
        ValueError: it is no such list, or names what is not the source's.
    """
    if isinstance(values, list):
        values = {name if isinstance(name, str) else "": {} for name in values}
    if not isinstance(values, dict):
        raise ValueError("names no files")
    found = {}
    for name, content in values.items():
        file = FileName.of(name)
        if file is None or source not in (file.source, file.writer):
            raise ValueError("names what is not its own")
        if not isinstance(content, dict):
            raise ValueError("does not say what its files contain")
        numbers = [content.get("size"), content.get("crc32")]
        if not all(number is None or type(number) is int for number in numbers):
            raise ValueError("does not say what its files contain")
        found[name] = Content(*numbers)
    return found


def json_value(content: bytes) -> Any:
    """What a JSON text states.

    Raises:
        ValueError: it is none, or too large.
    """
    if len(content) > LARGEST_RECORD:
        raise ValueError(f"more than {LARGEST_RECORD} bytes")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(content: bytes) -> dict[str, Any]:
    values = json_value(content)
    if not isinstance(values, dict):
        raise ValueError("is no object")
    return values


# Rows of a source as Parquet files, one per table and day.

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
    with optional_import():
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
    with optional_import():
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
    with optional_import():
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
