# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The history that the live estimator writes while the arm works."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, changed, known_model
from test.energy.work_cycles import pick_and_place, recorded
from test.identification.exact_arm import write_bag
from test.plant.made_up_bags import (
    HOUR,
    MODEL,
    NOON,
    SERIAL,
    Session,
    add,
    estimated,
    files_of,
    rows,
    total,
)
from test.sinks.peers import until
from test.small_disk import small_disk
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.plant import live_history as live_hours
from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges
from ur_energy_model.plant.live_history import LiveHistory
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.telemetry.samples import Telemetry


def live(store: Path, period: float = 1e3) -> LiveHistory:
    return LiveHistory(str(store), "ur5e", "known", period=period)


def estimator(history: LiveHistory, trigger: str = "program") -> LiveEstimator:
    made: list[LiveEstimator] = []

    def on_powers(table: object, cycles: object) -> None:
        history.update(table, cycles, made[0].calculator)  # type: ignore[arg-type]

    options = LiveOptions(cycle_trigger=trigger)  # type: ignore[arg-type]
    made.append(LiveEstimator(MODEL, ROBOT, options, on_powers=on_powers))
    return made[0]


def feed(target: LiveEstimator, telemetry: Telemetry, size: int = 25) -> None:
    for start in range(0, len(telemetry), size):
        target.update(telemetry.cut(slice(start, start + size)))


def lived(store: Path, *telemetry: Telemetry, trigger: str = "program") -> LiveEstimator:
    history = live(store)
    source = estimator(history, trigger)
    for each in telemetry:
        feed(source, each)
    source.close()
    history.close()
    assert history.problem is None
    return source


