"""True energies of the simulated arm over the time of a recording."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class TrueEnergy:
    """True energies between two controller times.

    Attributes:
        mechanical, electrical: of the joints at the motor [n], J.
        bus: delivered by the supply to the whole arm, including standby [J].
    """

    mechanical: Array
    electrical: Array
    bus: float

    def as_truth(self) -> dict[str, Any]:
        """The part of a truth file that figures need."""
        return {"joints": [{"electrical_energy": float(value)} for value in self.electrical]}


def true_energy(truth_file: Path, start: float, end: float) -> TrueEnergy:
    """Energies between two controller timestamps, interpolated linearly.

    Args:
        truth_file: JSON file written by the simulated arm, with its array file beside it.
        start: controller time [s].
        end: controller time [s].
    """
    arrays = truth_file.with_name(json.loads(truth_file.read_text(encoding="utf-8"))["arrays"])
    with np.load(arrays) as rows:
        time = rows["timestamp"]

        def between(name: str) -> Array:
            values = rows[name].reshape(len(time), -1)
            return np.array(
                [np.diff(np.interp([start, end], time, column))[0] for column in values.T]
            )

        return TrueEnergy(
            mechanical=between("mechanical_energy"),
            electrical=between("electrical_energy"),
            bus=float(between("bus_energy")[0]),
        )
