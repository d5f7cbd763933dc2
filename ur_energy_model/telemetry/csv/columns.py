# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Columns of a CSV recording: known layouts, units, and the fields that names stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.errors import RecordingError, closest
from ur_energy_model.telemetry.csv.units import split_unit, time_factor, unit_factor
from ur_energy_model.telemetry.fields import FIELDS, Field, column_names


class Layout(NamedTuple):
    """Order of the columns of files without a header line.

    Attributes:
        fields: RTDE fields in the order of their columns.
        source: software or data set that writes such files.
    """

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
    *(f"output_int_register_{i}" for i in range(12, 20)),
    *(f"output_double_register_{i}" for i in range(12, 20)),
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

# The fields of columns, by their names.

TIME = "timestamp"
_TIME_NAMES = (
    TIME, "time", "t", "time_stamp", "datetime", "date_time", "__time", "unix_time", "epoch",
    "elapsed_time", "elapsed", "time_from_start", "date", "seconds", "sec", "secs", "milliseconds",
    "millis", "msec", "microseconds", "micros", "usec", "nanoseconds", "nanos", "nsec",
)  # fmt: skip
"""Names of a time column, in order of preference; some are units."""
SKIPPED = "-"  # name of a column that is left out on purpose
_SHOWN = 50  # most columns that a remark lists


class CsvHeader(NamedTuple):
    """The columns of a file.

    Attributes:
        names: names of all columns.
        places: columns of each complete field, without the time.
        factors: factors to SI units of the columns that have other units.
        time: column of the time; None if there is none, and a rate was stated.
        time_factor: seconds in the unit that the name of the time column states; None
            without one.
        twins: pairs of columns that stand for the same value; the column that is read
            comes first.
        remarks: a line for each name that was interpreted or ignored.
    """

    names: tuple[str, ...]
    places: Mapping[str, tuple[int, ...]]
    factors: Mapping[int, float]
    time: int | None
    time_factor: float | None
    twins: tuple[tuple[int, int], ...]
    remarks: tuple[str, ...]


def parse_header(
    path: Path, names: Sequence[str], joints: int = 6, *, timeless: bool = False
) -> CsvHeader:
    """Columns of a recording from the names in its header line.

    Names are RTDE field names with an index from 0 (`actual_q_0`, `actual_q[0]`,
    `actual_q0`; or from 1 throughout a field), in any case, with or without a unit: in
    brackets, or behind the name (`actual_q_0_deg`). The time may also be called time, t
    or datetime.

    Args:
        path: path of the file, for errors.
        names: names of all columns, as in the header line.
        joints: number of joints of the arm.
        timeless: whether the file may have no column of the time.

    Raises:
        RecordingError: no time column, a unit that cannot be converted, or a unit to be
            converted that is not stated for all columns of a field.
    """
    stems = [split_unit(name) for name in names]
    time, seconds = _time_column(stems)
    if time is None and not timeless:
        raise _without_time(path, names)
    elements = _Elements(joints)
    for column, (stem, unit) in enumerate(stems):
        if column == time or names[column] == SKIPPED:
            continue
        is_time = _is_time(stems, time, column)
        elements.add(column, names[column], stem, unit, is_time=is_time)
    twins = list(elements.twins)
    remarks: list[str] = []
    if time is not None:
        twins = [(time, twin) for twin in elements.times] + twins
        if names[time].strip().lower() != TIME:
            remarks.append(f"column '{names[time]}' is used as time")
    places, factors, remarks_on_fields = _complete_fields(path, elements, joints)
    remarks += remarks_on_fields
    return CsvHeader(
        names=tuple(names),
        places=places,
        factors=factors,
        time=time,
        time_factor=seconds,
        twins=tuple(twins),
        remarks=tuple(remarks),
    )


