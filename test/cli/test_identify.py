"""`ur_energy identify`, `evaluate`, `estimate` and `predict`: their contract with scripts."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, REFUSED, main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ExactArm().bag(tmp_path_factory.mktemp("cli"), seed=31, seconds=30)


@pytest.fixture(scope="module")
def model(bag: Path) -> Path:
    path = bag.parent / "model.yaml"
    assert main(["identify", str(bag), "--robot", "ur5e", "-o", str(path)]) == DONE
    return path


def printed(capsys: Capture) -> dict[str, object]:
    return dict(json.loads(capsys.readouterr().out))


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


def test_identify_for_people(bag: Path, tmp_path: Path, capsys: Capture) -> None:
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
    refused(["identify", str(bag), *tail, "--payload", "1", "2"], capsys, "--payload")


def test_evaluate(model: Path, bag: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(model), str(bag), str(bag), "--json"]) == DONE
    results = printed(capsys)["results"]
    assert isinstance(results, list)
    assert len(results) == 2
    first = results[0]
    assert {"bag", "samples", "torque", "current", "power"} <= set(first)
    assert set(first["current"][0]) == {"mean", "max", "rms", "r2"}
    assert set(first["power"]) == {"rmse", "rmse_percent", "r2", "energy_error_percent"}
    assert main(["evaluate", str(model), str(bag)]) == DONE
    assert "RMSE" in capsys.readouterr().out


def test_estimate_and_its_csv(model: Path, bag: Path, tmp_path: Path, capsys: Capture) -> None:
    series = tmp_path / "powers.csv"
    assert main(["estimate", str(model), str(bag), "--csv", str(series), "--json"]) == DONE
    content = json.loads(capsys.readouterr().out)
    assert content["duration"] == pytest.approx(30.0, abs=0.1)
    keys = {"name", "mechanical_energy", "electrical_energy", "efficiency"}
    assert all(keys <= set(joint) for joint in content["joints"])
    total = content["total"]
    assert total["electrical_energy"] == pytest.approx(
        sum(joint["electrical_energy"] for joint in content["joints"])
    )
    assert total["supply_energy"] == pytest.approx(content["bus_energy"], rel=0.01)
    assert total["supply_energy_std"] > 0
    with series.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3000
    assert float(rows[-1]["electrical_energy"]) == pytest.approx(total["supply_energy"], rel=1e-6)


def test_predict_agrees_with_the_recording(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    recording = ExactArm().record(30.0, seed=31)
    path = tmp_path / "plan.csv"
    columns = [recording.time - recording.time[0]]
    names = ["time"]
    for name in ("q", "qd", "qdd"):
        columns.extend(recording[f"target_{name}"].T)
        names.extend(f"{name}_{j}" for j in range(6))
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=",".join(names), comments="")
    assert main(["estimate", str(model), str(bag), "--json"]) == DONE
    measured = json.loads(capsys.readouterr().out)
    assert main(["predict", str(model), str(path), "--json"]) == DONE
    predicted = json.loads(capsys.readouterr().out)
    for planned, recorded in zip(predicted["joints"], measured["joints"], strict=True):
        assert planned["electrical_energy"] == pytest.approx(
            recorded["electrical_energy"], rel=0.03
        )
    assert predicted["total"]["supply_energy"] == pytest.approx(
        measured["total"]["supply_energy"], rel=0.01
    )
    assert predicted["warnings"] == []
    assert main(["predict", str(model), str(path)]) == DONE


def test_a_recording_of_the_day_narrows_a_prediction(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("time,q_0,q_1,q_2,q_3,q_4,q_5\n0,0,-1,1,0,0,0\n2,1,-1.5,1,0,0,0\n")
    stds = []
    for options in ([], ["--session", str(bag)]):
        assert main(["predict", str(model), str(path), "--json", *options]) == DONE
        content = json.loads(capsys.readouterr().out)
        assert content["session"]["anchored"] == bool(options)
        stds.append(content["total"]["supply_energy_std"])
    assert stds[1] < stds[0]


def refused(arguments: list[str], capsys: Capture, *words: str) -> None:
    """One line on stderr with these words, nothing on stdout, exit code 1."""
    capsys.readouterr()
    assert main(arguments) == REFUSED
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.endswith("...")]
    assert len(lines) == 1, err
    assert out == ""
    for word in words:
        assert word in lines[0]


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


def test_refused_models(bag: Path, model: Path, tmp_path: Path, capsys: Capture) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(model.read_text().replace("unit: N m/A", "unit: Nm"))
    refused(["evaluate", str(broken), str(bag)], capsys, "broken.yaml", "line ", "N m/A")
    refused(["estimate", str(tmp_path / "no.yaml"), str(bag)], capsys, "no.yaml")
    refused(["estimate", str(model), str(tmp_path)], capsys, str(tmp_path))
    other = ExactArm().record(5.0)
    foreign = write_bag(tmp_path / "x", replace(other, info=replace(other.info, robot="ur10e")))
    refused(["estimate", str(model), str(foreign)], capsys, "ur10e")
    refused(["predict", str(model), str(bag.parent / "no.csv")], capsys, "no.csv")


def test_samples_that_are_not_finite_are_left_out_and_told(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    recording = ExactArm().record(20.0)
    current = recording["actual_current"].copy()
    current[50:53, 0] = np.nan
    columns = {**recording.columns, "actual_current": current}
    bag = write_bag(tmp_path / "holes", replace(recording, columns=columns))
    assert main(["estimate", str(model), str(bag), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["refused_samples"] == 3
    assert content["duration"] == pytest.approx(recording.duration, abs=0.1)
    assert main(["estimate", str(model), str(bag)]) == 0
    assert "3 samples" in capsys.readouterr().err


def test_a_refused_estimate_leaves_the_old_series(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    series = tmp_path / "powers.csv"
    series.write_text("old")
    recording = ExactArm().record(60.0)
    nothing = np.full_like(recording["actual_current"], np.nan)
    columns = {**recording.columns, "actual_current": nothing}
    bad = write_bag(tmp_path / "bad", replace(recording, columns=columns))
    refused(["estimate", str(model), str(bad), "--csv", str(series)], capsys, "finite")
    assert series.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"powers.csv", "bad"}
