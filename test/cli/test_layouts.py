"""`ur_energy layouts`: its contract with scripts."""

from __future__ import annotations

import json
from pathlib import Path

from test.cli.conftest import Capture, refused
from test.layouts.viewers import plotjuggler_curves
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.files import config_file


def test_layouts_of_an_arm_in_a_cell(tmp_path: Path, capsys: Capture) -> None:
    command = ["layouts", "--namespace", "cell1", "--tf-prefix", "left_", "-o", str(tmp_path)]
    assert main([*command, "--json"]) == DONE
    content = json.loads(capsys.readouterr().out)
    assert content["topic"] == "/cell1/energy"
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert sorted(map(Path, content["files"])) == written
    assert {path.relative_to(tmp_path).parts[0] for path in written} == {
        "plotjuggler",
        "foxglove",
        "rviz",
        "grafana",
        "prometheus",
    }
    curves = plotjuggler_curves((tmp_path / "plotjuggler" / "energy_bag.xml").read_text())
    assert "/cell1/energy/left_wrist_1_joint/position" in curves
    refused(command, capsys, "exists already")
    assert main([*command, "--overwrite"]) == DONE
    assert "Foxglove" in capsys.readouterr().out


def test_without_namespace_they_are_those_of_the_package(tmp_path: Path, capsys: Capture) -> None:
    assert main(["layouts", "-o", str(tmp_path), "--json"]) == DONE
    for path in map(Path, json.loads(capsys.readouterr().out)["files"]):
        assert path.read_text() == config_file(*path.relative_to(tmp_path).parts).read_text()


def test_names_that_ros_refuses_are_refused(tmp_path: Path, capsys: Capture) -> None:
    refused(["layouts", "--namespace", "1x", "-o", str(tmp_path)], capsys, "--namespace")
