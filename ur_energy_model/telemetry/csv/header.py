"""CsvHeader: which columns of a CSV recording belong to which RTDE field."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.fields import FIELDS, Field, column_names

# Units in headers of CSV recordings, and their factors to SI.

_DEGREE = math.pi / 180
_TURN_PER_MINUTE = 2 * math.pi / 60
_TIME_SPELLINGS: tuple[tuple[float, str], ...] = (
    (1.0, "s sec secs second seconds"),
    (1e-3, "ms msec millisecond milliseconds"),
    (1e-6, "us \xb5s \u03bcs usec microseconds"),
    (1e-9, "ns nsec nanosecond nanoseconds"),
)
"""Seconds in a unit of time, and spellings of the unit."""
_SPELLINGS: tuple[tuple[str, float, str], ...] = (
    ("rad", 1.0, "rad radian radians"),
    ("rad", _DEGREE, "deg degree degrees \xb0"),
    ("rad/s", 1.0, "rad/s rads-1"),
    ("rad/s", _DEGREE, "deg/s \xb0/s"),
    ("rad/s", _TURN_PER_MINUTE, "rpm"),
    ("rad/s^2", 1.0, "rad/s^2 rad/s2 rad/s\xb2"),
    ("rad/s^2", _DEGREE, "deg/s^2 deg/s2 \xb0/s\xb2"),
    ("A", 1.0, "a amp amps ampere"),
    ("A", 1e-3, "ma"),
    ("V", 1.0, "v volt volts"),
    ("V", 1e-3, "mv"),
    ("N m", 1.0, "nm n.m"),
    ("N", 1.0, "n"),
    ("degC", 1.0, "degc \xb0c c celsius"),
    ("m", 1.0, "m"),
    ("m", 1e-3, "mm"),
    ("m/s", 1.0, "m/s"),
    ("m/s", 1e-3, "mm/s"),
    ("m/s^2", 1.0, "m/s^2 m/s2"),
    ("kg", 1.0, "kg"),
    ("kg", 1e-3, "g"),
    ("J", 1.0, "j"),
    ("J", 1e3, "kj"),
    ("W", 1.0, "w"),
)
"""SI unit, its factor, and spellings in lower case of the unit converted with it."""
_TIME = {name: factor for factor, names in _TIME_SPELLINGS for name in names.split()}
_UNITS = {name: (unit, factor) for unit, factor, names in _SPELLINGS for name in names.split()}


def split_unit(name: str) -> tuple[str, str | None]:
    """Split a column's name from the unit in brackets behind or in front of it.

    `actual_q_0 [rad]` is ("actual_q_0", "rad"); digits in brackets are an index and stay.
    """
    match = re.fullmatch(r"(.*?)\s*[\[({]\s*([^\[\](){}]*?)\s*[\])}]\s*", name)
    first = re.fullmatch(r"\s*[\[({]\s*([^\[\](){}]+?)\s*[\])}]\s*([^\[\](){}]+?)\s*", name)
    if first is not None:
        return first.group(2), first.group(1)
    if match is None or not match.group(1) or match.group(2).isdigit():
        return name.strip(), None
    return match.group(1), match.group(2) or None


def time_factor(unit: str) -> float | None:
    """Seconds in a unit of time; None if it is not one."""
    return _TIME.get(unit.strip().lower())


def unit_factor(field: Field, unit: str) -> float | None:
    """Factor from a unit to the field's SI unit; None if it cannot be converted."""
    accepted = [part.strip() for part in field.unit.split(",")]
    if unit.strip() in accepted or not field.unit:
        return 1.0
    if accepted == ["ms"]:
        seconds = time_factor(unit)
        return None if seconds is None else 1e3 * seconds
    plain = re.sub(r"[\s*\u00b7]", "", unit.lower())
    found = _UNITS.get(plain)
    if found is None and plain.endswith("s-2"):
        found = _UNITS.get(plain[:-3].rstrip("/") + "/s^2")
    if found is None or found[0] not in accepted:
        return None
    return found[1]


TIME = "timestamp"
_TIME_NAMES = ("timestamp", "time", "t", "time_stamp", "datetime", "date_time", "seconds")
"""Names of a time column, in order of preference."""


