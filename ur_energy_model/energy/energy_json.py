"""Energies of an arm as JSON: the same keys for a recording and for a planned trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ur_energy_model.energy.meter import efficiency
from ur_energy_model.typing import Array


def energy_json(
    names: Sequence[str], joints: Mapping[str, Array], total: Mapping[str, float]
) -> dict[str, Any]:
    """The entries `joints` and `total`; mechanical and electrical energy are summed for the latter.

    Args:
        names: of the joints, n.
        joints: quantities per joint by their JSON keys [n], J, among them mechanical_energy and
            electrical_energy.
        total: other quantities of the whole arm by their JSON keys [J].
    """
    mechanical = joints["mechanical_energy"].sum(keepdims=True)
    electrical = joints["electrical_energy"].sum(keepdims=True)
    return {
        "joints": [
            {"name": name, **{key: values[j] for key, values in joints.items()}}
            for j, name in enumerate(names)
        ],
        "total": {
            "mechanical_energy": mechanical[0],
            "electrical_energy": electrical[0],
            "efficiency": efficiency(mechanical, electrical)[0],
            **total,
        },
    }
