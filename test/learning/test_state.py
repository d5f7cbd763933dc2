"""States on the disk and learned models: read back as written, damage is found, old ones kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.errors import ModelFileError
from ur_energy_model.learning.information import TorqueRows
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
from ur_energy_model.telemetry.samples import Telemetry


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


def test_a_model_that_cannot_be_written_leaves_the_file_alone(
    generic: EnergyModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.yaml"
    save_learned(version(generic, 1), path)
    before = path.read_bytes()
    impossible = replace(generic, joints=tuple(replace(j, gear_ratio=-1.0) for j in generic.joints))
    with pytest.raises(ModelFileError):
        save_learned(impossible, path)
    assert path.read_bytes() == before


VALUES = {
    "numbers": [1, 2.5, -np.inf, None, True, "text"],
    "arrays": {"a": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 4))},
    "nested": [{"deep": np.array([np.nan, np.inf])}],
}


def test_values_are_read_back() -> None:
    found = decoded(encoded(VALUES))
    assert found["numbers"] == VALUES["numbers"]
    np.testing.assert_array_equal(found["arrays"]["a"], np.arange(6.0).reshape(2, 3))
    assert found["arrays"]["empty"].shape == (0, 4)
    np.testing.assert_array_equal(found["nested"][0]["deep"], [np.nan, np.inf])


def test_any_changed_byte_is_found() -> None:
    data = encoded(VALUES)
    for place in range(0, len(data), max(1, len(data) // 97)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        with pytest.raises(ValueError, match=r"damaged|not a state"):
            decoded(bytes(damaged))


def filled(work: Telemetry, times: int) -> TorqueRows:
    rows = TorqueRows()
    for k in range(times):
        rows.append(replace(work, time=work.time + 100.0 * k))
    return rows


def test_rows_are_bounded_and_spread_over_all_time(work: Telemetry) -> None:
    rows = filled(work, 6)
    assert 1000 < rows.samples <= 3000
    time = rows.columns["time"]
    assert time[0] < work.time[0] + 1.0
    assert time[-1] > work.time[-1] + 499.0
    assert (np.diff(time) > 0).all()
