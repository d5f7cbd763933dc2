"""Counters that survive: restarts, kills in the middle of a write, damaged and foreign files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets
from ur_energy_model.energy.counters import Counters, JournalEntry, StateFile
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels
from ur_energy_model.errors import InputError

CHANNELS = Channels(("a_joint", "b_joint"))


def reading(value: float) -> MeterReading:
    n = len(CHANNELS)
    return MeterReading(np.full(n, value), np.full(n, 2 * value), value / 10, value / 100)


def counters(value: float) -> Counters:
    return Counters(reading(value), reading(0), reading(1), 50.0, "2026-01-01", "first start")


def test_saved_counters_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "state.json"
    file = StateFile(path, CHANNELS)
    assert file.load() is None
    file.save(counters(5.0))
    file.close()
    again = StateFile(path, CHANNELS).load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(5.0)
    assert again.lifetime.unaccounted == pytest.approx(0.05)
    assert again.interval.consumed == pytest.approx(2.0)
    assert (again.clock, again.reset_reason) == (50.0, "first start")
    assert [entry.name for entry in path.parent.iterdir() if "tmp" in entry.name] == []


def test_the_journal_is_newer_than_the_file(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s", CHANNELS)
    file.save(counters(5.0))
    file.journal(JournalEntry(reading(6.0), 51.0))
    file.journal(JournalEntry(reading(7.0), 52.0))
    file.close()  # without saving, as a killed process
    again = StateFile(tmp_path / "s", CHANNELS).load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(7.0)
    assert again.clock == 52.0
    assert again.interval.net == pytest.approx(1.0)


def test_an_interrupted_journal_entry_leaves_the_previous_one(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s", CHANNELS)
    file.save(counters(5.0))
    file.journal(JournalEntry(reading(6.0), 51.0))
    file.journal(JournalEntry(reading(7.0), 52.0))
    file.close()
    journal = tmp_path / "s.journal"
    content = bytearray(journal.read_bytes())
    half = len(content) // 2
    # Sequence 3 is in the second half: the newest entry is cut off in the middle.
    content[half + 8 : half + 100] = bytes(92)
    journal.write_bytes(content)
    again = StateFile(tmp_path / "s", CHANNELS).load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(6.0)


def test_a_journal_older_than_the_file_is_ignored(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s", CHANNELS)
    file.save(counters(5.0))
    file.journal(JournalEntry(reading(6.0), 51.0))
    file.save(counters(8.0))
    file.close()
    again = StateFile(tmp_path / "s", CHANNELS).load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(8.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1}', "null"])
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    options = LiveOptions(state_file=path)
    with pytest.raises(InputError, match="state file"):
        LiveEstimator(known_model(), ROBOT, options)
    assert path.read_text() == text
    path.unlink()
    LiveEstimator(known_model(), ROBOT, options).close()  # the lock was given back


def test_counters_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    file = StateFile(path, CHANNELS)
    file.save(counters(5.0))
    file.close()
    content = json.loads(path.read_text())
    content["ever"]["net"][0] = float("nan")
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="not finite"):
        StateFile(path, CHANNELS).load()


def test_another_arms_counters_are_refused(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s", CHANNELS)
    file.save(counters(5.0))
    file.close()
    with pytest.raises(InputError, match="other joints"):
        StateFile(tmp_path / "s", Channels(("c_joint",))).load()


def test_counters_are_converted_to_other_parameter_errors(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s", CHANNELS)
    file.save(counters(5.0))
    file.close()
    more = Channels(CHANNELS.joints, (2, 3))
    again = StateFile(tmp_path / "s", more).load()
    assert again is not None
    assert again.lifetime.net[: more.sensitivity] == pytest.approx(5.0)
    assert again.lifetime.net[more.sensitivity :] == pytest.approx(0.0)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    holder = StateFile(tmp_path / "s", CHANNELS)
    with pytest.raises(InputError, match="in use"):
        StateFile(tmp_path / "s", CHANNELS)
    holder.close()
    StateFile(tmp_path / "s", CHANNELS).close()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        StateFile(tmp_path / "file" / "s", CHANNELS)


def test_time_without_an_estimator_is_unaccounted(tmp_path: Path) -> None:
    options = LiveOptions(state_file=tmp_path / "s")
    first = LiveEstimator(known_model(), ROBOT, options)
    for batch in packets(motion(2.0), 10):
        first.update(batch)
    before = first.snapshot()
    first.close()
    second = LiveEstimator(known_model(), ROBOT, options)
    for batch in packets(motion(1.0, start=130.0), 10):
        second.update(batch)
    after = second.snapshot()
    second.close()
    assert before is not None
    assert after is not None
    assert after.lifetime.unaccounted == pytest.approx(130.0 - 102.0)
    assert after.lifetime.accounted == pytest.approx(3.0)
    assert (after.lifetime.consumed >= before.lifetime.consumed).all()
    assert after.reset_time == before.reset_time


_KILLED = """
import sys
from pathlib import Path
from test.energy.known_arm import ROBOT, known_model, motion, packets
from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.counters import JournalEntry
from ur_energy_model.energy.live import LiveOptions
estimator = LiveEstimator(known_model(), ROBOT, LiveOptions(state_file=Path(sys.argv[1])))
for batch in packets(motion(600.0), 10):
    estimator.update(batch)
    print(repr(float(estimator.snapshot().lifetime.consumed.sum())), flush=True)
