"""Counters belong to one arm: to its robot model and, once it is known, to its serial number."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets
from ur_energy_model.energy.counters import StateFile
from ur_energy_model.energy.live import LiveEstimator, LiveOptions, Snapshot
from ur_energy_model.energy.powers import Channels
from ur_energy_model.errors import InputError


def estimator(folder: Path) -> LiveEstimator:
    return LiveEstimator(known_model(), ROBOT, LiveOptions(state_file=folder / "state.json"))


def kill(live: LiveEstimator) -> None:
    """Release the lock without saving, as the end of a process does."""
    assert live._counters._file is not None
    live._counters._file.close()


def measured(
    live: LiveEstimator, serial: str | None, *, start: float = 100.0, seconds: float = 1.0
) -> Snapshot:
    """Snapshot after so much motion of the arm with this serial number."""
    telemetry = motion(seconds, start=start)
    telemetry = replace(telemetry, info=replace(telemetry.info, serial=serial))
    for batch in packets(telemetry, 50):
        live.update(batch)
    snapshot = live.snapshot()
    assert snapshot is not None
    return snapshot


def test_a_state_file_that_is_moved_away_begins_a_new_one(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    measured(live, None, seconds=5.0)
    kill(live)
    (tmp_path / "state.json").rename(tmp_path / "elsewhere")
    for _ in range(2):
        again = estimator(tmp_path)
        assert again.read_interval().accounted == 0.0
        kill(again)


def test_a_state_of_another_robot_is_refused(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    measured(live, None)
    live.close()
    channels = Channels(ROBOT.joint_names)
    before = (tmp_path / "state.json").read_bytes()
    with pytest.raises(InputError, match="energy of a ur5e, not a ur10e; choose another"):
        StateFile(tmp_path / "state.json", channels, "ur10e").load()
    assert (tmp_path / "state.json").read_bytes() == before


def test_a_serial_number_that_becomes_known_binds_the_counters(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    measured(live, None)
    assert measured(live, "A1", start=101.002).lifetime.accounted == pytest.approx(2.002)
    assert measured(live, None, start=102.004).serial == "A1"
    live.close()
    assert json.loads((tmp_path / "state.json").read_text())["serial"] == "A1"


def test_another_arm_has_counters_of_its_own_and_the_first_one_continues(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    first = measured(live, "A1", seconds=3.0)
    live.close()

    live = estimator(tmp_path)  # the arm was exchanged while nothing ran
    other = measured(live, "B/2", start=9000.0)
    assert other.serial == "B/2"
    assert other.lifetime.accounted == pytest.approx(1.0)
    assert other.lifetime.unaccounted == 0.0
    assert other.reset_reason == "arm B/2 instead of A1"
    assert "kept in" in str(other.note)
    live.save()
    kept = json.loads((tmp_path / "state.json.arm-A1").read_text())
    assert kept["ever"]["accounted"] == pytest.approx(first.lifetime.accounted)

    back = measured(live, "A1", start=110.0)  # and exchanged back while it runs
    assert back.lifetime.accounted == pytest.approx(first.lifetime.accounted + 1.0)
    assert (back.lifetime.consumed >= first.lifetime.consumed).all()
    live.close()

    live = estimator(tmp_path)
    again = measured(live, "B/2", start=9001.002)
    live.close()
    assert again.lifetime.accounted == pytest.approx(2.0, abs=0.01)


def as_earlier_version(path: Path, journalled: float) -> None:
    """Rewrite a state as version 1 of this package wrote it, with a newer journal entry."""
    content = json.loads(path.read_text())
    for key in ("number", "robot", "serial"):
        del content[key]
    path.write_text(json.dumps(content))
    n = len(content["names"])
    values = [*content["ever"]["net"], *content["ever"]["consumed"], journalled, 0.0, 200.0]
    payload = struct.pack(f"<Q{2 * n + 3}d", content["sequence"] + 1, *values)
    slot = payload + struct.pack("<I", zlib.crc32(payload))
    path.with_name(path.name + ".journal").write_bytes(bytes(len(slot)) + slot)


def test_a_state_without_identity_still_loads_and_is_bound(tmp_path: Path) -> None:
    live = estimator(tmp_path)
    measured(live, None)
    live.close()
    as_earlier_version(tmp_path / "state.json", 5.0)
    live = estimator(tmp_path)
    assert measured(live, "A1", start=200.002).lifetime.accounted == pytest.approx(6.0, abs=0.01)
    live.close()
    content = json.loads((tmp_path / "state.json").read_text())
    assert (content["robot"], content["serial"]) == ("ur5e", "A1")
    live = estimator(tmp_path)
    assert live.read_interval().accounted == pytest.approx(6.0, abs=0.01)
    live.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("ever", "consumed", 3), 5e218),
        (("ever", "net", 0), -1e12),
        (("ever", "accounted"), 1e300),
        (("ever", "unaccounted"), -5.0),
        (("clock",), 1e300),
        (("sequence",), -1),
        (("sequence",), 10**400),
        (("ever", "accounted"), 10**400),
        (("names",), 5),
        (("names", 0), None),
        (("number",), "x"),
    ],
)
def test_impossible_contents_are_refused_in_one_line(
    tmp_path: Path, key: tuple[str | int, ...], value: object
) -> None:
    live = estimator(tmp_path)
    measured(live, None)
    live.close()
    path = tmp_path / "state.json"
    content = json.loads(path.read_text())
    place = content
    for part in key[:-1]:
        place = place[part]
    place[key[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as refusal:
        estimator(tmp_path)
    assert "\n" not in str(refusal.value)
    assert json.loads(path.read_text()) == content


@pytest.mark.parametrize("text", ["[" * 100_000, " " * (5 << 20), '{"schema": 1, "names": 1e999}'])
def test_hostile_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(InputError, match="is not a state file"):
        estimator(tmp_path)
