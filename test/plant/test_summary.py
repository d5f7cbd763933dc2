# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy summed up by arm, calendar, program, joint and day, beside what polars reads."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from test.plant.conftest import PLANT_WORK
from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.energy.calendar import shift_starts
from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import HistoryDatabase, Period
from ur_energy_model.plant.fleet_days import FleetDays, read_fleet_days
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.plant.summary import (
    PARTS,
    SUMS,
    HistorySummary,
    explained_share,
    summarise,
    total_source,
)
from ur_energy_model.plant.unusual_days import Anomaly, find_anomalies

SHIFTS = shift_starts("06:00,14:00,22:00")


def ask(
    store: Path, *keys: str, period: Period | None = None, **options: Any
) -> HistorySummary:
    with HistoryDatabase(HistoryStore(store), period, **options) as database:
        return summarise(database, keys, SHIFTS)


def rows_of(store: Path, table: str = "seconds") -> pl.DataFrame:
    """All rows, read without the package."""
    return pl.read_parquet(
        str(store / table / "**" / "*.parquet"), hive_partitioning=True
    )


def test_sums_by_arm_are_those_of_the_files(plant: Path) -> None:
    rows = rows_of(plant)
    found = ask(plant, "arm")
    assert [row["arm"] for row in found.rows] == ["A1", "A2", "A3"]
    for row in found.rows:
        of = rows.filter(pl.col("arm") == row["arm"])
        assert row["energy"] == pytest.approx(of["total_energy"].sum(), rel=1e-12)
        assert row["standby_energy"] == pytest.approx(
            of["standby_energy"].sum(), rel=1e-12
        )
        assert row["motion_energy"] == pytest.approx(of["moving_energy"].sum(), rel=1e-12)
        assert row["idle_energy"] == pytest.approx(
            of["standstill_energy"].sum(), rel=1e-9
        )
        assert row["duration"] == of["accounted"].sum()
        known = row["arm"] != "A3"  # whose bus was not measured
        bus = pytest.approx(of["bus_energy"].sum(), rel=1e-12) if known else None
        assert row["bus_energy"] == bus
        assert row["wall_energy"] == pytest.approx(of["wall_energy"].sum(), rel=1e-12)
        assert row["model_energy"] == pytest.approx(of["model_energy"].sum(), rel=1e-12)
        missing = float(of["total_energy"].sum()) - float(of["model_energy"].sum())
        assert row["unexplained_energy"] == pytest.approx(missing, abs=1e-6)
        source = total_source(row)
        assert source == (("measured", 1.0) if known else ("modelled", 0.0))
        if known:
            share = float(of["model_energy"].sum()) / float(of["total_energy"].sum())
            assert explained_share(row) == pytest.approx(share)
        else:
            assert explained_share(row) is None
    source = total_source(found.total)
    assert source is not None
    assert (source.name, source.share) == ("mixed", pytest.approx(2 / 3))
    assert (found.total["arms"], found.total["bus_energy"]) == (3, None)


@pytest.mark.parametrize(
    ("key", "every", "zone"), [("hour", "1h", "Asia/Kolkata"), ("week", "1w", "UTC")]
)
def test_calendar_is_that_of_the_time_zone(
    plant: Path, key: str, every: str, zone: str
) -> None:
    local = pl.col("second").dt.convert_time_zone(zone).dt.truncate(every)
    expected = (
        rows_of(plant)
        .group_by(local.alias(key))
        .agg(pl.col("total_energy").sum())
        .sort(key)
    )
    found = ask(plant, key, period=Period.from_text(zone=zone)).rows
    assert [row["energy"] for row in found] == pytest.approx(
        expected["total_energy"].to_list()
    )
    begins = [str(row[key])[:13] for row in found]
    assert begins == [str(value)[: len(begins[0])] for value in expected[key].to_list()]


def test_joints_drivers_and_standby_are_all_of_the_energy(plant: Path) -> None:
    found = ask(plant, "arm", "joint")
    total = {row["arm"]: row["energy"] for row in ask(plant, "arm").rows}
    for arm, count in (("A1", 6), ("A2", 7), ("A3", 6)):
        rows = [row for row in found.rows if row["arm"] == arm]
        assert [row["joint"] for row in rows[count:]] == list(PARTS)
        assert sum(row["energy"] for row in rows) == pytest.approx(total[arm], rel=1e-9)
    assert [row["joint"] for row in found.rows[10:17]][-1] == "seven"
    every = ask(plant, "joint").rows
    assert sum(row["energy"] for row in every) == pytest.approx(
        found.total["energy"], rel=1e-9
    )


def test_programs_and_the_rest_are_all_of_the_energy(plant: Path) -> None:
    found = ask(plant, "program")
    cycles = rows_of(plant, "cycles")
    assert [row["program"] for row in found.rows] == ["palletize", "pick", "weld", None]
    for row in found.rows:
        of = cycles.filter(pl.col("program").eq_missing(pl.lit(row["program"])))
        assert row["cycles"] == len(of)
        assert row["energy"] == pytest.approx(of["total_energy"].sum(), rel=1e-12)
    assert found.outside_cycles is not None  # 23 s a day that no complete cycle contains
    assert found.outside_cycles["duration"] == 2 * 3 * (PLANT_WORK.seconds % 30)
    everything = sum(row["energy"] for row in found.rows) + found.outside_cycles["energy"]
    assert everything == pytest.approx(found.total["energy"], rel=1e-12)


