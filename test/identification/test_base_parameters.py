"""Base parameters: rank, regrouping, values and their standard deviations, against known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import filtered_motions, made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.base_parameters import (
    BaseParameterFit,
    FullRegressor,
    regroup,
    snapped_to_axis,
)
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup, tensor_of
from ur_energy_model.papers.protocol import paper

UR5E = load_robot("ur5e")
UPRIGHT, TILTED = np.array([0.0, 0.0, -9.82]), np.array([0.0, 6.94, -6.94])
FRICTION = {"coulomb": 4.0, "viscous": 3.0}


def fit_of(
    robot: RobotDescription = UR5E,
    gravity: np.ndarray = UPRIGHT,
    source: Any = "current",
    **options: Any,
) -> BaseParameterFit:
    """A fit with one recording."""
    values: dict[str, Any] = {} if source == "target_moment" else {**FRICTION}
    made = made_up_recording(robot, setup=Setup(gravity), **values, **options)
    constant = np.full(robot.dof, 0.1)
    fit = BaseParameterFit(robot, gravity, torque_source=source, torque_constant=constant)
    for motion in filtered_motions([made], robot.dof, 20.0, 0.01):
        fit.accumulate(motion, None)
    return fit


def truth(fit: BaseParameterFit) -> np.ndarray:
    """Base values of the robot file's parameters, with FRICTION where the fit has friction."""
    full = fit.regressor.nominal()
    for kind, value in (("fc", FRICTION["coulomb"]), ("fv", FRICTION["viscous"])):
        full[[name.startswith(kind) for name in fit.regressor.names]] = value
    return fit.regrouping.combination @ full


def least_pseudo(parameters: np.ndarray) -> float:
    """Lowest eigenvalue of the pseudo-inertia [[S, mc], [mc', m]], S = trace(I)/2 1 - I."""
    tensor = tensor_of(parameters[4:10])
    moments, first = 0.5 * np.trace(tensor) * np.eye(3) - tensor, parameters[1:4]
    return float(
        np.linalg.eigvalsh(np.block([[moments, first[:, None]], [first, parameters[0]]]))[0]
    )


