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
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry

BARE = ("actual_q", "actual_qd", "actual_current")
MADE: dict[str, Any] = {"coulomb": 2.0, "viscous": 1.5, "noise": 0.1, "rate": 50.0}
UR5E, EXACT = load_robot("ur5e"), np.full(6, 0.1)
INERTIA = {
    "ur10": [4.0, 4.5, 2.0, 0.7, 0.5, 0.6],
    "ur5": [1.9, 2.0, 1.8, 0.25, 0.2, 0.22],
    "gen3": [0.6, 0.5, 0.4, 0.35, 0.3, 0.2, 0.15],
}


def with_columns(telemetry: Telemetry, *names: str, **changed: np.ndarray) -> Telemetry:
    """A recording with these columns alone, some of them changed."""
    columns = {**telemetry.columns, **changed}
    return replace(telemetry, columns={name: columns[name] for name in (*BARE, *names)})


def identified(
    folder: Path, made: Telemetry, robot: RobotDescription | str = "ur5e", **options: Any
) -> Identification:
    """A recording's identification with the simple law."""
    bag = write_bag(folder / f"bag_{len(list(folder.iterdir()))}", made)
    return identify([bag], robot, IdentificationOptions(friction="coulomb_viscous", **options))


def scores(model: EnergyModel, quantity: str, truth: Any) -> np.ndarray:
    """Errors over standard deviations [n]."""
    value = np.array([getattr(joint, quantity) for joint in model.joints])
    return np.asarray((value - truth) / [joint.std[quantity] for joint in model.joints])


def covers(model: EnergyModel, quantity: str, truth: Any) -> bool:
    return bool((np.abs(scores(model, quantity, truth)) < 3).all())


def test_motor_inertia_from_currents_where_no_file_has_it(tmp_path: Path) -> None:
    robot, inertia = load_robot("ur10"), np.array(INERTIA["ur10"])
    made = made_up_recording(robot, reflected_inertia=inertia, **MADE)
    result = identified(tmp_path, with_columns(made), "ur10")
    assert covers(result.model, "torque_constant", EXACT)
    assert covers(result.model, "reflected_inertia", inertia)
    excited = [joint.source["reflected_inertia"] == "current" for joint in result.model.joints]
    assert sum(excited) >= 5
    found = np.array([joint.reflected_inertia for joint in result.model.joints])
    np.testing.assert_allclose(found[excited][:5], inertia[excited][:5], rtol=0.1)
    lines = " ".join(result.warnings)  # nothing loads the last joint enough to show its scale
    for words in ("wrist_3_joint: torque constant not", "no bus power", "winding resistance"):
        assert words in lines


def test_payload_set_in_the_controller_counts_without_target_moment(tmp_path: Path) -> None:
    payload = Payload(3.0, np.array([0.0, 0.02, 0.1]))
    told: dict[str, Any] = {"payload": 3.0, "payload_cog": payload.center_of_mass}
    made = made_up_recording(UR5E, setup=Setup(payload=payload), **MADE, **told)
    model = identified(tmp_path, with_columns(made, *told)).model
    assert model.setup_source == "rtde"
    assert model.setup.payload.mass == pytest.approx(3.0)
    assert covers(model, "torque_constant", EXACT)


@pytest.mark.parametrize("gravity", [(9.82, 0.0, 0.0), (0.0, 6.94, -6.94)])
def test_currents_show_a_mounting_that_nobody_stated(
    gravity: tuple[float, float, float], tmp_path: Path
) -> None:
    hanging = Setup(np.array(gravity), Payload(1.5, np.array([0.0, 0.0, 0.1])))
    result = identified(tmp_path, with_columns(made_up_recording(UR5E, setup=hanging, **MADE)))
    down = result.model.setup.gravity / 9.82
    assert np.degrees(np.arccos(min(down @ np.array(gravity) / 9.82, 1.0))) < 3.0
    assert result.model.setup_source == "estimated"
    assert any("tilted" in line and "--gravity" in line for line in result.warnings)
    assert covers(result.model, "torque_constant", EXACT)


