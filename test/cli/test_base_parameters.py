"""`ur_energy base-parameters`, as a user calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from test.cli.test_inspect import write_bag
from test.identification.conftest import made_up_recording
from ur_energy_model.cli.main import main
from ur_energy_model.model.robots import load_robot

FRICTION: dict[str, Any] = {"noise": 0.5, "coulomb": 4.0, "viscous": 3.0}


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bags")
    robot = load_robot("ur5e")
    return (
        write_bag(folder / "one", made_up_recording(robot, seed=1, **FRICTION)),
        write_bag(folder / "two", made_up_recording(robot, seed=2, **FRICTION)),
    )


def run(capsys, *arguments: object) -> dict:
    assert main(["base-parameters", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_contract(bags, capsys) -> None:
    out = run(capsys, *bags, "--robot", "ur5e")
    assert out["rank"] == len(out["parameters"]) == 52
    assert 1 < out["condition_number"] < 300
    assert out["normalised_error"] > 0
    assert all({"expression", "value", "std"} <= set(entry) for entry in out["parameters"])
    assert out["normalised_error_on"] == "cross-validation"
    assert out["gravity_source"] == "estimated"


def test_held_out_bags_are_verified(bags, capsys) -> None:
    one, two = bags
    out = run(capsys, one, "--robot", "ur5e", "--validate", two)
    assert out["normalised_error_on"] == "validation"
    assert min(out["general_verification"]["r2"]) > 0.9


def test_frictionless_torque_has_fewer(bags, capsys) -> None:
    out = run(capsys, bags[0], "--robot", "ur5e", "--from", "target_moment")
    assert out["rank"] == 40
    assert out["torque_from"] == "target_moment"
    by_text = {entry["expression"]: entry["value"] for entry in out["parameters"]}
    assert by_text["Ja_4"] == pytest.approx(0.2118, rel=0.02)


def test_measured_torque_needs_neither_currents_nor_constants(tmp_path, capsys) -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(robot, seed=1, **FRICTION)
    torque = made["actual_current"] * robot.gear_ratio * robot.torque_constant
    columns = {name: made[name] for name in ("actual_q", "actual_qd")}
    bag = write_bag(
        tmp_path / "torque", replace(made, columns={**columns, "actual_current_as_torque": torque})
    )
    out = run(capsys, bag, "--robot", "ur5e", "--from", "measured_torque")
    assert out["rank"] == 52
    assert out["torque_from"] == "measured_torque"
    assert min(out["self_verification"]["r2"]) > 0.9
    assert main(["base-parameters", str(bag), "--robot", "ur5e"]) == 1
    assert "actual_current" in capsys.readouterr().err


def test_table_shows_expressions_and_both_verifications(bags, capsys) -> None:
    one, two = bags
    assert main(["base-parameters", str(one), "--robot", "ur5e", "--validate", str(two)]) == 0
    out = capsys.readouterr().out
    assert "52 base parameters" in out
    assert "held-out" in out
    assert "Izz_2 - " in out


def test_refusals(bags, tmp_path, capsys) -> None:
    assert main(["base-parameters", str(bags[0]), "--robot", "ur10e"]) == 1
    assert "ur5e" in capsys.readouterr().err
    assert main(["base-parameters", str(tmp_path / "none"), "--robot", "ur5e"]) == 1
    robot = load_robot("ur5e")
    poor = made_up_recording(robot, seconds=10, still=(0, 1, 2, 3, 4, 5), noise=0.1)
    bag = write_bag(tmp_path / "poor", poor)
    capsys.readouterr()
    assert main(["base-parameters", str(bag), "--robot", "ur5e"]) == 1
    error = capsys.readouterr().err.strip()
    assert "ur_energy excite" in error.splitlines()[-1]
