"""Mounting, payload and motor inertia from target_moment, against known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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

TILTED = gravity_of_mounting(np.radians(30), np.radians(70))
LOAD = Payload(1.7, np.array([0.02, -0.03, 0.11]), np.diag([2e-3, 2e-3, 1e-3]))
INERTIA = {"ur5e": np.array([1.8, 1.9, 2.0, 0.2, 0.22, 0.25])}


@pytest.mark.parametrize("name", ["ur5e", "gen3", "fr3"])
def test_finds_mounting_payload_and_inertia_of_any_arm(name: str) -> None:
    robot = load_robot(name)
    inertia = INERTIA.get(name, np.linspace(0.9, 0.1, robot.dof))
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
    random = np.random.default_rng(3)
    noisy = {
        **made.columns,
        "actual_q": made["actual_q"] + 5e-5 * random.standard_normal(made["actual_q"].shape),
        "actual_qd": made["actual_qd"] + 5e-3 * random.standard_normal(made["actual_q"].shape),
    }
    uneven = np.sort(random.choice(len(made), 4700, replace=False))
    part = Telemetry(
        made.time[uneven], {name: values[uneven] for name, values in noisy.items()}, made.info
    )

    found = estimate_dynamics([part], robot)

    assert found.recordings[0].reference == "actual"
    assert np.allclose(found.reflected_inertia, robot.reflected_inertia, rtol=0.02)
    assert found.setup.payload.mass == pytest.approx(1.7, abs=0.02)
    assert np.allclose(found.setup.gravity, TILTED, atol=0.03)


def test_finds_the_delay_of_target_moment() -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(robot)
    q, qd, qdd = (made[f"target_{name}"] for name in ("q", "qd", "qdd"))
    late = ArmDynamics(robot).inverse_dynamics(q - 0.003 * qd, qd, qdd)
    columns = {**made.columns, "target_moment": late + robot.reflected_inertia * qdd}

    found = estimate_dynamics([replace(made, columns=columns)], robot)

    assert found.recordings[0].delay == pytest.approx(0.003, abs=2e-4)
    assert np.allclose(found.reflected_inertia, robot.reflected_inertia, rtol=5e-3)


def test_still_joints_keep_the_robot_files_inertia() -> None:
    robot = load_robot("ur5e")
    wrong = robot.reflected_inertia * 1.1
    found = estimate_dynamics(
        [made_up_recording(robot, reflected_inertia=wrong, still=(4,))], robot
    )
    assert list(found.identified) == [True, True, True, True, False, True]
    assert found.reflected_inertia[4] == pytest.approx(robot.reflected_inertia[4])
    assert found.reflected_inertia[0] == pytest.approx(wrong[0], rel=2e-3)


def test_freedrive_identifies_no_inertia() -> None:
    """In freedrive target_qdd is zero and target_moment gravity alone."""
    robot = load_robot("ur5e")
    made = made_up_recording(robot, seconds=60)
    hand = slice(2000, 4000)
    columns = {name: values.copy() for name, values in made.columns.items()}
    columns["target_qdd"][hand] = 0.0
    columns["target_moment"][hand] = ArmDynamics(robot).gravity_torque(columns["target_q"][hand])
    found = estimate_dynamics([replace(made, columns=columns)], robot)
    assert np.allclose(found.reflected_inertia, robot.reflected_inertia, rtol=5e-3)
    assert found.recordings[0].samples < 0.7 * 60 * 50


def test_each_payload_of_a_recording_has_a_setup_of_its_own() -> None:
    robot = load_robot("ur5e")
    empty = made_up_recording(robot, seed=1, payload=0.0, source="shift")
    heavy = made_up_recording(robot, setup=Setup(payload=LOAD), seed=2, payload=1.7, source="shift")
    time = np.concatenate([empty.time, heavy.time + 60])
    columns = {name: np.concatenate([empty[name], heavy[name]]) for name in empty.columns}
    both = Telemetry(time, columns, empty.info, find_gaps(time, 0.01))

    found = estimate_dynamics([both], robot)

    masses = [entry.setup.payload.mass for entry in found.recordings]
    assert masses == pytest.approx([0.0, 1.7], abs=0.01)
    assert {entry.source for entry in found.recordings} == {"shift"}
    assert found.warnings == ()


def test_a_poor_recording_borrows_the_mounting_of_a_good_one() -> None:
    robot = load_robot("ur5e")
    good = made_up_recording(robot, setup=Setup(TILTED), source="moving")
    poor = made_up_recording(robot, setup=Setup(TILTED), source="still", still=tuple(range(6)))
    found = estimate_dynamics([good, poor], robot)
    assert np.allclose(
        next(e for e in found.recordings if e.source == "still").setup.gravity, TILTED, atol=0.1
    )


def test_standard_deviations_cover_the_truth() -> None:
    """With noise on target_moment 95 % intervals must hold the truth about as often as they say."""
    robot = load_robot("ur3e")
    inside = []
    for seed in range(12):
        made = made_up_recording(robot, seconds=30, rate=50, seed=seed)
        noise = 0.3 * np.random.default_rng(seed).standard_normal(made["target_moment"].shape)
        columns = {**made.columns, "target_moment": made["target_moment"] + noise}
        found = estimate_dynamics([replace(made, columns=columns)], robot)
        error = np.abs(found.reflected_inertia - robot.reflected_inertia)
        inside.append(error < 1.96 * found.std)
    assert 0.88 <= np.mean(inside) <= 1.0


REAL = {
    "ur5e_pick_place_50hz_24s": ("ur5e", (0.0, 6.94, -6.94), 1.48, None),
    "ur5e_streamed_move_500hz_6s": ("ur5e", (0.0, 0.0, -9.82), 0.10, None),
    "ur3e_moves_payload_1.07kg_25hz_36s": ("ur3e", (0.0, 0.0, -9.82), 1.07, None),
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
    assert found.rms.max() < (0.02 if rms is None else rms)


def test_splits_as_the_paper_does() -> None:
    """Clochiatti et al. 2024: reducers 1.07e-4 and 0.091e-4 kg m^2; figures motor side."""
    motor = np.array([6.4e-5] * 3 + [1.2e-5] * 3)
    reflected = 101**2 * (motor + np.array([1.07e-4] * 3 + [0.091e-4] * 3))
    assert np.allclose(split_inertia(reflected, load_robot("ur5e")).rotor, motor)


def test_any_tensor_becomes_possible() -> None:
    for asked in np.random.default_rng(0).normal(0, 1, (20, 3, 3)):
        found = possible_inertia(asked + asked.T)
        one, two, three = np.linalg.eigvalsh(found)
        assert min(one, one + two - three) >= -1e-12
        assert np.allclose(possible_inertia(found), found)


def test_what_is_expected_of_a_motor_inertia() -> None:
    """The robot file's value, else one typical for the rated torque, else for any arm."""
    known, rated, unrated = (expected_inertia(load_robot(n)) for n in ("ur5e", "ur10", "gen3"))
    np.testing.assert_allclose(known.value, load_robot("ur5e").reflected_inertia)
    assert (np.abs(rated.value - load_robot("ur10e").reflected_inertia) < 2 * rated.std).all()
    for prior in (known, rated, unrated):
        assert (np.minimum(prior.value, prior.std) > 0).all()
        assert prior.unknown.all()
    assert (known.std / known.value < rated.std / rated.value).all()


