# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import is_possible
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.simulation.plant import solid_links
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import Telemetry

UR5E = load_robot("ur5e")
TILTED = gravity_of_mounting(np.radians(30), np.radians(70))
LOAD = Payload(1.7, np.array([0.02, -0.03, 0.11]), np.diag([2e-3, 2e-3, 1e-3]))


def changed(made: Telemetry, **columns: np.ndarray) -> Telemetry:
    return replace(made, columns={**made.columns, **columns})


@pytest.mark.parametrize("name", ["ur5e", "gen3"])
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


def test_finds_the_delay_of_target_moment() -> None:
    made = made_up_recording(UR5E)
    q, qd, qdd = (made[f"target_{name}"] for name in ("q", "qd", "qdd"))
    late = ArmDynamics(UR5E).inverse_dynamics(q - 0.003 * qd, qd, qdd)
    moment = late + UR5E.reflected_inertia * qdd
    found = estimate_dynamics([changed(made, target_moment=moment)], UR5E)
    assert found.recordings[0].delay == pytest.approx(0.003, abs=2e-4)
    assert np.allclose(found.reflected_inertia, UR5E.reflected_inertia, rtol=5e-3)


def test_each_payload_has_a_setup_of_its_own_and_a_poor_one_borrows_the_mounting() -> (
    None
):
    still: dict[str, Any] = {"still": tuple(range(6)), "seconds": 10.0}
    parts = [
        made_up_recording(
            UR5E, setup=Setup(TILTED, load), payload=load.mass, source="x", seed=seed
        )
        for seed, load in enumerate((Payload(), LOAD))
    ]
    time = np.concatenate([parts[0].time, parts[1].time + 60])
    columns = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns
    }
    both = Telemetry(time, columns, parts[0].info, find_gaps(time, 0.01))
    poor = made_up_recording(UR5E, setup=Setup(TILTED), source="still", **still)
    found = estimate_dynamics([both, poor], UR5E).recordings
    assert [entry.source for entry in found] == ["x", "x", "still"]
    masses = [entry.setup.payload.mass for entry in found[:2]]
    assert masses == pytest.approx([0.0, 1.7], abs=0.01)
    assert all(np.allclose(entry.setup.gravity, TILTED, atol=0.1) for entry in found)


@pytest.mark.truth
def test_standard_deviations_cover_the_truth() -> None:
    """With noise on target_moment 95 % intervals must hold the truth about as often as they say."""
    robot = load_robot("ur3e")
    inside = []
    for seed in range(12):
        made = made_up_recording(robot, seconds=30, rate=50, seed=seed)
        noise = np.random.default_rng(seed).standard_normal((len(made), 6))
        moment = made["target_moment"] + 0.3 * noise
        found = estimate_dynamics([changed(made, target_moment=moment)], robot)
        inside.append(
            np.abs(found.reflected_inertia - robot.reflected_inertia) < 1.96 * found.std
        )
    assert 0.88 <= np.mean(inside) <= 1.0


REAL = {
    "ur5e_pick_place_50hz_24s": ("ur5e", (0.0, 6.94, -6.94), 1.48, 0.02),
    "ur3e_moves_payload_1.07kg_25hz_36s": ("ur3e", (0.0, 0.0, -9.82), 1.07, 0.02),
    "ur10e_excitation_50s": ("ur10e", (0.0, 0.0, -9.82), 0.0, 0.2),
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


def test_link_tensors_predict_a_motion_never_seen(tmp_path: Path) -> None:
    """Of a UR5e of solid cylinders, twice the robot file's tensors for the shoulder."""
    robot = solid_links(replace(UR5E, inertia=np.zeros_like(UR5E.inertia)))
    robot.inertia[:3] *= 2.0
    arm = ExactArm(robot=robot)
    path = tmp_path / "model.yaml"
    bag = arm.bag(tmp_path, "fit", seed=1)
    unseen = arm.record(seed=3)
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
    torque = (
        model.dynamics(setup=arm.setup).inverse_dynamics(*motion) + inertia * motion[2]
    )
    assert np.sqrt(np.square(torque - unseen["target_moment"]).mean(axis=0)).max() < 0.01
