"""Link tensors that the robot file lacks, from target_moment to everything that uses the model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, REFUSED, main
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.identification.dynamics import estimate_dynamics
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel, is_possible
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.simulation.plant import solid_links
from ur_energy_model.telemetry.csv.reader import read_csv


def without_tensors(robot: RobotDescription) -> RobotDescription:
    return replace(robot, inertia=np.zeros_like(robot.inertia))


@pytest.fixture(scope="module")
def arm() -> ExactArm:
    """A UR5e of solid cylinders, twice the size of the robot file's tensors for the shoulder."""
    robot = solid_links(without_tensors(load_robot("ur5e")))
    robot.inertia[:3] *= 2.0
    return ExactArm(robot=robot)


@pytest.fixture(scope="module")
def bags(arm: ExactArm, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tensors")
    return arm.bag(folder, "fit", seed=1), arm.bag(folder, "held_out", seed=2)


@pytest.fixture(scope="module")
def models(bags: tuple[Path, Path]) -> dict[str, EnergyModel]:
    """By the value of --link-tensors."""
    out = {}
    for choice in ("file", "identify"):
        path = bags[0].parent / f"{choice}.yaml"
        arguments = ["identify", str(bags[0]), "--robot", "ur5e", "--friction", "power_flow"]
        assert main([*arguments, "--link-tensors", choice, "-o", str(path)]) == DONE
        out[choice] = load_model(path)
    return out


def test_the_default_keeps_the_robot_files_tensors(models: dict[str, EnergyModel]) -> None:
    assert models["file"].link_tensors is None
    np.testing.assert_array_equal(models["file"].description().inertia, load_robot("ur5e").inertia)


def test_the_identified_tensors_can_exist(models: dict[str, EnergyModel]) -> None:
    tensors = models["identify"].link_tensors
    assert tensors is not None
    assert tensors.source == "target_moment"
    assert all(is_possible(value) for value in tensors.values)
    assert (tensors.std > 0).all()


def test_links_torque_on_a_motion_never_seen(models: dict[str, EnergyModel], arm: ExactArm) -> None:
    unseen = arm.record(seed=3)
    motion = unseen["target_q"], unseen["target_qd"], unseen["target_qdd"]
    worst = {}
    for choice, model in models.items():
        inertia = np.array([joint.reflected_inertia for joint in model.joints])
        torque = model.dynamics(setup=arm.setup).inverse_dynamics(*motion) + inertia * motion[2]
        worst[choice] = float(np.sqrt(((torque - unseen["target_moment"]) ** 2).mean(axis=0)).max())
    assert worst["identify"] < 0.01
    assert worst["identify"] < 0.05 * worst["file"]


def test_everything_that_uses_the_model_uses_them(
    models: dict[str, EnergyModel], bags: tuple[Path, Path], arm: ExactArm
) -> None:
    model = models["identify"]
    held_out = evaluate(model, bags[1])
    assert held_out.torque is not None
    assert all((entry["rms"] or 9.0) < 0.01 for entry in held_out.torque)

    unseen = arm.record(2.0, seed=4)
    motion = unseen["target_q"], unseen["target_qd"], unseen["target_qdd"]
    expected = ArmDynamics(model.description(), model.setup).inverse_dynamics(*motion)
    calculator = EnergyCalculator(model, load_robot("ur5e"))
    q = motion[0][0]
    np.testing.assert_allclose(calculator.dynamics.inverse_dynamics(*motion), expected)
    assert calculator.joint_positions(q).shape == (6, 3)
    truth = unseen["target_current"]
    rms = {
        choice: np.sqrt(((known.predict(*motion).current - truth) ** 2).mean(axis=0)).sum()
        for choice, known in models.items()
    }
    assert rms["identify"] < rms["file"]


def test_json_tells_them(bags: tuple[Path, Path], tmp_path: Path, capsys: object) -> None:
    assert isinstance(capsys, pytest.CaptureFixture)
    tail = ["--robot", "ur5e", "--friction", "power_flow", "--json", "-o", str(tmp_path / "m.yaml")]
    assert main(["identify", str(bags[0]), "--link-tensors", "identify", *tail]) == DONE
    found = json.loads(capsys.readouterr().out)["link_tensors"]
    assert list(found) == list(load_robot("ur5e").joint_names)
    assert np.shape(found["elbow_joint"]["value"]) == (3, 3)
    assert main(["identify", str(bags[0]), *tail]) == DONE
    assert json.loads(capsys.readouterr().out)["link_tensors"] is None


def test_refuses_where_nothing_can_tell_them(
    arm: ExactArm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = arm.record(10.0)
    keep = ("actual_q", "actual_qd", "actual_current")
    bare = replace(whole, columns={name: whole.columns[name] for name in keep})
    bag, output = write_bag(tmp_path / "bag", bare), tmp_path / "m.yaml"
    arguments = ["identify", str(bag), "--robot", "ur5e", "--link-tensors", "identify"]
    assert main([*arguments, "-o", str(output)]) == REFUSED
    assert "target_moment" in capsys.readouterr().err
    assert not output.exists()


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
