"""The current model of Clochiatti et al. and EcBot, from data of known constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording, smooth_motion
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.identification.comparison import recorded_motions
from ur_energy_model.identification.least_squares import gram_matrices_by_joint
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.published_models import (
    DynamicModel,
    Ecbot,
    EcbotErrors,
    Measured,
    current_columns,
    dynamic_columns,
    fit_current_model,
    fit_dynamic_model,
    point_mass_dynamics,
    published_errors,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup

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


def fitted(robot: RobotDescription, inertia: np.ndarray, measured: Measured) -> DynamicModel:
    q, qd, qdd, torque = torques(robot, inertia, 1)
    columns = dynamic_columns(point_mass_dynamics(robot, Setup()), q, qd, qdd)
    values = torque if measured == "torque" else torque / CONSTANT
    rows = np.concatenate([columns, values[:, :, None]], axis=2)
    return fit_dynamic_model(gram_matrices_by_joint(rows), len(q), measured)


@pytest.mark.parametrize(("name", "measured"), [("ur3e", "current"), ("gen3", "torque")])
def test_finds_friction_motor_inertia_and_torque_constant(name: str, measured: Measured) -> None:
    robot = arm(name)
    inertia = np.linspace(0.6, 0.2, robot.dof)
    model = fitted(robot, inertia, measured)
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
    robot, inertia = load_robot("ur10e"), np.full(6, 0.5)
    assert robot.inertia.any()
    model = fitted(robot, inertia, "torque")
    q, qd, qdd, torque = torques(robot, inertia, 2)
    columns = dynamic_columns(point_mass_dynamics(robot, Setup()), q, qd, qdd)
    found = np.einsum("sjc,jc->sj", columns, model.coefficients)
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
    n = len(found.dynamics.viscous)  # coefficients of standby, i^2, w i, |i| and i di/dt
    expected = [STANDBY, *[RESISTANCE] * n, *[BACK_EMF] * n, *[DRIVER] * n, *[0.0] * n]
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-6)
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


def test_finds_the_constants_and_counts_every_sample(tmp_path: Path) -> None:
    arm = ExactArm(current_noise=0.05)
    bags = [arm.bag(tmp_path, f"bag_{seed}", seconds=40.0, rate=50.0, seed=seed) for seed in (1, 2)]
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
