"""Reads CSV recordings of RTDE data, plain or gzipped.

Comma-separated as ur_rtde's recorder writes them, or space-separated as Universal Robots' Python
client does.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS, column_names
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate, find_gaps

Array = NDArray[np.float64]
MAX_LINE = 1 << 20
NEXT_FILE = "next file"
_REMEDY = "correct or delete that line"


@dataclass(frozen=True)
class CsvHeader:
    """What the first line of a file says.

    Attributes:
        delimiter: between columns; None stands for white space.
        names: of the columns.
        places: for each field that is there as a whole, its columns.
        unknown: columns that no field has.
        incomplete: fields of which only some elements are there.
    """

    delimiter: str | None
    names: tuple[str, ...]
    places: dict[str, tuple[int, ...]]
    unknown: tuple[str, ...]
    incomplete: tuple[str, ...]


def read_csv(
    paths: Sequence[Path | str], robot: str | None, *, joints: int = 6,
    note: Callable[[str], None] | None = None,
) -> Telemetry:  # fmt: skip
    """Read recordings of one robot, one after the other; time is kept as it is.

    Args:
        paths: at least one file.
        robot: description name to put into the recording's information.
        joints: number of joints of the arm.
        note: told of missing fields and ignored columns, a line each.

    Returns:
        Their samples with the fields that all of them have, and a gap between files.

    Raises:
        RecordingError: a file that cannot be read, has no timestamp column or no samples, or a
            value that is not a finite number (with column and line).
    """
    tell = note if note is not None else (lambda text: None)
    parts = [_read_file(Path(path), robot, joints, tell) for path in paths]
    whole = concatenate(parts, cause=NEXT_FILE)
    for field in parts[0].columns:
        if field not in whole:
            tell(f"{field}: left out, because not all files have it")
    missing = [name for name in ENERGY_FIELDS if name not in whole]
    if missing:
        tell(f"missing fields: {', '.join(missing)}")
    return whole


def parse_header(path: Path, line: str, joints: int = 6) -> CsvHeader:
    """Columns of a recording from its first line.

    Raises:
        RecordingError: no timestamp column, or a column twice.
    """
    delimiter = next((mark for mark in (",", ";", "\t") if mark in line), None)
    names = tuple(name.strip().strip('"') for name in line.split(delimiter))
    for name in names:
        if name and names.count(name) > 1:
            raise RecordingError(path, "is there twice", "name each column once", field=name)
    places, incomplete, used = {}, [], set()
    for field in FIELDS.values():
        columns = column_names(field, joints)
        there = [name for name in columns if name in names]
        used.update(there)
        if len(there) == len(columns):
            places[field.name] = tuple(names.index(name) for name in columns)
        elif there:
            incomplete.append(field.name)
    if "timestamp" not in places:
        raise RecordingError(
            path, "column is missing from the first line",
            "record with a header of RTDE field names", field="timestamp",
        )  # fmt: skip
    unknown = tuple(name for name in names if name not in used)
    return CsvHeader(delimiter, names, places, unknown, tuple(incomplete))


def _read_file(
    path: Path, robot: str | None, joints: int, tell: Callable[[str], None]
) -> Telemetry:
    try:
        with _open(path) as file:
            lines = _lines(path, file)
            header = parse_header(path, next(lines, ""), joints)
            table = _numbers(path, header, lines)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be read ({reason})", "check the path") from None
    except (EOFError, zlib.error):
        raise RecordingError(path, "ends in the middle of its gzip data", "copy it again") from None
    except UnicodeDecodeError:
        raise RecordingError(path, "is not text", "name a CSV recording") from None
    if header.unknown:
        tell(f"{path}: ignored columns: {', '.join(name or '(empty)' for name in header.unknown)}")
    if header.incomplete:
        tell(f"{path}: ignored fields that lack elements: {', '.join(header.incomplete)}")
    columns, start = {}, 0
    for name, place in header.places.items():
        part = table[:, start : start + len(place)]
        columns[name] = part[:, 0].copy() if len(place) == 1 else part.copy()
        start += len(place)
    time = columns["timestamp"]
    rate = nominal_rate(time)
    info = RecordingInfo(
        source=str(path),
        robot=robot,
        rate=rate,
        payload_mass=_constant(columns, "payload"),
        extra={"imported_from": path.name},
    )
    return Telemetry(time, columns, info, find_gaps(time, None if rate is None else 1.0 / rate))


def nominal_rate(time: Array) -> float | None:
    """Sample rate [Hz] of a recording; None where fewer than nine steps in ten agree on one."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    if steps.size == 0:
        return None
    step = float(np.median(steps))
    if np.mean(np.abs(steps - step) < 0.02 * step) < 0.9:
        return None
    return round(1.0 / step, 3)


def _constant(columns: dict[str, Array], name: str) -> float | None:
    values = columns.get(name)
    if values is None or np.ptp(values) > 0:
        return None
    return float(values[0])


def _open(path: Path) -> TextIO:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        return cast("TextIO", gzip.open(path, "rt", encoding="utf-8-sig"))
    return path.open(encoding="utf-8-sig")


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    """Lines of bounded length."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise RecordingError(path, "has a line of a million characters", "name a CSV recording")
        yield line


def _numbers(path: Path, header: CsvHeader, lines: Iterator[str]) -> Array:
    """Wanted columns side by side, checked to be finite."""
    wanted = [column for place in header.places.values() for column in place]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise RecordingError(path, "holds no samples", "record again")
    try:
        table = np.loadtxt(
            chain([first], lines),
            delimiter=header.delimiter,
            usecols=wanted,
            comments=None,
            ndmin=2,
        )
    except (ValueError, IndexError):
        raise _first_fault(path, header) from None
    if not np.isfinite(table).all():
        raise _first_fault(path, header)
    return table


def _first_fault(path: Path, header: CsvHeader) -> RecordingError:
    """Look for the value that could not be used, slowly and exactly."""
    with _open(path) as file:
        for number, line in enumerate(_lines(path, file), 1):
            cells = line.split(header.delimiter)
            if number == 1 or not line.strip():
                continue
            for place in header.places.values():
                for column in place:
                    fault = _fault(cells, column)
                    if fault is not None:
                        return RecordingError(
                            path, f"line {number} {fault}", _REMEDY, field=header.names[column]
                        )
    return RecordingError(path, "cannot be read as numbers", "name a CSV recording")


def _fault(cells: list[str], column: int) -> str | None:
    if column >= len(cells):
        return f"ends after {len(cells)} columns"
    text = cells[column].strip()
    try:
        finite = math.isfinite(float(text))
    except ValueError:
        finite = False
    return None if finite else f"has {text[:40]!r}, which is not a finite number"
