"""Powers of a recording over time as a CSV file, for spreadsheets and plotting tools."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file
from ur_energy_model.model.drive import Prediction
from ur_energy_model.model.energy import DEFAULT_GAP_LIMIT
from ur_energy_model.model.energy_model import EnergyModel

Array = NDArray[np.float64]

_JOINT_COLUMNS = ("electrical_power", "mechanical_power", "copper_loss", "friction_loss")
_ARM_COLUMNS = (
    "driver_power", "standby_power", "total_power", "total_power_std", "electrical_energy",
    "bus_power",
)  # fmt: skip


@contextmanager
def power_series(path: str | Path, model: EnergyModel) -> Iterator[PowerSeries]:
    """A file of powers, which is there only when all of it was written.

    Raises:
        InputError: the place cannot be written.
    """
    try:
        with new_file(path) as file:
            yield PowerSeries(file, model.dof)
    except OSError as error:
        raise InputError(
            path, f"cannot be written ({error.strerror})", "choose another place for --csv"
        ) from error


class PowerSeries:
    """Rows of powers, in order of time.

    Args:
        file: open for writing.
        n: number of joints.
    """

    def __init__(self, file: IO[str], n: int) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        joints = [f"{kind}_{j}" for kind in _JOINT_COLUMNS for j in range(n)]
        self._writer.writerow(["timestamp", *joints, *_ARM_COLUMNS])
        self._last: tuple[float, float] | None = None
        self._energy = 0.0

    def add(self, time: Array, powers: Prediction, bus: Array | None) -> None:
        """Add a batch.

        Args:
            time: [samples], s.
            powers: of these samples.
            bus: measured at the supply [samples], W; None where it was not recorded.
        """
        columns = np.column_stack([
            time, *(getattr(powers, kind) for kind in _JOINT_COLUMNS),
            powers.driver_power, powers.standby_power, powers.total_power,
            powers.total_power_std, self._energy_at(time, powers.total_power),
            np.full(len(time), np.nan) if bus is None else bus,
        ])  # fmt: skip
        self._writer.writerows(
            [["" if np.isnan(value) else f"{value:.9g}" for value in row] for row in columns]
        )

    def _energy_at(self, time: Array, power: Array) -> Array:
        """Energy taken up to every sample [samples], J; gaps are not bridged."""
        last_time, last_power = self._last or (time[0], power[0])
        steps = np.diff(time, prepend=last_time)
        previous = np.concatenate([[last_power], power[:-1]])
        steps = np.where((steps > DEFAULT_GAP_LIMIT) | (steps < 0), 0.0, steps)
        energy = self._energy + np.cumsum(0.5 * (previous + power) * steps)
        self._last, self._energy = (float(time[-1]), float(power[-1])), float(energy[-1])
        return np.asarray(energy)
