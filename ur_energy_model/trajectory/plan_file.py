# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Trajectories in CSV files: reading a plan, and writing the motion of one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.csv.rows import (
    Dialect,
    find_dialect,
    is_separator_line,
    lines_of,
)
from ur_energy_model.telemetry.csv.units import split_unit, time_factor
from ur_energy_model.trajectory.plan import Plan, check_points
from ur_energy_model.typing import Array

_HEAD = 20  # lines from which delimiters and decimals are found
_TIME_NAMES = ("time", "t", "timestamp", "time_from_start")
"""Names of the time column without its unit; an earlier name is preferred."""
_SHOWN = 40  # characters of a wrong cell that an error shows


def csv_text(time: Array, *motions: Array) -> str:
    """CSV that `read_plan` reads.

    Args:
        time: times [k], s.
        *motions: positions [k, n], rad, and as many of their derivatives as are known.
    """
    names = ["time"]
    for stem, values in zip(("q", "qd", "qdd"), motions, strict=False):
        names += [f"{stem}_{joint}" for joint in range(values.shape[1])]
    lines = [",".join(names)]
    rows = np.hstack([time[:, None], *motions])
    lines += [",".join(f"{value:.9g}" for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def read_plan(path: str | Path, joint_names: Sequence[str]) -> Plan:
    """A trajectory from a CSV file with a header line.

    Columns: `time` [s], or with another unit behind it, as `time [ms]`; positions as
    `q_0` ... [rad] (also `target_q_0`, `actual_q_0` or the joint's name); where known,
    velocities `qd_0` ... [rad/s] and accelerations `qdd_0` ... [rad/s^2] (also
    `target_qd_0`, `target_qdd_0`). Other columns are ignored. Delimiters, decimal commas
    and encodings are accepted as in CSV recordings.

    Args:
        path: path of the file.
        joint_names: names of the joints in the order of the arm [n].

    Raises:
        InputError: names the column or line at fault.
    """
    lines = (line for _, line in lines_of(Path(path)))
    head = list(islice(lines, _HEAD))
    if head and is_separator_line(head[0]):
        head = head[1:]
    if not head:
        raise InputError(path, "is empty", "give a header line and one line a point")
    dialect = find_dialect(head)
    names = dialect.columns(head[0])
    header = {name: place for place, name in enumerate(names)}
    time, seconds = _time_column(names)
    if time is None:
        raise InputError(path, "is missing", "name the time column 'time'", field="time")
    n = len(joint_names)
    q = _joint_columns(header, ("q", "target_q", "actual_q"), n)
    if q is None and all(name in header for name in joint_names):
        q = list(joint_names)
    if q is None:
        remedy = f"name the positions q_0 to q_{n - 1} or by joint"
        raise InputError(path, "is missing", remedy, field="q_0")
    qd = _joint_columns(header, ("qd", "target_qd"), n)
    qdd = None if qd is None else _joint_columns(header, ("qdd", "target_qdd"), n)
    wanted = [time, *q, *(qd or []), *(qdd or [])]
    rows = map(dialect.columns, chain(head[1:], lines))
    table = _numbers(path, rows, header, wanted, dialect)
    of_q = slice(1, 1 + n)  # columns behind the time
    of_qd = slice(1 + n, 1 + 2 * n)
    of_qdd = slice(1 + 2 * n, 1 + 3 * n)
    return Plan(
        time=seconds * table[:, 0],
        q=table[:, of_q],
        qd=None if qd is None else table[:, of_qd],
        qdd=None if qdd is None else table[:, of_qdd],
        source=str(path),
    )


def _time_column(names: Sequence[str]) -> tuple[str | None, float]:
    """Name of the time column, None if there is none; and its unit [s]."""
    for wanted in _TIME_NAMES:
        for name in names:
            stem, unit = split_unit(name)
            if stem != wanted:
                continue
            seconds = 1.0 if unit is None else time_factor(unit)
            if seconds is not None:
                return name, seconds
    return None, 1.0


def _joint_columns(
    header: Mapping[str, int], stems: Sequence[str], joints: int
) -> list[str] | None:
    """Names of the columns of the first stem that has a column for each joint, else None."""
    for stem in stems:
        names = [f"{stem}_{joint}" for joint in range(joints)]
        if all(name in header for name in names):
            return names
    return None


def _numbers(
    path: str | Path,
    rows: Iterator[Sequence[str]],
    header: Mapping[str, int],
    names: Sequence[str],
    dialect: Dialect,
) -> Array:
    """Columns of a file as numbers; no more rows are read than a plan may have points.

    Args:
        path: path of the file, for errors.
        rows: cells of each row behind the header.
        header: place of each column by its name.
        names: names of the columns that are wanted.
        dialect: spelling of numbers in the file.

    Returns:
        The numbers [rows, names].

    Raises:
        InputError: too many rows, or a row with a wrong number of cells or a wrong cell.
    """
    places = [header[name] for name in names]
    width = max(header.values()) + 1
    numbers = array("d")
    count = 0
    for count, row in enumerate(rows, start=1):
        check_points(path, max(count, 2))  # one point may be the first of many
        if len(row) != width:
            problem = f"line {count + 1} has {len(row)} columns, the header {width}"
            raise InputError(path, problem, "correct that line")
        for name, place in zip(names, places, strict=True):
            number = dialect.number(row[place])
            if number is None:
                problem = (
                    f"holds something that is not a number ({row[place][:_SHOWN]!r})"
                )
                raise InputError(path, problem, "correct that line", field=name)
            numbers.append(number)
    return np.array(numbers).reshape(count, len(names))
