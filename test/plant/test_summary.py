"""Energy summed up by arm, calendar, program and joint, beside what polars reads from the files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from test.plant.synthetic_plant import Arm, Work, write_plant
from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import HistoryDatabase, Period, shift_starts
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.plant.summary import PARTS, SUMS, Summary, summarise

BERLIN = Period.from_text(zone="Europe/Berlin")
SHIFTS = shift_starts("06:00,14:00,22:00")


def ask(store: Path, *keys: str, period: Period | None = None, **options: Any) -> Summary:
    with HistoryDatabase(HistoryStore(store), period, **options) as database:
        return summarise(database, keys, SHIFTS)


def rows_of(store: Path, table: str = "seconds") -> pl.DataFrame:
    """All rows, read without the package."""
    return pl.read_parquet(str(store / table / "**" / "*.parquet"), hive_partitioning=True)


def test_sums_by_arm_are_those_of_the_files(plant: Path) -> None:
    rows = rows_of(plant)
    found = ask(plant, "arm")
    assert [row["arm"] for row in found.rows] == ["A1", "A2", "A3"]
    for row in found.rows:
        of = rows.filter(pl.col("arm") == row["arm"])
        assert row["energy"] == pytest.approx(of["total_energy"].sum(), rel=1e-12)
        assert row["standby_energy"] == pytest.approx(of["standby_energy"].sum(), rel=1e-12)
        assert row["motion_energy"] == pytest.approx(of["moving_energy"].sum(), rel=1e-12)
        assert row["idle_energy"] == pytest.approx(of["standstill_energy"].sum(), rel=1e-9)
        assert row["duration"] == of["accounted"].sum()
    assert found.total["energy"] == pytest.approx(rows["total_energy"].sum(), rel=1e-12)
    assert found.total["arms"] == 3


def test_bus_energy_is_unknown_where_a_bus_is_missing(plant: Path) -> None:
    first, _, third = ask(plant, "arm").rows
    expected = rows_of(plant).filter(pl.col("arm") == "A1")["bus_energy"].sum()
    assert first["bus_energy"] == pytest.approx(expected, rel=1e-12)
    assert third["bus_energy"] is None
    assert ask(plant, "arm").total["bus_energy"] is None


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("key", ["hour", "day", "week", "month"])
def test_calendar_is_that_of_the_time_zone(plant: Path, key: str, zone: str) -> None:
    every = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}[key]
    local = pl.col("second").dt.convert_time_zone(zone).dt.truncate(every)
    expected = rows_of(plant).group_by(local.alias(key)).agg(pl.col("total_energy").sum()).sort(key)
    found = ask(plant, key, period=Period.from_text(zone=zone)).rows
    assert [row["energy"] for row in found] == pytest.approx(expected["total_energy"].to_list())
    begins = [str(row[key])[:13] for row in found]
    assert begins == [str(value)[: len(begins[0])] for value in expected[key].to_list()]


def test_shift_over_midnight_belongs_to_the_day_it_begins(plant: Path) -> None:
    found = ask(plant, "shift", period=BERLIN).rows
    assert [row["shift"] for row in found] == [f"2026-05-0{day} 22:00" for day in (4, 5, 6)]
    early = ask(plant, "shift").rows  # UTC: an hour before and two after 22:00
    assert [row["shift"][11:] for row in early] == ["14:00", "22:00"] * 3


def test_joints_drivers_and_standby_are_all_of_the_energy(plant: Path) -> None:
    found = ask(plant, "arm", "joint")
    total = {row["arm"]: row["energy"] for row in ask(plant, "arm").rows}
    for arm, count in (("A1", 6), ("A2", 7), ("A3", 6)):
        rows = [row for row in found.rows if row["arm"] == arm]
        assert [row["joint"] for row in rows[count:]] == list(PARTS)
        assert sum(row["energy"] for row in rows) == pytest.approx(total[arm], rel=1e-9)
    assert [row["joint"] for row in found.rows[9:16]][-1] == "seven"
    every = ask(plant, "joint").rows
    assert sum(row["energy"] for row in every) == pytest.approx(found.total["energy"], rel=1e-9)


def test_files_of_versions_without_regeneration_sum_up_to_the_same(tmp_path: Path) -> None:
    store = write_plant(tmp_path / "plant", [Arm("A1")])
    new = ask(store, "joint")
    store = write_plant(tmp_path / "older", [Arm("A1")], without=["regeneration_energy"])
    old = ask(store, "joint")
    assert [row["energy"] for row in old.rows] == pytest.approx(
        [row["energy"] for row in new.rows], rel=1e-9
    )
    assert sum(row["energy"] for row in old.rows) == pytest.approx(old.total["energy"], rel=1e-9)
    programs = ask(store, "program").rows
    assert [row["regeneration_energy"] for row in programs] == [None] * len(programs)


def test_programs_and_the_rest_are_all_of_the_energy(plant: Path) -> None:
    found = ask(plant, "program")
    cycles = rows_of(plant, "cycles")
    assert [row["program"] for row in found.rows] == ["palletize", "pick", "weld", None]
    for row in found.rows:
        of = cycles.filter(pl.col("program").eq_missing(pl.lit(row["program"])))
        assert row["cycles"] == len(of)
        assert row["energy"] == pytest.approx(of["total_energy"].sum(), rel=1e-12)
    assert found.outside_cycles is not None  # 23 s a day that no complete cycle contains
    assert found.outside_cycles["duration"] == 3 * 3 * (PLANT_SECONDS % 30)
    everything = sum(row["energy"] for row in found.rows) + found.outside_cycles["energy"]
    assert everything == pytest.approx(found.total["energy"], rel=1e-12)


PLANT_SECONDS = 3 * 3600 - 7


def test_period_and_arms_select_rows(plant: Path) -> None:
    period = Period.from_text("2026-05-05", "2026-05-05", "Europe/Berlin")
    found = ask(plant, "arm", "day", period=period, arms=("A1",))
    rows = rows_of(plant).filter(
        (pl.col("arm") == "A1")
        & (pl.col("second").dt.convert_time_zone("Europe/Berlin").dt.date() == pl.date(2026, 5, 5))
    )
    assert [str(row["day"]) for row in found.rows] == ["2026-05-05"]
    assert found.total["energy"] == pytest.approx(rows["total_energy"].sum(), rel=1e-12)


def test_a_cycle_that_ends_after_the_period_is_not_part_of_it(plant: Path) -> None:
    last = rows_of(plant, "cycles").sort("start")[-1]
    inside = last["start"][0] + timedelta(seconds=0.5 * last["duration"][0])
    period = Period(last["start"][0] - timedelta(hours=1), inside)
    found = ask(plant, "program", period=period)
    known = rows_of(plant, "cycles").filter(
        (pl.col("start") >= period.start)
        & (pl.col("start") + pl.duration(microseconds=1_000_000 * pl.col("duration")) <= inside)
    )
    assert sum(row["cycles"] for row in found.rows) == len(known)
    assert found.outside_cycles is not None
    assert found.outside_cycles["energy"] >= 0.0


@pytest.mark.parametrize("key", ["arm", "hour", "shift", "program", "joint"])
def test_empty_store_has_no_rows(tmp_path: Path, key: str) -> None:
    with pytest.raises(StoreError, match="no history store"):
        ask(tmp_path, key)
    write_plant(tmp_path, [Arm("A1")], Work(days=1, seconds=1))
    found = ask(tmp_path, key, arms=("none",))
    assert found.rows == ()
    assert all(found.total[name] == 0.0 for name in SUMS)


@pytest.mark.parametrize("key", ["arm", "hour", "program", "joint"])
def test_one_second(tmp_path: Path, key: str) -> None:
    write_plant(tmp_path, [Arm("A1")], Work(days=1, seconds=1))
    found = ask(tmp_path, key)
    assert found.total["duration"] == 1.0
    if key != "program":
        assert sum(row["energy"] for row in found.rows) == pytest.approx(found.total["energy"])


def test_program_and_joint_do_not_go_together(plant: Path) -> None:
    with pytest.raises(InputError, match="--by"):
        ask(plant, "program", "joint")
