"""`ur_energy excite` as a user calls it."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ur_energy_model.cli.main import main
from ur_energy_model.codec import plain
from ur_energy_model.files import config_file
from ur_energy_model.learning.history import NEEDS, Need
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.trajectory.fourier import load_trajectory

# The genetic search has no time limit, so its result is the same on every machine.
QUICK = (
    "--optimizer", "genetic", "--population", "30", "--generations", "1", "--clearance", "0",
    "--seed", "2", "--period", "12", "--harmonics", "4",
)  # fmt: skip


def call(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(["excite", *arguments])
        except SystemExit as usage:
            code = int(str(usage.code))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def designed(tmp_path_factory) -> tuple[Path, dict[str, object]]:
    path = tmp_path_factory.mktemp("excite") / "trajectory.yaml"
    code, out, err = call("--robot", "ur5e", *QUICK, "-o", str(path), "--json")
    assert code == 0, err
    return path, json.loads(out)


def test_json_contract(designed):
    path, result = designed
    keys = {
        "condition_number",
        "objective",
        "max_velocity_ratio",
        "max_acceleration_ratio",
        "clearance",
        "seconds",
    }
    assert keys <= set(result)
    assert result["objective"] == "condition"
    assert 0 < result["max_velocity_ratio"] <= 1
    assert 0 < result["max_acceleration_ratio"] <= 1
    trajectory = load_trajectory(path)
    assert (trajectory.harmonics, trajectory.period, trajectory.robot) == (4, 12.0, "ur5e")
    assert trajectory.design["condition_number"] == pytest.approx(result["condition_number"])


def test_a_trajectory_for_the_gap_of_a_learned_model(tmp_path):
    generic = load_model(config_file("models", "ur5e.yaml"))
    need = Need(4, "speed", (0.2, 2.0), 1.8, "wrist_2_joint has not moved faster than 0.2 rad/s")
    learned = replace(generic, provenance={"origin": "learned", NEEDS: plain([need])})
    model, path = tmp_path / "model.yaml", tmp_path / "gap.yaml"
    save_model(learned, model)
    arguments = ("--for-gap", str(model), *QUICK, "-o", str(path))
    code, out, err = call("--robot", "ur5e", *arguments, "--json")
    assert code == 0, err
    (shown,) = json.loads(out)["for_gap"]
    assert (shown["joint"], shown["speed_range"]) == ("wrist_2_joint", [0.2, 2.0])
    assert shown["seconds"] > 1.0
    assert load_trajectory(path).design["for_gap"] == [shown]
    code, _, err = call("--robot", "ur3e", *arguments)
    assert code == 1
    assert "is of a ur5e, not a ur3e" in err
    save_model(generic, model)
    code, _, err = call("--robot", "ur5e", *arguments)
    assert code == 1
    assert "has no list of what it lacks" in err


def test_check_agrees_with_the_design(designed):
    path, result = designed
    code, out, _ = call("--check", str(path), "--clearance", "0", "--json")
    assert code == 0
    verdict = json.loads(out)
    assert verdict["passed"]
    for key in ("condition_number", "clearance", "max_velocity_ratio"):
        assert verdict[key] == pytest.approx(result[key])


def test_check_of_a_crowded_cell_is_refused(designed):
    path, _ = designed
    code, out, err = call("--check", str(path), "--wall", "1", "0", "0", "0.1", "--json")
    assert code == 1
    assert not json.loads(out)["passed"]
    assert "wall 1" in err


def test_included_trajectories_are_found_by_robot_name():
    code, out, _ = call("--check", "ur5e", "--json")
    assert code == 0
    assert json.loads(out)["condition_number"] < 60


@pytest.mark.parametrize("name", ["motion.script", "motion.csv"])
def test_exports(designed, tmp_path, name):
    path, _ = designed
    code, _, err = call("--export", str(path), "-o", str(tmp_path / name))
    assert code == 0, err
    assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--robot", "ur99", "-o", "x.yaml"), 1, "ur99"),
        (("--robot", "ur5e", "--harmonics", "1", "-o", "x.yaml"), 1, "--harmonics"),
        (("--robot", "ur5e", "--period", "0", "-o", "x.yaml"), 1, "--period"),
        (("--robot", "ur5e"), 2, "-o"),
        (("--check", "missing.yaml"), 1, "missing.yaml"),
        (("--execute", "ur5e"), 2, "--host"),
        (
            ("--execute", "ur5e", "--host", "127.0.15.97", "-o", "b", "--speed-fraction", "2"),
            2,
            "1",
        ),
        (("--execute", "ur5e", "--host", "127.0.15.97", "-o", "b", "--yes"), 1, "127.0.15.97"),
    ],
)
def test_refusals_are_one_clear_line(arguments, code, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, out, err = call(*arguments)
    assert found == code
    assert out == ""
    assert text in err.strip().splitlines()[-1]
    assert not list(tmp_path.iterdir())
