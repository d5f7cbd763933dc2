# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Counters that survive restarts, kills, sick disks and damage, and belong to one arm."""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets
from test.small_disk import SmallDisk, small_disk
from ur_energy_model.energy.counters import EnergyCounters
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.saved_counters import Counters
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.errors import InputError
from ur_energy_model.state_file import StateFile

ELBOW = "elbow_joint/electrical_power"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disks are tried again without a pause."""
    monkeypatch.setattr("ur_energy_model.state_file.CHECK_PERIOD", 0.0)


def estimator(folder: Path) -> LiveEstimator:
    options = LiveOptions(state_file=folder / "state.db", cycle_log=folder / "cycles.csv")
    return LiveEstimator(known_model(), ROBOT, options)


def kill(live: LiveEstimator) -> None:
    """Release the locks without saving, as the end of a process does."""
    live._counters._release()


def measured(
    live: LiveEstimator,
    seconds: float = 1.0,
    start: float = 100.0,
    serial: str | None = None,
) -> Snapshot:
    """Snapshot after so much motion of the arm with this serial number."""
    telemetry = motion(seconds, start=start)
    telemetry = replace(telemetry, info=replace(telemetry.info, serial=serial))
    for batch in packets(telemetry, 50):
        live.update(batch)
    snapshot = live.snapshot()
    assert snapshot is not None
    return snapshot


def kept(folder: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        query = "SELECT value FROM state WHERE key = 'counters'"
        return dict(json.loads(connection.execute(query).fetchone()[0]))


def test_what_happened_between_two_saves_is_in_the_journal(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    snapshot = measured(live, 3.0)
    elbow = snapshot.channels.names.index(ELBOW)
    highest = snapshot.highest[elbow]
    assert highest > snapshot.lifetime.net[elbow], "no regeneration at the end"
    kill(live)
    assert kept(tmp_path)["ever"]["accounted"] == 0.0
    again = measured(live := estimator(tmp_path), 0.02, start=130.0)
    assert again.highest[elbow] == pytest.approx(highest, rel=1e-12)
    assert again.lifetime.unaccounted == pytest.approx(130.0 - 103.0, abs=0.01)
    assert again.reset_time == snapshot.reset_time
    live.close()
    # power cut
    (tmp_path / "state.db.journal").write_bytes(b"SQLite format 3\0" + bytes(4080))
    assert measured(estimator(tmp_path), 0.1, 131.0).lifetime.accounted > 3.0


@pytest.mark.parametrize("end", [kill, LiveEstimator.close])
def test_numbers_of_cycles_go_on(
    tmp_path: Path, end: Callable[[LiveEstimator], None]
) -> None:
    """Over a restart and over a kill after the last save; each arm has numbers of its own."""
    numbers = list[int]()

    def worked(start: float, serial: str, cycles: int) -> Snapshot:
        live = estimator(tmp_path)
        measured(live, 0.1, start - 0.1, serial)
        live.save()
        for number in range(cycles + 1):
            live.start_cycle()
            snapshot = measured(live, 0.5, start + 0.5 * number, serial)
        numbers.extend(cycle.number for cycle in live.cycles)
        assert all(cycle.is_whole for cycle in live.cycles)
        end(live)
        return snapshot

    assert worked(100.0, "A", 3).cycles == 3
    assert worked(200.0, "A", 2).cycles == 5
    assert worked(300.0, "B", 1).cycles == 1
    assert worked(400.0, "A", 1).cycles == 6
    assert numbers == [1, 2, 3, 4, 5, 1, 6]
    with (tmp_path / "cycles.csv").open(newline="") as file:
        assert [int(row["cycle"]) for row in csv.DictReader(file)] == numbers


_KILLED = """
import sys
from pathlib import Path
from test.energy.test_counters import estimator, motion, packets
live = estimator(Path(sys.argv[1]))
for number, batch in enumerate(packets(motion(60.0), 10)):
    live.update(batch)
    shown = live.snapshot().lifetime.consumed.sum()
    if number % 10 == 0:
        live.save()
    print(repr(float(shown)), flush=True)
