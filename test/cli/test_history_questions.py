"""The commands history summary, sql, export and report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from test.cli.conftest import Capture, printed, refused
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.cli.main import DONE, USAGE, main


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("store")
    return str(write_plant(folder, [Arm("A1", programs=("weld",))], Work(days=2, seconds=900)))


def history(*arguments: str) -> int:
    return main(["history", *arguments])


def test_summary_as_json(store: str, capsys: Capture) -> None:
    assert history("summary", store, "--tariff", "0.36", "--co2", "0.5", "--json") == DONE
    content = json.loads(capsys.readouterr().out)
    row = content["rows"][0]
    assert row["arm"] == "A1"
    assert row["duration"] == 1800.0
    assert row["cost"] == pytest.approx(row["energy"] * 1e-7)
    assert row["co2"] == pytest.approx(row["energy"] / 7.2e6)
    assert content["total"]["energy"] == row["energy"]
    assert content["time_zone"] == "UTC"


@pytest.mark.parametrize("key", ["arm", "day", "hour", "program", "joint"])
def test_every_row_has_the_figures_of_the_contract(store: str, key: str, capsys: Capture) -> None:
    assert history("summary", store, "--by", key, "--json") == DONE
    for row in json.loads(capsys.readouterr().out)["rows"]:
        figures = {"energy", "standby_energy", "motion_energy", "duration", "cost"}
        assert figures | {key} <= set(row)
        assert row["cost"] is None


def test_hours_are_plain_text_with_their_zone(store: str, capsys: Capture) -> None:
    assert history("summary", store, "--by", "hour", "--json", "--time-zone", "Asia/Tokyo") == DONE
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["hour"] == "2026-05-04T15:00:00+09:00"


def test_summary_as_table(store: str, capsys: Capture) -> None:
    assert history("summary", store, "--by", "program", "--tariff", "1") == DONE
    out, err = capsys.readouterr()
    assert "weld" in out
    assert "outside" in out
    assert "total" in out
    assert "EUR" in out
    assert "UTC" in err


def test_shifts(store: str, capsys: Capture) -> None:
    assert history("summary", store, "--by", "shift", "--shifts", "05:00,13:00", "--json") == DONE
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["shift"] for row in rows] == ["2026-05-04 05:00", "2026-05-05 05:00"]
    refused(["history", "summary", store, "--by", "shift"], capsys, "--shifts")


def test_sql(store: str, capsys: Capture) -> None:
    sql = "SELECT day, count(*) AS n, min(second) AS t, sum(total_energy) > 0 AS some FROM seconds "
    assert history("sql", store, sql + "GROUP BY day ORDER BY day", "--json") == DONE
    assert printed(capsys) == {
        "columns": ["day", "n", "t", "some"],
        "rows": [
            {"day": f"2026-05-0{day}", "n": 900, "t": f"2026-05-0{day}T06:00:00+00:00",
             "some": True}
            for day in (4, 5)
        ],
        "warnings": [],
    }  # fmt: skip


def test_sql_values_are_plain(store: str, capsys: Capture) -> None:
    sql = "SELECT 'NaN'::DOUBLE AS a, 1.5::DECIMAL(4, 2) AS b, INTERVAL 90 SECOND AS c, [1, 2] AS d"
    assert history("sql", store, sql, "--json") == DONE
    row = printed(capsys)["rows"]
    assert isinstance(row, list)
    assert row[0]["a"] is None
    assert row[0]["b"] == 1.5
    assert row[0]["d"] == [1, 2]


BEYOND = [
    ("DATE '99999-01-01'", "99999-01-01"),
    ("TIMESTAMP 'infinity'", "infinity"),
    ("DATE '-infinity'", "-infinity"),
    ("[TIMESTAMPTZ '99999-01-01', NULL]", ["99999-01-01T00:00:00.000000", None]),
    ("{'a': DATE '99999-01-01'}", {"a": "99999-01-01"}),
    ("MAP {'a': DATE '99999-01-01'}", [{"key": "a", "value": "99999-01-01"}]),
]


@pytest.mark.parametrize(("sql", "value"), BEYOND)
def test_dates_beyond_those_of_python(store: str, sql: str, value: object, capsys: Capture) -> None:
    assert history("sql", store, f"SELECT {sql} AS x", "--json") == DONE
    assert printed(capsys)["rows"] == [{"x": value}]
    assert history("sql", store, f"SELECT {sql} AS x") == DONE


def test_names_that_are_not_utf_8(store: str, tmp_path: Path, capsys: Capture) -> None:
    wrong = os.fsdecode(b"\xff")
    refused(["history", "sql", store, f"SELECT '{wrong}'"], capsys, "UTF-8")
    (tmp_path / wrong).mkdir()
    refused(["history", "summary", str(tmp_path / wrong)], capsys, "UTF-8")
    assert history("report", store, "-o", str(tmp_path / wrong / "x.html")) == DONE
    assert history("export", store, "-o", str(tmp_path / wrong / "x.csv")) == DONE


def test_sql_without_rows(store: str, capsys: Capture) -> None:
    assert history("sql", store, "SELECT arm FROM seconds WHERE arm = 'x'", "--json") == DONE
    assert printed(capsys) == {"columns": ["arm"], "rows": [], "warnings": []}
    assert history("sql", store, "SELECT arm FROM seconds WHERE arm = 'x'") == DONE
    assert capsys.readouterr().out == "no rows; columns: arm\n"


def test_sql_table_is_limited(store: str, capsys: Capture) -> None:
    assert history("sql", store, "SELECT second FROM seconds", "--limit", "3") == DONE
    out, err = capsys.readouterr()
    assert "3 rows" in out
    assert "--limit" in err


def test_wide_rows_are_shown_one_by_one(store: str, capsys: Capture) -> None:
    assert history("sql", store, "SELECT * FROM seconds LIMIT 1") == DONE
    assert "joint_temperature" in capsys.readouterr().out


def test_sql_is_refused_in_one_line(store: str, capsys: Capture) -> None:
    refused(["history", "sql", store, "DROP VIEW seconds"], capsys, "SELECT")
    refused(["history", "sql", store, "SELECT x FROM seconds"], capsys, '"x"')


def test_export(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.csv"
    assert history("export", store, "-o", str(path), "--to", "2026-05-04", "--json") == DONE
    assert printed(capsys) == {
        "file": str(path),
        "table": "seconds",
        "rows": 900,
        "warnings": [],
    }
    assert len(path.read_text().splitlines()) == 901


def test_report(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "plant.html"
    assert history("report", store, "-o", str(path), "--tariff", "0.3", "--json") == DONE
    content = printed(capsys)
    assert content["arms"] == 1
    assert content["days"] == 2
    assert content["bytes"] == path.stat().st_size
    assert history("report", store, "-o", str(path)) == DONE
    assert "1 arm used" in capsys.readouterr().out


def test_report_of_nothing(store: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "plant.html"
    assert history("report", store, "-o", str(path), "--arm", "none") == DONE
    assert "no energy" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["summary", "report", "export", "sql"])
def test_missing_store_is_refused(command: str, tmp_path: Path, capsys: Capture) -> None:
    more = {"sql": ["SELECT 1"], "summary": []}.get(command, ["-o", str(tmp_path / "out")])
    refused(["history", command, str(tmp_path / "none"), *more], capsys, "history add")


@pytest.mark.parametrize(
    "option", [["--from", "yesterday"], ["--time-zone", "Mars"], ["--to", "2026-13-01"]]
)
def test_unusable_period_is_refused(store: str, option: list[str], capsys: Capture) -> None:
    refused(["history", "summary", store, *option], capsys, option[0])


def test_unknown_key_is_a_usage_error(store: str) -> None:
    with pytest.raises(SystemExit) as stop:
        history("summary", store, "--by", "colour")
    assert stop.value.code == USAGE
