"""Retention: which old bags of a folder to delete."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.metadata import read_metadata


@dataclass(frozen=True)
class Retention:
    """How many bags of a folder to keep; the oldest are deleted first.

    Only bags of this package count and are deleted.

    Attributes:
        bags: at most this many, the one being recorded included.
        bytes: at most this much together.
        days: greatest age.
    """

    bags: int | None = None
    bytes: int | None = None
    days: float | None = None

    def apply(self, folder: Path, *, spare: Path) -> list[Path]:
        """Delete bags beyond the limits, but never `spare`; returns the deleted ones."""
        bags = filter(_is_own, folder.glob("*"))
        own = sorted((bag for bag in bags if bag.resolve() != spare.resolve()), key=_age_key)
        sizes = [_bytes_of(path) for path in own]
        total = sum(sizes) + _bytes_of(spare)
        deleted = []
        for i, path in enumerate(own):
            left = len(own) - i + 1
            old = time.time() - _age_key(path)[0]
            if (
                (self.bags is not None and left > self.bags)
                or (self.bytes is not None and total > self.bytes)
                or (self.days is not None and old > self.days * 86400.0)
            ):
                shutil.rmtree(path, ignore_errors=True)
                total -= sizes[i]
                deleted.append(path)
        return deleted


def _is_own(path: Path) -> bool:
    try:
        return path.is_dir() and "package_version" in read_metadata(path).custom
    except RecordingError:
        return False


def _age_key(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def _bytes_of(path: Path) -> int:
    if not path.is_dir():
        return 0
    return sum(file.stat().st_size for file in path.iterdir() if file.is_file())