def test_a_mounting_that_was_stated_stays_and_a_wrong_one_is_doubted(tmp_path: Path) -> None:
    tilt = np.radians(20.0)
    tilted = Setup(9.82 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
    made = with_columns(made_up_recording(UR5E, setup=tilted, **MADE))
    for stated in (tilted, Setup()):
        result = identified(tmp_path, made, setup=stated)
        assert result.model.setup_source == "given"
        np.testing.assert_array_equal(result.model.setup.gravity, stated.gravity)
        doubted = any("tilted by 20 degrees" in line for line in result.warnings)
        assert doubted is (stated is not tilted)


@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_slow_recordings(rate: float, tmp_path: Path) -> None:
    made = made_up_recording(UR5E, **{**MADE, "rate": rate})
    model = identified(tmp_path, with_columns(made)).model
    assert covers(model, "torque_constant", EXACT)
    assert covers(model, "reflected_inertia", UR5E.reflected_inertia)
    constants = [joint.torque_constant for joint in model.joints]
    np.testing.assert_allclose(constants[:3], 0.1, rtol=0.02)  # the others carry little load


def _dead(made: Telemetry) -> np.ndarray:
    return made["actual_current"] * (np.arange(6) != 2)


def _noise(made: Telemetry) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(made["actual_q"].shape)


ODD = {
    "a dead current": (_dead, "elbow_joint: actual_current stays zero"),
    "constant currents": (lambda made: np.ones_like(made["actual_current"]), "frozen"),
    "currents of noise": (_noise, "currents do not show a torque constant"),
    "currents of the wrong sign": (
        lambda made: -made["actual_current"], "current falls as torque rises",
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", [*ODD, "standing still", "half a second"])
def test_odd_recordings_are_refused_in_one_line(odd: str, tmp_path: Path) -> None:
    made, reason = ExactArm().record(20.0), "no joint moves"
    if odd in ODD:
        spoil, reason = ODD[odd]
        made = with_columns(made, actual_current=spoil(made))
    elif odd == "standing still":
        zero = np.zeros_like(made["actual_qd"])
        made = with_columns(made, actual_q=zero, actual_qd=zero)
    else:
        made = with_columns(made.cut(slice(0, 60)))
    with pytest.raises((IdentificationError, RecordingError)) as refused:
        identified(tmp_path, made)
    for words in (reason, "record"):
        assert words in str(refused.value)
    assert "\n" not in str(refused.value)


STANDBY = 30.0


def model_of(name: str, folder: Path, *, noise: float, seed: int = 1) -> EnergyModel:
    """The model identified from 40 s; torque constant 0.1 N m/A times 101 over the gear ratio."""
    robot, options = load_robot(name), {**MADE, "noise": noise, "rate": 100.0, "seed": seed}
    made = made_up_recording(robot, reflected_inertia=np.array(INERTIA[name]), **options)
    current = made["actual_current"] * robot.gear_ratio / 101.0
    conversion = 0.1 * 101.0 * made["actual_qd"] * current
    watts = STANDBY + (0.5 * current**2 + conversion + 0.25 * np.abs(current)).sum(axis=1)
    watts += noise * np.random.default_rng(seed).standard_normal(len(watts))
    bus = {"actual_robot_voltage": np.full(len(watts), 48.0), "actual_robot_current": watts / 48.0}
    return identified(folder, with_columns(made, *bus, actual_current=current, **bus), name).model


def test_without_noise_the_priors_still_count(tmp_path: Path) -> None:
    """Exact data once outweighed the priors beyond floating point: constants were 40 % wrong."""
    model = model_of("gen3", tmp_path, noise=0.0)
    constants = np.array([joint.torque_constant * joint.gear_ratio for joint in model.joints])
    np.testing.assert_allclose(constants[:-1], 10.1, rtol=0.03)
    assert model.bus.standby == pytest.approx(STANDBY, abs=1.0)


def test_intervals_of_inertia_and_torque_constant_are_honest(tmp_path: Path) -> None:
    found: dict[str, list[np.ndarray]] = {"torque_constant": [], "reflected_inertia": []}
    for name in ("gen3", "ur5"):
        for seed in (21, 22):
            model = model_of(name, tmp_path, noise=0.2, seed=seed)
            constants = [10.1 / joint.gear_ratio for joint in model.joints]
            for quantity, truth in zip(found, (constants, INERTIA[name]), strict=True):
                found[quantity].append(scores(model, quantity, truth))
    for each in found.values():
        assert (np.abs(np.concatenate(each)) < 1.96).mean() > 0.9
