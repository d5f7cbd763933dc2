# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Model files: what is written is read again, and invalid content is refused with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.model.made_up import N, made_up_model, motion, with_tensors
from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.cable import Cable
from ur_energy_model.model.energy_model import EnergyModel, PayloadCalibration
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.wall import generic_wall


def test_save_and_load_give_the_same_model(tmp_path: Path) -> None:
    spread = SessionSpread(1.2, np.linspace(0.02, 0.07, N), 3)
    model = replace(made_up_model(), sessions=spread)
    save_model(model, tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml")
    assert (loaded.sessions.standby, loaded.sessions.count) == (1.2, 3)
    np.testing.assert_allclose(loaded.sessions.friction, spread.friction)
    before = model.predict(*motion())
    after = loaded.predict(*motion())
    np.testing.assert_allclose(
        after.total_power, before.total_power, rtol=1e-6, atol=1e-5
    )
    np.testing.assert_allclose(
        np.linalg.norm(after.total_sensitivity, axis=-1),
        np.linalg.norm(before.total_sensitivity, axis=-1),
        rtol=1e-5,
    )
    assert loaded.current_delay == 1.2e-3
    assert loaded.bus.mode_power == {"idle": 12.5}
    assert loaded.fit == model.fit
    assert loaded.provenance == model.provenance


def test_the_wall_is_saved_with_its_covariance(tmp_path: Path) -> None:
    generic = generic_wall("cb3")
    assert made_up_model().wall_of() is generic_wall("e-series")
    wall = replace(
        generic, source="meter", held_out_error_percent=0.2, delay=1.3, resolution=1.0
    )
    save_model(replace(made_up_model(), wall=wall), tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml").wall
    assert loaded is not None
    np.testing.assert_allclose(loaded.coefficients, wall.coefficients)
    np.testing.assert_allclose(loaded.covariance, wall.covariance)
    assert replace(loaded, covariance=wall.covariance) == wall


def test_the_cable_is_saved(tmp_path: Path) -> None:
    assert load_saved(made_up_model(), tmp_path).cable is None
    cable = Cable(np.linspace(-0.01, 0.3, N), np.linspace(0.01, 0.05, N))
    loaded = load_saved(replace(made_up_model(), cable=cable), tmp_path).cable
    assert loaded is not None
    np.testing.assert_allclose(loaded.resistance, cable.resistance)
    np.testing.assert_allclose(loaded.std, cable.std)


def load_saved(model: EnergyModel, folder: Path) -> EnergyModel:
    """The model as its file has it."""
    save_model(model, folder / "m.yaml")
    return load_model(folder / "m.yaml")


def test_files_without_sessions_have_the_prior_spread(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    save_model(made_up_model(), path)
    text = path.read_text()
    start = text.index("sessions:")
    end = text.index("fit:\n")
    path.write_text(text[:start] + text[end:])
    sessions = load_model(path).sessions
    assert (sessions.standby, sessions.count) == (SessionSpread().standby, 0)
    assert sessions.friction_of(N)[0] == SessionSpread().friction_of(N)[0]


Change = Callable[[str], str]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda t: t.replace("schema: 1", "schema: 7"), "schema"),
        (lambda t: t.replace("robot: ur5e", "robot: ur5e\nspare: 1"), "spare"),
        (lambda t: t.replace("value: 0.1,", "value: .nan,"), "torque_constant"),
        (lambda t: t.replace("value: 0.1,", "value: -0.1,"), "positive"),
        (lambda t: t.replace("unit: N m/A", "unit: mN m/A"), "N m/A"),
        (
            lambda t: t.replace("law: stribeck", "law: none"),
            "friction.law: 'none' must be one of",
        ),
        (lambda t: t.replace("wrist_3_joint:", "wrist_4_joint:", 1), "wrist_"),
        (lambda t: t.replace("robot: ur5e", "robot: !!python/name:os.system x"), "tags"),
        (
            lambda t: t.replace("[0.01, 0.0, 0.0]", "[0.5, 0.0, 0.0]", 1),
            "tensor of a body",
        ),
        (lambda t: t.replace("[0.01, 0.0, 0.0]", "[0.01, 0.0]", 1), "3 are needed"),
        (lambda t: "", "empty"),
    ],
)
def test_invalid_files_are_refused_with_the_key(
    tmp_path: Path, change: Change, names: str
) -> None:
    path = tmp_path / "m.yaml"
    save_model(with_tensors(), path)
    text = path.read_text(encoding="utf-8")
    changed = change(text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    line = "" if not changed else r"line \d+"
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    message = str(error.value)
    assert names in message
    assert re.search(line, message)
    assert "\n" not in message
    assert str(path) in message


def test_identified_link_tensors_are_saved_and_used(tmp_path: Path) -> None:
    model = with_tensors()
    save_model(model, tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml")
    assert loaded.link_tensors is not None
    assert model.link_tensors is not None
    np.testing.assert_allclose(loaded.link_tensors.values, model.link_tensors.values)
    np.testing.assert_allclose(loaded.link_tensors.std, model.link_tensors.std)
    bare = made_up_model().predict(*motion()).current
    assert np.abs(loaded.predict(*motion()).current - bare).max() > 0.01


def some_calibration() -> PayloadCalibration:
    random = np.random.default_rng(3)
    values = np.concatenate(
        [0.1 * random.standard_normal(24), random.uniform(0.9, 1.1, 12)]
    )
    roots = 0.01 * random.standard_normal((36, 36))
    return PayloadCalibration.from_vector(values, roots @ roots.T)


def test_payload_calibration(tmp_path: Path) -> None:
    known = some_calibration()
    path = tmp_path / "model.yaml"
    drawn = np.random.default_rng(0).multivariate_normal(
        known.vector, known.covariance, 20_000
    )
    gains = drawn[:, 24:30] * drawn[:, 30:]
    np.testing.assert_allclose(gains.std(axis=0), known.torque_gain_std, rtol=0.05)
    calibrated = known.with_calibrated_drives()
    np.testing.assert_allclose(calibrated.torque_gain, 1.0)
    np.testing.assert_allclose(calibrated.covariance, calibrated.covariance.T)
    model = replace(made_up_model(), payload_calibration=known)
    save_model(model, path)
    read = load_model(path).payload_calibration
    assert read is not None
    np.testing.assert_allclose(read.vector, known.vector, rtol=1e-7)
    np.testing.assert_allclose(read.covariance, known.covariance, rtol=1e-7)
    wrong = replace(known, payload_gain=-known.payload_gain)
    before = path.read_text()
    with pytest.raises(ModelFileError, match=r"payload_gain: .* must be positive"):
        save_model(replace(model, payload_calibration=wrong), path)
    assert path.read_text() == before  # what could not be read again is not written


def test_coefficients_of_free_fits_may_have_any_sign(tmp_path: Path) -> None:
    """Files of EcBot's model are read without the room that fits it."""
    model = made_up_model()
    odd = replace(model.joints[0], winding_resistance=-0.3)
    free = replace(model.bus, kind="ecbot", driver=np.full(N, -0.2))
    loaded = load_saved(
        replace(model, joints=(odd, *model.joints[1:]), bus=free), tmp_path
    )
    assert loaded.bus.kind == "ecbot"
    assert loaded.joints[0].winding_resistance == -0.3
    for change in (
        {"joints": (odd, *model.joints[1:])},
        {"bus": replace(free, kind="physical")},
    ):
        with pytest.raises(ModelFileError, match="must not be negative"):
            save_model(replace(model, **change), tmp_path / "m.yaml")
