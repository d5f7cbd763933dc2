"""Identification from less than everything: what is found, what is reported of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
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


def test_payload_told_to_the_controller_counts_without_target_moment(tmp_path: Path) -> None:
    robot = load_robot("ur5e")
    payload = Payload(3.0, np.array([0.0, 0.02, 0.1]))
    carrying = Setup(payload=payload)
    made = made_up_recording(
        robot,
        setup=carrying,
        coulomb=2.0,
        noise=0.1,
        payload=3.0,
        payload_cog=payload.center_of_mass,
    )
    told = only(made, *BARE, "payload", "payload_cog")
    result = identify(
        [write_bag(tmp_path / "told", told)], robot, IdentificationOptions(friction=LAW)
    )
    assert result.model.setup_source == "rtde"
    assert result.model.setup.payload.mass == pytest.approx(3.0)
    assert covers(result.model, "torque_constant", np.full(6, 0.1)).all()
    stated = identify(
        [write_bag(tmp_path / "s", only(made, *BARE))],
        robot,
        IdentificationOptions(friction=LAW, setup=carrying),
    )
    assert covers(stated.model, "torque_constant", np.full(6, 0.1)).all()


@pytest.mark.parametrize("gravity", [(9.82, 0.0, 0.0), (0.0, 6.94, -6.94), (0.0, 0.0, 9.82)])
def test_currents_show_a_mounting_that_nobody_stated(
    gravity: tuple[float, float, float], tmp_path: Path
) -> None:
    robot = load_robot("ur5e")
    hanging = Setup(np.array(gravity), Payload(1.5, np.array([0.0, 0.0, 0.1])))
    made = made_up_recording(robot, setup=hanging, coulomb=2.0, viscous=1.5, noise=0.1)
    bag = write_bag(tmp_path / "hanging", only(made, *BARE))
    result = identify([bag], robot, IdentificationOptions(friction=LAW))
    down = result.model.setup.gravity / 9.82
    assert np.degrees(np.arccos(min(down @ np.array(gravity) / 9.82, 1.0))) < 3.0
    assert result.model.setup_source == "estimated"
    assert any("tilted" in line and "--gravity" in line for line in result.warnings)
    assert covers(result.model, "torque_constant", np.full(6, 0.1)).all()


def test_a_mounting_that_was_stated_stays(tmp_path: Path) -> None:
    robot = load_robot("ur5e")
    tilt = np.radians(20.0)
    tilted = Setup(9.82 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
    made = made_up_recording(robot, setup=tilted, coulomb=2.0, viscous=1.5, noise=0.1)
    bag = write_bag(tmp_path / "tilted", only(made, *BARE))
    model = identify([bag], robot, IdentificationOptions(friction=LAW, setup=tilted)).model
    assert model.setup_source == "given"
    np.testing.assert_array_equal(model.setup.gravity, tilted.gravity)
    upright = identify([bag], robot, IdentificationOptions(friction=LAW, setup=Setup()))
    np.testing.assert_array_equal(upright.model.setup.gravity, Setup().gravity)
    assert any("tilted by 20 degrees" in line and "check it" in line for line in upright.warnings)


@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_slow_recordings(rate: float, tmp_path: Path) -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(robot, rate=rate, coulomb=2.0, viscous=1.5, noise=0.1)
    bag = write_bag(tmp_path / "bag", only(made, *BARE))
    result = identify([bag], robot, IdentificationOptions(friction=LAW))
    assert covers(result.model, "torque_constant", np.full(6, 0.1)).all()
    assert covers(result.model, "reflected_inertia", robot.reflected_inertia).all()
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


@pytest.mark.parametrize("columns", [BARE])
@pytest.mark.parametrize("odd", ODD)
def test_odd_recordings_are_refused_in_one_line(
    odd: str, columns: tuple[str, ...] | None, tmp_path: Path
) -> None:
    spoil, reason = ODD[odd]
    whole = spoil(ExactArm().record(20.0))
    bag = write_bag(tmp_path / "bag", whole if columns is None else only(whole, *columns))
    with pytest.raises((IdentificationError, RecordingError)) as refused:
        identify([bag], "ur5e", IdentificationOptions(friction=LAW))
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


def scores(model: EnergyModel) -> tuple[np.ndarray, np.ndarray]:
    """Errors of torque constants and inertias over their standard deviations [n]."""
    inertia = np.array(UNKNOWN_INERTIA[model.dof])
    out = []
    for quantity, truth in (("torque_constant", None), ("reflected_inertia", inertia)):
        value = np.array([getattr(joint, quantity) for joint in model.joints])
        std = np.array([joint.std[quantity] for joint in model.joints])
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        out.append((value - (0.1 * 101.0 / ratio if truth is None else truth)) / std)
    return out[0], out[1]


@pytest.mark.parametrize("name", ARMS)
def test_without_noise_the_priors_still_count(name: str, tmp_path: Path) -> None:
    """Exact data once outweighed the priors beyond floating point: constants were 40 % wrong."""
    model = model_of(name, tmp_path, noise=0.0)
    constants = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    np.testing.assert_allclose(constants[:-1], 10.1, rtol=0.03)
    assert model.bus.standby == pytest.approx(STANDBY, abs=1.0)


def test_intervals_of_inertia_and_torque_constant_are_honest(tmp_path: Path) -> None:
    constants, inertias = [], []
    for name in ("gen3", "ur5"):
        for seed in (21, 22):
            for found, score in zip(
                (constants, inertias),
                scores(model_of(name, tmp_path, noise=0.2, seed=seed)),
                strict=True,
            ):
                found.append(score)
    for found in (constants, inertias):
        inside = np.abs(np.concatenate(found)) < 1.96
        assert inside.mean() > 0.9
