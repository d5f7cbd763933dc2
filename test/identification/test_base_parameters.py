"""Base parameters: rank, regrouping, values and their standard deviations, against known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from test.identification.conftest import filtered_motions, made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.base_parameters import (
    BaseParameterFit,
    FullRegressor,
    Regrouping,
    regroup,
    snapped_to_axis,
)
from ur_energy_model.identification.physical_consistency import nearest_possible, pseudo_inertia
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.papers.protocol import paper
from ur_energy_model.telemetry.samples import Telemetry

Make = Callable[..., Telemetry]

UPRIGHT = np.array([0.0, 0.0, -9.82])
FRICTION = {"coulomb": 4.0, "viscous": 3.0}


def fit_of(
    robot: RobotDescription,
    made: Telemetry,
    gravity: np.ndarray = UPRIGHT,
    source: Literal["current", "target_moment"] = "current",
) -> BaseParameterFit:
    fit = BaseParameterFit(
        robot, gravity, torque_source=source, torque_constant=np.full(robot.dof, 0.1)
    )
    for motion in filtered_motions([made], robot.dof, 20.0, 0.01):
        fit.accumulate(motion)
    return fit


def truth(fit: BaseParameterFit, coulomb: float, viscous: float) -> np.ndarray:
    """Base values of the robot file's parameters with these frictions."""
    full = fit.regressor.nominal()
    names = fit.regressor.names
    full[[name.startswith("fc") for name in names]] = coulomb
    full[[name.startswith("fv") for name in names]] = viscous
    return fit.regrouping.combination @ full


class TestRegrouping:
    @pytest.mark.parametrize(
        ("name", "friction", "rank"),
        [
            # 36 inertial + 12 friction + 4 motor inertias (Raviola et al. 2021).
            ("ur5", True, 52),
            ("ur5", False, 40),
            ("ur10e", True, 52),
            ("ur3e", True, 52),
            # Seven joints: 43 inertial + 14 friction + 5 motor inertias.
            ("gen3", True, 62),
            ("fr3", True, 62),
        ],
    )
    def test_ranks(self, name: str, friction: bool, rank: int) -> None:
        found = regroup(FullRegressor(load_robot(name), UPRIGHT, friction))
        assert found.rank == rank
        ahead, behind = found.singular_values[rank - 1], found.singular_values[rank]
        assert behind < 1e-10 * ahead

    def test_a_tilted_base_shows_two_more(self) -> None:
        found = regroup(FullRegressor(load_robot("ur5"), np.array([0.0, 6.94, -6.94])))
        assert found.rank == 54
        upright = regroup(FullRegressor(load_robot("ur5"), UPRIGHT))
        more = {found.names[k] for k in found.base} - {upright.names[k] for k in upright.base}
        assert len(more) == 2
        assert "mx_1" in more

    @pytest.mark.parametrize("name", ["ur5e", "gen3", "fr3"])
    def test_base_parameters_explain_the_full_torque(self, name: str) -> None:
        """At states that the regrouping has not seen."""
        regressor = FullRegressor(load_robot(name), UPRIGHT)
        found = regroup(regressor)
        random = np.random.default_rng(99)
        q, qd, qdd = random.normal(0, 2, (3, 30, regressor.robot.dof))
        full = regressor(q, qd, qdd)
        values = random.normal(0, 1, full.shape[-1])
        assert np.allclose(full @ values, full[:, :, found.base] @ (found.combination @ values))


