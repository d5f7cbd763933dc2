# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Questions to a store: periods, SQL that reads the tables and nothing else, rows as CSV."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import (
    HistoryDatabase,
    Period,
    SqlError,
    export_csv,
)
from ur_energy_model.plant.store import HistoryStore


@pytest.mark.parametrize(
    ("given", "start", "end", "days"),
    [
        (("2026-05-01", "2026-05-03"), (1, 0), (4, 0), (1, 3)),
        (("2026-05-02", "2026-05-02", "Europe/Berlin"), (1, 22), (2, 22), (1, 2)),
        (("2026-05-01T06:00", "2026-05-01T14:00Z"), (1, 6), (1, 14), (1, 1)),
    ],
)
def test_periods_are_those_of_the_time_zone(
    given: tuple[str, ...],
    start: tuple[int, int],
    end: tuple[int, int],
    days: tuple[int, int],
) -> None:
    period = Period.from_text(*given)
    assert period.start == datetime(2026, 5, *start, tzinfo=timezone.utc)
    assert period.end == datetime(2026, 5, *end, tzinfo=timezone.utc)
    assert period.days == tuple(f"2026-05-0{day}" for day in days)
    long = Period.from_text("2026-10-25", "2026-10-25", "Europe/Berlin")  # clocks change
    assert long.start is not None
    assert long.end is not None
    assert long.end.timestamp() - long.start.timestamp() == 25 * 3600


def test_periods_that_cannot_be_used() -> None:
    for given, option in (
        (("1.5.2026", None), "--from"),
        (("2026-05-02", "2026-05-01"), "--to"),
        ((None, "9999-12-31"), "--to"),
        ((None, None, "../../etc/passwd"), "--time-zone"),
    ):
        with pytest.raises(InputError, match=option):
            Period.from_text(*given)


# SQL


REFUSED = (
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_parquet('{store}/seconds/*/*/*.parquet')",
    "SELECT * FROM 'https://example.org/x.csv'",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{store}/x.csv''')",
    "COPY seconds TO '{store}/x.csv'",
    "ATTACH '{store}/x.db'",
    "INSTALL httpfs",
    "LOAD '/tmp/x.so'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "CREATE TABLE x AS SELECT 1",
    "DROP VIEW seconds",
    "SELECT 1; COPY (SELECT 1) TO '{store}/x.csv'",
    "",
    "SELECT * FROM secret_table",
    "SELECT * FROM range(12000000) a ORDER BY hash(a.range)",  # more than the memory
)


def test_everything_else_is_refused_in_one_line(plant: Path) -> None:
    secret_table = pa.table({"x": [1]})  # variables of Python are no tables
    before = sorted(plant.rglob("*"))
    with HistoryDatabase(HistoryStore(plant), memory_gb=0.1) as database:
        for sql in REFUSED:
            with pytest.raises(SqlError) as refusal:
                database.rows(sql.format(store=plant))
            assert "\n" not in str(refusal.value), sql
        assert "memory" in str(refusal.value)
        with database.stream(
            "SELECT range AS x, 'x' || range AS t FROM range(1000000)"
        ) as result:
            assert sum(len(batch) for batch in result.batches) == 1_000_000
        same = database.rows("SELECT 1 AS a, 2 AS a, 3 AS a_1")
        assert same == [{"a": 1, "a_1": 2, "a_1_1": 3}]
    assert sorted(plant.rglob("*")) == before
    assert len(secret_table) == 1


# Rows as CSV


def test_exports_have_all_rows_in_order(plant: Path, tmp_path: Path) -> None:
    count, _ = export_csv(HistoryStore(plant), "cycles", tmp_path / "rows.csv")
    found = pl.read_csv(tmp_path / "rows.csv", infer_schema_length=None)
    rows = pl.read_parquet(
        str(plant / "cycles" / "**" / "*.parquet"), hive_partitioning=True
    )
    rows = rows.sort("arm", "start")
    assert count == len(found) == len(rows)
    for name in ("arm", "total_energy"):
        assert found[name].to_list() == rows[name].to_list()
    assert found["start"][0][:19] == rows["start"].dt.strftime("%Y-%m-%dT%H:%M:%S")[0]
    other = rows["arm"] == "A2"  # with joints of its own
    elbow = rows.filter(~other)["joint_energy"].list.get(2)
    assert found.filter(~other)["elbow_energy"].to_list() == elbow.to_list()
    assert found.filter(other)["elbow_energy"].null_count() == other.sum()
    seventh = rows.filter(other)["joint_energy"].list.get(6)
    assert found.filter(other)["seven_energy"].to_list() == seventh.to_list()

    # of a period and an arm
    path = tmp_path / "rows.csv"
    store = HistoryStore(plant)
    period = Period.from_text("2026-05-05T22:00", "2026-05-05T22:01")
    count, holdings = export_csv(store, "seconds", path, period=period, arms=("A3",))
    assert (count, holdings.warnings) == (60, ())
    assert set(pl.read_csv(path)["arm"]) == {"A3"}
    assert export_csv(store, "cycles", path, arms=("none",))[0] == 0
    assert path.read_text().startswith('"arm","day","start"')
    assert len(path.read_text().splitlines()) == 1
