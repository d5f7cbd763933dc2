"""`ur_energy identify`: one arm from one recording or many, and many arms."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, end_of, refused
from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from test.plant.recorded_fleet import record
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot

PARTLY = 3
INERTIA = np.linspace(0.6, 0.1, 7)
"""Joint side, kg m^2: motors of arms with seven joints are not published."""


def test_a_given_setup_is_used_where_target_moment_is_missing(
    tmp_path: Path, capsys: Capture
) -> None:
    whole = ExactArm().record(20.0)
    keep = ("actual_q", "actual_qd", "actual_current")
    bare = replace(whole, columns={name: whole.columns[name] for name in keep})
    bag = write_bag(tmp_path / "bag", bare)
    stated = ["--gravity", 0, 0, -9.81, "--payload", 1.5, 0, 0, 0.1]
    tail = ["--robot", "ur5e", "-o", tmp_path / "m.yaml", "--friction", "power_flow"]
    content = answer(capsys, "identify", bag, *tail, *stated)
    assert content["setup_source"] == "given"
    assert [joint["friction_law"] for joint in content["joints"]] == ["power_flow"] * 6
    assert content["setup"] == {
        "gravity": [0.0, 0.0, -9.81],
        "payload_mass": 1.5,
        "payload_center_of_mass": [0.0, 0.0, 0.1],
    }


def test_tables_and_refused_input(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "model.yaml"
    output.write_text("old")
    recording = ExactArm().record(5.0)
    columns = {k: v for k, v in recording.columns.items() if k != "actual_current"}
    poor = str(write_bag(tmp_path / "poor", replace(recording, columns=columns)))
    refused(["identify", poor, "-o", str(output)], capsys, "actual_current", poor)
    words = ["identify", str(bag), "-o", str(output)]
    refused([*words, "--friction", "no"], capsys, "power_flow")
    assert output.read_text() == "old"
    assert main(words) == DONE
    out, err = capsys.readouterr()
    assert "k_t/k_b" in out
    assert str(output) in err.replace("\n", "")


def test_a_model_depends_on_neither_order_nor_workers_nor_bad_bags(
    tmp_path: Path, capsys: Capture
) -> None:
    bags = [ExactArm().bag(tmp_path / str(seed), seed=seed, seconds=15) for seed in (41, 42)]
    truncated = shutil.copytree(bags[0], tmp_path / "truncated")
    (data,) = truncated.glob("*.mcap")
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 3])

    def identified(*words: object, code: int) -> dict[str, Any]:
        output = ("--robot", "ur5e", "--friction", "coulomb_viscous", "-o", tmp_path / "model.yaml")
        return answer(capsys, "identify", *words, *output, code=code)

    first = identified(bags[0], bags[1], code=DONE)
    second = identified(bags[1], truncated, bags[0], "--workers", 2, code=PARTLY)
    assert first["failed"] == []
    assert [entry["bag"] for entry in second["failed"]] == [str(truncated)]
    for joint in second["joints"]:  # a scale for each bag, in the order of the bags
        joint["friction_session_scales"].reverse()
    assert [entry["bag"] for entry in second["fits"]] == [str(bags[1]), str(bags[0])]
    second["fits"].reverse()
    for key in ("joints", "bus_power", "setup", "fits"):
        assert close(first[key], second[key]), key
    useless = ["identify", str(truncated), "nothing", "--robot", "ur5e"]
    refused([*useless, "-o", str(tmp_path / "new.yaml")], capsys, "no bag can be used")
    assert not (tmp_path / "new.yaml").exists()


def close(first: object, second: object) -> bool:
    """Whether two JSON values agree to 1e-9."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(close(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(close, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return first == pytest.approx(second, rel=1e-9, abs=1e-12)
    return first == second


def test_models_by_serial_number(tmp_path: Path, capsys: Capture) -> None:
    bags = [record(tmp_path, f"a{k}", 2950, 1 + k, short=True) for k in range(2)]
    folder = tmp_path / "arms"
    words = ["identify", "--per-arm", *bags, tmp_path / "no", "-o", folder]
    content = answer(capsys, *words, code=PARTLY)
    assert [entry["arm"] for entry in content["arms"]] == ["a0", "a1"]
    assert [entry["bag"] for entry in content["failed"]] == [str(tmp_path / "no")]
    assert {entry["what"] for entry in content["fleet"]} == {"torque_constant", "reflected_inertia"}
    for entry in content["arms"]:
        joint = load_model(entry["model"]).joints[0]
        found = entry["joints"][joint.name]["torque_constant"]
        assert found == pytest.approx(joint.torque_constant, rel=1e-6)
    # A later arm starts from those in the folder.
    new = tmp_path / "new.yaml"
    answer(capsys, "identify", bags[0], "--robot", "ur5e", "--fleet", folder, "-o", new)
    assert load_model(new).dof == 6
    for more, word in (
        (["--payload", "1"], "--payload"),
        (["--gravity", "0", "0", "-9.8"], "--gravity"),
        (["--fleet", "/nowhere"], "not a folder with models"),
        (["-o", "arm.yaml"], "name of a model file"),
    ):
        code, _, err = end_of([*map(str, words), *more], capsys)
        assert code != DONE
        assert word in err


def test_an_arm_with_seven_joints_from_csv_to_model(tmp_path: Path, capsys: Capture) -> None:
    """Torque constant 0.1 N m/A, friction 2 N m and 1.5 N m s/rad."""
    name, robot = "gen3", load_robot("gen3")
    made = made_up_recording(robot, reflected_inertia=INERTIA, noise=0.05, coulomb=2.0, viscous=1.5)
    names = ["timestamp", *(f"{each}_{j}" for each in made.columns for j in range(7))]
    table = np.column_stack([made.time, *made.columns.values()])
    csv, bag = tmp_path / "motion.csv", tmp_path / "bag"
    np.savetxt(csv, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    answer(capsys, "import", csv, "--robot", name, "-o", bag)
    words = [bag, "--robot", name, "--friction", "coulomb_viscous", "-o", tmp_path / "m.yaml"]
    joints = answer(capsys, "identify", *words)["joints"]
    assert [joint["name"] for joint in joints] == list(robot.joint_names)
    assert np.allclose([j["reflected_inertia"] for j in joints], INERTIA, rtol=0.01)
    assert np.allclose([j["torque_constant"] for j in joints], 0.1, rtol=0.03)
    assert np.allclose([j["coulomb_direct"] for j in joints], 2.0, rtol=0.06)
    assert np.allclose([j["viscous"] for j in joints], 1.5, rtol=0.06)
    assert len(answer(capsys, "inspect", bag)["joints"]) == 7
    words = [bag, "--robot", name, "--from", "target_moment"]
    assert answer(capsys, "base-parameters", *words)["rank"] == 48
