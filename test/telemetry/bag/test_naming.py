"""Names of bags, and which old ones go."""

import os

import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.bag.naming import bag_name
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.samples import RecordingInfo

INFO = RecordingInfo(robot="ur5e", serial="2019/55")
NOON = 1_700_000_000.0
DAY = 86400.0


@pytest.mark.parametrize(
    ("template", "pattern"),
    [
        ("{robot}", "ur5e"),
        ("cell 7/{serial}", "cell_7_2019_55"),
        ("run_{number:03d}", "run_000"),
        ("../{robot}", ".._ur5e"),
    ],
)
def test_templates_make_file_names(tmp_path, template, pattern):
    assert bag_name(template, INFO, tmp_path, NOON) == pattern


def test_names_that_are_taken_are_not_used_again(tmp_path):
    for expected in ("ur5e", "ur5e_1", "ur5e_2"):
        name = bag_name("{robot}", INFO, tmp_path)
        assert name == expected
        (tmp_path / name).mkdir()


@pytest.mark.parametrize("template", ["{arm}", "{", "{0}", "", "..", "{robot.name}"])
def test_templates_that_make_no_name_are_refused(tmp_path, template):
    with pytest.raises(InputError, match="name"):
        bag_name(template, INFO, tmp_path)


@pytest.fixture
def folder(tmp_path):
    """Four bags, one day apart, and things that are not ours."""
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


def test_old_ones_go_by_age(folder, monkeypatch):
    monkeypatch.setattr("time.time", lambda: NOON + 3 * DAY)
    Retention(days=1.5).apply(folder, spare=folder / "bag3")
    assert names(folder) == ["bag2", "bag3", "foreign", "notes.txt"]


def test_no_limits_delete_nothing(folder):
    assert Retention().apply(folder, spare=folder / "bag3") == []
