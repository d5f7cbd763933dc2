"""`ur_energy inspect`, as a user calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.telemetry.conftest import make_telemetry
from ur_energy_model.cli.main import main
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry


def write_bag(path: Path, made: Telemetry) -> Path:
    with BagWriter(path, made.info, tuple(made.columns)) as bag:
        bag.write(made)
    return path


@pytest.fixture(scope="module")
def made() -> Telemetry:
    return made_up_recording(load_robot("ur5e"), seconds=20, noise=0.5, coulomb=4.0, viscous=3.0)


def test_json_holds_the_verdict_and_its_figures(made, tmp_path, capsys) -> None:
    bag = write_bag(tmp_path / "bag", made)
    assert main(["inspect", str(bag), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["samples"] == len(made)
    assert out["rate"] == pytest.approx(100)
    assert len(out["joints"]) == 6
    assert out["condition_number"] > 1
    assert out["refusal"] is None
    assert {use["purpose"] for use in out["uses"]} >= {"friction", "bus_power", "payload"}
    assert out["joints"][0]["travel"] == pytest.approx(float(np.ptp(made["actual_q"][:, 0])))


def test_table_ends_with_the_verdict(made, tmp_path, capsys) -> None:
    assert main(["inspect", str(write_bag(tmp_path / "bag", made))]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[-1].startswith("verdict: good for setup and inertia, friction")
    assert max(map(len, lines[:-1])) <= 90


def test_a_recording_of_the_offline_simulator_is_not_usable(made, tmp_path, capsys) -> None:
    columns = {
        **made.columns,
        "target_current": made["actual_current"] / 1.1,
        "actual_robot_voltage": np.full(len(made), 48.0),
    }
    bag = write_bag(tmp_path / "bag", Telemetry(made.time, columns, made.info))
    assert main(["inspect", str(bag)]) == 0
    assert "not usable: comes from the maker's offline simulator" in capsys.readouterr().out


def test_a_missing_bag_is_one_line(tmp_path, capsys) -> None:
    assert main(["inspect", str(tmp_path / "nothing")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    assert "nothing" in captured.err


def test_an_impossible_value_is_named(tmp_path, capsys) -> None:
    telemetry = make_telemetry(3000, fields=("actual_q", "actual_qd", "actual_current"))
    current = telemetry["actual_current"].copy()
    current[1000, 2] = 1e160
    telemetry = replace(telemetry, columns={**telemetry.columns, "actual_current": current})
    bag = write_bag(tmp_path / "bag", telemetry)
    assert main(["inspect", str(bag), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert any("actual_current_2 = 1e+160" in line for line in result["warnings"])
    assert main(["identify", str(bag), "--robot", "ur5e", "-o", str(tmp_path / "m.yaml")]) == 1
    assert "impossible for any arm" in capsys.readouterr().err
