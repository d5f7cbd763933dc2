# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground: files, text for terminals, the low-pass filter, work on many bags."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ur_energy_model import files as temporary_files
from ur_energy_model.errors import one_line, printable, unsigned_zeros
from ur_energy_model.files import (
    new_file,
    remove_abandoned,
    temporary_folder,
    temporary_name,
    write_text,
)
from ur_energy_model.low_pass import low_pass


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
    """What a process leaves: a folder with a lock that nobody holds, or a file."""
    name = temporary_name(path, use).name
    place = path.with_name(re.sub(r"-\d+-", f"-{pid}-", name))
    if use in ("partial", "replaced"):
        place.mkdir()
        (place / "lock").touch()
        (place / "bag_0.mcap").write_bytes(b"samples")
    else:
        place.write_text("half")
    os.utime(place, (time.time() - age,) * 2)
    return place


def test_what_ended_processes_left_is_removed_or_moved_back(
    tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is locked stays, whatever its number: its process may run in another container."""
    (tmp_path / "replaced").mkdir()
    other = tmp_path / f".a.{dead}.tmp"
    other.write_text("not ours")
    elsewhere = left_by(tmp_path / "a", "recovering", dead, 90.0)
    unlocked = left_by(tmp_path / "h", "partial", dead, 5.0)
    (unlocked / "lock").unlink()  # a file system without locks
    stays = [
        elsewhere,
        unlocked,
        left_by(tmp_path / "b", "replaced", dead, 5.0),
        left_by(tmp_path / "c", "new", os.getpid()),
        other,
    ]
    goes = [
        left_by(tmp_path / "d", "new", dead),
        # in a container that began again
        left_by(tmp_path / "e", "new", os.getpid(), 86400.0),
        left_by(tmp_path / "f", "partial", dead),
        # another process has its number
        left_by(tmp_path / "f", "partial", os.getppid(), 5.0),
        left_by(tmp_path / "g", "recovering", dead),
        left_by(tmp_path / "replaced", "replaced", dead, 90.0),  # its successor is there
        left_by(tmp_path / "bag", "replaced", dead, 90.0),
    ]
    with elsewhere.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # which looks around first
        with temporary_folder(tmp_path / "bag", "partial") as folder:
            monkeypatch.setattr(temporary_files, "_cleaned", set())
            remove_abandoned(tmp_path)
            assert all(path.exists() for path in (*stays, folder))
    assert not folder.exists()
    assert not any(path.exists() for path in goes)
    assert (tmp_path / "bag" / "bag_0.mcap").read_bytes() == b"samples"  # moved back


@pytest.mark.parametrize(
    ("module", "name"), [(Path, "mkdir"), (os, "open"), (shutil, "rmtree"), (os, "fsync")]
)
def test_an_interrupt_right_after_a_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    """A signal may come between the making of a file and the first line that has its name."""
    step = getattr(module, name)
    interrupted: list[str] = []

    def interrupted_step(*given: Any, **named: Any) -> Any:
        result: Any = None if interrupted or name != "rmtree" else "before"
        if result is None:
            result = step(*given, **named)
        if (
            not interrupted
            and str(tmp_path) in f"{given[0]}{tmp_path if name == 'fsync' else ''}"
        ):
            interrupted.append(name)
            if name == "open":
                os.close(result)
            raise KeyboardInterrupt
        return result

    def make_both() -> None:
        with temporary_folder(tmp_path / "folder", "partial") as folder:
            (folder / "content").write_text("content")
        with new_file(tmp_path / "file") as file:
            file.write("content")

    monkeypatch.setattr(module, name, interrupted_step)
    with pytest.raises(KeyboardInterrupt):
        make_both()
    assert interrupted
    assert not list(tmp_path.iterdir())


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
    link = tmp_path / "link"
    target = tmp_path / "folder" / "target"
    link.symlink_to(target)
    for content in ("first", "second"):  # the target is missing at first
        write_text(target.parent / "other", "x")
        write_text(link, content)
        assert link.is_symlink()
        assert target.read_text(encoding="utf-8") == content


# Text for terminals.


SHOWN = {
    "Motor 1 \u2013 25 \u00b0C\n\tnext": "Motor 1 \u2013 25 \u00b0C\n\tnext",
    "\x1b[31mred": r"\x1b[31mred",
    "a\rb\x07": r"a\rb\x07",
    "\u202eabc": r"\u202eabc",
    "\udc80": r"\udc80",
    "\x9b2J": r"\x9b2J",
}
UNSIGNED = {
    "-0.0 W": "0.0 W",
    "\u22120.00 to \u22120.01 %": "0.00 to \u22120.01 %",
    "[-0.0, 0.0, -9.82]": "[0.0, 0.0, -9.82]",
    "+0.0 %, at -0.": "0.0 %, at 0.",
    **{
        text: text
        for text in ("-0.05", "run-0.0", "/bags/-0", "2026-01-05", "-0e-5", "-0h")
    },
}


def test_text_for_terminals() -> None:
    """Control characters are escaped, zero has no sign, a line is bounded."""
    assert {text: printable(text) for text in SHOWN} == SHOWN
    assert {text: unsigned_zeros(text) for text in UNSIGNED} == UNSIGNED
    assert one_line("a\nb\tc\x1b[2J") == r"a\nb\tc\x1b[2J"
    line = one_line("first" + "\n" * 100_000 + "last")
    assert (line[:5], line[-4:]) == ("first", "last")
    assert len(line) < 2500


# The low-pass filter, and work on many bags.

PERIOD = 0.002
TIME = PERIOD * np.arange(5000)


@pytest.mark.parametrize(("frequency", "gain"), [(0.5, 1.0), (5.0, 0.5), (50.0, 0.0)])
def test_gain_without_delay(frequency: float, gain: float) -> None:
    """Twice a second-order Butterworth: half the amplitude at the cut-off, no phase."""
    wave = np.sin(2 * np.pi * frequency * TIME)
    middle = slice(1000, -1000)
    filtered = low_pass(wave[:, None], PERIOD, 5.0, padding=1.5)[middle, 0]
    assert filtered == pytest.approx(gain * wave[middle], abs=2e-3)
