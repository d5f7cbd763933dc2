# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""CSV files of a moving arm whose energy is known: times, positions, speeds, bus power."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

JOINTS = np.arange(1.0, 7.0)
Q = [f"actual_q_{joint}" for joint in range(6)]
QD = [f"actual_qd_{joint}" for joint in range(6)]
BUS = ["actual_robot_voltage", "actual_robot_current"]
NAMES = (*Q, *QD, *BUS)


def moving_arm(time: NDArray[Any]) -> Array:
    """Positions, speeds, voltage and current [n, 14] at times [n], s: sinusoids below 0.3 Hz."""
    phase = np.outer(time, 0.3 * np.sqrt(JOINTS))
    position = np.sin(phase)
    speed = 0.3 * np.sqrt(JOINTS) * np.cos(phase)
    power = 150.0 + 60.0 * np.sin(1.7 * time) + 30.0 * np.sin(0.23 * time)
    voltage = 48.0 + 0.3 * np.sin(0.9 * time)
    return np.column_stack([position, speed, voltage, power / voltage])


def energy(time: NDArray[Any], columns: Array) -> float:
    """Trapezoid of voltage times current [J], from the numbers that the file has."""
    return float(np.trapezoid(columns[:, -2] * columns[:, -1], time))


def write_table(
    path: Path,
    times: Sequence[str] | None,
    columns: Array,
    names: Sequence[str] = NAMES,
    *,
    title: str = "timestamp",
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Path:
    """A CSV file with these texts as times, or without a time column."""
    rows = [[repr(float(value)) for value in row] for row in columns]
    header = list(names)
    if times is not None:
        header = [title, *header]
        rows = [[time, *row] for time, row in zip(times, rows, strict=True)]
    lines = [delimiter.join(row) for row in [header, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def bus_energy(telemetry: Telemetry) -> float:
    """Energy of a recording as it was read [J]."""
    power = telemetry.bus_power
    assert power is not None
    return float(np.trapezoid(power, telemetry.time))
