"""`ur_energy predict`: its contract with scripts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from test.cli.conftest import Capture, refused
from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, main


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


def test_a_missing_trajectory_is_refused(model: Path, tmp_path: Path, capsys: Capture) -> None:
    refused(["predict", str(model), str(tmp_path / "no.csv")], capsys, "no.csv")