@pytest.mark.parametrize(
    ("name", "friction", "gravity", "rank"),
    [
        # 36 inertial + 12 friction + 4 motor inertias (Raviola et al. 2021).
        ("ur5", True, UPRIGHT, 52),
        ("ur5", False, UPRIGHT, 40),
        ("ur5", True, TILTED, 54),
        # Seven joints: 43 inertial + 14 friction + 5 motor inertias.
        ("gen3", True, UPRIGHT, 62),
        ("fr3", True, UPRIGHT, 62),
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
    values = random.normal(0, 1, full.shape[-1])
    assert np.allclose(full @ values, full[:, :, found.base] @ (found.combination @ values))


@pytest.mark.parametrize(("gravity", "rank"), [(UPRIGHT, 52), (TILTED, 54)])
def test_recovers_the_truth(gravity: np.ndarray, rank: int) -> None:
    """Also as physically possible parameters, and on another motion."""
    fit = fit_of(gravity=gravity, noise=0.3)
    found, expected = fit.solve(), truth(fit)
    assert found.regrouping.rank == rank
    assert found.condition_number < 500
    assert (found.torque_r2 > 0.99).all()
    frictions = [text.startswith("f") for text in found.regrouping.expressions]
    assert np.allclose(found.values[frictions], expected[frictions], rtol=0.05)
    assert np.abs(found.values - expected).max() < 0.5
    links = found.consistent.reshape(6, 13)
    assert min(map(least_pseudo, links)) > -1e-7
    assert (links[:, 10:] > -1e-7).all()
    assert np.allclose(found.consistent_rms, found.torque_rms, rtol=0.05)
    check = fit_of(gravity=gravity, noise=0.3, seed=2).verify(found.values)
    assert (check.torque_r2 > 0.98).all()
    assert check.normalised_error == pytest.approx(found.normalised_error, rel=0.3)


def test_target_moment_gives_the_controllers_own_parameters() -> None:
    fit = fit_of(load_robot("ur10e"), source="target_moment")
    assert np.allclose(fit.solve().values, truth(fit), atol=0.02)


def test_standard_deviations_cover_the_truth() -> None:
    inside = []
    for seed in range(8):
        fit = fit_of(noise=2.0, seed=seed)
        found = fit.solve()
        inside.append(np.abs(found.values - truth(fit)) < 1.96 * found.std)
    assert 0.88 <= np.mean(inside) <= 1.0


def test_weighting_beats_ordinary_least_squares() -> None:
    """Noise that differs between joints is what weights are for."""
    errors = []
    for seed in range(4):
        fit = fit_of(noise=np.array([5.0, 5.0, 5.0, 0.05, 0.05, 0.05]), seed=seed)
        found, expected = fit.solve(), truth(fit)
        wrist = [text.split()[0][-1] in "456" for text in found.regrouping.expressions]
        errors.append((np.stack([found.ordinary, found.values]) - expected)[:, wrist])
    ordinary, weighted = np.std(errors, axis=(0, 2))
    assert weighted < 0.5 * ordinary


def test_possible_values_stay_and_impossible_ones_move_to_possible_ones() -> None:
    """The second is one link with a negative inertia and a negative motor inertia asked for."""
    regressor = FullRegressor(load_robot("ur10e"), UPRIGHT)
    groups, nominal = regroup(regressor), regressor.nominal()
    asked = groups.combination @ (1.1 * nominal)
    found = nearest_possible(
        1e8 * np.eye(groups.rank), groups.combination, asked, nominal, np.ones(len(nominal)), 6
    )
    assert np.allclose(groups.combination @ found, asked, atol=1e-4)
    asked, nominal = np.zeros(11), np.zeros(11)
    asked[[0, 4, 6, 9, 10]], nominal[[0, 4, 6, 9, 10]] = (1.0, -1.0, 2.0, 2.0, -3.0), 1.0
    found = nearest_possible(1e6 * np.eye(11), np.eye(11), asked, nominal, np.ones(11), 1)
    assert least_pseudo(found) > -1e-6
    assert found[[0, 10]] == pytest.approx([1.0, 0.0], abs=1e-2)


def test_mountings_close_to_an_axis_count_as_on_it() -> None:
    for gravity, expected in (
        ((0.001, -0.002, -9.82), (0, 0, -9.82)),
        ((9.82, 0.01, 0.0), (9.82, 0, 0)),
        ((0.0, 0.1, -9.8), (0.0, 0.1, -9.8)),
    ):
        assert np.allclose(snapped_to_axis(np.array(gravity)), expected, atol=1e-4)


def test_base_parameters_of_a_paper_have_its_theoretical_values() -> None:
    """Its columns and our own give the same torque."""
    robot, published = load_robot("qin2024"), paper("s4")
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
        torque = full[:, :, own.base] @ (own.combination @ regressor.nominal())
        np.testing.assert_allclose(torque, full @ regressor.nominal(), rtol=1e-6, atol=1e-6)


def test_of_a_validation_bag_every_point_counts_with_all_its_joints(tmp_path: Path) -> None:
    """Torque errors of known size: the value is their RMS times sqrt(n / N)."""
    robot = replace(UR5E, torque_constant=np.full(6, 0.1))
    options: dict[str, Any] = {"rate": 100.0, "noise": 0.5, "coulomb": 2.0, "viscous": 1.5}
    bags = [
        write_bag(tmp_path / f"bag_{seed}", made_up_recording(robot, seed=seed, **options))
        for seed in (1, 2)
    ]
    found = identify_base_parameters(bags[:1], robot, validate=bags[1:])
    error = found.published_error
    assert error is not None
    assert error.points == 4000
    assert error.rate == pytest.approx(100.0)
    assert error.value == pytest.approx(0.5 * np.sqrt(6 / error.points), rel=0.25)
    assert error.value > found.normalised_error  # divided by six rows a point, and filtered
