"""Identification from less than everything: what is found, what is reported of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry

BARE = ("actual_q", "actual_qd", "actual_current")
INERTIA = {"ur10": [4.0, 4.5, 2.0, 0.7, 0.5, 0.6], "gen3": [0.6, 0.5, 0.4, 0.35, 0.3, 0.2, 0.1]}
LAW = "coulomb_viscous"


def only(telemetry: Telemetry, *names: str) -> Telemetry:
    """A recording with these columns alone."""
    return replace(telemetry, columns={name: telemetry.columns[name] for name in names})


def changed(telemetry: Telemetry, **columns: np.ndarray) -> Telemetry:
    """A recording with some columns replaced."""
    return replace(telemetry, columns={**telemetry.columns, **columns})


def covers(model: EnergyModel, quantity: str, truth: np.ndarray) -> np.ndarray:
    """Joints whose three standard deviations hold the truth."""
    value = np.array([getattr(joint, quantity) for joint in model.joints])
    std = np.array([joint.std[quantity] for joint in model.joints])
    return np.abs(value - truth) < 3 * std


@pytest.mark.parametrize("name", ["ur10", "gen3"])
def test_motor_inertia_from_currents_where_no_file_has_it(name: str, tmp_path: Path) -> None:
    robot, inertia = load_robot(name), np.array(INERTIA[name])
    made = made_up_recording(
        robot, reflected_inertia=inertia, noise=0.1, coulomb=2.0, viscous=1.5, rate=125.0
    )
    bag = write_bag(tmp_path / "bag", only(made, *BARE))
    result = identify([bag], name, IdentificationOptions(friction=LAW))
    assert covers(result.model, "torque_constant", np.full(robot.dof, 0.1)).all()
    assert covers(result.model, "reflected_inertia", inertia).all()
    excited = [joint.source["reflected_inertia"] == "current" for joint in result.model.joints]
    assert sum(excited) >= robot.dof - 1
    found = np.array([joint.reflected_inertia for joint in result.model.joints])
    np.testing.assert_allclose(found[excited][:5], inertia[excited][:5], rtol=0.1)
    lines = " ".join(result.warnings)
    last = robot.joint_names[-1]  # no gravity, little link inertia: nothing tells its scale
    assert f"{last}: torque constant not identifiable" in lines
    assert "no bus power" in lines
    assert "winding resistance" in lines
    save_model(result.model, tmp_path / "model.yaml")
    assert load_model(tmp_path / "model.yaml").joints[0].source["reflected_inertia"] == ("current")


def identified(
    folder: Path, made: Telemetry, robot: RobotDescription | str = "ur5e", **options: Any
) -> Identification:
    """A recording's identification with the simple law."""
    bag = write_bag(folder / "bag", made)
    return identify([bag], robot, IdentificationOptions(friction=LAW, **options))


MADE: dict[str, Any] = {"coulomb": 2.0, "viscous": 1.5, "noise": 0.1}
UR5E, EXACT = load_robot("ur5e"), np.full(6, 0.1)


@pytest.mark.parametrize("stated", [False, True])
def test_payload_set_in_the_controller_counts_without_target_moment(
    stated: bool, tmp_path: Path
) -> None:
    payload = Payload(3.0, np.array([0.0, 0.02, 0.1]))
    carrying = Setup(payload=payload)
    told: dict[str, Any] = {"payload": 3.0, "payload_cog": payload.center_of_mass}
    made = made_up_recording(UR5E, setup=carrying, coulomb=2.0, noise=0.1, **told)
    if stated:
        model = identified(tmp_path, only(made, *BARE), setup=carrying).model
    else:
        model = identified(tmp_path, only(made, *BARE, *told)).model
        assert model.setup_source == "rtde"
        assert model.setup.payload.mass == pytest.approx(3.0)
    assert covers(model, "torque_constant", EXACT).all()


@pytest.mark.parametrize("gravity", [(9.82, 0.0, 0.0), (0.0, 6.94, -6.94), (0.0, 0.0, 9.82)])
def test_currents_show_a_mounting_that_nobody_stated(
    gravity: tuple[float, float, float], tmp_path: Path
) -> None:
    hanging = Setup(np.array(gravity), Payload(1.5, np.array([0.0, 0.0, 0.1])))
    result = identified(tmp_path, only(made_up_recording(UR5E, setup=hanging, **MADE), *BARE))
    down = result.model.setup.gravity / 9.82
    assert np.degrees(np.arccos(min(down @ np.array(gravity) / 9.82, 1.0))) < 3.0
    assert result.model.setup_source == "estimated"
    assert any("tilted" in line and "--gravity" in line for line in result.warnings)
    assert covers(result.model, "torque_constant", EXACT).all()


