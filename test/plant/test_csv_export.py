"""Rows of a store as CSV."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ur_energy_model.plant.database import Period, export_csv
from ur_energy_model.plant.store import HistoryStore


@pytest.mark.parametrize("table", ["seconds", "cycles"])
def test_export_has_all_rows_in_order(plant: Path, tmp_path: Path, table: str) -> None:
    path = tmp_path / "rows.csv"
    count, _ = export_csv(HistoryStore(plant), table, path)
    found = pl.read_csv(path)
    rows = pl.read_parquet(str(plant / table / "**" / "*.parquet"), hive_partitioning=True)
    time = "second" if table == "seconds" else "start"
    rows = rows.sort("arm", time)
    assert count == len(found) == len(rows)
    assert found["arm"].to_list() == rows["arm"].to_list()
    assert found["total_energy"].to_list() == rows["total_energy"].to_list()
    assert found[time][0][:19] == rows[time].dt.strftime("%Y-%m-%dT%H:%M:%S")[0]


def test_each_joint_has_its_column(plant: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    export_csv(HistoryStore(plant), "seconds", path)
    found = pl.read_csv(path, infer_schema_length=None)
    rows = pl.read_parquet(str(plant / "seconds" / "**" / "*.parquet"), hive_partitioning=True)
    rows = rows.sort("arm", "second")
    other = rows["arm"] == "A2"
    elbow = rows.filter(~other)["joint_energy"].list.get(2)
    assert found.filter(~other)["elbow_energy"].to_list() == elbow.to_list()
    assert found.filter(other)["elbow_energy"].null_count() == other.sum()
    seventh = rows.filter(other)["joint_friction_energy"].list.get(6)
    assert found.filter(other)["seven_friction_energy"].to_list() == seventh.to_list()


def test_period_and_arm(plant: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    period = Period.from_text("2026-05-05T22:00", "2026-05-05T22:01")
    assert export_csv(HistoryStore(plant), "seconds", path, period=period, arms=("A3",)) == (60, ())
    assert set(pl.read_csv(path)["arm"]) == {"A3"}


def test_nothing_gives_headings(plant: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert export_csv(HistoryStore(plant), "cycles", path, arms=("none",)) == (0, ())
    assert path.read_text().startswith('"arm","day","start"')
    assert len(path.read_text().splitlines()) == 1
