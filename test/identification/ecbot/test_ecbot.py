"""EcBot's errors on known ones, and both models on a made-up arm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.ecbot import Ecbot, EcbotErrors, FreePowerModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.typing import Array

STANDBY, RESISTANCE, BACK_EMF, DRIVER = 30.0, 0.5, 9.0, 0.25
BARE = ("actual_q", "actual_qd", "actual_current")


def test_errors_of_two_joints() -> None:
    """Eq. 25: sqrt(sum of squares / (n N)); eq. 26: mean of each joint's share of its range."""
    errors = EcbotErrors(2)
    measured = np.array([[0.0, 0.0], [10.0, 2.0]])
    errors.accumulate(measured, measured + np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert errors.rmse == pytest.approx(1.0)
    assert errors.rmse_percent == pytest.approx((10.0 + 50.0) / 2)
    errors.accumulate(measured, measured + 3.0)
    assert errors.rmse == pytest.approx(np.sqrt((4 * 1 + 4 * 9) / 8))
    assert errors.samples == 4


def power_of(qd: np.ndarray, current: np.ndarray) -> np.ndarray:
    parts = RESISTANCE * current**2 + BACK_EMF * qd * current + DRIVER * np.abs(current)
    return np.asarray(STANDBY + parts.sum(axis=1))


def test_free_coefficients() -> None:
    random = np.random.default_rng(3)
    time: Array = np.linspace(0.0, 39.99, 4000)
    qd = np.asarray(np.sin(time[:, None] * np.array([1.0, 2.0])), dtype=float)
    current: Array = random.standard_normal((4000, 2))
    model = FreePowerModel(2)
    power = power_of(qd, current)
    power[::5] = np.nan
    model.accumulate(time, qd, current, power)
    found = model.fit()
    expected = [STANDBY, *[RESISTANCE] * 2, *[BACK_EMF] * 2, *[DRIVER] * 2, 0.0, 0.0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (model.predict(-found, time, qd, current) >= 0.0).all()


def recording(tmp_path: Path, name: str, seed: int) -> Path:
    robot = load_robot(name)
    made = made_up_recording(
        robot,
        reflected_inertia=np.linspace(0.6, 0.2, robot.dof),
        noise=0.3,
        coulomb=2.0,
        viscous=1.5,
        seed=seed,
    )
    columns = {key: made.columns[key] for key in BARE}
    watts = power_of(columns["actual_qd"], columns["actual_current"])
    columns |= {
        "actual_robot_voltage": np.full(len(made), 48.0),
        "actual_robot_current": np.maximum(watts, 0.0) / 48.0,
        "actual_current_as_torque": columns["actual_current"] * 0.1 * robot.gear_ratio,
    }
    return write_bag(tmp_path / f"{name}_{seed}", replace(made, columns=columns))


def test_trains_and_tests_an_arm_with_current_sensors(tmp_path: Path) -> None:
    bags = [recording(tmp_path, "ur3e", seed) for seed in (1, 2)]
    found = Ecbot(load_robot("ur3e"), bags[:1])
    assert found.measured == "current"
    assert found.samples == 4000
    test = found.test(bags[1:])
    assert test.dynamics.samples == 4000
    assert test.dynamics.rmse == pytest.approx(
        0.3 / 10.1, rel=0.5
    )  # noise of the torques, 10.1 N m/A
    assert test.power.r2 > 0.98
    assert test.power_from_measured.rmse < test.power.rmse
    assert len(test.time) == len(test.model_power) == 4000


def test_torques_where_the_robot_file_has_no_torque_constants(tmp_path: Path) -> None:
    bag = recording(tmp_path, "ur10", 1)
    found = Ecbot(load_robot("ur10"), [bag])
    assert found.measured == "torque"
    assert found.test([bag]).dynamics.rmse == pytest.approx(0.3, rel=0.3)


def test_refuses_recordings_without_power(tmp_path: Path) -> None:
    made = made_up_recording(load_robot("ur3e"), noise=0.1, coulomb=1.0)
    bag = write_bag(tmp_path / "bag", made)
    with pytest.raises(IdentificationError, match="bus power was not recorded"):
        Ecbot(load_robot("ur3e"), [bag])
