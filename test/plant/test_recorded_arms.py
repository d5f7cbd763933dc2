"""The history of recordings of real arms equals their estimate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import rows, total
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.samples import Telemetry


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("ur10e_other_days_2019_10_01", 1),  # irregular steps
        ("ur5e_pick_place_50hz_24s", 10),  # 5 Hz
        ("ur5e_other_arm_125hz_11s", 1),
        ("ur5e_streamed_move_500hz_6s", 1),
    ],
)
def test_sums_equal_the_estimate(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, every: int
) -> None:
    bag, store = tmp_path / name, tmp_path / "store"
    file, robot = recordings / f"{name}.csv.gz", name.partition("_")[0]
    assert main(["import", str(file), "--robot", robot, "-o", str(bag)]) == 0
    if every > 1:
        whole = read_bag(bag)
        columns = {field: values[::every] for field, values in whole.columns.items()}
        info = replace(whole.info, rate=None)
        bag = write_bag(tmp_path / "slower", Telemetry(whole.time[::every], columns, info))
    capsys.readouterr()
    assert main(["estimate", str(bag), "--json"]) == 0
    truth = json.loads(capsys.readouterr().out)
    assert main(["history", "add", str(store), str(bag), "--json"]) == 0
    added = json.loads(capsys.readouterr().out)
    supply = truth["total"]["supply_energy"]
    assert added["energy"] == pytest.approx(supply, rel=1e-9)
    found = rows(store)
    assert added["seconds"] == len(found)
    for column, value in {
        "total_energy": supply,
        "standby_energy": truth["total"]["standby_energy"],
        "driver_energy": truth["total"]["driver_energy"],
        "accounted": truth["duration"],
        "unaccounted": truth["unaccounted_time"],
    }.items():
        assert total(store, column) == pytest.approx(value, rel=1e-9, abs=1e-6)
    joints = [joint["electrical_energy"] for joint in truth["joints"]]
    assert np.sum([row["joint_energy"] for row in found], axis=0) == pytest.approx(joints)
    for state, value in truth["states"].items():
        assert total(store, f"{state}_energy") == pytest.approx(value["energy"], abs=1e-6)
        assert total(store, f"{state}_time") == pytest.approx(value["time"], abs=1e-6)
    if truth["bus_energy"] is None:
        assert any(row["bus_energy"] is None for row in found)
    else:
        assert total(store, "bus_energy") == pytest.approx(truth["bus_energy"], rel=1e-9)
    assert {row["model"] for row in found} == {"generic"}
    assert max(row["accounted"] for row in found) < 1.05  # steps are not whole parts of a second
