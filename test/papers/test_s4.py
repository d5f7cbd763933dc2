"""Processing and least squares of Machines 2024 on runs with known parameters."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.files import config_file
from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.s4 import BaseModel, processed, simulate
from ur_energy_model.trajectory.fourier import load_trajectory

ROBOT = load_robot("ur5")
MOTION = load_trajectory(config_file("excitation", "ur5.yaml")).repeated(2)
FRICTION = np.array([np.full(6, 2.0), np.full(6, 3.0)])
UPRIGHT = np.array([0.0, 0.0, -9.82])


def test_processing_gives_speed_its_derivative_and_removes_noise() -> None:
    dynamics = ArmDynamics(ROBOT)
    clean = simulate(dynamics, MOTION)
    noise = (1e-4, 1e-2, np.full(6, 2.0))
    noisy = simulate(dynamics, MOTION, noise=noise, seed=3)
    found = processed(noisy, 2, cutoff=5.0)
    samples = len(found.time)
    assert samples == len(clean.time) // 2
    assert np.abs(found.qdd - clean.qdd[:samples]).max() < 0.6
    left = np.std(found.torque - clean.torque[:samples], axis=0)
    assert np.all(left < 1.0)


def test_least_squares_finds_friction_and_base_parameters() -> None:
    run = processed(simulate(ArmDynamics(ROBOT), MOTION, friction=FRICTION), 2, cutoff=40.0)
    regressor = FullRegressor(ROBOT, UPRIGHT, motor_inertia=False)
    grouping = regroup(regressor)
    assert grouping.rank == 48
    model = BaseModel(regressor, grouping)
    values = model.identified(run)
    by_name = dict(zip((grouping.names[k] for k in grouping.base), values, strict=True))
    assert [by_name[f"fc_{j}"] for j in range(1, 7)] == pytest.approx(FRICTION[0], rel=0.1)
    assert [by_name[f"fv_{j}"] for j in range(1, 7)] == pytest.approx(FRICTION[1], rel=0.1)
    error = model.predicted(run, values) - run.torque
    assert np.sqrt(np.mean(error**2)) < 0.5
