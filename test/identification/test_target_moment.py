"""Mounting, payload and motor inertia from target_moment, against known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.identification.dynamics import estimate_dynamics
from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.identification.reflected_inertia import expected_inertia, split_inertia
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import is_possible
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.simulation.plant import solid_links
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry, find_gaps

UR5E = load_robot("ur5e")
TILTED = gravity_of_mounting(np.radians(30), np.radians(70))
LOAD = Payload(1.7, np.array([0.02, -0.03, 0.11]), np.diag([2e-3, 2e-3, 1e-3]))


def changed(made: Telemetry, **columns: np.ndarray) -> Telemetry:
    return replace(made, columns={**made.columns, **columns})


def noisy(values: np.ndarray, size: float, seed: int = 3) -> np.ndarray:
    return np.asarray(values + size * np.random.default_rng(seed).standard_normal(values.shape))


@pytest.mark.parametrize("name", ["ur5e", "gen3", "fr3"])
def test_finds_mounting_payload_and_inertia_of_any_arm(name: str) -> None:
    robot = load_robot(name)
    inertia = np.linspace(0.9, 0.1, robot.dof)
    made = made_up_recording(robot, setup=Setup(TILTED, LOAD), reflected_inertia=inertia)
    found = estimate_dynamics([made], robot)
    assert found.setup_source == "estimated"
    assert np.allclose(found.setup.gravity, TILTED, atol=0.01)
    assert found.setup.payload.mass == pytest.approx(1.7, rel=2e-3)
    assert np.allclose(found.setup.payload.center_of_mass, LOAD.center_of_mass, atol=1e-3)
    assert np.allclose(found.reflected_inertia, inertia, rtol=5e-3)
    assert found.identified.all()
    assert found.rms.max() < 5e-3
    assert found.recordings[0].delay == pytest.approx(0.0, abs=1e-4)


def test_measured_motion_stands_in_where_targets_are_missing() -> None:
    robot = load_robot("ur10e")
    made = made_up_recording(robot, setup=Setup(TILTED, LOAD), seconds=50, targets=False)
    q, qd = noisy(made["actual_q"], 5e-5), noisy(made["actual_qd"], 5e-3, 4)
    made = changed(made, actual_q=q, actual_qd=qd)
    rows = np.sort(np.random.default_rng(3).choice(len(made), 4700, replace=False))
    columns = {name: values[rows] for name, values in made.columns.items()}
    found = estimate_dynamics([Telemetry(made.time[rows], columns, made.info)], robot)
    assert found.recordings[0].reference == "actual"
    assert np.allclose(found.reflected_inertia, robot.reflected_inertia, rtol=0.02)
    assert found.setup.payload.mass == pytest.approx(1.7, abs=0.02)
    assert np.allclose(found.setup.gravity, TILTED, atol=0.03)


def test_finds_the_delay_of_target_moment() -> None:
    made = made_up_recording(UR5E)
    q, qd, qdd = (made[f"target_{name}"] for name in ("q", "qd", "qdd"))
    late = ArmDynamics(UR5E).inverse_dynamics(q - 0.003 * qd, qd, qdd)
    moment = late + UR5E.reflected_inertia * qdd
    found = estimate_dynamics([changed(made, target_moment=moment)], UR5E)
    assert found.recordings[0].delay == pytest.approx(0.003, abs=2e-4)
    assert np.allclose(found.reflected_inertia, UR5E.reflected_inertia, rtol=5e-3)


def test_still_joints_and_freedrive_identify_no_inertia() -> None:
    """In freedrive target_qdd is zero and target_moment gravity alone."""
    wrong = UR5E.reflected_inertia * 1.1
    made = made_up_recording(UR5E, seconds=60, reflected_inertia=wrong, still=(4,))
    hand = slice(2000, 4000)
    qdd, moment = made["target_qdd"].copy(), made["target_moment"].copy()
    qdd[hand], moment[hand] = 0.0, ArmDynamics(UR5E).gravity_torque(made["target_q"][hand])
    found = estimate_dynamics([changed(made, target_qdd=qdd, target_moment=moment)], UR5E)
    assert list(found.identified) == [True, True, True, True, False, True]
    expected = np.where(found.identified, wrong, UR5E.reflected_inertia)
    assert np.allclose(found.reflected_inertia, expected, rtol=5e-3)
    assert found.recordings[0].samples < 0.7 * 60 * 50


def test_each_payload_has_a_setup_of_its_own_and_a_poor_one_borrows_the_mounting() -> None:
    still: dict[str, Any] = {"still": tuple(range(6)), "seconds": 10.0}
    parts = [
        made_up_recording(UR5E, setup=Setup(TILTED, load), payload=load.mass, source="x", seed=seed)
        for seed, load in enumerate((Payload(), LOAD))
    ]
    time = np.concatenate([parts[0].time, parts[1].time + 60])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    both = Telemetry(time, columns, parts[0].info, find_gaps(time, 0.01))
    poor = made_up_recording(UR5E, setup=Setup(TILTED), source="still", **still)
    found = estimate_dynamics([both, poor], UR5E).recordings
    assert [entry.source for entry in found] == ["x", "x", "still"]
    masses = [entry.setup.payload.mass for entry in found[:2]]
    assert masses == pytest.approx([0.0, 1.7], abs=0.01)
    assert all(np.allclose(entry.setup.gravity, TILTED, atol=0.1) for entry in found)


def test_standard_deviations_cover_the_truth() -> None:
    """With noise on target_moment 95 % intervals must hold the truth about as often as they say."""
    robot, inside = load_robot("ur3e"), []
    for seed in range(12):
        made = made_up_recording(robot, seconds=30, rate=50, seed=seed)
        moment = noisy(made["target_moment"], 0.3, seed)
        found = estimate_dynamics([changed(made, target_moment=moment)], robot)
        inside.append(np.abs(found.reflected_inertia - robot.reflected_inertia) < 1.96 * found.std)
    assert 0.88 <= np.mean(inside) <= 1.0


REAL = {
    "ur5e_pick_place_50hz_24s": ("ur5e", (0.0, 6.94, -6.94), 1.48, 0.02),
    "ur5e_streamed_move_500hz_6s": ("ur5e", (0.0, 0.0, -9.82), 0.10, 0.02),
    "ur3e_moves_payload_1.07kg_25hz_36s": ("ur3e", (0.0, 0.0, -9.82), 1.07, 0.02),
    "ur10e_excitation_50s": ("ur10e", (0.0, 0.0, -9.82), 0.0, 0.2),
    "ur10e_point_to_point_57s": ("ur10e", (0.0, 0.0, -9.82), 0.0, 0.2),
}


@pytest.mark.parametrize("name", REAL)
def test_real_arms(recordings: Path, name: str) -> None:
    """Inertias within 2 % of those in the controllers' own configuration."""
    model, gravity, mass, rms = REAL[name]
    robot = load_robot(model)
    found = estimate_dynamics([read_csv([recordings / f"{name}.csv.gz"], model)], robot)
    assert np.allclose(found.setup.gravity, gravity, atol=0.02)
    assert found.setup.payload.mass == pytest.approx(mass, abs=0.01)
    assert np.allclose(found.reflected_inertia, robot.reflected_inertia, rtol=0.02)
    assert found.rms.max() < rms


