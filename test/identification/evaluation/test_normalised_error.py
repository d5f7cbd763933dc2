"""The normalised error of Raviola et al., on errors that are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.base_parameter_bags import PointErrors, identify_base_parameters
from ur_energy_model.model.robots import load_robot


def test_squares_of_all_joints_over_the_number_of_points() -> None:
    errors = PointErrors()
    assert errors.result is None
    errors.accumulate(np.array([0.0, 0.008]), np.array([[3.0, 0.0], [0.0, 4.0]]))
    errors.accumulate(np.array([5.0, 5.008]), np.zeros((2, 2)))
    found = errors.result
    assert found is not None
    assert found.value == pytest.approx(5.0 / 4)
    assert found.points == 4
    assert found.rate == pytest.approx(125.0)


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
