"""Identification from less than everything: what is found, what is reported of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
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


def test_a_still_joint_of_unknown_inertia_gets_a_typical_one(tmp_path: Path) -> None:
    robot = load_robot("ur5")
    made = made_up_recording(
        robot, reflected_inertia=np.array([1.9] * 3 + [0.2] * 3), still=(4,), coulomb=2.0
    )
    bag = write_bag(tmp_path / "bag", only(made, *BARE))
    result = identify([bag], robot, IdentificationOptions(friction=LAW))
    joint = result.model.joints[4]
    assert joint.source["reflected_inertia"] == "prior"
    assert joint.std["reflected_inertia"] > 0.3 * joint.reflected_inertia > 0
    assert any("wrist_2_joint" in line and "not identifiable" in line for line in result.warnings)


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


@pytest.mark.parametrize("rate", [5.0, 8.0, 10.0, 50.0])
def test_slow_recordings(rate: float, tmp_path: Path) -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(robot, rate=rate, coulomb=2.0, viscous=1.5, noise=0.1)
    bag = write_bag(tmp_path / "bag", only(made, *BARE))
    result = identify([bag], robot, IdentificationOptions(friction=LAW))
    assert covers(result.model, "torque_constant", np.full(6, 0.1)).all()
    assert covers(result.model, "reflected_inertia", robot.reflected_inertia).all()
    constants = [joint.torque_constant for joint in result.model.joints]
    np.testing.assert_allclose(constants[:3], 0.1, rtol=0.02)  # the others carry little load


def test_energy_of_a_slow_recording_is_compared(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", ExactArm().record(60.0, rate=5.0))
    model = identify([bag], "ur5e", IdentificationOptions(friction="power_flow")).model
    power = evaluate(model, bag).power
    assert power is not None
    assert abs(power["energy_error_percent"] or 99.0) < 1.0


@pytest.mark.parametrize(
    "field", ["target_moment", "target_qdd", "joint_temperatures", "actual_robot_current"]
)
def test_a_column_of_nan_is_as_good_as_none(field: str, tmp_path: Path) -> None:
    whole = ExactArm().record(30.0)
    rest = [name for name in whole.columns if name != field]
    if field == "target_qdd":
        rest = [name for name in rest if name not in ("target_q", "target_qd")]
    empty = changed(whole, **{field: np.full_like(whole[field], np.nan)})
    a = _identified(tmp_path / "empty", empty)
    b = _identified(tmp_path / "without", only(whole, *rest))
    for one, other in zip(a.model.joints, b.model.joints, strict=True):
        assert one.torque_constant == pytest.approx(other.torque_constant, rel=1e-3)
        assert one.source["reflected_inertia"] == other.source["reflected_inertia"]


def _identified(path: Path, telemetry: Telemetry) -> Identification:
    return identify(
        [write_bag(path, telemetry)], "ur5e", IdentificationOptions(friction="power_flow")
    )


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


@pytest.mark.parametrize("columns", [None, BARE])
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
