"""Learned models that replace a model file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from test.energy.known_arm import known_model
from ur_energy_model.errors import ModelFileError
from ur_energy_model.learning import kept_models
from ur_energy_model.learning.kept_models import earlier_models, replace_model
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model, save_model


def learned(standby: float, serial: str | None = "A1") -> EnergyModel:
    return replace(known_model(standby), provenance={"origin": "learned", "serial": serial})


def test_the_models_before_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    assert replace_model(learned(31.0), path).bus.standby == 31.0
    assert earlier_models(path) == []
    for standby in (32.0, 33.0):
        replace_model(learned(standby), path)
    assert load_model(path).bus.standby == 33.0
    assert [load_model(each).bus.standby for each in earlier_models(path)] == [31.0, 32.0]


def test_the_first_and_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_models, "MOST_KEPT", 3)
    path = tmp_path / "model.yaml"
    for standby in range(31, 38):
        replace_model(learned(float(standby)), path)
    kept = [load_model(each).bus.standby for each in earlier_models(path)]
    assert kept == [31.0, 35.0, 36.0]


def test_the_model_of_another_arm_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    save_model(learned(31.0), path)
    with pytest.raises(ModelFileError, match="is the model of arm A1; that of arm B2"):
        replace_model(learned(32.0, "B2"), path)
    assert load_model(path).bus.standby == 31.0
    replace_model(learned(33.0, None), path)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    save_model(learned(31.0), path)
    (tmp_path / "model.yaml.earlier").write_text("")
    with pytest.raises(ModelFileError, match="cannot be kept"):
        replace_model(learned(32.0), path)
    assert load_model(path).bus.standby == 31.0
