# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""StorageBudget: the oldest files go; never the one being written, a marked one or others'."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from test.telemetry.scripted_source import FIELDS as SCRIPTED
from test.telemetry.scripted_source import wait_for
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import read_bag, read_info
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.retention import DAY, Retention, stored_files
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.storage_budget import StorageBudget
from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions
from ur_energy_model.telemetry.samples import Event

FIELDS = ("actual_q",)
SMALL = Retention(bytes=1)


def old_bags(folder: Path, count: int, *, marked: int | None = None) -> None:
    """Bags of `count` days, the first one the oldest, the last one a day old."""
    for i in range(count):
        path = folder / f"bag{i}"
        telemetry = make_telemetry(50, fields=FIELDS)
        with BagWriter(path, telemetry.info, FIELDS, in_budget=True) as writer:
            writer.write(telemetry)
            if i == marked:
                writer.write_event(Event(writer.last_stamp, "mark", "collision"))
        age(path, count - i)


def age(bag: Path, days: float) -> None:
    when = time.time() - days * DAY
    for file in bag.glob("*.mcap"):
        os.utime(file, (when, when))


def enforced(folder: Path, retention: Retention = SMALL) -> StorageBudget:
    budget = StorageBudget(folder, retention, lambda: None, lambda path: True)
    budget.enforce()
    return budget


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    old_bags(tmp_path, 4)
    total = sum(file.bytes for file in stored_files(tmp_path, {}))
    use = enforced(tmp_path, Retention(bytes=round(0.6 * total))).use
    assert names(tmp_path) == ["bag2", "bag3"]
    assert (use.files, use.removed_files, use.problem) == (2, 2, None)
    assert use.oldest_days == pytest.approx(2.0, abs=0.01)
    enforced(tmp_path, Retention(days=1.5))
    assert names(tmp_path) == ["bag3"]


def test_files_that_are_marked_or_damaged_or_of_others_stay_and_are_named(
    tmp_path: Path,
) -> None:
    old_bags(tmp_path, 3, marked=0)
    damaged = tmp_path / "bag1" / "bag1_0.mcap"
    bag = tmp_path / "bag2"
    damaged.write_bytes(b"no mcap")
    shutil.copy(bag / "bag2_0.mcap", bag / "thesis.mcap")
    age(bag, 3)
    budget = enforced(tmp_path)
    assert "thesis.mcap" in (budget.use.problem or "")
    assert names(bag) == ["thesis.mcap"]
    shutil.rmtree(bag)
    budget.enforce()
    assert damaged.exists()
    shutil.rmtree(tmp_path / "bag1")
    budget.enforce()
    assert names(tmp_path) == ["bag0"]
    assert "marked" in (budget.use.problem or "")


def test_a_bag_that_others_write_stays_and_a_finished_or_killed_one_goes(
    tmp_path: Path,
) -> None:
    telemetry = make_telemetry(50, fields=FIELDS)
    write_bag(tmp_path / "finished", telemetry, in_budget=True)
    write_bag(tmp_path / "killed", telemetry, in_budget=True)
    (file,) = (tmp_path / "killed").glob("*.mcap")
    file.write_bytes(file.read_bytes()[:-20])
    shutil.copytree(tmp_path / "killed", tmp_path / "elsewhere")
    metadata = tmp_path / "elsewhere" / "metadata.yaml"
    metadata.write_text(re.sub(r"(\s+host): .*", r"\1: another", metadata.read_text()))
    with BagWriter(
        tmp_path / "written", telemetry.info, FIELDS, in_budget=True
    ) as writer:
        age(tmp_path / "written", 1)
        budget = enforced(tmp_path)
        assert names(tmp_path) == ["elsewhere", "written"]
        assert "being written" in (budget.use.problem or "")
        shutil.rmtree(tmp_path / "elsewhere")
        budget.enforce()
        writer.write(telemetry)
    budget.enforce()
    assert names(tmp_path) == []
    assert budget.use.problem is None


def test_only_bags_that_were_recorded_here_under_a_budget_count(tmp_path: Path) -> None:
    def bags() -> set[str]:
        return {file.path.parent.name for file in stored_files(folder, {})}

    folder = tmp_path / "recordings"
    elsewhere = tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
        old_bags(each, 1)
    write_bag(folder / "of_a_command", make_telemetry(50, fields=FIELDS))
    shutil.copytree(folder / "bag0", folder / "to_be_kept")
    (folder / "link").symlink_to(elsewhere / "bag0")
    foreign = folder / "foreign"
    foreign.mkdir()
    (foreign / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    (foreign / "foreign_0.mcap").write_bytes(b"")
    (folder / "thesis.txt").write_text("years of work")
    assert bags() == {"bag0"}
    (folder / "bag0" / "metadata.yaml").unlink()
    recover_bag(folder / "bag0")
    assert bags() == {"bag0"}


def test_the_bag_being_recorded_loses_its_oldest_files_and_nothing_is_counted_as_lost(
    tmp_path: Path, source
) -> None:
    options = RecorderOptions(
        split=FileSplit(seconds=0.2), retention=SMALL, name="{number}"
    )
    with Recorder(source, tmp_path, options=options) as recorder:
        budget = recorder._budget
        assert budget is not None
        bag = recorder.start()
        telemetry = make_telemetry(1000, fields=SCRIPTED)
        for first in range(0, 1000, 100):
            source.give(telemetry.cut(slice(first, first + 100)))
        # no file begins any more between the deletion and the count of files
        wait_for(lambda: recorder.status.samples + recorder.status.removed == 1000)
        assert len(list(bag.glob("*.mcap"))) >= 4
        budget.enforce()
        assert len(list(bag.glob("*.mcap"))) == 1  # the one being written
        status = recorder.stop()
    assert status.losses.samples == status.unreadable == 0
    assert status.samples + status.removed == 1000
    rest = read_bag(bag)
    assert len(rest) == status.samples < 1000
    assert rest.time[-1] == telemetry.time[-1]
    assert read_info(bag).removed == status.removed
    recover_bag(bag)
    assert read_info(bag).removed == status.removed
