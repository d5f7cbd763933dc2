"""The commands history summary, sql, export, report and health."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from test.cli.conftest import Capture, answer, refused
from test.plant.recorded_fleet import record
from test.plant.surrogate_health import elbow, health_table
from test.plant.synthetic_plant import Arm, Work, add_tables, write_plant
from ur_energy_model.cli.main import DONE, USAGE, main


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    return str(write_plant(folder, [Arm("A1", programs=("weld",))], Work(days=2, seconds=900)))


def history(*words: object) -> int:
    return main(["history", *map(str, words)])


def test_summary(store: str, capsys: Capture) -> None:
    words = ("history", "summary", store, "--tariff", "0.36", "--co2", "0.5")
    content = answer(capsys, *words)
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


@pytest.mark.parametrize("key", ["arm", "day", "hour", "program", "joint"])
def test_every_row_has_the_figures_of_the_contract(store: str, key: str, capsys: Capture) -> None:
    for row in answer(capsys, "history", "summary", store, "--by", key)["rows"]:
        figures = {"energy", "standby_energy", "motion_energy", "duration", "cost"}
        assert figures | {key} <= set(row)
        assert row["cost"] is None


def test_hours_and_shifts_have_their_zone(store: str, capsys: Capture) -> None:
    words = ("history", "summary", store, "--by")
    rows = answer(capsys, *words, "hour", "--time-zone", "Asia/Tokyo")["rows"]
    assert rows[0]["hour"] == "2026-05-04T15:00:00+09:00"
    rows = answer(capsys, *words, "shift", "--shifts", "05:00,13:00")["rows"]
    assert [row["shift"] for row in rows] == ["2026-05-04 05:00", "2026-05-05 05:00"]
    refused([*words, "shift"], capsys, "--shifts")


def test_sql(store: str, capsys: Capture) -> None:
    sql = "SELECT day, count(*) AS n, min(second) AS t, sum(total_energy) > 0 AS some FROM seconds "
    assert answer(capsys, "history", "sql", store, f"{sql} GROUP BY day ORDER BY day") == {
        "columns": ["day", "n", "t", "some"],
        "rows": [
            {"day": f"2026-05-0{day}", "n": 900, "t": f"2026-05-0{day}T06:00:00+00:00",
             "some": True}
            for day in (4, 5)
        ],
        "warnings": [],
    }  # fmt: skip
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
    for wrong, word in (("DROP VIEW seconds", "SELECT"), ("SELECT x FROM seconds", '"x"')):
        refused(["history", "sql", store, wrong], capsys, word)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'NaN'::DOUBLE", None),
        ("1.5::DECIMAL(4, 2)", 1.5),
        ("INTERVAL 90 SECOND", [0, 0, 90_000_000_000]),
        ("[1, 2]", [1, 2]),
        ("DATE '99999-01-01'", "99999-01-01"),  # beyond those of Python
        ("TIMESTAMP 'infinity'", "infinity"),
        ("DATE '-infinity'", "-infinity"),
        ("[TIMESTAMPTZ '99999-01-01', NULL]", ["99999-01-01T00:00:00.000000", None]),
        ("{'a': DATE '99999-01-01'}", {"a": "99999-01-01"}),
        ("MAP {'a': DATE '99999-01-01'}", [{"key": "a", "value": "99999-01-01"}]),
    ],
)
def test_sql_values_are_plain(store: str, sql: str, value: object, capsys: Capture) -> None:
    found = answer(capsys, "history", "sql", store, f"SELECT {sql} AS x")["rows"]
    assert found == [{"x": value}]
    assert history("sql", store, f"SELECT {sql} AS x") == DONE


def test_names_that_are_not_utf_8(store: str, tmp_path: Path, capsys: Capture) -> None:
    wrong = os.fsdecode(b"\xff")
    refused(["history", "sql", store, f"SELECT '{wrong}'"], capsys, "UTF-8")
    (tmp_path / wrong).mkdir()
    refused(["history", "summary", str(tmp_path / wrong)], capsys, "UTF-8")
    assert history("report", store, "-o", tmp_path / wrong / "x.html") == DONE
    assert history("export", store, "-o", tmp_path / wrong / "x.csv") == DONE


def test_export(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.csv"
    found = answer(capsys, "history", "export", store, "-o", path, "--to", "2026-05-04")
    assert found == {"file": str(path), "table": "seconds", "rows": 900, "warnings": []}
    assert len(path.read_text().splitlines()) == 901


def test_report(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "plant.html"
    content = answer(capsys, "history", "report", store, "-o", path, "--tariff", "0.3")
    assert (content["arms"], content["days"]) == (1, 2)
    assert content["bytes"] == path.stat().st_size
    assert history("report", store, "-o", path) == DONE
    assert "1 arm used" in capsys.readouterr().out
    assert history("report", store, "-o", path, "--arm", "none") == DONE
    assert "no energy" in capsys.readouterr().out


def test_health(tmp_path: Path, capsys: Capture) -> None:
    store = tmp_path / "store"
    changed = health_table(7501, 140, friction=elbow(0.18, 122.0))
    add_tables(store, "7", "made-7", {"health": changed})
    add_tables(store, "8", "made-8", {"health": health_table(7502, 60)})
    assert history("health", store) == DONE
    out, err = capsys.readouterr()
    assert "elbow_joint of arm 7: friction +" in out
    assert "95 % interval" in out
    assert "1 of 2 arms without a change" in err
    found = answer(capsys, "history", "health", store)
    assert [entry["arm"] for entry in found["arms"]] == ["7", "8"]
    (change,) = found["changes"]
    assert (change["arm"], change["joint"], change["what"]) == ("7", "elbow_joint", "friction")
    assert change["since"].startswith("2026-0")
    assert change["interval"][0] < 0.18 < change["interval"][1]


def test_health_from_a_bag(tmp_path: Path, capsys: Capture) -> None:
    store = tmp_path / "store"
    assert history("add", store, record(tmp_path, "s1", 2960, 1)) == DONE
    found = answer(capsys, "history", "health", store)
    (arm,) = found["arms"]
    assert (arm["arm"], arm["robot"]) == ("s1", "ur5e")
    friction = [level["value"] for level in arm["levels"] if level["what"] == "friction"]
    assert len(friction) == 6
    assert all(0.3 < value < 60.0 for value in friction)
    assert found["changes"] == []


@pytest.mark.parametrize("command", ["summary", "report", "export", "sql", "health"])
def test_missing_store_is_refused(command: str, tmp_path: Path, capsys: Capture) -> None:
    more = {"sql": ["SELECT 1"], "summary": [], "health": []}
    words = more.get(command, ["-o", str(tmp_path / "out")])
    refused(["history", command, str(tmp_path / "none"), *words], capsys, "history add")


@pytest.mark.parametrize(
    "option", [["--from", "yesterday"], ["--time-zone", "Mars"], ["--to", "2026-13-01"]]
)
def test_options_that_cannot_be_used(store: str, option: list[str], capsys: Capture) -> None:
    refused(["history", "summary", store, *option], capsys, option[0])
    with pytest.raises(SystemExit) as stop:
        history("summary", store, "--by", "colour")
    assert stop.value.code == USAGE
