"""Whether intervals hold: of arms of known constants, and of one real arm on other days."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.peers.methods import per_joint, twenty_lines
from test.benchmarks.peers.recordings import Recorded
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm, write_bag
from ur_energy_model.energy.calculator import SpeedAlignment
from ur_energy_model.energy.meter import CONFIDENCE, bridged_steps
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import OperatingPoint
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import FrictionCurve, friction_curve
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv

ARMS = 5


def some_arm(seed: int) -> ExactArm:
    """An arm from the spread that the priors speak of."""
    random = np.random.default_rng([seed, 5])
    return ExactArm(
        torque_constant=TORQUE_CONSTANT * random.normal(1.0, 0.05, 6),
        resistance_factor=random.uniform(0.5, 1.2),
        driver=random.normal(0.25, 0.05),
        standby=random.uniform(22.0, 34.0),
        current_delay=random.normal(0.0, 1e-3),
    )


@pytest.fixture(scope="module")
def deviations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Errors over standard deviations by quantity [arms, joints or 1]."""
    found: dict[str, list[np.ndarray]] = {"torque constant": [], "energy": [], "sum": []}
    for seed in range(ARMS):
        arm, folder = some_arm(seed), tmp_path_factory.mktemp("arm")
        bag = arm.bag(folder, "fit", seconds=40.0, rate=250.0, seed=seed)
        recording = arm.record(30.0, rate=250.0, seed=seed + 100)
        model = identify([bag], arm.robot, IdentificationOptions(friction="power_flow")).model
        summary = estimate_energy(model, write_bag(folder / "other", recording))
        qd = SpeedAlignment(arm.current_delay)(
            bridged_steps(recording.time), recording["actual_qd"]
        )
        current = recording["actual_current"]
        copper = arm.resistance_factor * arm.robot.winding_resistance * current**2
        shaft = arm.torque_constant * arm.robot.gear_ratio * qd * current
        truth = np.trapezoid(copper + shaft, recording.time, axis=0)
        found["energy"].append((summary.electrical - truth) / summary.electrical_std)
        total = summary.electrical.sum() - truth.sum()
        found["sum"].append(np.array([total / summary.electrical_total_std]))
        found["torque constant"].append(
            np.array(
                [
                    (joint.torque_constant - true) / joint.std["torque_constant"]
                    for joint, true in zip(model.joints, arm.torque_constant, strict=True)
                ]
            )
        )
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize("quantity", ["torque constant", "energy", "sum"])
def test_intervals_cover_the_truth(deviations: dict[str, np.ndarray], quantity: str) -> None:
    z = deviations[quantity]
    assert (np.abs(z) < CONFIDENCE).mean() >= 0.9
    assert np.sqrt(np.square(z).mean()) > 0.4  # nor are they wide for safety's sake


FIELDS = {
    "no bus power": ("actual_q", "actual_qd", "actual_current", "target_moment"),
    "no target_moment": (
        "actual_q",
        "actual_qd",
        "actual_current",
        "actual_robot_voltage",
        "actual_robot_current",
    ),
    "neither": ("actual_q", "actual_qd", "actual_current"),
}

FEW_ARMS = 3
SPEED = 0.5

"""Joint speed at which friction is judged [rad/s]."""


@pytest.fixture(scope="module", params=FIELDS)
def missing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    """Errors over standard deviations [arms, joints], of arms recorded without some fields.

    Their masses are 1 % and their motor inertias 5 % off the robot file where no target_moment
    tells them.
    """
    found: dict[str, list[list[float]]] = {
        "torque_constant": [],
        "friction": [],
        "reflected_inertia": [],
    }
    nominal = load_robot("ur5e")
    for seed in range(FEW_ARMS):
        random = np.random.default_rng([seed, 6])
        arm, names = some_arm(seed), FIELDS[request.param]
        if "target_moment" not in names:
            heavier = random.normal(1.0, 0.01)
            arm = replace(
                arm,
                robot=replace(
                    nominal,
                    mass=heavier * nominal.mass,
                    inertia=heavier * nominal.inertia,
                    rotor_inertia=nominal.rotor_inertia * random.normal(1.0, 0.05, 6),
                ),
            )
        whole = arm.record(40.0, rate=125.0, seed=seed)
        bare = replace(whole, columns={name: whole.columns[name] for name in names})
        bag = write_bag(tmp_path_factory.mktemp("arm") / "bag", bare)
        joints = identify([bag], nominal, IdentificationOptions(friction="power_flow")).model.joints
        speed = SPEED * np.array([[1.0] * 6, [-1.0] * 6])
        truth = np.abs(arm.friction(speed, np.zeros_like(speed))).mean(axis=0)
        found["friction"].append(
            [
                (value - true) / std
                for (value, std), true in zip(map(_friction, joints), truth, strict=True)
            ]
        )
        for name, true in (
            ("torque_constant", arm.torque_constant),
            ("reflected_inertia", arm.robot.reflected_inertia),
        ):
            found[name].append(
                [
                    (getattr(joint, name) - value) / joint.std[name]
                    for joint, value in zip(joints, true, strict=True)
                ]
            )
    return {name: np.array(values) for name, values in found.items()}