@dataclass(frozen=True)
class CsvHeader:
    """The columns of a file.

    Attributes:
        names: of all columns.
        places: for each complete field, its columns.
        factors: to SI units, of columns in other units.
        time_factor: seconds in the stated unit of time, None if none is stated.
        unknown: columns that belong to no field.
        incomplete: fields that lack elements.
        remarks: how names were interpreted, a line each.
    """

    names: tuple[str, ...]
    places: Mapping[str, tuple[int, ...]]
    factors: Mapping[int, float] = field(default_factory=dict)
    time_factor: float | None = None
    unknown: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def time_column(self) -> int:
        """Number of the time column."""
        return self.places[TIME][0]

    def without(self, fields: Sequence[str]) -> CsvHeader:
        """The header without these fields."""
        places = {name: place for name, place in self.places.items() if name not in fields}
        return replace(self, places=places)


@dataclass
class _Found:
    """Columns found so far, by field and index as written in the file."""

    elements: dict[str, dict[int, int]] = field(default_factory=dict)
    units: dict[int, str] = field(default_factory=dict)
    unknown: list[int] = field(default_factory=list)


def parse_header(path: Path, names: Sequence[str], joints: int = 6) -> CsvHeader:
    """Columns of a recording from the names in its header line.

    Names are RTDE field names with an index from 0 (`actual_q_0`, `actual_q[0]`, `actual_q0`; or
    from 1 throughout a field), in any case, with or without a unit: in brackets, or behind the name
    (`actual_q_0_deg`).
    The time may also be called time, t or datetime.

    Raises:
        RecordingError: no time column, a repeated column, a unit that cannot be converted, or one
            to be converted that not all columns of a field state.
    """
    found = _Found()
    known = _spellings(joints)
    stems = [split_unit(name) for name in names]
    time_column, stated = _time_column(stems)
    for column, (stem, unit) in enumerate(stems):
        if column == time_column:
            continue
        element = _element(stem, known)
        if element is None and unit is None:
            element, unit = _with_unit(stem, known)
        if element is None:
            found.unknown.append(column)
            continue
        name, index = element
        if index in found.elements.setdefault(name, {}):
            raise RecordingError(path, "appears twice", "name each column once", field=stem)
        found.elements[name][index] = column
        if unit is not None:
            found.units[column] = unit
    if time_column is None:
        shown = ", ".join([name[:30] for name in names[:4]]) + (" ..." if len(names) > 4 else "")
        raise RecordingError(
            path,
            f"column is missing from the first line (it has {shown})",
            "record with a header of RTDE field names, or name the columns with --columns",
            field=TIME,
        )
    header = _assembled(path, tuple(names), found, joints)
    remarks = header.remarks
    if names[time_column].strip().lower() != TIME:
        remarks = (f"column '{names[time_column]}' is used as time", *remarks)
    return replace(
        header,
        places={TIME: (time_column,), **header.places},
        time_factor=stated,
        remarks=remarks,
    )


def parse_columns(path: Path, text: str, count: int, joints: int = 6) -> CsvHeader:
    """Columns from a list of names such as `timestamp,actual_q,actual_qd,-`.

    A field with several values stands for all of them (`actual_q`, also `actual_q[6]` and
    `actual_q_0..5`), `actual_q_0` for one; `-` skips a column, `-[3]` three.

    Raises:
        RecordingError: an unknown name, or another number of columns than the file has.
    """
    names: list[str] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        names.extend(_expanded(path, entry, joints))
    if len(names) != count:
        raise RecordingError(
            path,
            f"has {count} columns, and --columns names {len(names)}",
            "name every column; '-' skips one, '-[3]' three",
        )
    header = parse_header(path, names, joints)
    return replace(header, unknown=tuple(name for name in header.unknown if name != "-"))


def _expanded(path: Path, entry: str, joints: int) -> list[str]:
    skip = re.fullmatch(r"-(?:\[(\d{1,4})\])?", entry)
    if skip is not None:
        return ["-"] * int(skip.group(1) or 1)
    stem, unit = split_unit(entry)
    end = "" if unit is None else f" [{unit}]"
    if stem.lower() in _TIME_NAMES:
        return [entry]
    known = {name.lower(): name for name in FIELDS}
    several = re.fullmatch(r"(.+?)(?:\[(\d{1,4})\]|_(\d)\.\.(\d))", stem)
    size = first = last = None
    name = known.get(stem.lower())
    if name is None and several is not None:
        base, size, first, last = several.groups()
        name = known.get(base.lower())
    if name is None:
        if _element(stem, _spellings(joints)) is None:
            raise _unknown(path, stem)
        return [entry]
    whole = column_names(FIELDS[name], joints)
    if size is not None and int(size) != len(whole):
        raise RecordingError(
            path, f"has {len(whole)} values, not {size}", "correct --columns", field=name
        )
    part = whole if first is None or last is None else whole[int(first) : int(last) + 1]
    return [f"{column}{end}" for column in part]


