"""Powers of a recording over time as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ur_energy_model.energy.channels import QUANTITIES, Channels
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file
from ur_energy_model.typing import Array

ARM_COLUMNS = (
    "driver_power",
    "standby_power",
    "regeneration_power",
    "total_power",
    "total_power_std",
    "electrical_energy",
    "bus_power",
)


@contextmanager
def new_power_csv(path: str | Path, channels: Channels) -> Iterator[PowerCsv]:
    """A CSV file of powers that appears only once it is complete.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with new_file(path) as file:
            yield PowerCsv(file, channels)
    except OSError as error:
        raise InputError(
            path, f"cannot be written ({error.strerror})", "choose another file for --csv"
        ) from error


class PowerCsv:
    """Writes powers row by row, in order of time.

    Args:
        file: open for writing.
        channels: layout of the powers.
    """

    def __init__(self, file: IO[str], channels: Channels) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._channels = channels
        joints = [f"{kind}_{j}" for kind in QUANTITIES for j in range(len(channels.joints))]
        self._writer.writerow(["timestamp", *joints, *ARM_COLUMNS])

    def append(self, table: PowerTable, meter: EnergyMeter) -> None:
        """Append the rows of a batch.

        Args:
            table: powers of its samples.
            meter: that has integrated it last.
        """
        channels, power = self._channels, table.power
        arm = channels.arm
        n_errors = channels.errors[1]
        total = power[:, arm["total"]]
        columns = np.column_stack(
            [
                table.samples.time,
                power[:, : arm["total"]],
                power[:, arm["driver"]],
                power[:, arm["standby"]],
                power[:, arm["regeneration"]],
                total,
                np.linalg.norm(power[:, -n_errors:], axis=1),
                energy_at(table.steps.bridged, total, meter.reading.net[arm["total"]]),
                power[:, arm["bus"]] if table.bus_measured else np.full(len(total), np.nan),
            ]
        )
        self._writer.writerows(
            [["" if np.isnan(value) else f"{value:.9g}" for value in row] for row in columns]
        )


def energy_at(steps: Array, power: Array, end: float) -> Array:
    """Energy up to every sample [samples], J, where it is `end` at the last one.

    Args:
        steps: bridged steps to the samples [samples], s.
        power: [samples], W.
        end: energy counted up to the last sample [J].
    """
    gains = 0.5 * (power[1:] + power[:-1]) * steps[1:]
    return np.asarray(end - np.append(np.cumsum(gains[::-1])[::-1], 0.0))