@pytest.mark.parametrize("right", [True, False])
def test_a_mounting_that_was_stated_stays(right: bool, tmp_path: Path) -> None:
    tilt = np.radians(20.0)
    tilted = Setup(9.82 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
    made = only(made_up_recording(UR5E, setup=tilted, **MADE), *BARE)
    stated = tilted if right else Setup()
    result = identified(tmp_path, made, setup=stated)
    assert result.model.setup_source == "given"
    np.testing.assert_array_equal(result.model.setup.gravity, stated.gravity)
    doubts = [line for line in result.warnings if "tilted by 20 degrees" in line]
    assert bool(doubts) is not right


@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_slow_recordings(rate: float, tmp_path: Path) -> None:
    result = identified(tmp_path, only(made_up_recording(UR5E, rate=rate, **MADE), *BARE))
    assert covers(result.model, "torque_constant", EXACT).all()
    assert covers(result.model, "reflected_inertia", UR5E.reflected_inertia).all()
    constants = [joint.torque_constant for joint in result.model.joints]
    np.testing.assert_allclose(constants[:3], 0.1, rtol=0.02)  # the others carry little load


def _still(whole: Telemetry) -> Telemetry:
    zero = np.zeros_like(whole["actual_qd"])
    return changed(only(whole, *BARE), actual_q=zero, actual_qd=zero)


def _dead(whole: Telemetry) -> Telemetry:
    current = whole["actual_current"].copy()
    current[:, 2] = 0.0
    return changed(whole, actual_current=current)


ODD = {
    "standing still": (_still, "no joint moves"),
    "half a second": (lambda whole: whole.cut(slice(0, 60)), "no joint moves"),
    "a dead current": (_dead, "elbow_joint: actual_current stays zero"),
    "constant currents": (
        lambda whole: changed(whole, actual_current=np.ones_like(whole["actual_current"])),
        "frozen",
    ),
    "currents of noise": (
        lambda whole: changed(
            whole, actual_current=np.random.default_rng(0).standard_normal(whole["actual_q"].shape)
        ),
        "currents do not show a torque constant",
    ),
    "currents of the wrong sign": (
        lambda whole: changed(whole, actual_current=-whole["actual_current"]),
        "current falls as torque rises",
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_recordings_are_refused_in_one_line(odd: str, tmp_path: Path) -> None:
    spoil, reason = ODD[odd]
    with pytest.raises((IdentificationError, RecordingError)) as refused:
        identified(tmp_path, only(spoil(ExactArm().record(20.0)), *BARE))
    assert reason in str(refused.value)
    assert "record" in str(refused.value)
    assert "\n" not in str(refused.value)


ARMS = ("gen3", "ur5")
STANDBY = 30.0
UNKNOWN_INERTIA = {6: [1.9, 2.0, 1.8, 0.25, 0.2, 0.22], 7: [0.6, 0.5, 0.4, 0.35, 0.3, 0.2, 0.15]}


def model_of(name: str, folder: Path, *, noise: float, seed: int = 1) -> EnergyModel:
    """The model identified from 40 s; torque constant 0.1 N m/A times 101 over the gear ratio."""
    robot = load_robot(name)
    made = made_up_recording(
        robot,
        reflected_inertia=np.array(UNKNOWN_INERTIA[robot.dof]),
        noise=noise,
        coulomb=2.0,
        viscous=1.5,
        seed=seed,
    )
    scale = 101.0 / robot.gear_ratio  # made-up recordings have 0.1 N m/A on the motor's side
    current = made["actual_current"] / scale
    conversion = 0.1 * 101.0 * made["actual_qd"] * current
    watts = STANDBY + (0.5 * current**2 + conversion + 0.25 * np.abs(current)).sum(axis=1)
    watts += noise * np.random.default_rng(seed).standard_normal(len(watts))
    columns = {
        "actual_q": made["actual_q"],
        "actual_qd": made["actual_qd"],
        "actual_current": current,
        "actual_robot_voltage": np.full(len(watts), 48.0),
        "actual_robot_current": watts / 48.0,
    }
    bag = write_bag(folder / f"{name}_{seed}", replace(made, columns=columns))
    return identify([bag], name, IdentificationOptions(friction=LAW)).model


@pytest.mark.parametrize("name", ARMS)
def test_without_noise_the_priors_still_count(name: str, tmp_path: Path) -> None:
    """Exact data once outweighed the priors beyond floating point: constants were 40 % wrong."""
    model = model_of(name, tmp_path, noise=0.0)
    constants = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    np.testing.assert_allclose(constants[:-1], 10.1, rtol=0.03)
    assert model.bus.standby == pytest.approx(STANDBY, abs=1.0)


def test_intervals_of_inertia_and_torque_constant_are_honest(tmp_path: Path) -> None:
    scores: dict[str, list[float]] = {"torque_constant": [], "reflected_inertia": []}
    for name in ARMS:
        for seed in (21, 22):
            model = model_of(name, tmp_path, noise=0.2, seed=seed)
            for joint, inertia in zip(model.joints, UNKNOWN_INERTIA[model.dof], strict=True):
                truth = {
                    "torque_constant": 10.1 / joint.gear_ratio, "reflected_inertia": inertia
                }  # fmt: skip
                for what, value in truth.items():
                    scores[what].append((getattr(joint, what) - value) / joint.std[what])
    for found in scores.values():
        assert (np.abs(found) < 1.96).mean() > 0.9