def _unknown(path: Path, name: str) -> RecordingError:
    near = difflib.get_close_matches(name, list(FIELDS), 1, 0.6)
    remedy = f"did you mean {near[0]}?" if near else "'-' skips a column"
    return RecordingError(path, "is not an RTDE field name", remedy, field=name)


def _time_column(stems: Sequence[tuple[str, str | None]]) -> tuple[int | None, float | None]:
    """Column of the time, and seconds in its stated unit."""
    for chosen in _TIME_NAMES:
        for column, (stem, unit) in enumerate(stems):
            name = re.sub(r"[\s.-]+", "_", stem.strip().lower())
            if name == chosen:
                return column, None if unit is None else time_factor(unit)
            head, _, tail = name.rpartition("_")
            if head == chosen and time_factor(tail) is not None:
                return column, time_factor(tail)
    return None, None


def _spellings(joints: int) -> dict[str, tuple[str, int]]:
    """Field and index by the lower-case name of a column."""
    out: dict[str, tuple[str, int]] = {}
    for each in FIELDS.values():
        columns = column_names(each, joints)
        for index, column in enumerate(columns):
            out[column.lower()] = (each.name, index)
        if len(columns) > 1:
            out[f"{each.name}_{len(columns)}".lower()] = (each.name, len(columns))
    return out


def _element(stem: str, known: Mapping[str, tuple[str, int]]) -> tuple[str, int] | None:
    """Field and index, as written in the file, of a column's name."""
    plain = stem.strip().lower()
    if plain in known:
        return known[plain]
    plain = re.sub(r"[\s.\-\[\](){}]+", "_", plain).strip("_")
    return known.get(plain) or known.get(re.sub(r"(?<=[a-z])(\d+)$", r"_\1", plain))


def _with_unit(
    stem: str, known: Mapping[str, tuple[str, int]]
) -> tuple[tuple[str, int] | None, str | None]:
    """Element and unit of a name that a unit follows without brackets: `actual_qd_0_deg_per_s`."""
    for separator in re.finditer(r"[\s_.,/]+(?:in\s+)?", stem):
        element = _element(stem[: separator.start()], known)
        if element is None:
            continue
        tail = re.sub(r"[\s_]+per[\s_]+|_", "/", stem[separator.end() :].strip().lower())
        if tail and unit_factor(FIELDS[element[0]], tail) is not None:
            return element, tail
    return None, None


def _assembled(path: Path, names: tuple[str, ...], found: _Found, joints: int) -> CsvHeader:
    """Whole fields in the order of the table."""
    places: dict[str, tuple[int, ...]] = {}
    factors: dict[int, float] = {}
    incomplete, remarks = [], []
    for each in FIELDS.values():
        by_index = found.elements.get(each.name, {})
        if not by_index:
            continue
        size = len(column_names(each, joints))
        if set(by_index) == set(range(1, size + 1)):
            by_index = {index - 1: column for index, column in by_index.items()}
            remarks.append(f"{each.name} counts from 1; column {each.name}_1 is the first")
        if not set(range(size)) <= set(by_index):
            incomplete.append(each.name)
            continue
        places[each.name] = tuple(by_index[index] for index in range(size))
        for column in places[each.name]:
            unit = found.units.get(column)
            factor = 1.0 if unit is None else unit_factor(each, unit)
            if factor is None:
                raise RecordingError(
                    path,
                    f"is in {unit}, which cannot be converted to {each.unit}",
                    "convert it, or skip the column with --columns",
                    field=each.name,
                )
            if factor != 1.0:
                factors[column] = factor
        stated = [column for column in places[each.name] if column in found.units]
        converted = [column for column in stated if column in factors]
        if converted:
            unit = found.units[converted[0]]
            if len(stated) < size:
                raise RecordingError(
                    path,
                    f"{unit} is stated for {len(stated)} of {size} columns",
                    "state the unit of each",
                    field=each.name,
                )
            remarks.append(f"{each.name} converted from {unit} to {each.unit}")
    unknown = tuple(names[column] for column in found.unknown)
    return CsvHeader(names, places, factors, None, unknown, tuple(incomplete), tuple(remarks))
