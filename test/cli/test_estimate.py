"""`ur_energy estimate`: its contract with scripts."""

from __future__ import annotations

import csv
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import Reader

from test.cli.conftest import Capture, refused
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, main


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


def test_estimate_writes_the_energy_topics(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "energy"
    command = ["estimate", str(model), str(bag), "--bag", str(out), "--json"]
    assert main([*command, "--rate", "10"]) == DONE
    content = json.loads(capsys.readouterr().out)
    with Reader(out) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
        (energy,) = [each for each in reader.connections if each.topic == "/energy/total/energy"]
        *_, (_, _, raw) = reader.messages([energy])
    assert counts["/energy"] == pytest.approx(300, abs=2)
    last = struct.unpack_from("<d", raw, 4)[0]
    assert last == pytest.approx(content["total"]["supply_energy"], rel=1e-6)
    refused(command, capsys, "exists already")
    assert main([*command, "--overwrite"]) == DONE
    refused([*command, "--overwrite", "--rate", "0"], capsys, "--rate")
    refused(["estimate", str(model), str(out)], capsys, "holds no samples")
    itself = ["estimate", str(model), str(bag), "--bag", str(bag), "--overwrite"]
    refused(itself, capsys, "is the recording itself")


def test_unusable_input_is_refused(bag: Path, model: Path, tmp_path: Path, capsys: Capture) -> None:
    refused(["estimate", str(tmp_path / "no.yaml"), str(bag)], capsys, "no.yaml")
    refused(["estimate", str(model), str(tmp_path)], capsys, str(tmp_path))
    other = ExactArm().record(5.0)
    foreign = write_bag(tmp_path / "x", replace(other, info=replace(other.info, robot="ur10e")))
    refused(["estimate", str(model), str(foreign)], capsys, "ur10e")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop", "\udcff"):
        out = str(tmp_path / name)
        refused(
            ["estimate", str(model), str(bag), "--bag", out],
            capsys,
            "another" if name == "loop" else "rename",
        )


def test_samples_that_are_not_finite_are_left_out_and_reported(
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