def _complete_fields(
    path: Path, elements: _Elements, joints: int
) -> tuple[dict[str, tuple[int, ...]], dict[int, float], list[str]]:
    """The fields all of whose elements have a column.

    Args:
        path: path of the file, for errors.
        elements: elements of fields by the names of the columns.
        joints: number of joints of the arm.

    Returns:
        `places`, `factors` and `remarks` of a `CsvHeader`.

    Raises:
        RecordingError: a unit that cannot be converted, or a unit to be converted that is
            not stated for all columns of a field.
    """
    remarks: list[str] = []
    incomplete: list[str] = []
    places: dict[str, tuple[int, ...]] = {}
    factors: dict[int, float] = {}
    for name, field in FIELDS.items():
        columns = elements.found.get(name)  # columns by index of the element
        if columns is None:
            continue
        size = len(column_names(field, joints))
        counts_from_1 = columns.keys() == set(range(1, size + 1))
        if counts_from_1:
            remarks.append(f"{name} counts from 1; column {name}_1 is the first")
        indexes = range(1, size + 1) if counts_from_1 else range(size)
        if not columns.keys() >= set(indexes):
            incomplete.append(name)
            continue
        places[name] = tuple(columns[index] for index in indexes)
        converted = _factors(path, field, places[name], elements.units)
        factors.update(converted)
        if converted:
            unit_of_first = elements.units[next(iter(converted))]
            remarks.append(f"{name} converted from {unit_of_first} to {field.unit}")
    if elements.unknown:
        remarks.append(f"ignored columns: {_listed(elements.unknown)}")
    if incomplete:
        remarks.append(f"ignored fields that lack elements: {', '.join(incomplete)}")
    return places, factors, remarks


def _without_time(path: Path, names: Sequence[str]) -> RecordingError:
    """The error about a file whose columns have no name of a time."""
    shown = ", ".join(name[:30] for name in names[:4])
    if len(names) > 4:
        shown += " ..."
    problem = f"column is missing from the first line (it has {shown})"
    remedy = (
        "if there is no time, state the samples per second with --rate HZ; else record with a "
        "header of RTDE field names, or name the columns with --columns"
    )
    return RecordingError(path, problem, remedy, field=TIME)


def _listed(names: Sequence[str]) -> str:
    """Names of columns in a remark: the first ones, and the number of the others."""
    text = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{text} and {more} more" if more > 0 else text


class _Elements:
    """Elements of fields that the names of columns stand for, column by column.

    Attributes:
        found: column of each element, by field and index.
        units: stated units by column.
        times: further columns with the name of the time column.
        twins: pairs of columns with the same meaning, the first one is read.
        unknown: names that stand for nothing.
    """

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self.found: dict[str, dict[int, int]] = {}
        self.units: dict[int, str] = {}
        self.times: list[int] = []
        self.twins: list[tuple[int, int]] = []
        self.unknown: list[str] = []

    def add(
        self, column: int, name: str, stem: str, unit: str | None, *, is_time: bool
    ) -> None:
        """Add a column.

        Args:
            column: number of the column, from 0.
            name: name in the header line.
            stem: the name without its unit.
            unit: stated unit; None without one.
            is_time: whether this is the time column.
        """
        if is_time:
            self.times.append(column)
            return
        element = _element(stem, self._joints)
        if element is None and unit is None:
            element, unit = _with_unit(stem, self._joints)
        if element is None:
            # pandas numbers columns of the same name: actual_q_0, actual_q_0.1
            element = _element(re.sub(r"\.\d{1,2}$", "", stem), self._joints)
        if element is None:
            self.unknown.append(name or "(empty)")
            return
        if unit is not None:
            self.units[column] = unit
        field, index = element
        first = self.found.setdefault(field, {}).setdefault(index, column)
        if first == column:
            return
        if self._factor(field, first) == self._factor(field, column):
            self.twins.append((first, column))
        elif self._factor(field, column) == 1.0:  # the same in another unit
            self.found[field][index] = column

    def _factor(self, field: str, column: int) -> float:
        """Factor of a column to the field's unit; NaN of a unit that cannot be converted."""
        unit = self.units.get(column)
        factor = 1.0 if unit is None else unit_factor(FIELDS[field], unit)
        return math.nan if factor is None else factor


