"""Days of a fleet, and days on which an arm was unlike itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.plant.database import HistoryDatabase, Period
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.summary import Anomaly, FleetDays, find_anomalies, read_fleet_days

ARMS = [Arm(f"A{k}", motion_power=60.0 + 15 * k, bus=k != 1) for k in range(4)]
MONTH = Work(days=30, seconds=1200, seed=5)


def fleet_of(store: Path, zone: str = "UTC") -> FleetDays:
    with HistoryDatabase(HistoryStore(store), Period.from_text(zone=zone)) as database:
        return read_fleet_days(database)


def test_days_and_hours_are_those_of_the_files(plant: Path) -> None:
    fleet = fleet_of(plant, "Europe/Berlin")
    rows = pl.read_parquet(str(plant / "seconds" / "**" / "*.parquet"), hive_partitioning=True)
    local = pl.col("second").dt.convert_time_zone("Europe/Berlin")
    rows = rows.with_columns(local.dt.date().alias("local"), local.dt.hour().alias("hour"))
    assert fleet.first == (date(2026, 5, 4) - date(1970, 1, 1)).days
    for number, arm in enumerate(fleet.arms):
        of = rows.filter(pl.col("arm") == arm).group_by("local").agg(
            pl.col("total_energy", "accounted", "moving_energy").sum()
        ).sort("local")  # fmt: skip
        for name, column in (
            ("energy", "total_energy"), ("duration", "accounted"), ("motion", "moving_energy")
        ):  # fmt: skip
            np.testing.assert_allclose(fleet.daily[name][number], of[column], rtol=1e-12)
    hourly = rows.group_by("local", "hour").agg(pl.col("total_energy").sum()).sort("local", "hour")
    known = fleet.hourly[np.isfinite(fleet.hourly)]
    np.testing.assert_allclose(known, hourly["total_energy"], rtol=1e-12)
    assert np.isnan(fleet.daily["energy"]).sum() == 0


def test_hours_without_motion_are_left_on(tmp_path: Path) -> None:
    write_plant(tmp_path, ARMS[:1], Work(days=1, hour=6, seconds=3600))
    still = Arm("A0", cycle=1)  # two thirds of a second: it never moves
    write_plant(tmp_path, [still], Work(days=1, hour=22, seconds=3600, seed=1))
    fleet = fleet_of(tmp_path)
    assert fleet.total("left_on_time") == 3600.0
    assert 0 < fleet.total("left_on") < fleet.total("energy") - fleet.total("motion")


def test_days_without_rows_are_blank(tmp_path: Path) -> None:
    write_plant(tmp_path, ARMS[:1], Work(days=1))
    write_plant(tmp_path, ARMS[1:2], Work(first=date(2026, 5, 8), days=1))
    fleet = fleet_of(tmp_path)
    assert np.isfinite(fleet.daily["energy"]).tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]


def test_empty_store(tmp_path: Path) -> None:
    write_plant(tmp_path, ARMS[:1], Work(days=1, seconds=1))
    with HistoryDatabase(HistoryStore(tmp_path), arms=("none",)) as database:
        fleet = read_fleet_days(database)
    assert fleet.arms == ()
    assert fleet.total("energy") == 0.0
    assert find_anomalies(fleet) == ()


def test_ordinary_months_have_no_anomalies(tmp_path: Path) -> None:
    assert find_anomalies(fleet_of(write_plant(tmp_path, ARMS, MONTH))) == ()


def test_heavier_cycles_are_found_and_said(tmp_path: Path) -> None:
    write_plant(tmp_path, ARMS, MONTH)
    heavy = Arm("A2", motion_power=150.0)
    write_plant(tmp_path, [heavy], Work(first=date(2026, 5, 12), days=3, hour=12, seconds=6000))
    found = find_anomalies(fleet_of(tmp_path))
    assert {(each.arm, each.quantity) for each in found} == {
        ("A2", "energy per cycle of palletize")
    }
    assert found[0].when == "2026-05-12 to 2026-05-14"
    assert found[0].text.startswith("A2, 2026-05-12 to 2026-05-14: energy per cycle of palletize ")
    assert ", above the usual " in found[0].text


def test_days_with_little_work_are_not_compared(tmp_path: Path) -> None:
    write_plant(tmp_path, ARMS[:1], MONTH)
    other = Arm("A0", motion_power=300.0)
    write_plant(tmp_path, [other], Work(first=date(2026, 7, 1), days=1, seconds=100))
    assert find_anomalies(fleet_of(tmp_path)) == ()


def test_anomaly_in_words() -> None:
    one = Anomaly("A1", 20577, 20577, "standby power", "W", -2.5, 71.234, 12.0)
    assert one.text == "A1, 2026-05-04: standby power −2.5 W, below the usual 71.23 W."


@pytest.mark.parametrize("days", [1, 6])
def test_few_days_are_no_basis(tmp_path: Path, days: int) -> None:
    write_plant(tmp_path, ARMS[:1], Work(days=days))
    write_plant(tmp_path, [Arm("A0", motion_power=400.0)], Work(days=1, hour=12, seconds=3000))
    assert find_anomalies(fleet_of(tmp_path)) == ()
