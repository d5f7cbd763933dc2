# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""States on the disk and learned models: read back as written, damage is found, old ones kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.learning.state import (
    FIRST,
    KEPT,
    ORIGIN,
    decoded,
    encoded,
    kept_path,
    save_learned,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model


def version(model: EnergyModel, number: int) -> EnergyModel:
    return replace(model, provenance={"origin": ORIGIN, "version": number})


def saved_version(path: Path) -> int:
    return int(str(load_model(path).provenance["version"]))


def test_previous_models_are_kept(generic: EnergyModel, tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    save_model(generic, path)
    first = path.read_bytes()
    for number in range(1, KEPT + 4):
        save_learned(version(generic, number), path)
    assert saved_version(path) == KEPT + 3
    kept = [saved_version(kept_path(path, number)) for number in range(1, KEPT + 1)]
    assert kept == [KEPT + 2 - k for k in range(KEPT)]
    assert not kept_path(path, KEPT + 1).exists()
    assert kept_path(path, FIRST).read_bytes() == first
    assert len(list(tmp_path.iterdir())) == KEPT + 2


def test_any_changed_byte_of_a_state_is_found() -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 4))}
    data = encoded({"numbers": [1, -np.inf, None, "text"], "arrays": arrays})
    found = decoded(data)
    assert found["numbers"] == [1, -np.inf, None, "text"]
    np.testing.assert_array_equal(found["arrays"]["a"], arrays["a"])
    for place in range(0, len(data), max(1, len(data) // 97)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        with pytest.raises(ValueError, match=r"damaged|not a state"):
            decoded(bytes(damaged))