def test_a_cycle_that_ends_after_the_period_is_not_part_of_it(plant: Path) -> None:
    last = rows_of(plant, "cycles").filter(pl.col("arm") == "A1").sort("start")[-1]
    inside = last["start"][0] + timedelta(seconds=0.5 * last["duration"][0])
    period = Period(last["start"][0] - timedelta(hours=1), inside)
    found = ask(plant, "program", period=period, arms=("A1",))
    end = pl.col("start") + pl.duration(microseconds=1_000_000 * pl.col("duration"))
    known = rows_of(plant, "cycles").filter(
        (pl.col("arm") == "A1") & (pl.col("start") >= period.start) & (end <= inside)
    )
    assert sum(row["cycles"] for row in found.rows) == len(known)
    assert found.outside_cycles is not None
    assert found.outside_cycles["energy"] >= 0.0
    second = pl.col("second").is_between(period.start, inside, closed="left")
    of_arm = rows_of(plant).filter((pl.col("arm") == "A1") & second)["total_energy"].sum()
    assert found.total["energy"] == pytest.approx(of_arm, rel=1e-12)


def test_empty_stores_and_single_seconds(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no history store"):
        ask(tmp_path, "arm")
    write_plant(tmp_path, [Arm("A1")], Work(days=1, seconds=1))
    for key in ("arm", "program", "joint"):
        found = ask(tmp_path, key, arms=("none",))
        assert found.rows == ()
        assert all(found.total[name] == 0.0 for name in SUMS)
        assert ask(tmp_path, key).total["duration"] == 1.0
    with pytest.raises(InputError, match="--by"):
        ask(tmp_path, "program", "joint")


# Days of a fleet, and those on which an arm was unlike itself

ARMS = [Arm(f"A{k}", motion_power=60.0 + 15 * k, bus=k != 1) for k in range(3)]
MONTH = Work(days=12, seconds=900, seed=5)


def fleet_of(store: Path, zone: str = "UTC") -> FleetDays:
    with HistoryDatabase(HistoryStore(store), Period.from_text(zone=zone)) as database:
        return read_fleet_days(database)


def test_days_and_hours_are_those_of_the_files(plant: Path) -> None:
    fleet = fleet_of(plant, "Europe/Berlin")
    local = pl.col("second").dt.convert_time_zone("Europe/Berlin")
    rows = rows_of(plant).with_columns(
        local.dt.date().alias("local"), local.dt.hour().alias("hour")
    )
    assert fleet.first == (date(2026, 5, 4) - date(1970, 1, 1)).days
    columns = {
        "energy": "total_energy",
        "duration": "accounted",
        "motion": "moving_energy",
    }
    daily = (
        rows.group_by("arm", "local")
        .agg(pl.col(*columns.values()).sum())
        .sort("arm", "local")
    )
    for name, column in columns.items():
        np.testing.assert_allclose(fleet.daily[name].ravel(), daily[column], rtol=1e-12)
    hourly = (
        rows.group_by("local", "hour")
        .agg(pl.col("total_energy").sum())
        .sort("local", "hour")
    )
    known = fleet.hourly[np.isfinite(fleet.hourly)]
    np.testing.assert_allclose(known, hourly["total_energy"], rtol=1e-12)


def test_hours_without_motion_are_left_on_and_days_without_rows_blank(
    tmp_path: Path,
) -> None:
    write_plant(tmp_path, ARMS[:1], Work(days=1, hour=6, seconds=3600))
    still = Arm("A0", cycle=1)  # two thirds of a second: it never moves
    write_plant(tmp_path, [still], Work(days=1, hour=22, seconds=3600, seed=1))
    write_plant(tmp_path, ARMS[1:2], Work(first=date(2026, 5, 8), days=1))
    fleet = fleet_of(tmp_path)
    assert fleet.total("left_on_time") == 3600.0
    assert 0 < fleet.total("left_on") < fleet.total("energy") - fleet.total("motion")
    assert np.isfinite(fleet.daily["energy"]).tolist() == [
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ]
    assert find_anomalies(fleet) == ()  # few days are no basis


def test_heavier_cycles_are_found(tmp_path: Path) -> None:
    store = write_plant(tmp_path, ARMS, MONTH)
    assert find_anomalies(fleet_of(store)) == ()  # an ordinary month
    heavy = Arm("A2", motion_power=150.0)
    write_plant(
        store, [heavy], Work(first=date(2026, 5, 12), days=3, hour=12, seconds=6000)
    )
    other = Arm("A0", motion_power=300.0)  # with little work on its day: not compared
    write_plant(store, [other], Work(first=date(2026, 7, 1), days=1, seconds=100))
    (found,) = find_anomalies(fleet_of(store))
    when = "2026-05-12 to 2026-05-14"
    quantity = "energy per cycle of palletize"
    assert (found.arm, found.quantity, found.when) == ("A2", quantity, when)
    assert found.text.startswith(f"A2, {when}: {quantity} ")
    one = Anomaly("A1", 20577, 20577, "standby power", "W", -2.5, 71.234, 12.0)
    assert one.text == "A1, 2026-05-04: standby power −2.5 W, below the usual 71.23 W."
