"""The current model of Clochiatti et al. and EcBot, from data of known constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording, smooth_motion
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.ecbot import (
    DynamicColumns,
    DynamicModelFit,
    Ecbot,
    EcbotErrors,
    FreePowerModel,
    Measured,
)
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.published_current_model import (
    PublishedCurrentModel,
    current_columns,
    fit_current_model,
    published_errors,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array

VISCOUS, COULOMB, CONSTANT = 1.5, 2.0, 9.0


def arm(name: str) -> RobotDescription:
    """The arm with point masses: what is left are motors and friction."""
    robot = load_robot(name)
    return replace(robot, inertia=np.zeros_like(robot.inertia))


def torques(robot: RobotDescription, inertia: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """q, qd, qdd and torque [samples, n] of a minute of motion."""
    q, qd, qdd = smooth_motion(robot, np.arange(0, 60, 0.02), seed)
    link = ArmDynamics(robot, Setup()).inverse_dynamics(q, qd, qdd)
    return q, qd, qdd, link + inertia * qdd + VISCOUS * qd + COULOMB * np.sign(qd)


@pytest.mark.parametrize(("name", "measured"), [("ur3e", "current"), ("gen3", "torque")])
def test_finds_friction_motor_inertia_and_torque_constant(name: str, measured: Measured) -> None:
    robot = arm(name)
    inertia = np.linspace(0.6, 0.2, robot.dof)
    q, qd, qdd, torque = torques(robot, inertia, 1)
    columns = DynamicColumns(robot, Setup())
    fit = DynamicModelFit(columns, measured)
    values = torque if measured == "torque" else torque / CONSTANT
    for rows in (slice(0, 1000), slice(1000, None)):
        fit.accumulate(columns(q[rows], qd[rows], qdd[rows]), values[rows])
    model = fit.fit()
    assert fit.samples == 3000
    seen = np.ones(robot.dof, dtype=bool)
    if measured == "current":
        assert model.torque_constant is not None
        seen = np.isfinite(model.torque_constant)
        assert seen.tolist() == [True] * 5 + [False]  # nothing loads the last joint
        np.testing.assert_allclose(model.torque_constant[seen], CONSTANT, rtol=1e-4)
    np.testing.assert_allclose(model.viscous[seen], VISCOUS, rtol=1e-4)
    np.testing.assert_allclose(model.coulomb[seen], COULOMB, rtol=1e-4)
    np.testing.assert_allclose(model.inertia[seen], inertia[seen], rtol=0.01)


def test_predicts_another_motion_of_an_arm_with_tensors() -> None:
    robot = load_robot("ur10e")
    assert robot.inertia.any()
    columns = DynamicColumns(robot, Setup())
    fit = DynamicModelFit(columns, "torque")
    q, qd, qdd, torque = torques(robot, np.full(6, 0.5), 1)
    fit.accumulate(columns(q, qd, qdd), torque)
    model = fit.fit()
    q, qd, qdd, torque = torques(robot, np.full(6, 0.5), 2)
    found = np.einsum("sjc,jc->sj", columns(q, qd, qdd), model.coefficients)
    np.testing.assert_allclose(found, torque, atol=0.05)


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


def test_columns_of_the_four_quadrants() -> None:
    """Power flows to the load where speed and load agree; the sign is that of the speed."""
    qd = np.array([[0.5], [0.5], [-0.5], [-0.5]])
    load = np.array([[10.0], [-10.0], [-10.0], [10.0]])
    columns = current_columns(load, qd, np.array([100.0]))[:, 0]
    np.testing.assert_allclose(columns[:, 0], [0.1, -0.1, -0.1, 0.1])
    np.testing.assert_allclose(columns[:, 1], [50.0, 50.0, -50.0, -50.0])
    np.testing.assert_allclose(columns[:, 2], [1.0, 0.0, -1.0, 0.0])
    np.testing.assert_allclose(columns[:, 3], [0.0, 1.0, 0.0, -1.0])
    model = PublishedCurrentModel(*(np.array([value]) for value in (0.1, 4e-4, 0.06, 0.04)))
    current = columns @ model.coefficients[0]
    np.testing.assert_allclose(current[0], (0.1 + 4e-4 * 50.0 + 0.06) / 0.1)
    np.testing.assert_allclose(current[1], (-0.1 + 4e-4 * 50.0 + 0.04) / 0.1)
    again = PublishedCurrentModel.from_coefficients(model.coefficients)
    assert again.coulomb_reverse == pytest.approx(0.04)


def test_finds_the_constants_and_counts_every_sample(tmp_path: Path) -> None:
    arm = ExactArm(current_noise=0.05)
    bags = [arm.bag(tmp_path, f"bag_{seed}", seconds=40.0, seed=seed) for seed in (1, 2)]
    model = identify(bags[:1], arm.robot, IdentificationOptions(friction="power_flow")).model
    found = fit_current_model(model, bags[0])
    np.testing.assert_allclose(found.torque_constant, TORQUE_CONSTANT, rtol=0.05)
    np.testing.assert_allclose(found.viscous / arm.size, 4e-4, rtol=0.1)
    np.testing.assert_allclose(found.coulomb_direct / arm.size, 0.06, rtol=0.15)
    errors = published_errors(model, bags[1], found)
    samples = sum(len(part) for part in recorded_motions(bags[1], 5.0))
    assert errors.current.count.tolist() == [samples] * 6
    # What is left is the noise, which a filter would have taken out.
    noise = 0.05 * arm.size**0.7
    np.testing.assert_allclose(errors.current.rms, noise, rtol=0.1)
    assert (errors.current.largest > 3 * noise).all()
    assert (np.abs(errors.current.mean) < 0.02).all()
    assert (errors.own_current.r2 > 0.98).all()
