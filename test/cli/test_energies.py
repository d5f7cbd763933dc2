"""`ur_energy estimate`, `evaluate`, `predict`, `report`: what they say of recordings."""

from __future__ import annotations

import csv
import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import Reader

from test.cli.conftest import Capture, answer, refused
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.files import config_file

PARTLY = 3
GENERIC = "generic ur5e, not identified"
PLAN = "time,q_0,q_1,q_2,q_3,q_4,q_5\n0,0,-1,1,0,0,0\n2,1,-1.5,1,0,0,0\n"


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("many")
    return [ExactArm().bag(folder / str(seed), seed=seed, seconds=20) for seed in (41, 42)]


@pytest.fixture(scope="module")
def truncated(bags: list[Path]) -> Path:
    bad = bags[0].parents[1] / "truncated"
    shutil.copytree(bags[0], bad)
    (data,) = bad.glob("*.mcap")
    with data.open("rb+") as file:
        file.truncate(data.stat().st_size // 3)
    return bad


def test_estimate_its_csv_and_its_topics(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    series, topics = tmp_path / "powers.csv", tmp_path / "energy"
    command = ["estimate", str(model), str(bag), "--bag", str(topics)]
    content = answer(capsys, *command, "--csv", series, "--rate", 10)
    total = content["total"]
    joints = sum(joint["electrical_energy"] for joint in content["joints"])
    assert total["electrical_energy"] == pytest.approx(joints)
    assert total["supply_energy"] == pytest.approx(content["bus_energy"], rel=0.01)
    with series.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3000
    assert float(rows[-1]["electrical_energy"]) == pytest.approx(total["supply_energy"], rel=1e-6)
    with Reader(topics) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
        (energy,) = [each for each in reader.connections if each.topic == "/energy/total/energy"]
        *_, (_, _, raw) = reader.messages([energy])
    assert counts["/energy"] == pytest.approx(300, abs=2)
    last = struct.unpack_from("<d", raw, 4)[0]
    assert last == pytest.approx(total["supply_energy"], rel=1e-6)
    refused(command, capsys, "exists already")
    assert main([*command, "--overwrite"]) == DONE
    refused(["estimate", str(model), str(topics)], capsys, "holds no samples")
    itself = ["estimate", str(model), str(bag), "--bag", str(bag), "--overwrite"]
    refused(itself, capsys, "is the recording itself")


def test_samples_that_are_not_finite(model: Path, tmp_path: Path, capsys: Capture) -> None:
    """Some are left out and counted; without others nothing is written."""
    recording = ExactArm().record(20.0)
    current = recording["actual_current"].copy()
    current[50:53, 0] = np.nan
    columns = {**recording.columns, "actual_current": current}
    bag = write_bag(tmp_path / "holes", replace(recording, columns=columns))
    content = answer(capsys, "estimate", model, bag)
    assert content["refused_samples"] == 3
    assert content["duration"] == pytest.approx(recording.duration, abs=0.1)
    assert main(["estimate", str(model), str(bag)]) == DONE
    assert "3 samples" in capsys.readouterr().err
    columns = {**recording.columns, "actual_current": np.full_like(current, np.nan)}
    bad = write_bag(tmp_path / "bad", replace(recording, columns=columns))
    series = tmp_path / "powers.csv"
    series.write_text("old")
    refused(["estimate", str(model), str(bad), "--csv", str(series)], capsys, "finite")
    assert series.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"powers.csv", "holes", "bad"}


def test_many_bags_are_as_each_alone_and_summed(
    model: Path, bags: list[Path], truncated: Path, capsys: Capture
) -> None:
    content = answer(capsys, "estimate", model, bags[0], truncated, bags[1], code=PARTLY)
    alone = [answer(capsys, "estimate", model, bag) for bag in bags]
    for entry, single, bag in zip(content["results"], alone, bags, strict=True):
        assert entry.pop("bag") == str(bag)
        assert entry == {key: value for key, value in single.items() if key != "model"}
    for name in ("mechanical_energy", "electrical_energy", "supply_energy", "standby_energy"):
        expected = sum(entry["total"][name] for entry in alone)
        assert content["total"][name] == pytest.approx(expected, rel=1e-12)
    (failed,) = content["failed"]
    assert failed["bag"] == str(truncated)
    assert "is truncated" in failed["reason"]
    assert answer(capsys, "estimate", model, truncated, "nothing", code=1)["results"] == []
    command = ["estimate", str(model), *map(str, bags)]
    assert main(command) == DONE
    assert "all recordings" in capsys.readouterr().out
    refused([*command, "--csv", "powers.csv"], capsys, "--csv", "single recording")
    both = ["--workers", "2", "--scheduler", "tcp://127.0.0.1:8786"]
    refused([*command, *both], capsys, "--workers", "leave one out")
    content = answer(capsys, "evaluate", model, *bags, truncated, "--workers", 2, code=PARTLY)
    alone = [answer(capsys, "evaluate", model, bag) for bag in bags]  # as on workers
    assert content["results"] == [entry["results"][0] for entry in alone]
    total = content["total"]
    assert total["recordings"] == 2
    assert total["samples"] == sum(entry["samples"] for entry in content["results"])
    errors = [entry["power"]["rmse"] for entry in content["results"]]
    assert min(errors) <= total["power_rmse"] <= max(errors)
    assert [entry["bag"] for entry in content["failed"]] == [str(truncated)]


def test_the_fitted_motion_is_no_validation(model: Path, bag: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(model), str(bag)]) == DONE
    assert "fitted to this recording" in capsys.readouterr().err
    repeated = write_bag(bag.parent / "repeated", ExactArm().record(25.0, seed=31))
    page = bag.parent / "repeated.html"
    verdict = answer(capsys, "report", model, repeated, "-o", page)["verdict"]
    assert verdict["grade"] != "good"
    assert "same motion again" in page.read_text(encoding="utf-8")


