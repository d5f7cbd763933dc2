# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base parameters: rank, regrouping, values and their standard deviations, against known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from test.identification.conftest import filtered_motions, made_up_recording
from ur_energy_model.identification.base_parameter_fit import BaseParameterFit
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    raviola_base,
    regroup,
)
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup, tensor_of

UR5E = load_robot("ur5e")
UPRIGHT = np.array([0.0, 0.0, -9.82])
TILTED = np.array([0.0, 6.94, -6.94])
FRICTION: dict[str, Any] = {"coulomb": 4.0, "viscous": 3.0}


def fit_of(
    robot: RobotDescription = UR5E, gravity: np.ndarray = UPRIGHT, **options: Any
) -> BaseParameterFit:
    """A fit with one recording; `options` of the recording, and `choose` of the fit."""
    choose = options.pop("choose", None)
    made = made_up_recording(robot, setup=Setup(gravity), **FRICTION, **options)
    constant = np.full(robot.dof, 0.1)
    fit = BaseParameterFit(
        robot,
        gravity,
        torque_source="current",
        torque_constant=constant,
        choose=choose,
    )
    for motion in filtered_motions([made], robot.dof, 20.0, 0.01):
        fit.accumulate(motion, None)
    return fit


def truth(fit: BaseParameterFit) -> np.ndarray:
    """Base values of the robot file's parameters, with FRICTION where the fit has friction."""
    full = fit.regressor.full.nominal()
    for kind, value in (("fc", FRICTION["coulomb"]), ("fv", FRICTION["viscous"])):
        full[[name.startswith(kind) for name in fit.regressor.full.names]] = value
    return fit.regressor.regrouping.combination @ full


def least_pseudo(parameters: np.ndarray) -> float:
    """Lowest eigenvalue of the pseudo-inertia [[S, mc], [mc', m]], S = trace(I)/2 1 - I."""
    tensor = tensor_of(parameters[4:10])
    moments = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    first = parameters[1:4]
    return float(
        np.linalg.eigvalsh(np.block([[moments, first[:, None]], [first, parameters[0]]]))[
            0
        ]
    )


@pytest.mark.parametrize(
    ("name", "friction", "gravity", "rank"),
    [
        # 36 inertial + 12 friction + 4 motor inertias (Raviola et al. 2021).
        ("ur5", True, UPRIGHT, 52),
        ("ur5", True, TILTED, 54),
        # Seven joints: 43 inertial + 14 friction + 5 motor inertias.
        ("gen3", True, UPRIGHT, 62),
    ],
)
def test_base_parameters_explain_the_full_torque(
    name: str, friction: bool, gravity: np.ndarray, rank: int
) -> None:
    """At states that the regrouping has not seen."""
    regressor = FullRegressor(load_robot(name), gravity, friction)
    found = regroup(regressor)
    assert found.rank == rank
    assert found.singular_values[rank] < 1e-10 * found.singular_values[rank - 1]
    assert ("mx_1" in {found.names[k] for k in found.base}) == (gravity is TILTED)
    random = np.random.default_rng(99)
    q, qd, qdd = random.normal(0, 2, (3, 30, regressor.robot.dof))
    full = regressor(q, qd, qdd)
    values = random.normal(0, 1, len(full.columns))
    assert np.allclose(
        full.values @ values, found.of(full).values @ (found.combination @ values)
    )


def test_recovers_the_truth() -> None:
    """Also as physically possible parameters, and on another motion."""
    fit = fit_of(gravity=TILTED, noise=0.3)
    found = fit.solve()
    expected = truth(fit)
    assert found.condition_number < 500
    assert (found.torque_r2 > 0.99).all()
    frictions = [text.startswith("f") for text in found.regrouping.expressions]
    assert np.allclose(found.values[frictions], expected[frictions], rtol=0.05)
    assert np.abs(found.values - expected).max() < 0.5
    links = found.consistent.reshape(6, 13)
    assert min(map(least_pseudo, links)) > -1e-7
    assert (links[:, 10:] > -1e-7).all()
    assert np.allclose(found.consistent_rms, found.torque_rms, rtol=0.05)
    check = fit_of(gravity=TILTED, noise=0.3, seed=2).verify(found)
    assert (check.torque_r2 > 0.98).all()
    assert check.normalised_error == pytest.approx(found.normalised_error, rel=0.3)