"""


def test_a_kill_takes_back_no_published_energy(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    ) as child:
        assert child.stdout is not None
        shown = [child.stdout.readline() for _ in range(200)]
        child.send_signal(signal.SIGKILL)
        shown += [
            line for line in child.stdout.read().splitlines(True) if line.endswith("\n")
        ]
    again = estimator(tmp_path)
    assert again.read_interval().consumed.sum() >= float(shown[-1]) > 0
    again.close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    with pytest.raises(InputError, match="in use"):
        estimator(tmp_path)
    live.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        EnergyCounters(live.channels, tmp_path / "file" / "s")


def test_counters_are_converted_to_other_parameter_errors(tmp_path: Path) -> None:
    few = Channels(("a", "b"))
    more = Channels(("a", "b"), (2, 3))
    counters = EnergyCounters(few, tmp_path / "s")
    steps = counters.meter.gaps(np.arange(3.0) / 20)
    power = np.full((3, len(few)), 5.0)
    counters.integrate(np.arange(3.0), steps, power)
    counters.close()
    again = EnergyCounters(more, tmp_path / "s")
    assert again.meter.reading.net[: more.joint_errors.start] == pytest.approx(0.5)
    assert again.meter.reading.net[more.joint_errors.start :] == pytest.approx(0.0)
    again.close()
    with pytest.raises(InputError, match="other joints"):
        EnergyCounters(Channels(("c",)), tmp_path / "s")
    EnergyCounters(few, tmp_path / "of one", "ur5e").close()
    with pytest.raises(InputError, match="energy of a ur5e, not a ur10e; choose another"):
        EnergyCounters(few, tmp_path / "of one", "ur10e")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 512) as disk_:
        yield disk_


def write_everything(live: LiveEstimator) -> None:
    live.reset("service call")
    live.read_interval()
    live.start_cycle()
    live.save()


def test_a_disk_that_becomes_full_and_recovers(disk: SmallDisk) -> None:
    live = estimator(disk.path)
    before = measured(live)
    assert live.disk_problem is None
    disk.fill()
    for k in range(2):
        write_everything(live)
        during = measured(live, 1.0, 101.002 + 1.002 * k)
    assert during.lifetime.accounted > before.lifetime.accounted + 1.9
    assert live.log_problem is not None
    disk.empty()
    live.snapshot()
    live.save()
    assert (live.disk_problem, live.log_problem) == (None, None)
    live.close()
    with (disk.path / "cycles.csv").open(newline="") as file:
        assert [row["cycle"] for row in csv.DictReader(file)] == ["1"]
    after = measured(live := estimator(disk.path), 0.1, 103.006)
    assert (after.lifetime.consumed >= during.lifetime.consumed).all()
    assert after.reset_reason == "service call"
    live.close()


def test_a_disk_that_is_full_at_the_start(disk: SmallDisk) -> None:
    """Counters continue where there are any, and begin in memory where there are none."""
    first = estimator(disk.path)
    counted = float(measured(first).lifetime.accounted)
    first.close()
    disk.fill()
    live = estimator(disk.path)
    shown = measured(live, 1.0, 101.002)
    assert shown.lifetime.accounted == pytest.approx(counted + 1.0, abs=0.01)
    write_everything(live)
    disk.empty()
    live.snapshot()
    live.save()
    assert live.disk_problem is None
    live.close()
    again = estimator(disk.path)
    assert measured(again, 0.1, 102.004).lifetime.accounted > shown.lifetime.accounted
    again.close()

    for path in disk.path.glob("state.db*"):
        path.unlink()
    disk.fill()
    new = estimator(disk.path)
    write_everything(new)
    assert "state.db" in str(new.disk_problem)
    counted = float(measured(new).lifetime.accounted)
    disk.empty()
    new.close()
    assert new.disk_problem is None
    again = estimator(disk.path)
    assert again.read_interval().accounted >= counted
    again.close()


def test_counters_that_cannot_be_read_are_not_counted_from_zero(disk: SmallDisk) -> None:
    first = estimator(disk.path)
    counted = float(measured(first).lifetime.accounted)
    kill(first)
    disk.set_writable(False)
    with pytest.raises(InputError, match=r"Read-only.*set state_file to a writable path"):
        estimator(disk.path)
    disk.set_writable(True)
    again = estimator(disk.path)
    assert again.read_interval().accounted == pytest.approx(counted)
    again.close()


def test_a_state_that_comes_with_a_disk_later_is_left_alone(disk: SmallDisk) -> None:
    """Such as that of a disk that is mounted after the start."""
    first = estimator(disk.path)
    measured(first)
    first.close()
    content = (disk.path / "state.db").read_bytes()
    for path in disk.path.glob("state.db*"):
        path.unlink()
    live = estimator(disk.path)
    for path in disk.path.glob("state.db*"):
        path.unlink()
    (disk.path / "state.db").write_bytes(content)
    live.save()
    assert "a restart continues" in str(live.disk_problem)
    live.close()
    assert (disk.path / "state.db").read_bytes() == content
    again = estimator(disk.path)
    assert again.read_interval().accounted == pytest.approx(1.0, abs=0.01)
    again.close()


def test_a_file_that_was_deleted_is_written_again(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    counted = float(measured(live).lifetime.accounted)
    for path in tmp_path.glob("state.db*"):
        path.unlink()
    live.close()
    assert live.disk_problem is None
    again = estimator(tmp_path)
    assert again.read_interval().accounted == pytest.approx(counted)
    again.close()


def test_another_arm_has_counters_of_its_own_and_the_first_one_continues(
    tmp_path: Path,
) -> None:
    live = estimator(tmp_path)
    measured(live)
    first = measured(live, 2.0, 101.002, "A1")  # becomes known, and binds the counters
    assert first.lifetime.accounted == pytest.approx(3.002)
    live.close()

    live = estimator(tmp_path)  # the arm was exchanged while nothing ran
    other = measured(live, serial="B/2", start=9000.0)
    assert (other.serial, other.reset_reason) == ("B/2", "arm B/2 instead of A1")
    assert other.lifetime.accounted == pytest.approx(1.0)
    assert other.lifetime.unaccounted == 0.0
    assert "kept in" in str(other.note)

    back = measured(live, serial="A1", start=110.0)  # and exchanged back while it runs
    assert back.lifetime.accounted == pytest.approx(first.lifetime.accounted + 1.0)
    assert (back.lifetime.consumed >= first.lifetime.consumed).all()
    live.close()

    live = estimator(tmp_path)
    again = measured(live, serial="B/2", start=9001.002)
    live.close()
    assert again.lifetime.accounted == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("ever", "consumed", 3), 5e218),
        (("ever", "net", 0), float("nan")),
        (("ever", "accounted"), 10**400),
        (("highest",), [1.0]),
        (("schema",), 9),
    ],
)
def test_impossible_contents_are_refused_and_left_alone(
    tmp_path: Path, key: tuple[str | int, ...], value: object
) -> None:
    names = Channels(("a", "b")).names
    content: Any = json.loads(Counters.zero(names, "ur5e", None, "test").content())
    place = content
    for part in key[:-1]:
        place = place[part]
    place[key[-1]] = value
    path = tmp_path / "state.db"
    file = StateFile(path)
    file.put("counters", json.dumps(content).encode())
    file.save()
    file.close()
    for refused in (
        path.read_bytes(),
        json.dumps(content).encode(),
        b"{}",
        b"[" * 100_000,
    ):
        path.write_bytes(refused)
        with pytest.raises(InputError, match="is not a state file") as refusal:
            estimator(tmp_path)
        assert "\n" not in str(refusal.value)
        assert path.read_bytes() == refused
    path.unlink()
    estimator(tmp_path).close()  # the lock was given back
