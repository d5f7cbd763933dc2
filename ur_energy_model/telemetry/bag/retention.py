"""Retention: the budget for the bags of a folder, kept by deleting whole storage files.

Only what a recorder wrote into that folder under a budget counts, and may be deleted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.file_contents import FileContents
from ur_energy_model.telemetry.bag.files import file_number
from ur_energy_model.telemetry.bag.metadata import FILE_NAME, read_metadata
from ur_energy_model.telemetry.bag.provenance import BUDGET, REMOVED, removed_samples

DAY = 86400.0
PARTS = 20
"""Files into which a budget is divided at least."""
LONGEST_FILE = 3600.0
"""Longest duration of a file under a budget [s]."""


@dataclass(frozen=True)
class Retention:
    """Budget for the bags that are recorded into a folder; None sets no limit.

    Attributes:
        bytes: of all storage files together.
        days: greatest age of a file, from its end.
    """

    bytes: int | None = None
    days: float | None = None

    def is_due(self, file: StoredFile, total: int, now: float) -> bool:
        """Whether a file has to go.

        Args:
            file: the oldest one that is left.
            total: size of all files [bytes].
            now: present time [s since the epoch].
        """
        old = self.days is not None and now - file.modified > self.days * DAY
        return old or (self.bytes is not None and total > self.bytes)

    def __str__(self) -> str:
        """The budget in words."""
        size = None if self.bytes is None else f"{self.bytes / 1e9:g} GB"
        days = None if self.days is None else f"{self.days:g} days"
        return " and ".join(each for each in (size, days) if each is not None)

    @property
    def file_seconds(self) -> float:
        """Duration after which a file should end, so that whole files can go [s]."""
        return LONGEST_FILE if self.days is None else min(LONGEST_FILE, self.days * DAY / PARTS)

    @property
    def file_bytes(self) -> int | None:
        """Size at which a file should end, None without a limit."""
        return None if self.bytes is None else max(self.bytes // PARTS, 1)


@dataclass(frozen=True)
class StoredFile:
    """A storage file of a bag.

    Attributes:
        path: of the file; its folder is the bag.
        bytes: its size.
        modified: time of the last change [s since the epoch].
    """

    path: Path
    bytes: int
    modified: float


def stored_files(folder: Path, own: dict[Path, bool]) -> list[StoredFile]:
    """MCAP files of the bags that were recorded into a folder under its budget, oldest first.

    Args:
        folder: that holds the bags.
        own: whether bags seen before count; brought up to date.
    """
    found = []
    for bag in folder.glob("*"):
        if bag not in own and os.access(bag / FILE_NAME, os.R_OK):
            own[bag] = is_in_budget(bag)
        if bag.is_symlink() or not own.get(bag):
            continue
        for path in bag.glob("*.mcap"):
            with suppress(OSError):
                status = path.lstat()
                found.append(StoredFile(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: (file.modified, file_number(file.path)))


def delete_file(file: Path, contents: FileContents) -> None:
    """Delete a storage file of a finished bag, and the bag with its last one.

    Where others are left, metadata.yaml is rewritten first, so that the bag is complete without the
    file at any time.

    Args:
        file: to delete.
        contents: of the file.

    Raises:
        RecordingError: metadata.yaml is damaged.
        OSError: the disk fails.
    """
    bag = file.parent
    metadata = read_metadata(bag)
    left = [entry for entry in metadata.files if entry.name != file.name]
    if 0 < len(left) < len(metadata.files):
        topics = [
            replace(topic, messages=max(0, topic.messages - contents.messages.get(topic.name, 0)))
            for topic in metadata.topics
        ]
        rest = replace(metadata, files=left, topics=topics)
        removed = removed_samples(metadata.custom) + metadata.samples - rest.samples
        replace(rest, custom={**metadata.custom, REMOVED: str(removed)}).write(bag)
    file.unlink(missing_ok=True)
    if not left:
        (bag / FILE_NAME).unlink(missing_ok=True)
        with suppress(OSError):  # other files in it are not ours to delete
            bag.rmdir()


def is_in_budget(path: Path) -> bool:
    """Whether a path is a bag that was recorded there, by this name, under a budget.

    Bags of other programs and commands, copies, and bags that were renamed are not.
    """
    try:
        recorded_at = read_metadata(path).custom.get(BUDGET)
    except RecordingError:
        return False
    return recorded_at == str(path.resolve()) and not (path / FILE_NAME).is_symlink()


def is_own_bag(path: Path) -> bool:
    """Whether a path is a bag of this package."""
    try:
        return path.is_dir() and "package_version" in read_metadata(path).custom
    except RecordingError:
        return False
