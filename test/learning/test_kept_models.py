"""Learned models on disk: the previous ones are kept, within a bound."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from ur_energy_model.errors import ModelFileError
from ur_energy_model.learning.state import (
    FIRST,
    KEPT,
    ORIGIN,
    kept_path,
    learned_digest,
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


def test_the_first_model_needs_no_file(generic: EnergyModel, tmp_path: Path) -> None:
    path = tmp_path / "new" / "model.yaml"
    save_learned(version(generic, 1), path)
    assert saved_version(path) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["model.yaml"]


def test_the_digest_is_that_of_the_file(generic: EnergyModel, tmp_path: Path) -> None:
    path, model = tmp_path / "model.yaml", version(generic, 1)
    save_learned(model, path)
    assert learned_digest(model) == hashlib.sha256(path.read_bytes()).hexdigest()
