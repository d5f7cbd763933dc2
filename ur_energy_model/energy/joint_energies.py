"""Energies of an arm's joints, common to recordings and planned trajectories, and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ur_energy_model.energy.meter import efficiency
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class JointEnergies:
    """Energies per joint.

    Attributes:
        names: of the joints, n.
        mechanical, electrical: [n], J.
        electrical_std: standard deviations of `electrical` from the model's parameters [n], J.
    """

    names: tuple[str, ...]
    mechanical: Array
    electrical: Array
    electrical_std: Array

    @property
    def efficiency(self) -> Array:
        """Mechanical over electrical energy [n], NaN where no electrical energy is taken."""
        return efficiency(self.mechanical, self.electrical)

    def energy_json(
        self, joints: Mapping[str, Array], total: Mapping[str, float | Array]
    ) -> dict[str, Any]:
        """The entries `joints` and `total` of `ur_energy estimate --json` and `predict --json`.

        Args:
            joints: further quantities per joint by their JSON keys [n], J.
            total: further quantities of the whole arm by their JSON keys [J].
        """
        columns = {
            "mechanical_energy": self.mechanical,
            "electrical_energy": self.electrical,
            "electrical_energy_std": self.electrical_std,
            "efficiency": self.efficiency,
            **joints,
        }
        mechanical = self.mechanical.sum(keepdims=True)
        electrical = self.electrical.sum(keepdims=True)
        return {
            "joints": [
                {"name": name, **{key: values[j] for key, values in columns.items()}}
                for j, name in enumerate(self.names)
            ],
            "total": {
                "mechanical_energy": mechanical[0],
                "electrical_energy": electrical[0],
                "efficiency": efficiency(mechanical, electrical)[0],
                **total,
            },
        }
