"""Retention: the oldest bags are deleted, and nothing that is not a bag of ours."""

import os

import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from ur_energy_model.telemetry.bag.retention import Retention

NOON = 1_700_000_000.0


DAY = 86400.0


@pytest.fixture
def folder(tmp_path):
    """Four bags, one day apart, and files of others."""
    for i in range(4):
        write_bag(tmp_path / f"bag{i}", make_telemetry(50, fields=("actual_q",)))
        os.utime(tmp_path / f"bag{i}", (NOON + i * DAY, NOON + i * DAY))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    (tmp_path / "notes.txt").write_text("keep")
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_are_kept(folder):
    gone = Retention(bags=2).apply(folder, spare=folder / "bag3")
    assert [path.name for path in gone] == ["bag0", "bag1"]
    assert names(folder) == ["bag2", "bag3", "foreign", "notes.txt"]


def test_the_bag_being_recorded_is_spared_even_if_it_is_the_oldest(folder):
    Retention(bags=1).apply(folder, spare=folder / "bag0")
    assert names(folder) == ["bag0", "foreign", "notes.txt"]


def test_bytes_are_counted(folder):
    size = sum(path.stat().st_size for path in (folder / "bag0").iterdir())
    Retention(bytes=round(2.5 * size)).apply(folder, spare=folder / "bag3")
    assert names(folder) == ["bag2", "bag3", "foreign", "notes.txt"]


def test_old_bags_are_deleted_by_age(folder, monkeypatch):
    monkeypatch.setattr("time.time", lambda: NOON + 3 * DAY)
    Retention(days=1.5).apply(folder, spare=folder / "bag3")
    assert names(folder) == ["bag2", "bag3", "foreign", "notes.txt"]


def test_no_limits_delete_nothing(folder):
    assert Retention().apply(folder, spare=folder / "bag3") == []
