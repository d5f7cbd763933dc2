"""`ur_energy excite`, `protocol` and `optimize`, as a user calls them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, end_of
from test.optimization.hand_made import ROBOT, hand_made_recording
from test.optimization.simulated_cycle import arm_model
from ur_energy_model.cli.excite import request_of
from ur_energy_model.cli.main import build_parser, main
from ur_energy_model.codec import plain
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.cycle_exports import PREDICTION, PROGRAM, SHEET
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.files import config_file
from ur_energy_model.learning.history import NEEDS, Need
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.plan import read_plan

# The genetic search has no time limit, so its result is the same on every machine.
QUICK = (
    "--optimizer", "genetic", "--population", "30", "--generations", "1", "--clearance", "0",
    "--seed", "2", "--period", "12", "--harmonics", "4",
)  # fmt: skip


def test_a_trajectory_is_designed_checked_and_exported(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "trajectory.yaml"
    result = answer(capsys, "excite", "--robot", "ur5e", *QUICK, "-o", path)
    assert result["objective"] == "condition"
    assert 0 < result["max_velocity_ratio"] <= 1
    assert 0 < result["max_acceleration_ratio"] <= 1
    trajectory = load_trajectory(path)
    assert (trajectory.harmonics, trajectory.period, trajectory.robot) == (4, 12.0, "ur5e")
    verdict = answer(capsys, "excite", "--check", path, "--clearance", 0)
    assert verdict["passed"]
    for key in ("condition_number", "clearance", "max_velocity_ratio"):
        assert verdict[key] == pytest.approx(result[key])
    crowded = ["excite", "--check", path, "--wall", 1, 0, 0, 0.1]
    assert not answer(capsys, *crowded, code=1)["passed"]
    for name in ("motion.script", "motion.csv"):
        assert main(["excite", "--export", str(path), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 1000
    assert answer(capsys, "excite", "--check", "ur5e")["condition_number"] < 60  # the included one


def test_a_trajectory_for_the_gap_of_a_learned_model(tmp_path: Path, capsys: Capture) -> None:
    generic = load_model(config_file("models", "ur5e.yaml"))
    need = Need(4, "speed", (0.2, 2.0), 1.8, "wrist_2_joint has not moved faster than 0.2 rad/s")
    learned = replace(generic, provenance={"origin": "learned", NEEDS: plain([need])})
    model, path = tmp_path / "model.yaml", tmp_path / "gap.yaml"
    save_model(learned, model)
    words = ["excite", "--for-gap", str(model), *QUICK, "-o", str(path)]
    (shown,) = answer(capsys, *words, "--robot", "ur5e")["for_gap"]
    assert (shown["joint"], shown["speed_range"]) == ("wrist_2_joint", [0.2, 2.0])
    assert shown["seconds"] > 1.0
    assert load_trajectory(path).design["for_gap"] == [shown]
    assert "is of a ur5e, not a ur3e" in end_of([*words, "--robot", "ur3e"], capsys)[2]
    save_model(generic, model)
    assert "has no list of what it lacks" in end_of(words, capsys)[2]


def request(*arguments: str) -> DesignRequest:
    return request_of(build_parser().parse_args(["excite", "--robot", "ur5e", *arguments]), "ur5e")


def test_payload_walls_and_tool(capsys: Capture) -> None:
    for words in (("1.5", "0", "0", "0.1"), ("1.5,0,0,0.1",)):
        payload = request("--payload", *words).setup.payload
        assert payload.mass == 1.5
        assert np.array_equal(payload.center_of_mass, [0, 0, 0.1])
    table, wall = request("--table", "0.1", "--wall", "-2", "0", "0", "-1.2").walls
    assert (table.name, table.offset) == ("table", 0.1)
    assert np.array_equal(wall.normal, [-1, 0, 0])
    assert wall.offset == pytest.approx(-0.6)
    (tool,) = request("--tool", "0.2", "0.05").tool
    assert tool.radius == 0.05
    assert tool.end[2] + tool.radius == pytest.approx(0.2)  # its rounded end is part of it
    with pytest.raises(InputError, match="--wall"):
        request("--wall", *"0001")
    for wrong in (["--tool-speed", "0"], ["--period", "1e-300"]):
        assert end_of(["excite", "--robot", "ur5e", "-o", "t.yaml", *wrong], capsys)[0] == 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("optimize")
    save_model(arm_model(), folder / "model.yaml")
    telemetry = hand_made_recording(3)
    with BagWriter(folder / "cell", telemetry.info, tuple(telemetry.columns), name="cell") as bag:
        bag.write(telemetry)
    return folder


def test_files_and_page_agree_with_the_json(folder: Path, capsys: Capture) -> None:
    page = folder / "page.html"
    options = ["-o", folder / "made", "--report", page, "--tariff", 0.3]
    result = answer(capsys, "optimize", folder / "model.yaml", folder / "cell", *options)
    assert [move["kind"] for move in result["moves"]] == ["moveJ", "moveL", "moveJ"]
    assert 0.99 * result["new_energy"] < result["typed_energy"] < result["energy"]
    plan = read_plan(folder / "made" / PREDICTION, ROBOT.joint_names)
    predicted = predict_energy(arm_model(), plan).total
    assert predicted == pytest.approx(result["new_energy"], rel=5e-3)
    with (folder / "made" / SHEET).open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(result["sheet"][0])
    for row, step in zip(rows, result["sheet"], strict=True):
        for name in ("new_speed", "new_acceleration", "new_wait"):
            assert row[name] == ("" if step[name] is None else str(step[name]))
    program = (folder / "made" / PROGRAM).read_text()
    assert (program.count("movej("), program.count("movel(")) == (3, 1)  # with the approach
    for step in result["sheet"]:
        assert not step["new_wait"] or f"sleep({step['new_wait']:.2f})" in program
    html = page.read_text(encoding="utf-8")
    typed = f"{result['typed_saving_percent']:.1f} %"
    for text in ("What to type", typed, "one year", "cost [EUR]", "Energy and cycle time"):
        assert text in html


def test_the_table_is_for_the_pendant(folder: Path, capsys: Capture) -> None:
    assert main(["optimize", str(folder / "model.yaml"), str(folder / "cell")]) == 0
    output = capsys.readouterr().out
    assert max(len(line) for line in output.splitlines()) <= 80
    for text in ("1 moveJ", "3 moveL", "85.9 → ", "°/s²", "250 → ", "mm/s²", "1.50 → ", "Standby"):
        assert text in output