def test_splits_as_the_paper_does() -> None:
    """Clochiatti et al. 2024: reducers 1.07e-4 and 0.091e-4 kg m^2; figures motor side."""
    motor = np.array([6.4e-5] * 3 + [1.2e-5] * 3)
    reflected = 101**2 * (motor + np.array([1.07e-4] * 3 + [0.091e-4] * 3))
    assert np.allclose(split_inertia(reflected, UR5E).rotor, motor)


def test_any_tensor_becomes_possible() -> None:
    for asked in np.random.default_rng(0).normal(0, 1, (20, 3, 3)):
        found = possible_inertia(asked + asked.T)
        one, two, three = np.linalg.eigvalsh(found)
        assert min(one, one + two - three) >= -1e-12
        assert np.allclose(possible_inertia(found), found)


def test_what_is_expected_of_a_motor_inertia() -> None:
    """The robot file's value, else one typical for the rated torque, else for any arm."""
    known, rated, unrated = (expected_inertia(load_robot(n)) for n in ("ur5e", "ur10", "gen3"))
    np.testing.assert_allclose(known.value, UR5E.reflected_inertia)
    assert (np.abs(rated.value - load_robot("ur10e").reflected_inertia) < 2 * rated.std).all()
    assert (np.minimum(unrated.value, unrated.std) > 0).all()
    assert (known.std / known.value < rated.std / rated.value).all()


def without_tensors(robot: RobotDescription) -> RobotDescription:
    return replace(robot, inertia=np.zeros_like(robot.inertia))


def test_link_tensors_predict_a_motion_never_seen(tmp_path: Path) -> None:
    """Of a UR5e of solid cylinders, twice the robot file's tensors for the shoulder."""
    robot = solid_links(without_tensors(UR5E))
    robot.inertia[:3] *= 2.0
    arm, path = ExactArm(robot=robot), tmp_path / "model.yaml"
    bag, unseen = arm.bag(tmp_path, "fit", seed=1), arm.record(seed=3)
    words = ["identify", str(bag), "--robot", "ur5e", "--friction", "power_flow"]
    assert main([*words, "--link-tensors", "identify", "-o", str(path)]) == DONE
    model = load_model(path)
    tensors = model.link_tensors
    assert tensors is not None
    assert tensors.source == "target_moment"
    assert all(is_possible(value) for value in tensors.values)
    assert (tensors.std > 0).all()
    motion = unseen["target_q"], unseen["target_qd"], unseen["target_qdd"]
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    torque = model.dynamics(setup=arm.setup).inverse_dynamics(*motion) + inertia * motion[2]
    assert np.sqrt(np.square(torque - unseen["target_moment"]).mean(axis=0)).max() < 0.01


def test_a_real_arm_without_its_tensors_gets_them_back(recordings: Path) -> None:
    """Held-out torque of a UR10e as good as with the controller's own tensors."""
    known = load_robot("ur10e")
    bare = without_tensors(known)
    fit, held_out = (
        read_csv([recordings / f"ur10e_{name}.csv.gz"], "ur10e")
        for name in ("excitation_50s", "point_to_point_57s")
    )
    tensors = estimate_dynamics([fit], bare, identify_tensors=True).link_tensors
    assert tensors is not None
    assert all(is_possible(value) for value in tensors.values)
    robots = (known, bare, tensors.applied_to(bare))
    of_known, of_bare, of_found = (estimate_dynamics([held_out], each).rms for each in robots)
    assert (of_found < 1.05 * of_known).all()
    assert (of_found[:3] < 0.75 * of_bare[:3]).all()
    # What the arm's longest links resist about the elbow and the shoulder is well told.
    shown = tensors.values[[1, 2], [1, 1], [1, 1]]
    np.testing.assert_allclose(shown, known.inertia[[1, 2], 1, 1], rtol=0.02)
