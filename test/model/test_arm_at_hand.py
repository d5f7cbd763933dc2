# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models for the arm at hand: with the torque constants that its controller states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.model.made_up import N, made_up_model, motion
from test.properties import examples
from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.arm_at_hand import on_another_arm, with_controller_constants
from ur_energy_model.model.controller_constants import (
    CALIBRATION_ERROR,
    ControllerConstants,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.typing import Array

GENERIC = generic_model("ur5e")


def torque_constants(model: EnergyModel) -> Array:
    return np.array([joint.torque_constant for joint in model.joints])


def deviations(model: EnergyModel, name: str = "torque_constant") -> Array:
    return np.array([joint.std[name] for joint in model.joints])


def friction_torques(model: EnergyModel) -> Array:
    return np.concatenate([joint.friction.values for joint in model.joints])


def stated(
    factors: Array, model: EnergyModel = GENERIC, std: float = 1e-3
) -> ControllerConstants:
    """Constants that are these factors times a model's; NaN is unknown."""
    gear = np.array([joint.gear_ratio for joint in model.joints])
    values = factors * gear * torque_constants(model)
    return ControllerConstants(
        values, np.where(np.isfinite(factors), std * values, np.inf)
    )


FACTORS = np.array([1.157, 1.073, 1.145, 0.935, 1.02, 0.97])
"""Of a real UR5e, against the robot file."""


def test_stated_constants_take_the_place_of_the_types() -> None:
    constants = stated(FACTORS)
    model = with_controller_constants(GENERIC, constants)
    assert torque_constants(model) == pytest.approx(
        constants.torque_per_ampere / GENERIC.joints[0].gear_ratio, rel=2e-3
    )
    relative = deviations(model) / torque_constants(model)
    assert relative == pytest.approx(constants.relative_deviation, rel=0.02)
    assert relative.max() < 1.2 * CALIBRATION_ERROR
    assert model.controller_constants == constants


def test_friction_torque_is_kept_and_currents_follow_the_constants() -> None:
    model = with_controller_constants(GENERIC, stated(FACTORS))
    assert friction_torques(model) == pytest.approx(friction_torques(GENERIC))
    before = GENERIC.predict(*motion())
    after = model.predict(*motion())
    ratio = torque_constants(GENERIC) / torque_constants(model)
    assert after.current == pytest.approx(ratio * before.current, rel=1e-6)
    assert after.mechanical_power == pytest.approx(before.mechanical_power, abs=1e-5)


def test_intervals_of_all_powers_shrink() -> None:
    # Other constants would change currents, and with them the copper losses' errors.
    model = with_controller_constants(GENERIC, stated(np.ones(N)))
    q, qd, qdd = motion()
    before = GENERIC.predict(q, qd, qdd)
    after = model.predict(q, qd, qdd)
    total_std = np.linalg.norm(after.total_sensitivity, axis=-1)
    assert (total_std < np.linalg.norm(before.total_sensitivity, axis=-1)).all()
    assert (after.current_std < before.current_std).all()
    widths = (
        np.linalg.norm(before.sensitivity, axis=2),
        np.linalg.norm(after.sensitivity, axis=2),
    )
    assert (widths[1] < widths[0]).all()


def drawn_constants(seed: int, model: EnergyModel) -> tuple[Array, Array]:
    """Torque and back-EMF constants of an arm drawn from a generic model."""
    back_emf = np.array([joint.back_emf_constant for joint in model.joints])
    drawn = np.random.default_rng(seed).standard_normal(len(model.bus.errors))
    of_torque = drawn @ model.bus.torque_constant_errors(back_emf)
    of_back_emf = drawn @ model.bus.errors[:, 1 + N : 1 + 2 * N] / back_emf
    return torque_constants(model) * np.exp(of_torque), back_emf * np.exp(of_back_emf)


@pytest.mark.parametrize("unknown", [(), (0, 5), (1, 2, 3, 4, 5)])
def test_errors_are_as_large_as_stated_on_drawn_arms(unknown: tuple[int, ...]) -> None:
    scores = []
    for seed in range(300):
        torque, back_emf = drawn_constants(seed, GENERIC)
        random = np.random.default_rng([seed, 1])
        noise = random.normal(0.0, np.hypot(1e-3, CALIBRATION_ERROR), N)
        factors = torque / torque_constants(GENERIC) * np.exp(noise)
        factors[list(unknown)] = np.nan
        model = with_controller_constants(GENERIC, stated(factors))
        found = np.array([joint.back_emf_constant for joint in model.joints])
        scores.append(
            [
                np.log(torque_constants(model) / torque) * torque / deviations(model),
                np.log(found / back_emf)
                * back_emf
                / deviations(model, "back_emf_constant"),
            ]
        )
    scale = np.sqrt(np.mean(np.square(scores), axis=0))
    assert scale.min() > 0.85
    assert scale.max() < 1.15


def test_joints_of_one_size_inform_one_that_was_not_loaded() -> None:
    factors = np.array([1.1, 1.1, 1.1, 0.92, 0.92, np.nan])
    model = with_controller_constants(GENERIC, stated(factors))
    ratio = torque_constants(model) / torque_constants(GENERIC)
    assert 0.92 < ratio[5] < 0.98
    before = deviations(GENERIC)[5]
    after = deviations(model)[5]
    assert 0.5 * before < after < 0.8 * before


def test_a_model_that_holds_the_constants_of_the_arm_stays_as_it_is() -> None:
    factors = np.where(np.arange(N) < 5, FACTORS, np.nan)
    model = with_controller_constants(GENERIC, stated(factors))
    again = with_controller_constants(model, stated(factors * 1.0005))
    assert again is model
    # A joint that was not loaded before is added.
    more = with_controller_constants(model, stated(FACTORS))
    assert torque_constants(more)[:5] == pytest.approx(
        torque_constants(model)[:5], rel=1e-3
    )
    assert deviations(more)[5] < 0.2 * deviations(model)[5]


def test_constants_of_another_arm_are_replaced_with_friction_torque_kept() -> None:
    own = made_up_model()
    model = replace(own, controller_constants=stated(np.ones(N), own))
    other = with_controller_constants(model, stated(FACTORS, own))
    assert torque_constants(other) == pytest.approx(
        FACTORS * torque_constants(own), rel=3e-3
    )
    assert friction_torques(other) == pytest.approx(friction_torques(own), rel=0.01)


def test_without_stated_constants_nothing_changes() -> None:
    assert with_controller_constants(GENERIC, ControllerConstants.unknown(N)) is GENERIC


@examples(30)
@given(
    st.lists(st.floats(0.5, 2.0) | st.just(float("nan")), min_size=N, max_size=N),
    st.floats(0.0, 0.15),
    st.sampled_from(["ur5e", "ur10e", "ur10", "ur20"]),
    st.booleans(),
)
def test_covariances_stay_possible(
    factors: list[float], std: float, name: str, another: bool
) -> None:
    kind = generic_model(name)
    model = on_another_arm(kind) if another else kind
    found = with_controller_constants(model, stated(np.array(factors), model, std))
    for joint, before in zip(found.joints, model.joints, strict=True):
        values = np.linalg.eigvalsh(joint.current_covariance)
        assert values[0] > -1e-9 * values[-1]
        relative = joint.std["torque_constant"] / joint.torque_constant
        assert relative < before.std["torque_constant"] / before.torque_constant * (
            1 + 1e-6
        )
        assert joint.torque_constant > 0
        assert joint.back_emf_constant > 0
    assert np.isfinite(found.bus.errors).all()


def test_stated_constants_are_saved_with_the_model(tmp_path: Path) -> None:
    constants = stated(np.array([1.1, 0.9, np.nan, 1.0, np.nan, 1.2]))
    model = with_controller_constants(GENERIC, constants)
    save_model(model, tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml")
    assert loaded.controller_constants is not None
    np.testing.assert_allclose(
        loaded.controller_constants.torque_per_ampere, constants.torque_per_ampere
    )
    np.testing.assert_allclose(loaded.controller_constants.std, constants.std)
    before = model.predict(*motion())
    after = loaded.predict(*motion())
    np.testing.assert_allclose(
        np.linalg.norm(after.total_sensitivity, axis=-1),
        np.linalg.norm(before.total_sensitivity, axis=-1),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("elbow_joint: {value: ", "elbow: {value: ", "no joint 'elbow'"),
        ("unit: N m/A\n", "unit: A\n", "must be 'N m/A'"),
        ("elbow_joint: {value: ", "elbow_joint: {value: -", "must be positive"),
    ],
)
def test_impossible_constants_are_refused(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    path = tmp_path / "m.yaml"
    save_model(with_controller_constants(GENERIC, stated(FACTORS)), path)
    text = path.read_text()
    place = text.index("controller_constants:")
    path.write_text(text[:place] + text[place:].replace(old, new, 1))
    with pytest.raises(ModelFileError, match=problem):
        load_model(path)