class TestFit:
    def test_recovers_the_truth(self, recording: Make) -> None:
        robot = load_robot("ur5e")
        fit = fit_of(robot, recording(robot, noise=0.3, **FRICTION))
        found = fit.solve()
        expected = truth(fit, **FRICTION)
        assert found.regrouping.rank == 52
        assert found.condition_number < 300
        assert (found.torque_r2 > 0.99).all()
        frictions = [text.startswith("f") for text in found.regrouping.expressions]
        assert np.allclose(found.values[frictions], expected[frictions], rtol=0.05)
        assert np.abs(found.values - expected).max() < 0.3

    def test_target_moment_gives_the_controllers_own_parameters(self, recording: Make) -> None:
        robot = load_robot("ur10e")
        fit = fit_of(robot, recording(robot), source="target_moment")
        found = fit.solve()
        assert found.regrouping.rank == 40
        assert np.allclose(found.values, truth(fit, 0, 0), atol=0.02)

    def test_standard_deviations_cover_the_truth(self, recording: Make) -> None:
        robot = load_robot("ur5e")
        inside = []
        for seed in range(8):
            fit = fit_of(robot, recording(robot, noise=2.0, seed=seed, **FRICTION))
            found = fit.solve()
            inside.append(np.abs(found.values - truth(fit, **FRICTION)) < 1.96 * found.std)
        assert 0.88 <= np.mean(inside) <= 1.0

    def test_weighting_beats_ordinary_least_squares(self, recording: Make) -> None:
        """Noise that differs between joints is what weights are for."""
        robot = load_robot("ur5e")
        noise = np.array([5.0, 5.0, 5.0, 0.05, 0.05, 0.05])
        ordinary, weighted = [], []
        for seed in range(4):
            fit = fit_of(robot, recording(robot, noise=noise, seed=seed, **FRICTION))
            found, expected = fit.solve(), truth(fit, **FRICTION)
            wrist = [text.split()[0][-1] in "456" for text in found.regrouping.expressions]
            ordinary.append(found.ordinary[wrist] - expected[wrist])
            weighted.append(found.values[wrist] - expected[wrist])
        assert np.std(weighted) < 0.5 * np.std(ordinary)

    def test_verifies_on_another_motion(self, recording: Make) -> None:
        robot = load_robot("ur5e")
        found = fit_of(robot, recording(robot, noise=0.5, seed=1, **FRICTION)).solve()
        other = fit_of(robot, recording(robot, noise=0.5, seed=2, **FRICTION))
        check = other.verify(found.values)
        assert (check.torque_r2 > 0.98).all()
        assert check.normalised_error == pytest.approx(found.normalised_error, rel=0.3)


class TestPhysicalConsistency:
    def test_fitted_arm_is_possible_and_fits_as_well(self, recording: Make) -> None:
        robot = load_robot("ur5e")
        found = fit_of(robot, recording(robot, noise=1.0, **FRICTION)).solve()
        links = found.consistent.reshape(6, 13)
        for parameters in links:
            assert np.linalg.eigvalsh(pseudo_inertia(parameters[:10]))[0] > -1e-7
        assert (links[:, 10:] > -1e-7).all()
        assert np.allclose(found.consistent_rms, found.torque_rms, rtol=0.05)

    def test_values_that_are_possible_stay(self) -> None:
        regressor = FullRegressor(load_robot("ur10e"), UPRIGHT)
        groups: Regrouping = regroup(regressor)
        nominal = regressor.nominal()
        other = nominal * 1.1
        found = nearest_possible(
            1e8 * np.eye(groups.rank),
            groups.combination,
            groups.combination @ other,
            nominal,
            np.full(len(nominal), 1.0),
            6,
        )
        assert np.allclose(groups.combination @ found, groups.combination @ other, atol=1e-4)

    def test_impossible_values_move_to_possible_ones(self) -> None:
        """One link with a negative inertia asked for."""
        base = np.eye(11)
        asked = np.zeros(11)
        asked[[0, 4, 6, 9, 10]] = 1.0, -1.0, 2.0, 2.0, -3.0
        nominal = np.zeros(11)
        nominal[[0, 4, 6, 9, 10]] = 1.0
        found = nearest_possible(1e6 * np.eye(11), base, asked, nominal, np.ones(11), 1)
        assert np.linalg.eigvalsh(pseudo_inertia(found[:10]))[0] > -1e-6
        assert found[10] == pytest.approx(0.0, abs=1e-3)
        assert found[0] == pytest.approx(1.0, abs=1e-2)

    def test_pseudo_inertia_of_a_known_body(self) -> None:
        """A point mass has the matrix m [r; 1] [r; 1]'."""
        mass, place = 2.0, np.array([0.1, -0.2, 0.3])
        tensor = mass * ((place @ place) * np.eye(3) - np.outer(place, place))
        entries = tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        ray = np.append(place, 1.0)
        expected = mass * np.outer(ray, ray)
        found = pseudo_inertia(np.concatenate([[mass], mass * place, entries]))
        assert np.allclose(found, expected)


