"""Reads and writes planned trajectories as CSV."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import open_regular
from ur_energy_model.trajectory.plan import Plan, check_points
from ur_energy_model.typing import Array

_TIME_NAMES = ("time", "t", "timestamp", "time_from_start")
_MOTIONS = ("q", "qd", "qdd")


def csv_text(time: Array, *motions: Array) -> str:
    """CSV that `read_plan` reads: time, q_0 ... and as many of qd_0 ..., qdd_0 ... as given.

    Args:
        time: [k], s.
        motions: positions [k, n], rad; then velocities and accelerations [k, n].
    """
    names = [
        f"{name}_{joint}"
        for name, values in zip(_MOTIONS, motions, strict=False)
        for joint in range(values.shape[1])
    ]
    lines = [",".join(["time", *names])]
    rows = np.hstack([time[:, None], *motions])
    lines += [",".join(f"{value:.9g}" for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def read_plan(path: str | Path, joint_names: Sequence[str]) -> Plan:
    """A trajectory from a CSV file with a header line.

    Columns: `time` [s]; positions as `q_0` ... [rad] (also `target_q_0`, `actual_q_0` or the
    joint's name); where known, velocities `qd_0` ... [rad/s] and accelerations `qdd_0` ...
    [rad/s^2] (also `target_qd_0`, `target_qdd_0`). Other columns are ignored.

    Raises:
        InputError: names the column or line at fault.
    """
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.reader(file), joint_names)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, f"cannot be read ({error})", "check the path") from error


def _read(path: str | Path, rows: Iterator[list[str]], joint_names: Sequence[str]) -> Plan:
    """The trajectory of the rows of a file, header first."""
    rows = (row for row in rows if row)
    names = next(rows, None)
    if names is None:
        raise InputError(path, "is empty", "give a header line and one line a point")
    header = {name.strip(): i for i, name in enumerate(names)}
    time = next((name for name in _TIME_NAMES if name in header), None)
    if time is None:
        raise InputError(path, "is missing", "name the time column 'time'", field="time")
    n = len(joint_names)
    q = _joint_columns(header, ("q", "target_q", "actual_q"), n) or (
        list(joint_names) if all(name in header for name in joint_names) else None
    )
    if q is None:
        raise InputError(
            path, "is missing", f"name the positions q_0 to q_{n - 1} or by joint", field="q_0"
        )
    qd = _joint_columns(header, ("qd", "target_qd"), n)
    qdd = None if qd is None else _joint_columns(header, ("qdd", "target_qdd"), n)
    parts = [[time], q, qd or [], qdd or []]
    table = _numbers(path, rows, header, [name for part in parts for name in part])
    ends = np.cumsum([len(part) for part in parts])
    values = np.split(table, ends[:-1], axis=1)
    return Plan(
        time=values[0][:, 0],
        q=values[1],
        qd=None if qd is None else values[2],
        qdd=None if qdd is None else values[3],
        source=str(path),
    )


def _joint_columns(
    header: Mapping[str, int], stems: Sequence[str], joints: int
) -> list[str] | None:
    """Names of the columns of the first stem that has one for each joint."""
    for stem in stems:
        names = [f"{stem}_{i}" for i in range(joints)]
        if all(name in header for name in names):
            return names
    return None


def _numbers(
    path: str | Path, rows: Iterator[list[str]], header: Mapping[str, int], names: Sequence[str]
) -> Array:
    """Columns as numbers [rows, names]; reads no more rows than a plan may have points.

    Raises:
        InputError: a row of another length, text that is no number, or too many rows.
    """
    places = [header[name] for name in names]
    width = max(header.values()) + 1
    numbers = array("d")
    count = 0
    for count, row in enumerate(rows, start=1):
        check_points(path, max(count, 2))
        if len(row) != width:
            raise InputError(
                path,
                f"line {count + 1} has {len(row)} columns, the header {width}",
                "correct that line",
            )
        numbers.extend(
            _number(path, name, row[place]) for place, name in zip(places, names, strict=True)
        )
    return np.array(numbers).reshape(count, len(names))


def _number(path: str | Path, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(
            path,
            f"holds something that is not a number ({error})",
            "correct that line",
            field=name,
        ) from error