def test_program_nodes_are_those_of_the_bag(tmp_path: Path) -> None:
    telemetry = Session(at=NOON + 56 * SECOND, every=1).telemetry()
    line = np.where(np.arange(len(telemetry)) // 400 % 2, 5.0, 3.0)
    telemetry = changed(telemetry, script_control_line=line)
    lived(tmp_path / "live", telemetry)
    add(tmp_path / "bags", write_bag(tmp_path / "bag", telemetry))
    sums = []
    for store in ("live", "bags"):
        found = rows(tmp_path / store, "program_nodes")
        keys = sorted({(row["minute"], row["node"]) for row in found})
        assert len(keys) == 4
        each = [
            [row for row in found if (row["minute"], row["node"]) == key] for key in keys
        ]
        sums.append(
            [
                [sum(row[name] for row in own) for name in ("count", "seconds")]
                for own in each
            ]
        )
    assert np.array(sums[0]) == pytest.approx(np.array(sums[1]), abs=1e-9)


def test_cycles_without_being_asked_are_those_of_the_live_view(tmp_path: Path) -> None:
    """Of a bag, of the live writer and of the estimator: the same, with their program."""
    cycle = pick_and_place(short=0.3, wait=1.0)
    made = recorded(cycle, 5.3 * cycle.duration, 5.0)
    qd = made["actual_qd"]
    columns = {
        **made.columns,
        "actual_current": 1.0 + qd,
        "safety_mode": np.ones(len(made)),
    }
    stamp = NOON + np.round(made.time * 1e9).astype(np.int64)
    info = replace(made.info, serial=SERIAL, program="palletize")
    telemetry = Telemetry(made.time, columns, info, stamp=stamp)
    source = lived(tmp_path / "live", telemetry, trigger="auto")
    add(tmp_path / "bags", write_bag(tmp_path / "bag", telemetry))
    shown = list(source.cycles)
    assert len(shown) == 5
    for store in ("live", "bags"):
        kept = rows(tmp_path / store, "cycles")
        assert [row["program"] for row in kept] == [each.program for each in shown]
        starts = [round(1e6 * row["start"].timestamp()) for row in kept]
        assert starts == [each.start // 1000 for each in shown]
        for column, values in {
            "number": [each.number for each in shown],
            "duration": [each.duration for each in shown],
            "unaccounted_s": [each.unaccounted for each in shown],
            "peak_power": [each.peak_power for each in shown],
            "total_energy": [
                each.reading.net[source.channels.arm["total"]] for each in shown
            ],
        }.items():
            assert [row[column] for row in kept] == pytest.approx(values, rel=1e-6)
    assert {each.program for each in shown} == {"palletize"}


def test_it_equals_the_history_of_the_bag_and_time_of_both_counts_once(
    tmp_path: Path,
) -> None:
    session = Session(moving=6.0, still=5.0, shift=-5.0, cycle=2.0)
    bag = session.bag(tmp_path / "bag")
    lived(tmp_path / "live", session.telemetry())
    add(tmp_path / "bags", bag, cycle_trigger="program")
    for table in ("seconds", "cycles"):
        mine = rows(tmp_path / "live", table)
        its = rows(tmp_path / "bags", table)
        assert len(mine) == len(its) > 0
        for one, other in zip(mine, its, strict=True):
            assert one["arm"] == SERIAL
            for name in ("total_energy", "bus_energy"):
                # The step at which the standby power becomes known has half of the
                # model's.
                assert one[name] == pytest.approx(other[name], rel=1e-9, abs=0.01)
            # That of the live one has the model's standby power until standstill shows
            # another.
            assert one["peak_power"] == pytest.approx(other["peak_power"], abs=5.0 + 1e-6)
            assert one["joint_energy"] == pytest.approx(other["joint_energy"])
    before = total(tmp_path / "live")
    assert before == pytest.approx(estimated(bag).supply, abs=0.01)
    (record,) = add(tmp_path / "live", bag).records
    assert record.rows["seconds"] == 0
    assert record.left_out == pytest.approx(11.0, abs=0.01)
    later = replace(session, at=NOON + HOUR).bag(tmp_path / "later")
    assert add(tmp_path / "live", later).records[0].left_out == 0.0
    assert total(tmp_path / "live") == pytest.approx(2 * before, abs=0.01)
    accounted = total(tmp_path / "bags", "accounted")
    lived(tmp_path / "bags", session.telemetry())
    assert total(tmp_path / "bags", "accounted") == accounted


def test_rows_appear_while_it_runs_one_file_per_hour_with_the_health_of_the_bag(
    tmp_path: Path,
) -> None:
    session = Session(at=NOON + HOUR - 5 * 10**9, moving=72.0, still=20.0)
    telemetry = session.telemetry()
    store = tmp_path / "live"
    history = live(store, period=0.2)
    source = estimator(history)
    feed(source, telemetry.cut(slice(0, 7_200)), 100)
    source.save()
    until(
        lambda: len(rows(store, "health")) >= 1 and total(store, "accounted") > 60.0,
        pause=0.1,
    )
    feed(source, telemetry.cut(slice(7_200, None)), 100)
    source.close()
    history.close()
    assert history.problem is None
    bag = session.bag(tmp_path / "bag")
    add(tmp_path / "bags", bag)
    assert total(store) == pytest.approx(estimated(bag).supply)
    assert len(files_of(store)) == len(files_of(store, "joint_seconds")) == 2
    assert len({row["source"] for row in rows(store)}) == 1
    mine = rows(store, "health")
    its = rows(tmp_path / "bags", "health")
    assert [f"{row['minute']:%H:%M:%S}" for row in its] == [
        "12:59:00",
        "13:00:00",
        "13:01:00",
    ]
    for one, other in zip(mine, its, strict=True):
        assert (one["arm"], one["minute"]) == (SERIAL, other["minute"])
        for name in ("joint_moving", "joint_friction", "joint_torque_constant"):
            assert one[name] == pytest.approx(other[name], rel=1e-9, nan_ok=True)
    for found in (mine, its):
        assert [row["standby"] is None for row in found] == [True, True, False]
        assert found[2]["standby"] == pytest.approx(25.0)


def test_time_that_another_process_adds_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one commits between the question what is covered and the writing."""
    store = tmp_path / "store"
    session = Session(moving=6.0, still=4.0)
    add(store, Session(at=NOON + 2 * 10**9, moving=2.0, still=1.0).bag(tmp_path / "bag"))
    covered = HistoryStore.covered
    answers = [NOTHING]

    def late(self: HistoryStore, arm: str, start: int, *, besides: str) -> TimeRanges:
        return answers.pop() if answers else covered(self, arm, start, besides=besides)

    monkeypatch.setattr(HistoryStore, "covered", late)
    lived(store, session.telemetry())
    assert 9.0 < total(store, "accounted") < 10.01
    joints = rows(store, "joint_seconds", "arm, second, source, joint")
    assert len(joints) == 6 * len(rows(store))


def test_compaction_leaves_what_the_estimator_will_replace(tmp_path: Path) -> None:
    """Of a recording without bus power, over an hour's end, played long after: no row twice."""
    store = tmp_path / "store"
    begin = NOON + HOUR - 4 * SECOND
    telemetry = Session(at=begin, moving=6.0, still=6.0, every=1).telemetry()
    telemetry = changed(telemetry, actual_robot_current=np.full(len(telemetry), np.nan))
    history = live(store, period=0.2)
    source = estimator(history)
    for start in range(0, len(telemetry), 2000):
        feed(source, telemetry.cut(slice(start, start + 2000)))
        source.save()
        until(lambda: len(rows(store)) >= max(1, start // 500), pause=0.1)  # noqa: B023
        HistoryStore(store).compact()
    source.close()
    history.close()
    assert history.problem is None
    HistoryStore(store).compact()
    found = rows(store)
    assert len({row["second"] for row in found}) == len(found)
    assert sum(row["accounted"] for row in found) == pytest.approx(12.0, abs=0.01)


def test_another_arm_and_another_model_get_rows_of_their_own(tmp_path: Path) -> None:
    """Samples without host time are taken as of now."""
    begun = time.time()
    store = tmp_path / "store"
    history = live(store)
    source = estimator(history)
    feed(source, Session().telemetry())
    source.use_model(known_model(standby=26.0))
    history.use_model("other")
    feed(source, Session(at=NOON + HOUR, serial=SERIAL).telemetry())
    feed(source, Session(at=None, serial="b").telemetry())
    source.close()
    history.close()
    found = {(row["arm"], row["model"]) for row in rows(store)}
    assert found == {(SERIAL, "known"), (SERIAL, "other"), ("b", "other")}
    of_b = [row["second"].timestamp() for row in rows(store) if row["arm"] == "b"]
    assert abs(of_b[0] - begun) < 60


def test_the_total_does_not_depend_on_the_model(tmp_path: Path) -> None:
    """Another model on the way: the total stays volts times amperes, without a step missing."""
    store = tmp_path / "store"
    history = live(store)
    source = estimator(history)
    telemetry = Session(moving=6.0, still=4.0).telemetry()
    half = len(telemetry) // 2
    feed(source, telemetry.cut(slice(0, half)))
    source.use_model(known_model(standby=29.0))
    history.use_model("other")
    feed(source, telemetry.cut(slice(half, None)))
    source.close()
    history.close()
    watts = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    energy = float(np.trapezoid(watts, telemetry.time))
    assert total(store) == pytest.approx(energy, rel=1e-9)
    assert {row["model"] for row in rows(store)} == {"known", "other"}
    for row in rows(store):
        parts = sum(
            row[f"{name}_energy"] for name in ("standby", "driver", "regeneration")
        )
        parts += sum(row["joint_energy"])
        assert parts == pytest.approx(row["model_energy"], rel=1e-9)
        assert parts + row["unexplained_energy"] == pytest.approx(
            row["total_energy"], rel=1e-9
        )
        assert row["measured"] == pytest.approx(row["accounted"], rel=1e-9)
        assert row["total_source"] == "measured"


def test_a_full_disk_is_a_problem_and_costs_nothing(tmp_path: Path) -> None:
    session = Session(moving=6.0, still=4.0, every=1)
    telemetry = session.telemetry()
    with small_disk(tmp_path / "disk", kilobytes=256) as disk:
        store = disk.path / "store"
        store.mkdir()
        history = live(store, period=0.2)
        source = estimator(history)
        disk.fill()
        feed(source, telemetry.cut(slice(0, 2000)))
        source.save()
        until(lambda: history.problem is not None)
        assert "No space left on device" in str(history.problem)
        disk.empty()
        feed(source, telemetry.cut(slice(2000, None)))
        source.close()
        until(lambda: history.problem is None)
        history.close()
        assert total(store) == pytest.approx(
            estimated(session.bag(tmp_path / "bag")).supply
        )


def test_a_store_that_hangs_does_not_hold_up_the_estimator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = threading.Event()
    release = threading.Event()
    history = live(tmp_path / "store", period=0.01)

    def hang(*_: object, **__: object) -> None:
        entered.set()
        release.wait(240)

    monkeypatch.setattr(live_hours.LiveRows, "write", hang)
    source = estimator(history)
    telemetry = Session(every=1).telemetry()
    feed(source, telemetry.cut(slice(0, 500)))
    source.save()
    assert entered.wait(240)
    feed(source, telemetry.cut(slice(500, None)))  # returns although nothing is written
    assert source.samples > 3000
    release.set()
    history.close()
