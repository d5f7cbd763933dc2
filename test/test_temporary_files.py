"""What killed processes left is removed, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ur_energy_model import files as temporary_files
from ur_energy_model.files import new_file, remove_abandoned, temporary_name, write_text
from ur_energy_model.telemetry.bag.files import new_bag, remove_abandoned_in_bags

KILLED_WRITER = """
import os, sys
from ur_energy_model.files import new_file
with new_file(sys.argv[1]) as file:
    file.write("half of it")
    file.flush()
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started."""
    monkeypatch.setattr(temporary_files, "_cleaned", set())


@pytest.fixture
def dead() -> int:
    """Number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_by(path: Path, use: str, pid: int, age: float = 0.0) -> Path:
    name = temporary_name(path, use).name
    place = path.with_name(re.sub(r"-\d+-", f"-{pid}-", name))
    if use in ("partial", "replaced"):
        place.mkdir()
        (place / "bag_0.mcap").write_bytes(b"samples")
    else:
        place.write_text("half")
    os.utime(place, (time.time() - age,) * 2)
    return place


def test_a_file_of_a_killed_writer_goes_with_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_WRITER, str(tmp_path / "model.yaml")]
    assert subprocess.run(command, check=False).returncode == -9
    assert [path.name[:12] for path in tmp_path.iterdir()] == [".model.yaml."]
    write_text(tmp_path / "other.yaml", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["other.yaml"]


def test_bags_are_tidied_by_the_next_recorder_in_the_folder(tmp_path: Path, dead: int) -> None:
    for name in ("bag", "photos"):
        (tmp_path / name).mkdir()
        left_by(tmp_path / name / "metadata.yaml", "new", dead)
    (tmp_path / "bag" / "bag_0.mcap").touch()
    remove_abandoned_in_bags(tmp_path)
    assert [path.name for path in (tmp_path / "bag").iterdir()] == ["bag_0.mcap"]
    assert len(list((tmp_path / "photos").iterdir())) == 1


@pytest.mark.parametrize(
    ("use", "age", "stays"),
    [
        ("new", 0.0, False),
        ("partial", 0.0, True),
        ("partial", 90.0, False),
        ("recovering", 5.0, True),
        ("recovering", 90.0, False),
    ],
)
def test_what_takes_longer_must_be_old(
    tmp_path: Path, dead: int, use: str, age: float, stays: bool
) -> None:
    place = left_by(tmp_path / "bag", use, dead, age)
    remove_abandoned(tmp_path)
    assert place.exists() == stays


def test_an_earlier_process_may_have_had_the_number_of_this_one(tmp_path: Path) -> None:
    """As in a container, where each start gives the same numbers."""
    left_by(tmp_path / "a", "new", os.getpid(), age=86400.0)
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_others_made_or_still_make_stays(tmp_path: Path, dead: int) -> None:
    mine = left_by(tmp_path / "a", "new", os.getpid())
    theirs = tmp_path / f".a.{dead}.tmp"
    theirs.write_text("not ours")
    remove_abandoned(tmp_path)
    assert mine.exists()
    assert theirs.exists()


def test_a_bag_that_was_moved_aside_comes_back(tmp_path: Path, dead: int) -> None:
    left_by(tmp_path / "bag", "replaced", dead, 90.0)
    remove_abandoned(tmp_path)
    assert (tmp_path / "bag" / "bag_0.mcap").read_bytes() == b"samples"


def test_a_bag_that_was_replaced_goes(tmp_path: Path, dead: int) -> None:
    (tmp_path / "bag").mkdir()
    aside = left_by(tmp_path / "bag", "replaced", dead, 90.0)
    remove_abandoned(tmp_path)
    assert not aside.exists()


def test_long_names_are_no_problem(tmp_path: Path) -> None:
    path = tmp_path / ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 120)
    with new_file(path) as file:
        file.write("text")
    with new_bag(tmp_path / ("b" * 240)) as partial:
        partial.mkdir()
    assert len(list(tmp_path.iterdir())) == 2


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    """Root could replace /dev/null by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path, Path(), Path("/")):
        with pytest.raises(OSError, match=r"regular|folder"), new_file(path):
            raise AssertionError
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_what_a_link_points_to_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to(target)
    for content in ("first", "second"):  # the target is missing at first
        write_text(target.parent / "other", "x")
        write_text(link, content)
        assert link.is_symlink()
        assert target.read_text(encoding="utf-8") == content