def _is_time(
    stems: Sequence[tuple[str, str | None]], time: int | None, column: int
) -> bool:
    """Whether a column is a further one with the name of the time column.

    Args:
        stems: names without units, and units, of all columns.
        time: number of the time column; None without one.
        column: number of the column.
    """
    if time is None:
        return False
    name = re.sub(r"\.\d{1,2}$", "", stems[column][0]).strip().lower()
    return name in (TIME, stems[time][0].strip().lower())


def _factors(
    path: Path, field: Field, columns: Sequence[int], units: Mapping[int, str]
) -> dict[int, float]:
    """Factors to the SI unit of a field, of its columns whose stated units are others.

    Args:
        path: path of the file, for errors.
        field: field of the table.
        columns: numbers of its columns.
        units: stated units by the numbers of columns.

    Raises:
        RecordingError: a unit cannot be converted, or not all columns state one.
    """
    stated = [column for column in columns if column in units]
    factors: dict[int, float] = {}
    for column in stated:
        factor = unit_factor(field, units[column])
        if factor is None:
            problem = f"is in {units[column]}, which cannot be converted to {field.unit}"
            remedy = "convert it, or skip the column with --columns"
            raise RecordingError(path, problem, remedy, field=field.name)
        if factor != 1.0:
            factors[column] = factor
    if factors and len(stated) < len(columns):
        unit = units[next(iter(factors))]
        problem = f"{unit} is stated for {len(stated)} of {len(columns)} columns"
        raise RecordingError(path, problem, "state the unit of each", field=field.name)
    return factors


def parse_columns(
    path: Path, text: str, count: int, joints: int = 6, *, timeless: bool = False
) -> CsvHeader:
    """Columns from a list of names such as `timestamp,actual_q,actual_qd,-`.

    A field with several values stands for all of them (`actual_q`, also `actual_q[6]` and
    `actual_q_0..5`), `actual_q_0` for one; `-` skips a column, `-[3]` three.

    Args:
        path: path of the file, for errors.
        text: the list, as the option --columns has it.
        count: number of columns of the file.
        joints: number of joints of the arm.
        timeless: whether the file may have no column of the time.

    Raises:
        RecordingError: an unknown name, or another number of columns than the file has;
            or as in `parse_header`.
    """
    names: list[str] = []
    for entry in text.split(","):
        if entry.strip():
            names += _expanded(path, entry.strip(), joints)
    if len(names) != count:
        problem = f"has {count} columns, and --columns names {len(names)}"
        remedy = "name every column; '-' skips one, '-[3]' three"
        raise RecordingError(path, problem, remedy)
    return parse_header(path, names, joints, timeless=timeless)


def _expanded(path: Path, entry: str, joints: int) -> list[str]:
    """Names of single columns that an entry of `--columns` stands for.

    Args:
        path: path of the file, for errors.
        entry: such as "actual_q", "actual_q[6]", "actual_q_0..5", "-" or "-[3]".
        joints: number of joints of the arm.

    Raises:
        RecordingError: an unknown name, or a number of values that the field has not.
    """
    skip = re.fullmatch(r"-(?:\[(\d{1,4})\])?", entry)
    if skip is not None:
        return [SKIPPED] * int(skip[1] or 1)
    stem, unit = split_unit(entry)
    if stem.lower() in _TIME_NAMES:
        return [entry]
    known = {name.lower(): name for name in FIELDS}
    # The name of a field, and its stated size, or the first and the last index.
    base = stem
    size: str | None = None
    first: str | None = None
    last: str | None = None
    several = re.fullmatch(r"(.+?)(?:\[(\d{1,4})\]|_(\d)\.\.(\d))?", stem)
    if several is not None:
        base, size, first, last = several.groups()
    name = known.get(stem.lower()) or known.get(base.lower())
    if name is None:
        if _element(stem, joints) is None:
            meant = closest(stem, FIELDS)
            remedy = "'-' skips a column" if meant is None else f"did you mean {meant}?"
            raise RecordingError(path, "is not an RTDE field name", remedy, field=stem)
        return [entry]
    columns = column_names(FIELDS[name], joints)
    if size is not None and int(size) != len(columns):
        problem = f"has {len(columns)} values, not {size}"
        raise RecordingError(path, problem, "correct --columns", field=name)
    if first is not None:
        columns = columns[int(first) : int(last or 0) + 1]
    if unit is None:
        return list(columns)
    return [f"{column} [{unit}]" for column in columns]


