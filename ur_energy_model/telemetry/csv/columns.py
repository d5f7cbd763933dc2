"""Columns of a CSV recording: known layouts, units, and the fields that names stand for."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.rows import Dialect, date_match
from ur_energy_model.telemetry.fields import FIELDS, Field, column_names


class Layout(NamedTuple):
    """RTDE fields of a file's columns, in order, and the software or data set that writes them."""

    fields: tuple[str, ...]
    source: str


_UR_CLIENT = (
    "timestamp", "target_q", "target_qd", "target_qdd", "target_current", "target_moment",
    "actual_q", "actual_qd", "actual_current", "joint_control_output", "actual_TCP_pose",
    "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose", "target_TCP_speed",
    "actual_digital_input_bits", "joint_temperatures", "actual_execution_time", "robot_mode",
    "joint_mode", "safety_mode", "actual_tool_accelerometer", "speed_scaling",
    "target_speed_fraction", "actual_momentum", "actual_main_voltage", "actual_robot_voltage",
    "actual_robot_current", "actual_joint_voltage", "actual_digital_output_bits", "runtime_state",
)  # fmt: skip
_UR_RTDE = (
    *_UR_CLIENT, "standard_analog_input0", "standard_analog_input1", "standard_analog_output0",
    "standard_analog_output1", "robot_status_bits", "safety_status_bits",
)  # fmt: skip
_REGISTERS = (
    "output_int_register_2",
    *(f"output_{kind}_register_{i}" for kind in ("int", "double") for i in range(12, 20)),
)
_PAYLOAD = ("payload", "payload_cog")
_CALIBRATION = ("timestamp", "actual_q", "actual_qd", "actual_current")
_RECORDER = "default variables of ur_rtde's recorder (startFileRecording)"

LAYOUTS: Mapping[str, Layout] = {
    "dynamic_calibration": Layout(
        (*_CALIBRATION, "target_current", "target_moment"),
        "UR10e recordings of github.com/shamilmamedov/dynamic_calibration",
    ),
    "dynamic_calibration_short": Layout(
        _CALIBRATION, "the oldest recordings of the same repository, without targets"
    ),
    "ur_client": Layout(
        _UR_CLIENT, "default recipe of record.py in Universal Robots' RTDE Python client"
    ),
    "ur_rtde": Layout(
        (*_UR_RTDE, "ft_raw_wrench", *_PAYLOAD, "payload_inertia", *_REGISTERS),
        f"{_RECORDER}, software 5.11 and later",
    ),
    "ur_rtde_5.9": Layout(
        (*_UR_RTDE, "ft_raw_wrench", *_PAYLOAD, *_REGISTERS), f"{_RECORDER}, 5.9 and 5.10"
    ),
    "ur_rtde_5.5": Layout(
        (*_UR_RTDE, *_PAYLOAD, *_REGISTERS), f"{_RECORDER}, 5.5 to 5.8 and 3.11 to 3.14"
    ),
    "ur_rtde_3.15": Layout(
        (*_UR_RTDE, *_PAYLOAD, "payload_inertia", *_REGISTERS), f"{_RECORDER}, 3.15"
    ),
}
"""Known column orders without a header line. Those of ur_rtde follow the list in its sources."""

# Units in headers, and their factors to SI.