"""


def test_a_kill_takes_back_no_published_energy(tmp_path: Path) -> None:
    path = tmp_path / "s"
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert child.stdout is not None
    shown = [float(child.stdout.readline()) for _ in range(200)]
    os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read().splitlines()
    child.wait()
    last = float(rest[-1]) if rest and rest[-1] else shown[-1]
    (tmp_path / f".s.ur_energy-{child.pid}-new-5kx_2a9q").write_text("half", encoding="utf-8")
    again = LiveEstimator(known_model(), ROBOT, LiveOptions(state_file=path))
    assert again.calculator is not None
    continued = again.read_interval().consumed.sum()
    again.close()
    assert continued >= last > 0
    assert {entry.name for entry in tmp_path.iterdir()} == {"s", "s.journal"}


ELBOW = "elbow_joint/electrical_power"


def published(estimator: LiveEstimator) -> float:
    """Highest energy of a joint that was published."""
    snapshot = estimator.snapshot()
    assert snapshot is not None
    return float(snapshot.highest[snapshot.channels.names.index(ELBOW)])


def test_the_highest_energies_survive_a_kill_in_a_regeneration_dip(tmp_path: Path) -> None:
    """A counter that went back after a restart would count everything again in Prometheus."""
    options = LiveOptions(state_file=tmp_path / "s.json")
    estimator = LiveEstimator(known_model(), ROBOT, options)
    seen = []
    for batch in packets(motion(3.0), 50):
        estimator.update(batch)
        seen.append(published(estimator))
    assert seen == sorted(seen)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    assert max(seen) > snapshot.lifetime.net[estimator.channels.names.index(ELBOW)], (
        "no dip at the end"
    )
    file = estimator._counters._file
    assert file is not None
    file.close()  # without saving, as a killed process
    again = LiveEstimator(known_model(), ROBOT, options)
    again.update(motion(0.02, start=200.0))
    assert published(again) == pytest.approx(max(seen), rel=1e-12)
    again.close()
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["highest"][content["names"].index(ELBOW)] == pytest.approx(max(seen))


def test_files_and_journals_of_earlier_versions_have_no_highest_energies(tmp_path: Path) -> None:
    path = tmp_path / "s"
    file = StateFile(path, CHANNELS)
    file.save(counters(5.0))
    file.journal(JournalEntry(reading(6.0), 51.0))
    file.close()
    content = json.loads(path.read_text())
    del content["highest"]
    path.write_text(json.dumps(content))
    file = StateFile(path, CHANNELS)
    again = file.load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(6.0)
    assert again.highest is None
    n = len(CHANNELS)
    file.journal(JournalEntry(reading(7.0), 52.0, np.full(n, 9.0)))  # longer than the old slots
    file.close()
    again = StateFile(path, CHANNELS).load()
    assert again is not None
    assert again.lifetime.net == pytest.approx(7.0)
    assert again.highest == pytest.approx(9.0)


@pytest.mark.parametrize("highest", [[1.0], "x", [float("1e99")] * len(CHANNELS)])
def test_impossible_highest_energies_are_refused(tmp_path: Path, highest: object) -> None:
    path = tmp_path / "s.json"
    file = StateFile(path, CHANNELS)
    file.save(counters(5.0))
    file.close()
    content = {**json.loads(path.read_text()), "highest": highest}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="state file"):
        StateFile(path, CHANNELS).load()
