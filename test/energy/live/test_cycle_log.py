"""The cycle log on a disk that is full for a while."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.small_disk import SmallDisk, small_disk
from ur_energy_model.energy.cycles import Cycle, CycleLog
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels

CHANNELS = Channels(("a_joint", "b_joint"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk_:
        yield disk_


def cycle(number: int) -> Cycle:
    return Cycle(number, float(number), MeterReading.zero(len(CHANNELS)), 10.0)


def test_cycles_of_a_full_disk_are_written_in_order_once_it_has_room(disk: SmallDisk) -> None:
    log = CycleLog(disk.path / "cycles.csv")
    log.append(cycle(1), CHANNELS, "now")
    disk.fill()
    for number in range(2, 200):  # more than the page of the file holds
        log.append(cycle(number), CHANNELS, "now")
    assert "No space left" in str(log.problem)
    assert (disk.path / "cycles.csv").read_bytes().endswith(b"\r\n")
    disk.empty()
    log.write()
    assert log.problem is None
    with (disk.path / "cycles.csv").open(newline="") as file:
        assert [int(row["cycle"]) for row in csv.DictReader(file)] == list(range(1, 200))