def _time_column(
    stems: Sequence[tuple[str, str | None]],
) -> tuple[int | None, float | None]:
    """Column of the time, and seconds in its stated unit; None where there is none.

    Args:
        stems: names without units, and units, of all columns.
    """
    for chosen in _TIME_NAMES:
        for column, (stem, unit) in enumerate(stems):
            name = re.sub(r"[\s.-]+", "_", stem.strip().lower())
            if name == chosen:
                # A name such as "msec" is the unit; "t" is no ton, nor a unit of time.
                stated = chosen if unit is None and len(chosen) > 1 else unit
                return column, None if stated is None else time_factor(stated)
            head, _, tail = name.rpartition("_")
            if head == chosen and time_factor(tail) is not None:
                return column, time_factor(tail)
    return None, None


@cache
def _spelled(joints: int) -> Mapping[str, tuple[str, int]]:
    """Field and index by the lower-case name of a column; indexes count from 0 or from 1."""
    spelled: dict[str, tuple[str, int]] = {}
    for field in FIELDS.values():
        columns = list(column_names(field, joints))
        if len(columns) > 1:  # the last one, where indexes count from 1
            columns.append(f"{field.name}_{len(columns)}")
        for index, name in enumerate(columns):
            spelled[name.lower()] = (field.name, index)
    return spelled


def _element(stem: str, joints: int) -> tuple[str, int] | None:
    """Field, and index as the file has it, of a column's name; None for any other name."""
    known = _spelled(joints)
    plain = stem.strip().lower()
    if plain in known:
        return known[plain]
    plain = re.sub(r"[\s.\-\[\](){}]+", "_", plain).strip("_")
    return known.get(plain) or known.get(re.sub(r"(?<=[a-z])(\d+)$", r"_\1", plain))


def _with_unit(stem: str, joints: int) -> tuple[tuple[str, int] | None, str | None]:
    """Element and unit of a name that a unit follows without brackets: `actual_qd_0_deg_per_s`."""
    for separator in re.finditer(r"[\s_.,/]+(?:in\s+)?", stem):
        element = _element(stem[: separator.start()], joints)
        tail = stem[separator.end() :].strip().lower()
        unit = re.sub(r"[\s_]+per[\s_]+|_", "/", tail)
        if element is None or not unit:
            continue
        if unit_factor(FIELDS[element[0]], unit) is not None:
            return element, unit
    return None, None


def headerless(path: Path, width: int, joints: int) -> RecordingError:
    """The error about a file without a header line; the remedy names the layouts that fit.

    Args:
        path: path of the file.
        width: number of its columns.
        joints: number of joints of the arm.
    """
    sources: dict[str, str] = {}
    for name, layout in LAYOUTS.items():
        columns = sum(len(column_names(FIELDS[each], joints)) for each in layout.fields)
        if columns == width:
            sources[name] = layout.source
    remedy = "name the columns with --columns, such as timestamp,actual_q,-[6]"
    if sources:
        found = "; ".join(f"{name}: {source}" for name, source in sources.items())
        remedy = f"add --layout {' or '.join(sources)} ({found}), or {remedy}"
    return RecordingError(path, f"has no header line: {width} columns", remedy)
