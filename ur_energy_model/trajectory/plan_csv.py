"""Reads planned trajectories from CSV files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

_TIME_NAMES = ("time", "t", "timestamp", "time_from_start")


def read_plan(path: str | Path, joint_names: Sequence[str]) -> Plan:
    """A trajectory from a CSV file with a header line.

    Columns: `time` [s]; positions as `q_0` ... [rad] (also `target_q_0`, `actual_q_0` or the
    joint's name); where known, velocities `qd_0` ... [rad/s] and accelerations `qdd_0` ...
    [rad/s^2] (also `target_qd_0`, `target_qdd_0`). Other columns are ignored.

    Raises:
        InputError: names the column or line at fault.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, f"cannot be read ({error})", "check the path") from error
    rows = [row for row in rows if row]
    if not rows:
        raise InputError(path, "is empty", "give a header line and one line a point")
    header = {name.strip(): i for i, name in enumerate(rows[0])}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise InputError(
                path,
                f"line {number} has {len(row)} columns, the header {len(rows[0])}",
                "correct that line",
            )
    time = next((name for name in _TIME_NAMES if name in header), None)
    if time is None:
        raise InputError(path, "is missing", "name the time column 'time'", field="time")
    read = _Columns(path, header, rows[1:])
    n = len(joint_names)
    q = read.joints(("q", "target_q", "actual_q"), n) or (
        list(joint_names) if all(name in header for name in joint_names) else None
    )
    if q is None:
        raise InputError(
            path, "is missing", f"name the positions q_0 to q_{n - 1} or by joint", field="q_0"
        )
    qd, qdd = read.joints(("qd", "target_qd"), n), read.joints(("qdd", "target_qdd"), n)
    return Plan(
        time=read.values([time])[:, 0],
        q=read.values(q),
        qd=None if qd is None else read.values(qd),
        qdd=None if qd is None or qdd is None else read.values(qdd),
        source=str(path),
    )


@dataclass(frozen=True)
class _Columns:
    path: str | Path
    header: Mapping[str, int]
    rows: list[list[str]]

    def joints(self, stems: Sequence[str], n: int) -> list[str] | None:
        """Names of the columns of the first stem that has all n."""
        for stem in stems:
            names = [f"{stem}_{i}" for i in range(n)]
            if all(name in self.header for name in names):
                return names
        return None

    def values(self, names: Sequence[str]) -> Array:
        """Columns as numbers [rows, names]."""
        out = np.empty((len(self.rows), len(names)))
        for j, name in enumerate(names):
            texts = [row[self.header[name]] for row in self.rows]
            try:
                out[:, j] = [float(text) for text in texts]
            except ValueError as error:
                raise InputError(
                    self.path,
                    f"holds something that is not a number ({error})",
                    "correct that line",
                    field=name,
                ) from error
        return out
