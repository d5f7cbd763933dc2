# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A file system of a few kilobytes that a test fills and makes read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Leave no room."""
        with (self.path / "filler").open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(512))
            except OSError:
                pass

    def empty(self) -> None:
        """Make room again."""
        (self.path / "filler").unlink()

    def set_writable(self, writable: bool) -> None:
        """Remount read-only, as the kernel does after an error, or writable again."""
        options = "remount,rw" if writable else "remount,ro"
        subprocess.run(["mount", "-o", options, str(self.path)], check=True)


@contextmanager
def small_disk(path: Path, kilobytes: int = 64) -> Iterator[SmallDisk]:
    """Mount a small disk at a folder that does not exist; skips where that is not allowed."""
    path.mkdir()
    options = f"size={kilobytes}k"
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)],
            capture_output=True,
        )
    except OSError as error:
        pytest.skip(f"a tmpfs cannot be mounted ({error})")
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted ({done.stderr.decode().strip()})")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
