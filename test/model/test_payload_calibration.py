"""Payload calibrations: values, uncertainty, and storage in the model file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.test_payload import true_model
from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.energy_model import PayloadCalibration
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload


def some_calibration() -> PayloadCalibration:
    random = np.random.default_rng(3)
    values = np.concatenate([0.1 * random.standard_normal(24), random.uniform(0.9, 1.1, 12)])
    roots = 0.01 * random.standard_normal((36, 36))
    return PayloadCalibration.from_vector(values, roots @ roots.T)


def test_vector_and_parts_agree() -> None:
    known = some_calibration()
    again = PayloadCalibration.from_vector(known.vector, known.covariance)
    assert np.array_equal(again.links, known.links)
    assert np.array_equal(again.payload_gain, known.payload_gain)


def test_deviation_of_the_torque_gain_against_samples() -> None:
    known = some_calibration()
    drawn = np.random.default_rng(0).multivariate_normal(known.vector, known.covariance, 20_000)
    gains = drawn[:, 24:30] * drawn[:, 30:]
    assert np.allclose(gains.std(axis=0), known.torque_gain_std, rtol=0.05)


def test_calibrated_drives_leave_payload_torques_as_they_are() -> None:
    known = some_calibration().with_calibrated_drives()
    assert np.allclose(known.torque_gain, 1.0)
    assert np.allclose(known.covariance, known.covariance.T)


def test_save_and_load(tmp_path: Path) -> None:
    known = some_calibration()
    model = replace(true_model(load_robot("ur5e")), payload_calibration=known)
    save_model(model, tmp_path / "model.yaml")
    read = load_model(tmp_path / "model.yaml").payload_calibration
    assert read is not None
    assert np.allclose(read.vector, known.vector, rtol=1e-7)
    assert np.allclose(read.covariance, known.covariance, rtol=1e-7)


def test_an_impossible_gain_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    known = some_calibration()
    wrong = replace(known, payload_gain=-known.payload_gain)
    model = replace(true_model(load_robot("ur5e")), payload_calibration=known)
    with pytest.raises(ModelFileError, match=r"payload_gain: .* must be positive"):
        save_model(replace(model, payload_calibration=wrong), path)
    assert not path.exists()  # what could not be read again is not written


def test_another_payload_changes_nothing_else() -> None:
    model = true_model(load_robot("ur5e"))
    loaded = model.with_payload(Payload(1.5))
    assert loaded.setup.payload.mass == 1.5
    assert np.array_equal(loaded.setup.gravity, model.setup.gravity)
    assert loaded.joints == model.joints