_DEGREE = math.pi / 180
_SPELLINGS: Mapping[str, Mapping[str, float]] = {
    "s": {
        "s sec secs second seconds": 1.0,
        "ms msec millisecond milliseconds": 1e-3,
        "us usec microseconds \xb5s \u03bcs": 1e-6,
        "ns nsec nanosecond nanoseconds": 1e-9,
    },
    "rad": {"rad radian radians": 1.0, "deg degree degrees \xb0": _DEGREE},
    "rad/s": {"rad/s rads-1": 1.0, "deg/s \xb0/s": _DEGREE, "rpm": 2 * math.pi / 60},
    "rad/s^2": {"rad/s^2 rad/s2 rad/s\xb2": 1.0, "deg/s^2 deg/s2 \xb0/s\xb2": _DEGREE},
    "A": {"a amp amps ampere": 1.0, "ma": 1e-3},
    "V": {"v volt volts": 1.0, "mv": 1e-3},
    "N m": {"nm n.m": 1.0},
    "N": {"n": 1.0},
    "degC": {"degc \xb0c c celsius": 1.0},
    "m": {"m": 1.0, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
    "m/s^2": {"m/s^2 m/s2": 1.0},
    "kg": {"kg": 1.0, "g": 1e-3},
    "J": {"j": 1.0, "kj": 1e3},
    "W": {"w": 1.0},
}
"""By SI unit: spellings in lower case of the units that are converted to it, and their factors."""
_UNITS = {
    name: (unit, factor)
    for unit, spellings in _SPELLINGS.items()
    for names, factor in spellings.items()
    for name in names.split()
}


def split_unit(name: str) -> tuple[str, str | None]:
    """Split a column's name from the unit in brackets behind or in front of it.

    `actual_q_0 [rad]` is ("actual_q_0", "rad"); digits in brackets are an index and stay.
    """
    first = re.fullmatch(r"\s*[\[({]\s*([^\[\](){}]+?)\s*[\])}]\s*([^\[\](){}]+?)\s*", name)
    if first is not None:
        return first[2], first[1]
    match = re.fullmatch(r"(.*?)\s*[\[({]\s*([^\[\](){}]*?)\s*[\])}]\s*", name)
    if match is None or not match[1] or match[2].isdigit():
        return name.strip(), None
    return match[1], match[2] or None


def time_factor(unit: str) -> float | None:
    """Seconds in a unit of time; None if it is not one."""
    kind, factor = _UNITS.get(unit.strip().lower(), ("", 0.0))
    return factor if kind == "s" else None


def unit_factor(field: Field, unit: str) -> float | None:
    """Factor from a unit to the field's SI unit; None if it cannot be converted."""
    accepted = [part.strip() for part in field.unit.split(",")]
    if unit.strip() in accepted or not field.unit:
        return 1.0
    if accepted == ["ms"]:
        seconds = time_factor(unit)
        return None if seconds is None else 1e3 * seconds
    plain = re.sub(r"[\s*\u00b7]", "", unit.lower())
    if plain not in _UNITS and plain.endswith("s-2"):
        plain = plain[:-3].rstrip("/") + "/s^2"
    kind, factor = _UNITS.get(plain, ("", 0.0))
    return factor if kind in accepted else None


# The fields of columns, by their names.

TIME = "timestamp"
_TIME_NAMES = (TIME, "time", "t", "time_stamp", "datetime", "date_time", "seconds")
"""Names of a time column, in order of preference."""


@dataclass(frozen=True)
class CsvHeader:
    """The columns of a file: names of all, columns of each complete field, and factors to SI units.

    `time_factor` is that of the stated unit, None without one; `remarks` has a line for each name
    that was interpreted; `incomplete` fields lack elements.
    """

    names: tuple[str, ...]
    places: Mapping[str, tuple[int, ...]]
    factors: Mapping[int, float]
    time_factor: float | None
    unknown: tuple[str, ...]
    incomplete: tuple[str, ...]
    remarks: tuple[str, ...]


def parse_header(path: Path, names: Sequence[str], joints: int = 6) -> CsvHeader:
    """Columns of a recording from the names in its header line.

    Names are RTDE field names with an index from 0 (`actual_q_0`, `actual_q[0]`, `actual_q0`; or
    from 1 throughout a field), in any case, with or without a unit: in brackets, or behind the name
    (`actual_q_0_deg`). The time may also be called time, t or datetime.

    Raises:
        RecordingError: no time column, a repeated column, a unit that cannot be converted, or one
            to be converted that not all columns of a field state.
    """
    stems = [split_unit(name) for name in names]
    time, seconds = _time_column(stems)
    found: dict[str, dict[int, int]] = {}
    units: dict[int, str] = {}
    unknown: list[str] = []
    for column, (stem, unit) in enumerate(stems):
        element = (TIME, 0) if column == time else _element(stem, joints)
        if element is None and unit is None:
            element, unit = _with_unit(stem, joints)
        if element is None:
            unknown.append(names[column])
            continue
        if unit is not None and column != time:
            units[column] = unit
        name, index = element
        if index in found.setdefault(name, {}):
            raise RecordingError(path, "appears twice", "name each column once", field=stem)
        found[name][index] = column
    if time is None:
        shown = ", ".join([name[:30] for name in names[:4]]) + (" ..." if len(names) > 4 else "")
        raise RecordingError(
            path,
            f"column is missing from the first line (it has {shown})",
            "record with a header of RTDE field names, or name the columns with --columns",
            field=TIME,
        )
    own = names[time].strip().lower() == TIME
    remarks = [] if own else [f"column '{names[time]}' is used as time"]
    incomplete: list[str] = []
    places: dict[str, tuple[int, ...]] = {}
    factors: dict[int, float] = {}
    for name in [name for name in FIELDS if name in found]:
        field, by_index = FIELDS[name], found[name]
        size = len(column_names(field, joints))
        first = 1 if set(by_index) == set(range(1, size + 1)) else 0
        if first:
            remarks.append(f"{name} counts from 1; column {name}_1 is the first")
        if not by_index.keys() >= set(range(first, first + size)):
            incomplete.append(name)
            continue
        places[name] = tuple(by_index[index] for index in range(first, first + size))
        stated = [column for column in places[name] if column in units]
        converted = []
        for column in stated:
            factor = unit_factor(field, units[column])
            if factor is None:
                problem = f"is in {units[column]}, which cannot be converted to {field.unit}"
                remedy = "convert it, or skip the column with --columns"
                raise RecordingError(path, problem, remedy, field=name)
            if factor != 1.0:
                factors[column] = factor
                converted.append(units[column])
        if converted and len(stated) < size:
            problem = f"{converted[0]} is stated for {len(stated)} of {size} columns"
            raise RecordingError(path, problem, "state the unit of each", field=name)
        if converted:
            remarks.append(f"{name} converted from {converted[0]} to {field.unit}")
    return CsvHeader(
        tuple(names), places, factors, seconds, tuple(unknown), tuple(incomplete), tuple(remarks)
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
    """Names of single columns that an entry of `--columns` stands for."""
    skip = re.fullmatch(r"-(?:\[(\d{1,4})\])?", entry)
    if skip is not None:
        return ["-"] * int(skip[1] or 1)
    stem, unit = split_unit(entry)
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
        if _element(stem, joints) is None:
            near = difflib.get_close_matches(stem, list(FIELDS), 1, 0.6)
            remedy = f"did you mean {near[0]}?" if near else "'-' skips a column"
            raise RecordingError(path, "is not an RTDE field name", remedy, field=stem)
        return [entry]
    columns = column_names(FIELDS[name], joints)
    if size is not None and int(size) != len(columns):
        problem = f"has {len(columns)} values, not {size}"
        raise RecordingError(path, problem, "correct --columns", field=name)
    if first is not None and last is not None:
        columns = columns[int(first) : int(last) + 1]
    return [column if unit is None else f"{column} [{unit}]" for column in columns]


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


@cache
def _spelled(joints: int) -> Mapping[str, tuple[str, int]]:
    """Field and index by the lower-case name of a column; indexes count from 0 or from 1."""
    return {
        column.lower(): (each.name, index)
        for each in FIELDS.values()
        for columns in [column_names(each, joints)]
        for index, column in enumerate(
            [*columns, *([f"{each.name}_{len(columns)}"] if len(columns) > 1 else [])]
        )
    }


def _element(stem: str, joints: int) -> tuple[str, int] | None:
    """Field and index, as written in the file, of a column's name."""
    known, plain = _spelled(joints), stem.strip().lower()
    if plain in known:
        return known[plain]
    plain = re.sub(r"[\s.\-\[\](){}]+", "_", plain).strip("_")
    return known.get(plain) or known.get(re.sub(r"(?<=[a-z])(\d+)$", r"_\1", plain))


def _with_unit(stem: str, joints: int) -> tuple[tuple[str, int] | None, str | None]:
    """Element and unit of a name that a unit follows without brackets: `actual_qd_0_deg_per_s`."""
    for separator in re.finditer(r"[\s_.,/]+(?:in\s+)?", stem):
        element = _element(stem[: separator.start()], joints)
        tail = re.sub(r"[\s_]+per[\s_]+|_", "/", stem[separator.end() :].strip().lower())
        if element is not None and tail and unit_factor(FIELDS[element[0]], tail) is not None:
            return element, tail
    return None, None


# Tables without a header line: their shape, and suggestions for their columns.

_RISING_SHARE = 0.95


def headerless(path: Path, dialect: Dialect, lines: Sequence[str], joints: int) -> RecordingError:
    """The error for a file without a header: its shape, and how to name its columns."""
    rows = [dialect.cells(line) for line in lines]
    widths = [len(row) for row in rows]
    width = max(set(widths), key=widths.count) if widths else 0
    rows = [row for row in rows if len(row) == width]
    dates = [i for i in range(width) if rows and date_match(rows[0][i])]
    numbers = [[dialect.number(cell) for cell in row] for row in rows]
    values = np.array(numbers, float).reshape(len(rows), width)
    values[:, dates] = 0.0
    clocks = dates or list(range(min(width, 1)))
    if len(values) > 2:  # they rise in most rows and rarely fall
        steps = np.diff(values, axis=0)
        rising = ((steps >= 0).mean(axis=0) > _RISING_SHARE) & ((steps > 0).mean(axis=0) > 0.5)
        clocks = [*dates, *np.flatnonzero(rising).tolist()]
    finite = np.delete(values, clocks[:1], axis=1)[np.isfinite(values).all(axis=1)]
    shape = "no column rises steadily, as time does"
    if clocks:
        kind = "holds dates" if clocks[0] in dates else "rises steadily, as time does"
        shape = f"column {clocks[0] + 1} {kind}"
    if finite.size:
        shape += f", the others lie between {finite.min():.4g} and {finite.max():.4g}"
    before = clocks[0] if clocks else 0
    sets, left = divmod(width - before - bool(clocks), joints)
    names = [f"-[{before}]"] * bool(before) + ["timestamp"] * bool(clocks)
    names += [f"NAME[{joints}]"] * sets + [f"-[{left}]"] * bool(left)
    remedy = f"name the columns, for example --columns {','.join(names)}"
    sizes = {
        name: sum(len(column_names(FIELDS[field], joints)) for field in layout.fields)
        for name, layout in LAYOUTS.items()
    }
    fitting = [name for name, size in sizes.items() if size == width]
    if fitting and 0 in clocks:
        sources = "; ".join(f"{name}: {LAYOUTS[name].source}" for name in fitting)
        remedy = (
            f"add --layout {' or '.join(fitting)} ({sources}), or name the columns with --columns"
        )
    return RecordingError(path, f"has no header line: {width} columns, {shape}", remedy)
