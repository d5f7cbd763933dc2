"""`ur_energy history health`, from bags to words."""

from __future__ import annotations

import json

import pytest

from test.plant.recorded_fleet import record
from test.plant.surrogate_health import elbow, health_table
from test.plant.synthetic_plant import add_tables
from ur_energy_model.cli.main import main


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = tmp_path_factory.mktemp("plant") / "store"
    changed = health_table(7501, 140, friction=elbow(0.18, 122.0))
    add_tables(store, "7", "made-7", {"health": changed})
    add_tables(store, "8", "made-8", {"health": health_table(7502, 60)})
    return store


def test_changes_in_words(store, capsys):
    assert main(["history", "health", str(store)]) == 0
    captured = capsys.readouterr()
    assert "elbow_joint of arm 7: friction +" in captured.out
    assert "95 % interval" in captured.out
    assert "1 of 2 arms without a change" in captured.err


def test_json(store, capsys):
    assert main(["history", "health", str(store), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["arm"] for entry in answer["arms"]] == ["7", "8"]
    (change,) = answer["changes"]
    assert (change["arm"], change["joint"], change["what"]) == ("7", "elbow_joint", "friction")
    assert change["interval"][0] < 0.18 < change["interval"][1]


def test_from_a_bag(tmp_path, capsys):
    bag, store = record(tmp_path, "s1", 2960, 1), str(tmp_path / "store")
    assert main(["history", "add", store, str(bag)]) == 0
    capsys.readouterr()
    assert main(["history", "health", store, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (arm,) = answer["arms"]
    assert (arm["arm"], arm["robot"]) == ("s1", "ur5e")
    friction = [level for level in arm["levels"] if level["what"] == "friction"]
    assert len(friction) == 6
    assert all(0.3 < level["value"] < 60.0 for level in friction)
    assert answer["changes"] == []


def test_an_empty_store(tmp_path, capsys):
    assert main(["history", "health", str(tmp_path / "none"), "--json"]) != 0
    assert "history add" in capsys.readouterr().err
