"""Retention: whole files go, the bags stay complete, and nothing of others is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import EPOCH, make_telemetry
from ur_energy_model.telemetry.bag.files import (
    FileSplit,
    delete_file,
    stored_files,
)
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_reader import file_contents
from ur_energy_model.telemetry.bag.reader import MISSING_FILE, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Event

SECONDS, RATE = 6, 500


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Six seconds in six files, a mark in the third."""
    telemetry = make_telemetry(SECONDS * RATE, fields=("actual_q",))
    path = tmp_path / "long"
    split = FileSplit(seconds=0.9)
    with BagWriter(path, telemetry.info, ("actual_q",), split=split, in_budget=True) as writer:
        for second in range(SECONDS):
            stamp = EPOCH + second * 1_000_000_000
            if second == 2:
                writer.write_event(Event(stamp, "mark", "spill"))
            writer.write_event(Event(stamp, "mode", "RUNNING"))
            writer.write(telemetry.cut(slice(second * RATE, (second + 1) * RATE)))
    return path


def files_of(bag: Path) -> list[Path]:
    return [file.path for file in stored_files(bag.parent, {})]


def test_a_bag_without_some_of_its_files_is_complete_and_says_where_they_were(bag: Path) -> None:
    whole = read_bag(bag)
    files = files_of(bag)
    counts = [file_contents(file).messages[TELEMETRY_TOPIC] for file in files]
    for number in (0, 3):
        delete_file(files[number], file_contents(files[number]))
    rest = read_bag(bag)
    owner = np.repeat(np.arange(len(files)), counts)
    kept = ~np.isin(owner, (0, 3))
    np.testing.assert_array_equal(rest.time, whole.time[kept])
    (gap,) = rest.gaps
    assert gap.cause == MISSING_FILE
    assert gap.index == counts[1] + counts[2]
    assert gap.missing == counts[3]


def test_only_bags_that_were_recorded_here_under_a_budget_count(bag: Path, tmp_path: Path) -> None:
    write_bag(tmp_path / "of_a_command", make_telemetry(50, fields=("actual_q",)))
    (tmp_path / "elsewhere").mkdir()
    for copy in (tmp_path / "elsewhere" / "copy", tmp_path / "to_be_kept"):
        shutil.copytree(bag, copy)
    (tmp_path / "elsewhere" / "link").symlink_to(bag)
    assert files_of(tmp_path / "elsewhere" / "link") == []
    foreign = bag.parent / "foreign"
    foreign.mkdir()
    (foreign / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    (foreign / "foreign_0.mcap").write_bytes(b"")
    (bag.parent / "thesis.txt").write_text("years of work")
    assert {path.parent for path in files_of(bag)} == {bag}
    (bag / "metadata.yaml").unlink()
    recover_bag(bag)
    assert {path.parent for path in files_of(bag)} == {bag}
    archive = bag.rename(tmp_path / "elsewhere" / "archive")
    bag.symlink_to(archive)
    assert files_of(bag) == []
