# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Adding bags to a store: energies equal the estimate's, each time once; folders of bags."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, changed
from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import (
    HOUR,
    MODEL,
    NOON,
    Session,
    add,
    estimated,
    rows,
    total,
)
from test.small_disk import small_disk
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.program import parse_script
from ur_energy_model.plant.add import BagFolder
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges
from ur_energy_model.plant.program_rows import ProgramRows
from ur_energy_model.plant.schema import SourceKeys
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.plant.summary import summarise
from ur_energy_model.telemetry.bag.writer import BagWriter

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-6}


@pytest.mark.parametrize(
    ("moving", "still", "shift"), [(4.0, 3.0, 6.0), (0.4, 2.0, -6.0), (2.0, 4.0, 0.0)]
)
def test_sums_equal_the_estimate(
    tmp_path: Path, shift: float, moving: float, still: float
) -> None:
    """Also where standby power is known so late that not all can be deducted, or it is off."""
    telemetry = Session(moving=moving, still=still, shift=shift, every=1).telemetry()
    if not shift:
        telemetry["robot_mode"][1500:2000] = 5.0
        telemetry["robot_mode"][2000:] = 3.0
        telemetry["actual_robot_current"][2000:] = 0.5
        telemetry["safety_mode"][1200:1300] = 3.0
    bag = write_bag(tmp_path / "bag", telemetry)
    store = tmp_path / "store"
    truth = estimated(bag)
    assert add(store, bag).sum("energy") == pytest.approx(truth.supply, **CLOSE)
    found = rows(store)
    expected = {
        "total_energy": truth.supply,
        "bus_energy": truth.bus,
        "wall_energy": truth.wall.energy,
        "standby_energy": truth.standby,
        "driver_energy": truth.driver,
        "accounted": truth.duration,
        "joint_energy": truth.electrical,
        "joint_mechanical_energy": truth.mechanical,
        "joint_friction_energy": truth.friction,
        "joint_copper_energy": truth.copper,
    }
    for state, seconds in truth.state_time.items():
        expected[f"{state.name.lower()}_energy"] = truth.state_energy[state]
        expected[f"{state.name.lower()}_time"] = seconds
        assert shift or seconds > 0.1
    for column, values in expected.items():
        sums = np.sum([row[column] for row in found], axis=0)
        assert sums == pytest.approx(values, **CLOSE), column
    # no second gets the correction of others: model and bus agree in each
    if shift > 0.0:
        assert max(abs(row["residual_energy"]) for row in found) < 0.6


def test_program_nodes_sum_to_the_seconds_and_leave_out_what_others_cover(
    tmp_path: Path,
) -> None:
    """Two bags overlap by four seconds; the second begins ten seconds before a full minute."""
    script = parse_script('def p():\n $ 1 "A"\n movej(1)\n $ 2 "A"\n movej(2)\nend')
    store = tmp_path / "store"
    for number, begin in enumerate((50, 53)):
        session = Session(at=NOON + begin * SECOND, moving=6.0, still=6.0, every=1)
        made = session.telemetry()
        turn = np.arange(len(made)) // 400 % 2
        made = changed(made, script_control_line=np.where(turn, 5.0, 3.0))
        add(store, write_bag(tmp_path / str(number), made), scripts=(script,))
    nodes = rows(store, "program_nodes")
    seconds = rows(store)
    for name, column in (("joules", "total_energy"), ("seconds", "accounted")):
        assert sum(row[name] for row in nodes) == pytest.approx(
            sum(row[column] for row in seconds), **CLOSE
        )
    assert {(row["minute"].minute, row["node"]) for row in nodes} == {
        (minute, f"A ({number})") for minute in (0, 1) for number in (1, 2)
    }
    with HistoryDatabase(HistoryStore(store)) as database:
        summary = summarise(database, ("node",))
    assert summary.rows[0]["energy"] >= summary.rows[1]["energy"]
    assert sum(row["executions"] for row in summary.rows) == pytest.approx(
        15.0 / 0.8, abs=3
    )