def _friction(joint: JointModel) -> tuple[float, float]:
    """Friction at SPEED, both ways taken together, and its standard deviation, motor side [N m]."""
    friction, ratio = joint.friction, np.array([joint.gear_ratio])
    point = OperatingPoint(np.array([[SPEED], [-SPEED]]), np.zeros((2, 1)), ratio)
    terms = friction.law.regressor(point, dict(friction.shape))[:, 0]
    middle = 0.5 * (terms[0] - terms[1])
    value = float(middle @ friction.values)
    slope = joint.torque_constant * np.append(-value, middle)
    return value, float(np.sqrt(slope @ joint.current_covariance @ slope))


@pytest.mark.parametrize("quantity", ["torque_constant", "friction"])
def test_intervals_cover_the_truth_where_fields_are_missing(
    missing: dict[str, np.ndarray], quantity: str
) -> None:
    assert (np.abs(missing[quantity]) < CONFIDENCE).mean() >= 0.85


def test_inertias_are_within_their_intervals_where_fields_are_missing(
    missing: dict[str, np.ndarray],
) -> None:
    assert (np.abs(missing["reflected_inertia"]) < 3.0).mean() >= 0.85


DAYS = (
    "ur10e_excitation_50s",
    "ur10e_other_days_2019_12_23",
    "ur10e_other_days_2020_02_05",
    "ur10e_other_days_2020_02_06",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("days")


@pytest.fixture
def bags(recordings: Path, folder: Path) -> dict[str, Path]:
    for name in DAYS:
        if not (folder / name).exists():
            telemetry = read_csv([recordings / f"{name}.csv.gz"], "ur10e")
            columns = tuple(telemetry.columns)
            with BagWriter(folder / name, telemetry.info, columns, name=name) as bag:
                bag.write(telemetry)
    return {name: folder / name for name in DAYS}


def curves(model: EnergyModel) -> list[FrictionCurve]:
    spread, speed = model.sessions.friction_of(model.dof), np.array([0.1, 0.5, 1.0])
    return [friction_curve(j, float(s), speed) for j, s in zip(model.joints, spread, strict=True)]


def test_currents_of_other_days(bags: dict[str, Path]) -> None:
    """A third less error of current than plain least squares, and intervals that hold."""
    plain = per_joint(twenty_lines)
    robot, ratios, within = load_robot("ur10e"), [], []
    seen = {name: Recorded(bags[name], robot) for name in DAYS[:3]}
    for fitted in seen:
        model = identify([bags[fitted]], "ur10e").model
        others = [name for name in seen if name != fitted]
        predicted = plain(seen[fitted], [seen[name] for name in others])
        for name, current in zip(others, predicted, strict=True):
            assert current is not None
            metrics = evaluate(model, bags[name]).as_json()
            ours = sum(entry["rms"] for entry in metrics["current_all"])
            error = np.square(current - seen[name].current)
            ratios.append(ours / np.sqrt(error.mean(axis=0)).sum())
            within += [entry["coverage"] for entry in metrics["current_interval_all"]]
    assert np.mean(ratios) < 0.7
    assert 0.9 <= np.mean(within) <= 0.99


def test_friction_intervals_hold_the_curves_of_other_days(bags: dict[str, Path]) -> None:
    """Friction of one day lies within the intervals that another states for any day."""
    models = {name: identify([bag], "ur10e").model for name, bag in bags.items()}
    hits = []
    for a, b in permutations(DAYS, 2):
        for one, other in zip(curves(models[a]), curves(models[b]), strict=True):
            width = 1.96 * np.hypot(one.std, other.std_this_session)
            hits.append(np.abs(one.torque - other.torque) < width)
    assert np.mean(hits) >= 0.9
