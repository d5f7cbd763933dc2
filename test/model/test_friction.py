# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws are linear in their parameters; a bank gives the same values as single laws."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.friction import (
    LAWS,
    Friction,
    FrictionBank,
    FrictionLaw,
    coulomb_viscous_fit,
)
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.model.presliding import RETAINED, presliding

SPEED = np.array([-2.0, -0.5, -0.02, 0.02, 0.5, 2.0])
LOAD = np.array([20.0, -20.0, 20.0, 20.0, -20.0, 20.0])
RATIO = 101.0
MODEL = (0.402, -0.09083, 0.9553, -0.01831)


def some_friction(law: FrictionLaw, seed: int = 0) -> Friction:
    values = np.random.default_rng(seed).uniform(0.01, 0.05, len(law.parameters))
    parameters = dict(zip(law.parameters, values.tolist(), strict=True))
    return Friction(law, parameters, law.default_shape, MODEL, (20.0, 40.0))


@pytest.mark.parametrize(
    ("law", "values"),
    [
        ("power_flow", {"coulomb_direct": 0.06, "coulomb_reverse": 0.04}),
        ("load_dependent", {"coulomb": 0.0, "load": 0.05, "load_asymmetry": 0.01}),
    ],
)
def test_friction_by_the_direction_of_power(law: str, values: dict[str, float]) -> None:
    friction = Friction(LAWS[law], {"viscous": 0.0, **values}, LAWS[law].default_shape)
    bank = FrictionBank([friction], np.array([RATIO]))
    load = RATIO * np.array([[1.0], [-1], [-1]])
    torque = bank.torque(np.array([[1.0], [1.0], [-1.0]]), load)
    np.testing.assert_allclose(torque[:, 0], [0.06, 0.04, -0.06])


def test_friction_as_part_of_a_motor_torque() -> None:
    laws = [law for law in LAWS.values() if law.name != "power_flow"]
    ratio = np.full(len(laws), RATIO)
    bank = FrictionBank([some_friction(law) for law in laws], ratio)
    speed, load = (
        np.repeat(values[:, None], len(laws), axis=1) for values in (SPEED, LOAD)
    )
    friction = bank.torque(speed, load)
    np.testing.assert_allclose(
        bank.torque_within(speed, load / ratio + friction), friction, rtol=1e-9
    )


def test_a_bank_of_mixed_laws_equals_the_laws_one_by_one() -> None:
    frictions = [some_friction(law, seed) for seed, law in enumerate(LAWS.values())]
    ratio = np.full(len(frictions), RATIO)
    speed = np.repeat(SPEED[:, None], len(frictions), axis=1)
    load = np.repeat(LOAD[:, None], len(frictions), axis=1)
    temperature = np.full(len(frictions), 25.0)
    bank = FrictionBank(frictions, ratio)
    torque = bank.torque(speed, load, temperature)
    columns = bank.regressors(speed, load, temperature)
    for j, friction in enumerate(frictions):
        point = OperatingPoint(SPEED, LOAD, RATIO, 25.0, np.array(MODEL))
        expected = friction.law.regressor(point, friction.all_shape)
        np.testing.assert_allclose(columns[j], expected)
        np.testing.assert_allclose(torque[:, j], expected @ friction.values)


def test_a_stopped_joint_retains_friction_of_its_last_motion() -> None:
    time = np.arange(0, 2.0, 0.01)
    qd = np.where(time < 1.0, 0.5, 0.0)
    q = np.cumsum(qd) * 0.01
    out, state = presliding(q[:, None], qd[:, None], np.array([1e-3]), np.zeros(1))
    assert out[50, 0] == pytest.approx(1.0)
    assert out[-1, 0] == pytest.approx(RETAINED, abs=1e-6)
    creep = q[-1] - np.linspace(0.0, 2e-3, 200)  # turned around by a creep of two travels
    back, _ = presliding(
        creep[:, None], np.full((200, 1), -1e-5), np.array([1e-3]), state
    )
    assert back[-1, 0] == pytest.approx(RETAINED * (2 * np.exp(-2.0) - 1), abs=0.02)


def test_coulomb_viscous_fit_of_a_coulomb_viscous_law_is_the_law() -> None:
    values = {"viscous": 3e-4, "coulomb": 0.05}
    line = coulomb_viscous_fit(Friction(LAWS["coulomb_viscous"], values), RATIO, 3.0)
    assert line == pytest.approx({"coulomb": 0.05, "viscous": 3e-4}, rel=1e-6)
