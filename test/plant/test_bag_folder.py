"""What of a folder of bags can be added to a history."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from test.energy.known_arm import packets
from test.plant.made_up_bags import HOUR, NOON, Session, add, estimated, total
from ur_energy_model.plant.add import BagFolder
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry


def test_bags_are_taken_once_they_do_not_change(tmp_path: Path) -> None:
    folder = BagFolder(tmp_path)
    assert folder.take() == []
    first, second = (
        Session(at=NOON + k * HOUR).bag(tmp_path / name) for k, name in enumerate("ab")
    )
    assert folder.take() == []
    age(first)
    assert folder.take() == [first]
    age(second)
    assert folder.take() == [second]
    assert folder.take() == []
    folder.put_back(first)
    assert folder.take() == [first]
    age(second, 60.0)
    assert folder.take() == [second]
    assert BagFolder(first).take() == [first]


def age(bag: Path, seconds: float = 30.0) -> None:
    """Make the files of a bag older."""
    for file in bag.iterdir():
        os.utime(file, (time.time() - seconds,) * 2)


def test_a_bag_that_is_recorded_is_followed_file_by_file(tmp_path: Path) -> None:
    """The rows of its files, and of the whole bag later, add up to the bag's energy."""
    telemetry = Session(moving=6.0, still=6.0).telemetry()
    folder, store, path = (
        BagFolder(tmp_path / "bags", quiet=1e3),
        tmp_path / "store",
        tmp_path / "bags" / "bag",
    )
    parts = iter(packets(telemetry, 2000))
    stamp = telemetry.stamp
    assert stamp is not None
    with BagWriter(path, telemetry.info, tuple(telemetry.columns)) as writer:
        for number, part in enumerate(parts):
            first = 2000 * number
            stamped = Telemetry(
                part.time, part.columns, telemetry.info, (), stamp[first : first + len(part)]
            )
            writer.write(stamped)
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
