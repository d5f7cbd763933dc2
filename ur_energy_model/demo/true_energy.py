"""The simulated arm's true energies over the stretch of time that a recording covers."""

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
        bus: taken from the supply by the whole arm, standby included [J].
    """

    mechanical: Array
    electrical: Array
    bus: float

    def as_truth(self) -> dict[str, Any]:
        """In the layout of a truth file, as far as figures need it."""
        return {"joints": [{"electrical_energy": float(value)} for value in self.electrical]}


def true_energy(truth_file: Path, start: float, end: float) -> TrueEnergy:
    """Energies between two controller timestamps, linearly between the truth's rows.

    Args:
        truth_file: JSON file that the simulated arm wrote; its arrays lie beside it.
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