@pytest.mark.parametrize(
    ("gravity", "expected"),
    [
        ((0.001, -0.002, -9.82), (0, 0, -9.82)),
        ((9.82, 0.01, 0.0), (9.82, 0, 0)),
        ((0.0, 0.1, -9.8), (0.0, 0.1, -9.8)),
    ],
)
def test_mountings_close_to_an_axis_count_as_on_it(gravity, expected) -> None:
    assert np.allclose(snapped_to_axis(np.array(gravity)), expected, atol=1e-4)


def test_tilted_mounting_is_fitted_as_such(recording: Make) -> None:
    robot, gravity = load_robot("ur5e"), np.array([0.0, 6.94, -6.94])
    fit = fit_of(robot, recording(robot, setup=Setup(gravity), noise=0.3, **FRICTION), gravity)
    found = fit.solve()
    assert found.regrouping.rank == 54
    assert (found.torque_r2 > 0.99).all()


ROBOT = load_robot("qin2024")
PUBLISHED = paper("s4")
REGRESSOR = FullRegressor(ROBOT, np.array([0.0, 0.0, -9.8]), friction=False, motor_inertia=False)


def test_the_base_parameters_of_the_paper_have_its_theoretical_values() -> None:
    grouping = regroup(REGRESSOR, PUBLISHED["base_names"])
    assert grouping.rank == 36
    values = grouping.combination @ REGRESSOR.nominal()
    names = [grouping.names[column] for column in grouping.base]
    theirs = dict(zip(PUBLISHED["base_names"], PUBLISHED["theoretical"], strict=True))
    assert values == pytest.approx([theirs[name] for name in names], abs=0.01)


def test_chosen_and_own_base_columns_give_the_same_torque() -> None:
    random = np.random.default_rng(1)
    q, qd, qdd = random.uniform(-1, 1, (3, 20, ROBOT.dof))
    full = REGRESSOR(q, qd, qdd)
    for names in (None, PUBLISHED["base_names"]):
        grouping = regroup(REGRESSOR, names)
        torque = full[:, :, grouping.base] @ (grouping.combination @ REGRESSOR.nominal())
        np.testing.assert_allclose(torque, full @ REGRESSOR.nominal(), rtol=1e-6, atol=1e-6)


def test_of_a_validation_bag_every_point_counts_with_all_its_joints(tmp_path: Path) -> None:
    """Torque errors of known size: the value is their RMS times sqrt(n / N)."""
    robot = replace(load_robot("ur5e"), torque_constant=np.full(6, 0.1))
    noise, rate = 0.5, 100.0
    bags = [
        write_bag(
            tmp_path / f"bag_{seed}",
            made_up_recording(robot, rate=rate, noise=noise, coulomb=2.0, viscous=1.5, seed=seed),
        )
        for seed in (1, 2)
    ]
    found = identify_base_parameters(bags[:1], robot, validate=bags[1:])
    error = found.published_error
    assert error is not None
    assert error.points == 4000
    assert error.rate == pytest.approx(rate)
    assert error.value == pytest.approx(noise * np.sqrt(6 / error.points), rel=0.25)
    assert error.value > found.normalised_error  # divided by six rows a point, and filtered
