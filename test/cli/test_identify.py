"""`ur_energy identify`: its contract with scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from test.cli.conftest import Capture, printed, refused
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, main


def test_identify_prints_json_alone(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.yaml"
    arguments = ["identify", str(bag), "--robot", "ur5e", "--validate", str(bag), "-o", str(path)]
    assert main([*arguments, "--friction", "power_flow", "--json"]) == DONE
    content = printed(capsys)
    assert content["robot"] == "ur5e"
    joints = content["joints"]
    assert isinstance(joints, list)
    assert [joint["friction_law"] for joint in joints] == ["power_flow"] * 6
    assert joints[0]["torque_constant"] == pytest.approx(0.105, rel=0.02)
    assert joints[0]["std"]["torque_constant"] > 0
    assert path.is_file()


def test_identify_prints_tables(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.yaml"
    assert main(["identify", str(bag), "--robot", "ur5e", "-o", str(path)]) == DONE
    out, err = capsys.readouterr()
    assert "shoulder" in out
    assert "k_t/k_b" in out
    assert str(path) in err.replace("\n", "")


def test_a_given_setup_is_used_where_target_moment_is_missing(
    tmp_path: Path, capsys: Capture
) -> None:
    whole = ExactArm().record(20.0)
    keep = ("actual_q", "actual_qd", "actual_current")
    bare = replace(whole, columns={name: whole.columns[name] for name in keep})
    bag = write_bag(tmp_path / "bag", bare)
    tail = ["--robot", "ur5e", "-o", str(tmp_path / "m.yaml"), "--json"]
    stated = ["--gravity", "0", "0", "-9.81", "--payload", "1.5", "0", "0", "0.1"]
    assert main(["identify", str(bag), *tail, *stated]) == DONE
    content = printed(capsys)
    assert content["setup_source"] == "given"
    assert content["setup"] == {
        "gravity": [0.0, 0.0, -9.81],
        "payload_mass": 1.5,
        "payload_center_of_mass": [0.0, 0.0, 0.1],
    }


def test_refused_input_leaves_the_old_model(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "model.yaml"
    output.write_text("old")
    recording = ExactArm().record(5.0)
    columns = {k: v for k, v in recording.columns.items() if k != "actual_current"}
    poor = write_bag(tmp_path / "poor", replace(recording, columns=columns))
    tail = ["-o", str(output), "--json"]
    refused(["identify", str(poor), "--robot", "ur5e", *tail], capsys, "actual_current", str(poor))
    refused(["identify", str(bag), "--robot", "ur3e", *tail], capsys, "ur5e", "ur3e")
    refused(["identify", "nowhere", "--robot", "ur5e", *tail], capsys, "nowhere")
    refused(["identify", str(bag), "--robot", "ur99", *tail], capsys, "ur99", "ur5e")
    refused(
        ["identify", str(bag), "--robot", "ur5e", "--friction", "no", *tail], capsys, "power_flow"
    )
    assert output.read_text() == "old"