def test_program_nodes_of_one_program_after_the_other_sum_to_the_seconds() -> None:
    """The step between two programs counts once, with both of its ends."""
    made = Session(moving=6.0, still=4.0, every=1).telemetry()
    made = changed(
        made, script_control_line=np.where(np.arange(len(made)) // 400 % 2, 5.0, 3.0)
    )
    calculator = EnergyCalculator(MODEL, ROBOT)
    nodes = ProgramRows(calculator.channels)
    for start in range(0, len(made), 500):
        batch = made.cut(slice(start, start + 500))
        powers = calculator(
            replace(batch, info=replace(batch.info, program=f"p{start // 1500}"))
        )
        assert powers is not None
        nodes.update(powers)
    found = nodes.rows(SourceKeys("s", "ur5e", "m")).to_pydict()
    assert len(set(found["program"])) == 4
    watts = made["actual_robot_voltage"] * made["actual_robot_current"]
    assert sum(found["joules"]) == pytest.approx(np.trapezoid(watts, made.time), rel=1e-9)
    assert sum(found["seconds"]) == pytest.approx(np.ptp(made.time), rel=1e-9)
    assert sum(found["measured"]) == pytest.approx(np.ptp(made.time), rel=1e-9)


def test_bags_are_added_once_in_any_order_and_without_those_that_fail(
    tmp_path: Path,
) -> None:
    """A copy is the same bag; a truncated one is named. Two of the bags overlap."""
    at = (0, HOUR, HOUR + 3 * 10**9)
    bags = [
        Session(at=NOON + begin, shift=k).bag(tmp_path / f"bag_{k}")
        for k, begin in enumerate(at)
    ]
    copied = Session(at=NOON).bag(tmp_path / "elsewhere" / "bag_0")
    cut_off = Session(at=NOON + 5 * HOUR).bag(tmp_path / "cut_off")
    file = cut_off / "cut_off_0.mcap"
    os.truncate(file, file.stat().st_size // 2)
    one = tmp_path / "one"
    two = tmp_path / "two"
    added = add(one, *bags, cut_off, tmp_path / "none")
    assert len(added.records) == 3
    assert {result.bag for result in added.failed} == {cut_off, tmp_path / "none"}
    assert all(str(result.bag) in str(result.reason) for result in added.failed)
    add(two, *reversed(bags))
    before = rows(one)
    assert before == rows(two)
    again = add(one, bags[0], bags[0], copied)
    assert (len(again.records), again.skipped, again.failed) == (0, [bags[0], copied], [])
    assert rows(one) == before


def test_time_of_an_arm_counts_once_and_other_arms_or_unknown_times_do_not_overlap(
    tmp_path: Path,
) -> None:
    """Of two recordings of one arm that overlap, one has priority, to the sample."""
    first = Session(at=NOON).bag(tmp_path / "first")
    second = Session(at=NOON + 3_001_000_000).bag(tmp_path / "second")
    moment = Session(at=NOON + 3 * 10**9, moving=0.2, still=0.3).bag(tmp_path / "moment")
    for number, (bags, left_out, all_of) in enumerate(
        [((second, first), 4.0, 10.003), ((moment, first), 0.5, 7.0)]
    ):
        store = tmp_path / f"store_{number}"
        add(store, bags[0])
        (record,) = add(store, bags[1]).records
        assert record.left_out == pytest.approx(left_out, abs=0.01)
        assert total(store, "accounted") == pytest.approx(all_of, abs=0.01)
    sessions = [Session(serial="a"), Session(serial="b")]
    sessions += [Session(serial="b", at=None, shift=shift) for shift in (0.0, 1.0)]
    others = [session.bag(tmp_path / str(k)) for k, session in enumerate(sessions)]
    added = add(tmp_path / "store", *others)
    assert sum(record.left_out for record in added.records) == 0.0
    assert [record.host_time for record in added.records].count(False) == 2
    assert total(tmp_path / "store") == pytest.approx(
        sum(estimated(b).supply for b in others)
    )


def test_cycles_of_recordings_that_overlap_are_part_of_their_seconds(
    tmp_path: Path,
) -> None:
    """Whatever the overlap, no time is in two cycles, and none is in a cycle but not in seconds."""
    store = tmp_path / "store"
    for number, (at, moving, cycle) in enumerate(
        ((0, 6.0, 1.3), (4350, 3.7, 0.5), (2210, 7, 0.9))
    ):
        session = Session(at=NOON + at * 10**6, moving=moving, still=1.0, cycle=cycle)
        add(store, session.bag(tmp_path / f"bag_{number}"), cycle_trigger="program")
    with HistoryDatabase(HistoryStore(store)) as database:
        summary = summarise(database, ("day", "program"))
    outside = summary.outside_cycles
    assert outside is not None
    assert sum(row["cycles"] for row in summary.rows) > 0
    for name in ("energy", "standby_energy", "duration", "motion_time", "unaccounted"):
        within = sum(row[name] for row in summary.rows)
        assert outside[name] >= 0.0
        assert within + outside[name] == pytest.approx(summary.total[name], **CLOSE)
    for one, following in pairwise(rows(store, "cycles")):
        end = one["start"] + timedelta(seconds=one["duration"])
        assert end <= following["start"] + timedelta(milliseconds=1)


def test_a_full_disk(tmp_path: Path) -> None:
    """The store stays readable, and takes the bag once there is room."""
    bags = [Session(at=NOON + k * HOUR).bag(tmp_path / f"bag_{k}") for k in range(2)]
    with small_disk(tmp_path / "disk", kilobytes=256) as disk:
        store = disk.path / "store"
        add(store, bags[0])
        before = rows(store)
        disk.fill()
        with pytest.raises(StoreError, match="No space left on device"):
            add(store, bags[1])
        assert rows(store) == before
        disk.empty()
        added = add(store, *bags)
        assert (len(added.records), len(added.skipped)) == (1, 1)
        assert total(store) == pytest.approx(sum(estimated(bag).supply for bag in bags))


def test_polars_reads_the_store(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    # across midnight
    bag = Session(at=NOON + 12 * HOUR - 3 * 10**9).bag(tmp_path / "bag")
    add(tmp_path / "store", bag)
    truth = estimated(bag)
    frame = (
        polars.scan_delta(str(tmp_path / "store" / "seconds")).collect().sort("second")
    )
    assert frame["total_energy"].sum() == pytest.approx(truth.supply)
    assert frame["arm"].unique().to_list() == ["20235512345"]
    assert [str(day) for day in frame["day"]] == ["2026-05-04"] * 3 + ["2026-05-05"] * 5
    joints = polars.scan_delta(str(tmp_path / "store" / "joint_seconds")).collect()
    assert joints["energy"].sum() == pytest.approx(truth.electrical.sum())


# Finished bags of a folder


def test_bags_are_taken_once_they_do_not_change(tmp_path: Path) -> None:
    def age(bag: Path, seconds: float = 30.0) -> None:
        for file in bag.iterdir():
            os.utime(file, (time.time() - seconds,) * 2)

    folder = BagFolder(tmp_path)
    first, second = (Session(moving=0.1, still=0.1).bag(tmp_path / name) for name in "ab")
    assert folder.take() == []
    age(first)
    assert folder.take() == [first]
    age(second)
    assert (folder.take(), folder.take()) == ([second], [])
    folder.put_back(first)
    age(second, 60.0)
    assert folder.take() == [first, second]
    assert BagFolder(first).take() == [first]


def test_a_bag_that_is_recorded_is_followed_file_by_file(tmp_path: Path) -> None:
    """The rows of its files, and of the whole bag later, add up to the bag's energy."""
    telemetry = Session(moving=6.0, still=6.0, every=1).telemetry()
    store = tmp_path / "store"
    folder = BagFolder(tmp_path / "bags", quiet=1e3)
    path = tmp_path / "bags" / "bag"
    with BagWriter(path, telemetry.info, tuple(telemetry.columns)) as writer:
        for number in range(3):
            writer.write(telemetry.cut(slice(2000 * number, 2000 * number + 2000)))
            writer.flush()
            taken = folder.take()
            assert all(file.suffix == ".mcap" for file in taken)
            added = add(store, *taken)
            assert (len(added.records), added.failed) == (min(number, 1), [])
            writer.split()
    (bag,) = BagFolder(tmp_path / "bags", quiet=0.0).take()
    assert bag == path
    (record,) = add(store, bag).records
    assert 0.0 < record.accounted < record.left_out
    assert total(store, "accounted") == pytest.approx(estimated(bag).duration, abs=1e-6)


# Stretches of host time


def test_ranges_of_time() -> None:
    ranges = TimeRanges.of([(50, 60), (0, 10), (5, 20), (20, 21)])
    assert ranges.pairs() == [(0, 21), (50, 60)]
    times = np.array([-1, 0, 1, 21, 22, 50, 60, 61])
    assert ranges.holds(times).tolist() == [0, 0, 1, 1, 0, 0, 1, 0]
    assert not NOTHING.holds(times).any()
    assert ranges.within(5, 52).pairs() == [(5, 21), (50, 52)]
    first = TimeRanges.of([(0, 10)])
    pause = TimeRanges.of([(10 + SECOND, 20 + SECOND)])
    # a pause of a second is covered
    assert first.joined(pause).pairs() == [(0, 20 + SECOND)]
    assert len(first.joined(TimeRanges.of([(11 + SECOND, 12 + SECOND)])).pairs()) == 2
    ranges = TimeRanges.of([(0, 10), (20, 30), (40, 40)])
    others = TimeRanges.of([(-5, 2), (4, 6), (25, 35)])
    assert ranges.without(others).pairs() == [(2, 4), (6, 10), (20, 25)]
    # those of a single sample go
    assert ranges.without(NOTHING).pairs() == [(0, 10), (20, 30)]
    assert not NOTHING.without(others)