def without_tensors(robot: RobotDescription) -> RobotDescription:
    return replace(robot, inertia=np.zeros_like(robot.inertia))


@pytest.fixture(scope="module")
def arm() -> ExactArm:
    """A UR5e of solid cylinders, twice the size of the robot file's tensors for the shoulder."""
    robot = solid_links(without_tensors(load_robot("ur5e")))
    robot.inertia[:3] *= 2.0
    return ExactArm(robot=robot)


def test_link_tensors_predict_a_motion_never_seen(arm: ExactArm, tmp_path: Path) -> None:
    """Identified by the command; they can exist, and are far better than the robot file's."""
    bag, unseen = arm.bag(tmp_path, "fit", seed=1), arm.record(seed=3)
    motion = unseen["target_q"], unseen["target_qd"], unseen["target_qdd"]
    worst = {}
    for choice in ("file", "identify"):
        path = tmp_path / f"{choice}.yaml"
        words = ["identify", str(bag), "--robot", "ur5e", "--friction", "power_flow"]
        assert main([*words, "--link-tensors", choice, "-o", str(path)]) == DONE
        model = load_model(path)
        inertia = np.array([joint.reflected_inertia for joint in model.joints])
        torque = model.dynamics(setup=arm.setup).inverse_dynamics(*motion) + inertia * motion[2]
        worst[choice] = float(np.sqrt(((torque - unseen["target_moment"]) ** 2).mean(axis=0)).max())
    tensors = model.link_tensors
    assert tensors is not None
    assert tensors.source == "target_moment"
    assert all(is_possible(value) for value in tensors.values)
    assert (tensors.std > 0).all()
    assert worst["identify"] < 0.01
    assert worst["identify"] < 0.05 * worst["file"]


def test_a_real_arm_without_its_tensors_gets_them_back(recordings: Path) -> None:
    """Held-out torque of a UR10e as good as with the controller's own tensors."""
    known = load_robot("ur10e")
    bare = without_tensors(known)
    fit, held_out = (
        read_csv([recordings / f"ur10e_{name}.csv.gz"], "ur10e")
        for name in ("excitation_50s", "point_to_point_57s")
    )
    found = estimate_dynamics([fit], bare, identify_tensors=True)
    assert found.link_tensors is not None
    assert all(is_possible(value) for value in found.link_tensors.values)
    rms = {
        name: estimate_dynamics([held_out], robot).rms
        for name, robot in (
            ("known", known),
            ("bare", bare),
            ("found", found.link_tensors.applied_to(bare)),
        )
    }
    assert (rms["found"] < 1.05 * rms["known"]).all()
    assert (rms["found"][:3] < 0.75 * rms["bare"][:3]).all()
    # What the arm's longest links resist about the elbow and the shoulder is well told.
    np.testing.assert_allclose(
        found.link_tensors.values[[1, 2], [1, 1], [1, 1]], known.inertia[[1, 2], 1, 1], rtol=0.02
    )
