"""From CSV to model for arms of other manufacturers with seven joints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from test.identification.conftest import made_up_recording
from ur_energy_model.cli.main import main
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_bag

INERTIA = np.linspace(0.6, 0.1, 7)
"""Joint side, kg m^2: motors of these arms are not published."""


@pytest.fixture(scope="module", params=["gen3", "fr3"])
def imported(request: pytest.FixtureRequest, tmp_path_factory) -> tuple[str, Path]:
    """Arm and bag; torque constant 0.1 N m/A, friction 2 N m and 1.5 N m s/rad."""
    robot = load_robot(request.param)
    made = made_up_recording(robot, reflected_inertia=INERTIA, noise=0.05, coulomb=2.0, viscous=1.5)
    folder = tmp_path_factory.mktemp(robot.name)
    names = ["timestamp", *(f"{name}_{j}" for name in made.columns for j in range(7))]
    table = np.column_stack([made.time, *made.columns.values()])
    csv = folder / "motion.csv"
    np.savetxt(csv, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    bag = folder / "bag"
    assert main(["import", str(csv), "--robot", robot.name, "-o", str(bag)]) == 0
    return robot.name, bag


def test_all_joints_are_in_the_bag_by_name(imported) -> None:
    name, bag = imported
    robot = load_robot(name)
    assert read_bag(bag)["target_moment"].shape[1] == 7
    (file,) = bag.glob("*.mcap")
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        messages = reader.iter_decoded_messages(topics=["/rtde/joint_telemetry"])
        message = next(iter(messages)).decoded_message
    assert list(message.joint_names) == [*robot.joint_names, "robot"]


def test_identification_finds_the_truth(imported, tmp_path, capsys) -> None:
    name, bag = imported
    capsys.readouterr()
    model = tmp_path / "model.yaml"
    arguments = [str(bag), "--robot", name, "--friction", "coulomb_viscous", "-o", str(model)]
    assert main(["identify", *arguments, "--json"]) == 0
    joints = json.loads(capsys.readouterr().out)["joints"]
    assert [joint["name"] for joint in joints] == list(load_robot(name).joint_names)
    assert np.allclose([j["reflected_inertia"] for j in joints], INERTIA, rtol=0.01)
    assert np.allclose([j["torque_constant"] for j in joints], 0.1, rtol=0.03)
    assert np.allclose([j["coulomb_direct"] for j in joints], 2.0, rtol=0.06)
    assert np.allclose([j["viscous"] for j in joints], 1.5, rtol=0.06)


def test_inspection_and_base_parameters(imported, capsys) -> None:
    name, bag = imported
    capsys.readouterr()
    assert main(["inspect", str(bag), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["joints"]) == 7
    assert (
        main(["base-parameters", str(bag), "--robot", name, "--from", "target_moment", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["rank"] == 48