def test_a_model_of_another_serial_number_is_reported_wherever_it_meets_a_recording(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """One warning with both serial numbers, wider intervals, and no trust, unless overruled."""
    own, page = tmp_path / "own.yaml", tmp_path / "report.html"
    own.write_text(re.sub("serial: null", "serial: 'A7'", model.read_text(), count=1))
    made = ExactArm().record(12.0, seed=8)
    bag = write_bag(tmp_path / "bag", replace(made, info=replace(made.info, serial="B8")))
    store = tmp_path / "store"
    found = {
        words[0]: answer(capsys, *words)
        for words in (
            ["estimate", own, bag],
            ["evaluate", own, bag],
            ["report", own, bag, "-o", page],
            ["history", "add", store, bag, "--model", own],
            ["live", "--bag", bag, "--model", own, "--duration", 1],
        )
    }
    for name, content in found.items():
        (line,) = content["warnings"]
        assert "A7" in line, name
        assert "B8" in line, name
        serials = {"model": "A7", "recording": "B8"}
        assert content.get("serials", serials) == serials
    assert "trusted" not in found["report"]["verdict"]["headline"]
    assert "Serial number B8. Model of A7." in page.read_text(encoding="utf-8")
    same = answer(capsys, "estimate", own, bag, "--same-arm")
    assert same["warnings"] == []
    widths = [each["total"]["supply_energy_std"] for each in (found["estimate"], same)]
    assert widths[0] > 1.5 * widths[1]


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
    measured = answer(capsys, "estimate", model, bag)
    predicted = answer(capsys, "predict", model, path)
    for planned, recorded in zip(predicted["joints"], measured["joints"], strict=True):
        energy = recorded["electrical_energy"]
        assert planned["electrical_energy"] == pytest.approx(energy, rel=0.03)
    supply = measured["total"]["supply_energy"]
    assert predicted["total"]["supply_energy"] == pytest.approx(supply, rel=0.01)
    assert predicted["warnings"] == []


def test_a_recording_of_the_day_narrows_a_prediction(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(PLAN)
    for model_words in ([], [model]):
        widths = []
        for more in (["--robot", "ur5e"], ["--session", bag]):
            content = answer(capsys, "predict", *model_words, path, *more)
            assert content["session"]["anchored"] == (more[0] == "--session")
            assert content["model"] == (str(model) if model_words else "generic")
            widths.append(content["total"]["supply_energy_std"])
        assert widths[1] < widths[0]
    refused(["predict", str(path)], capsys, "--robot ur5e")


def test_without_a_model_it_is_the_generic_one(
    bag: Path, model: Path, tmp_path: Path, capsys: Capture
) -> None:
    generic = answer(capsys, "estimate", bag, "--robot", "ur5e")
    assert generic["model"] == "generic"
    assert answer(capsys, "estimate", bag) == generic  # the bag names the robot
    identified = answer(capsys, "estimate", model, "--json", bag)
    assert identified.keys() == generic.keys()
    for content in (generic, identified):
        low, high = content["total"]["supply_energy_interval"]
        assert low < content["bus_energy"] < high
    assert main(["estimate", str(bag)]) == DONE
    out, err = capsys.readouterr()
    assert GENERIC in err
    assert "± 95 %" in out
    refused(["estimate", str(bag), "--robot", "gen3"], capsys, "gen3", "ur5e", "identify")
    refused(["payload", str(config_file("models", "ur5e.yaml")), str(bag)], capsys, "identify")


def test_the_report_and_its_figures(
    bag: Path, model: Path, tmp_path: Path, capsys: Capture
) -> None:
    page, figures = tmp_path / "new" / "report.html", tmp_path / "figures"
    options = ["--tariff", 0.3, "--co2", 0.4, "--figures", figures]
    result = answer(capsys, "report", model, bag, "-o", page, *options)
    assert result["bytes"] == page.stat().st_size < 5_000_000
    assert result["cost"] == pytest.approx(0.3 * result["energy"] / 3.6e6)
    assert result["co2"] == pytest.approx(0.4 * result["energy"] / 3.6e6)
    assert all(Path(path).is_file() for path in result["figures"])
    assert "generic" not in json.dumps(result["verdict"])
    text = page.read_text(encoding="utf-8")
    for title in ("Energy of a UR5e", "Table IV", "Table V)", "Table VI)", "Table VII)",
                  "Table VIII", "Provenance"):  # fmt: skip
        assert title in text
    page.write_text("old")
    refused(["report", str(model), "missing", "-o", str(page)], capsys, "missing")
    assert page.read_text() == "old"