def test_two_choices_of_base_columns_predict_one_torque() -> None:
    """Each with its own columns; values of one choice are refused by the other."""
    fits = [fit_of(), fit_of(choose=raviola_base)]
    usual, papers = (fit.solve() for fit in fits)
    assert not np.allclose(usual.values, papers.values, rtol=0.1)
    random = np.random.default_rng(5)
    q, qd, qdd = random.normal(0, 1, (3, 2500, 6))
    full = usual.regressor.full(q, qd, qdd)
    for solution in ("ordinary", "weighted", "consistent"):
        torque = usual.torque(q, qd, qdd, solution)
        scale = np.abs(torque).max()
        assert np.abs(papers.torque(q, qd, qdd, solution) - torque).max() < 1e-3 * scale
    consistent = full.values @ usual.consistent
    assert np.allclose(usual.torque(q, qd, qdd, "consistent"), consistent)
    with pytest.raises(ValueError, match="other columns"):
        fits[0].verify(papers)


@pytest.mark.truth
def test_standard_deviations_cover_the_truth() -> None:
    inside = []
    for seed in range(8):
        fit = fit_of(noise=2.0, seed=seed)
        found = fit.solve()
        inside.append(np.abs(found.values - truth(fit)) < 1.96 * found.std)
    assert 0.88 <= np.mean(inside) <= 1.0


def test_possible_values_stay_and_impossible_ones_move_to_possible_ones() -> None:
    """The second is one link with a negative inertia and a negative motor inertia asked for."""
    regressor = FullRegressor(load_robot("ur10e"), UPRIGHT)
    groups = regroup(regressor)
    nominal = regressor.nominal()
    asked = groups.combination @ (1.1 * nominal)
    found = nearest_possible(
        1e8 * np.eye(groups.rank),
        groups.combination,
        asked,
        nominal,
        np.ones(len(nominal)),
        6,
    )
    assert np.allclose(groups.combination @ found, asked, atol=1e-4)
    asked = np.zeros(11)
    nominal = np.zeros(11)
    asked[[0, 4, 6, 9, 10]] = (1.0, -1.0, 2.0, 2.0, -3.0)
    nominal[[0, 4, 6, 9, 10]] = 1.0
    found = nearest_possible(1e6 * np.eye(11), np.eye(11), asked, nominal, np.ones(11), 1)
    assert least_pseudo(found) > -1e-6
    assert found[[0, 10]] == pytest.approx([1.0, 0.0], abs=1e-2)


def test_base_parameters_of_a_paper_have_its_theoretical_values() -> None:
    """Its columns and our own give the same torque."""
    robot = load_robot("qin2024")
    from ur_energy_model.papers.published import paper

    published = paper("s4")
    gravity = np.array([0.0, 0.0, -9.8])
    regressor = FullRegressor(robot, gravity, friction=False, motor_inertia=False)
    grouping = regroup(regressor, published["base_names"])
    assert grouping.rank == 36
    theirs = dict(zip(published["base_names"], published["theoretical"], strict=True))
    expected = [theirs[grouping.names[column]] for column in grouping.base]
    assert grouping.combination @ regressor.nominal() == pytest.approx(expected, abs=0.01)
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 20, robot.dof))
    full = regressor(q, qd, qdd)
    for own in (grouping, regroup(regressor)):
        torque = own.of(full).values @ (own.combination @ regressor.nominal())
        np.testing.assert_allclose(
            torque, full.values @ regressor.nominal(), rtol=1e-6, atol=1e-6
        )
