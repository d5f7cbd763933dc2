# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy history`: adding, watching and querying, as a user calls them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from test.cli.conftest import Capture, answer, refused
from test.plant.made_up_bags import HOUR, MODEL, NOON, Session, estimated, rows
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.model.model_file import save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two bags that are a minute old, and the model beside it."""
    folder = tmp_path_factory.mktemp("history") / "bags"
    for k in range(2):
        Session(at=NOON + k * HOUR, cycle=1.0).bag(folder / f"bag_{k}")
    for file in folder.rglob("bag_*/*"):
        os.utime(file, (time.time() - 60.0,) * 2)
    save_model(MODEL, folder.parent / "model.yaml")
    return folder


def history(*words: object) -> int:
    return main(["history", *map(str, words)])


def test_add(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    """What is there already is skipped, and a bag that fails does not end the others."""
    bags = sorted(folder.iterdir())
    model = folder.parent / "model.yaml"
    store = tmp_path / "store"
    command = ["history", "add", store, *bags, "--model", model]
    result = answer(capsys, *command)
    assert (result["added"], result["skipped"], result["failed"]) == (2, 0, [])
    assert result["energy"] == pytest.approx(sum(estimated(bag).supply for bag in bags))
    again = answer(capsys, *command)
    assert (again["added"], again["skipped"], again["energy"]) == (0, 2, 0.0)
    command = [
        "history",
        "add",
        tmp_path / "partly",
        bags[0],
        tmp_path / "none",
        "--model",
        model,
    ]
    partly = answer(capsys, *command, "--workers", 1, "--arm", "cell 7/left", code=3)
    assert partly["added"] == 1
    assert [failed["bag"] for failed in partly["failed"]] == [str(tmp_path / "none")]
    assert {row["arm"] for row in rows(tmp_path / "partly")} == {"cell_7_left"}


def test_watch_once(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    command = [
        "history",
        "watch",
        str(tmp_path / "once"),
        str(folder),
        "--once",
        "--json",
    ]
    command += ["--model", str(folder.parent / "model.yaml")]
    assert main(command) == DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [(str(folder / f"bag_{k}"), 1) for k in range(2)]
    assert [(line["bag"], line["added"]) for line in lines] == expected


# Questions to a store.


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    return str(
        write_plant(folder, [Arm("A1", programs=("weld",))], Work(days=2, seconds=900))
    )


def test_sql(store: str, capsys: Capture) -> None:
    """Also values that JSON or Python does not have."""
    sql = "SELECT count(*) AS n, 'NaN'::DOUBLE AS x, DATE '99999-01-01' AS y FROM seconds"
    content = answer(capsys, "history", "sql", store, sql)
    assert content["rows"] == [{"n": 1800, "x": None, "y": "out of range"}]
    assert history("sql", store, "SELECT second FROM seconds", "--limit", "3") == DONE
    out, err = capsys.readouterr()
    assert "3 rows" in out
    assert "--limit" in err
    wrong = os.fsdecode(b"\xff")
    refused(["history", "sql", store, f"SELECT '{wrong}'"], capsys, "UTF-8")


def test_shifts_and_tariff_on_the_terminal(store: str, capsys: Capture) -> None:
    words = ("summary", store, "--tariff", "1", "--by")
    assert history(*words, "program") == DONE
    out, err = capsys.readouterr()
    assert all(word in out for word in ("weld", "outside", "total", "EUR"))
    assert "UTC" in err
    found = answer(capsys, "history", *words, "shift", "--shifts", "05:00,13:00")["rows"]
    assert [row["shift"] for row in found] == ["2026-05-04 05:00", "2026-05-05 05:00"]
    refused(["history", *words, "shift"], capsys, "--shifts")
