"""Energies of joints and their JSON."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.powers import JointEnergies


def test_json_has_each_joint_and_the_sums() -> None:
    energies = JointEnergies(
        ("a", "b"), np.array([1.0, 2.0]), np.array([4.0, -1.0]), np.array([0.1, 0.2])
    )
    content = energies.energy_json({"copper_energy": np.array([0.5, 0.6])}, {"supply_energy": 9.0})
    first, second = content["joints"]
    assert first == {
        "name": "a",
        "mechanical_energy": 1.0,
        "electrical_energy": 4.0,
        "electrical_energy_std": 0.1,
        "efficiency": 0.25,
        "copper_energy": 0.5,
    }
    assert np.isnan(second["efficiency"])
    assert content["total"] == {
        "mechanical_energy": 3.0,
        "electrical_energy": 3.0,
        "efficiency": pytest.approx(1.0),
        "supply_energy": 9.0,
    }
