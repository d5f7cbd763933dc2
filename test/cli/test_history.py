"""`ur_energy history`: adding, watching and querying, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from test.cli.conftest import Capture, answer, refused
from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import HOUR, MODEL, NOON, Session, estimated, rows
from test.plant.surrogate_health import elbow, health_table
from test.plant.synthetic_plant import Arm, Work, add_tables, write_plant
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.learning.state import file_digest
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
    bags, model, store = sorted(folder.iterdir()), folder.parent / "model.yaml", tmp_path / "store"
    command = ["history", "add", store, *bags, "--model", model]
    result = answer(capsys, *command)
    assert (result["added"], result["skipped"], result["failed"]) == (2, 0, [])
    assert result["energy"] == pytest.approx(sum(estimated(bag).supply for bag in bags))
    assert result["seconds"] == 16
    again = answer(capsys, *command)
    assert (again["added"], again["skipped"], again["energy"]) == (0, 2, 0.0)
    digest = file_digest(model)
    assert digest is not None
    assert {row["model"] for row in rows(store)} == {digest[:16]}
    assert len(rows(store, "cycles")) == 12
    command = ["history", "add", tmp_path / "partly", bags[0], tmp_path / "none", "--model", model]
    partly = answer(capsys, *command, "--workers", 1, "--arm", "cell 7/left", code=3)
    assert partly["added"] == 1
    assert [failed["bag"] for failed in partly["failed"]] == [str(tmp_path / "none")]
    assert {row["arm"] for row in rows(tmp_path / "partly")} == {"cell_7_left"}


def test_without_a_model_each_bag_gets_the_generic_one_of_its_type(
    tmp_path: Path, capsys: Capture
) -> None:
    bags = []
    for robot in ("ur5e", "ur10e", None):
        telemetry = Session(serial=robot).telemetry()
        telemetry = replace(telemetry, info=replace(telemetry.info, robot=robot))
        bags.append(str(write_bag(tmp_path / str(robot), telemetry)))
    (failed,) = answer(capsys, "history", "add", tmp_path / "store", *bags, code=3)["failed"]
    assert failed["bag"] == bags[2]
    assert "--robot ur5e" in failed["reason"]
    found = {(row["robot"], row["model"]) for row in rows(tmp_path / "store")}
    assert found == {("ur5e", "generic"), ("ur10e", "generic")}


def test_what_cannot_be_used_is_refused(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    bag, model = str(folder / "bag_0"), str(folder.parent / "model.yaml")
    refused(["history", "add", "ftp://x", bag, "--model", model], capsys, "ftp://x")
    refused(["history", "add", model, bag, "--model", model], capsys, "is not a folder")
    refused(["history", "add", str(tmp_path), bag, "--model", "none.yaml"], capsys, "none.yaml")
    refused(["history", "summary", str(tmp_path / "none")], capsys, "history add")


def test_watch(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    """Once, and until Ctrl-C."""
    command = ["history", "watch", str(tmp_path / "once"), str(folder), "--once", "--json"]
    command += ["--model", str(folder.parent / "model.yaml")]
    assert main(command) == DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [(str(folder / f"bag_{k}"), 1) for k in range(2)]
    assert [(line["bag"], line["added"]) for line in lines] == expected
    bags, store = tmp_path / "bags", tmp_path / "store"
    bags.mkdir()
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "history", "watch", str(store)]
    command += [str(bags), "--model", str(folder.parent / "model.yaml"), "--interval", "0.05"]
    with subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            (folder / "bag_0").rename(bags / "made")
            assert json.loads(process.stdout.readline())["added"] == 1
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, "")
        finally:
            process.kill()
            (bags / "made").rename(folder / "bag_0")
    assert len(rows(store)) == 8


# Questions to a store.


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    return str(write_plant(folder, [Arm("A1", programs=("weld",))], Work(days=2, seconds=900)))


def test_summary(store: str, capsys: Capture) -> None:
    content = answer(capsys, "history", "summary", store, "--tariff", "0.36", "--co2", "0.5")
    (row,) = content["rows"]
    assert (row["arm"], row["duration"]) == ("A1", 1800.0)
    assert row["cost"] == pytest.approx(row["energy"] * 1e-7)
    assert row["co2"] == pytest.approx(row["energy"] / 7.2e6)
    assert content["total"]["energy"] == row["energy"]
    assert content["time_zone"] == "UTC"
    assert history("summary", store, "--by", "program", "--tariff", "1") == DONE
    out, err = capsys.readouterr()
    assert all(word in out for word in ("weld", "outside", "total", "EUR"))
    assert "UTC" in err
    words = ("history", "summary", store, "--by")
    found = answer(capsys, *words, "hour", "--time-zone", "Asia/Tokyo")["rows"]
    assert found[0]["hour"] == "2026-05-04T15:00:00+09:00"
    found = answer(capsys, *words, "shift", "--shifts", "05:00,13:00")["rows"]
    assert [row["shift"] for row in found] == ["2026-05-04 05:00", "2026-05-05 05:00"]
    refused([*words, "shift"], capsys, "--shifts")


def test_sql(store: str, capsys: Capture) -> None:
    sql = "SELECT day, count(*) AS n, min(second) AS t, sum(total_energy) > 0 AS some FROM seconds "
    days = [
        ("2026-05-04", "2026-05-04T06:00:00+00:00"),
        ("2026-05-05", "2026-05-05T06:00:00+00:00"),
    ]
    assert answer(capsys, "history", "sql", store, f"{sql} GROUP BY day ORDER BY day") == {
        "columns": ["day", "n", "t", "some"],
        "rows": [{"day": day, "n": 900, "t": time, "some": True} for day, time in days],
        "warnings": [],
    }
    nothing = "SELECT arm FROM seconds WHERE arm = 'x'"
    empty = {"columns": ["arm"], "rows": [], "warnings": []}
    assert answer(capsys, "history", "sql", store, nothing) == empty
    assert history("sql", store, nothing) == DONE
    assert capsys.readouterr().out == "no rows; columns: arm\n"
    assert history("sql", store, "SELECT second FROM seconds", "--limit", "3") == DONE
    out, err = capsys.readouterr()
    assert "3 rows" in out
    assert "--limit" in err
    assert history("sql", store, "SELECT * FROM seconds LIMIT 1") == DONE  # wide: one by one
    assert "joint_temperature" in capsys.readouterr().out


VALUES: dict[str, object] = {
    "'NaN'::DOUBLE": None,
    "1.5::DECIMAL(4, 2)": 1.5,
    "INTERVAL 90 SECOND": [0, 0, 90_000_000_000],
    "[1, 2]": [1, 2],
    "DATE '99999-01-01'": "out of range",  # of Python's years
    "TIMESTAMP 'infinity'": "out of range",
    "{'a': DATE '99999-01-01'}": "out of range",
}


def test_sql_values_are_plain(store: str, capsys: Capture) -> None:
    columns = ", ".join(f"{sql} AS x{k}" for k, sql in enumerate(VALUES))
    (found,) = answer(capsys, "history", "sql", store, f"SELECT {columns}")["rows"]
    assert list(found.values()) == list(VALUES.values())
    assert history("sql", store, f"SELECT {columns}") == DONE


def test_names_that_are_not_utf_8(store: str, tmp_path: Path, capsys: Capture) -> None:
    wrong = os.fsdecode(b"\xff")
    refused(["history", "sql", store, f"SELECT '{wrong}'"], capsys, "UTF-8")
    (tmp_path / wrong).mkdir()
    refused(["history", "summary", str(tmp_path / wrong)], capsys, "UTF-8")
    assert history("report", store, "-o", tmp_path / wrong / "x.html") == DONE
    assert history("export", store, "-o", tmp_path / wrong / "x.csv") == DONE


def test_export_and_report(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.csv"
    found = answer(capsys, "history", "export", store, "-o", path, "--to", "2026-05-04")
    assert found == {"file": str(path), "table": "seconds", "rows": 900, "warnings": []}
    assert len(path.read_text().splitlines()) == 901
    page = tmp_path / "plant.html"
    content = answer(capsys, "history", "report", store, "-o", page, "--tariff", "0.3")
    assert (content["arms"], content["days"]) == (1, 2)
    assert content["bytes"] == page.stat().st_size
    assert history("report", store, "-o", page, "--arm", "none") == DONE
    assert "no energy" in capsys.readouterr().out


def test_health(tmp_path: Path, capsys: Capture) -> None:
    store = tmp_path / "store"
    changed = health_table(7501, 140, friction=elbow(0.18, 122.0))
    add_tables(store, "7", "made-7", {"health": changed})
    add_tables(store, "8", "made-8", {"health": health_table(7502, 60)})
    assert history("health", store) == DONE
    out, err = capsys.readouterr()
    assert "elbow_joint of arm 7: friction +" in out
    assert "1 of 2 arms without a change" in err
