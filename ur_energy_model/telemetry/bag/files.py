# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags as directories: their names, safe creation, and their storage files."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.files import remove_abandoned, temporary_folder, temporary_name
from ur_energy_model.telemetry.bag.contents import FileContents
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.metadata import (
    BUDGET,
    FILE_NAME,
    REMOVED,
    BagMetadata,
    TopicEntry,
    read_metadata,
    removed_samples,
)
from ur_energy_model.telemetry.bag.storage import present_files, storage_files
from ur_energy_model.telemetry.samples import RecordingInfo

DEFAULT_NAME = "{arm}_{date}_{time}"


def bag_name(
    template: str, info: RecordingInfo, folder: Path, now: float | None = None
) -> str:
    """Name of a new bag that does not exist in the folder.

    Args:
        template: text with {arm} (type and serial number, as far as they are known),
            {robot}, {serial}, {date}, {time} (local) and {number} (first free one).
        info: of the recording.
        folder: of the bag.
        now: time of date and time [s since the epoch]; None for the present.

    Raises:
        InputError: the template has an unknown key, or makes no file name.
    """
    values = {
        "arm": "_".join(filter(None, (info.robot, info.serial))) or "robot",
        "robot": info.robot or "robot",
        "serial": info.serial or "unknown",
        "date": time.strftime("%Y%m%d", time.localtime(now)),
        "time": time.strftime("%H%M%S", time.localtime(now)),
    }
    for number in count():
        try:
            name = template.format(**values, number=number)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            problem = f"is not a bag name template ({error})"
            remedy = "use " + ", ".join(f"{{{key}}}" for key in (*values, "number"))
            raise InputError(template, problem, remedy, field="name") from None
        name = re.sub(r"[^\w.+-]", "_", name)
        if name.strip(".") == "":
            raise InputError(
                template, "makes an empty bag name", "add a word", field="name"
            )
        if number and "{number" not in template:
            name = f"{name}_{number}"
        if not (folder / name).exists():
            break
    return name


@contextmanager
def new_bag(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A new directory, which is moved to `path` at the end of the block, unless it raises.

    Args:
        path: of the bag.
        overwrite: whether an existing bag is replaced; nothing else is ever replaced.

    Raises:
        RecordingError: the path is taken, or the disk fails.
    """
    if path.exists() or path.is_symlink():
        if not overwrite:
            raise RecordingError(
                path, "exists already", "name another output, or add --overwrite"
            )
        if not (path / "metadata.yaml").is_file():
            raise RecordingError(path, "exists and is not a bag", "name another output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(path, "partial") as folder:
            made = folder / path.name
            yield made
            if path.exists():
                old = temporary_name(path, "replaced")
                path.rename(old)
                made.rename(path)
                shutil.rmtree(old)
            else:
                made.rename(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(
            path, f"cannot be written ({reason})", "check disk and path"
        ) from None


def remove_abandoned_in_bags(folder: Path) -> None:
    """Remove what killed recorders left in the bags of a folder."""
    with suppress(OSError):
        remove_abandoned(folder)
        for bag in folder.iterdir():
            if (bag / FILE_NAME).exists() or (bag / f"{bag.name}_0.mcap").exists():
                remove_abandoned(bag)


def bag_files(path: Path) -> tuple[list[Path], BagMetadata | None]:
    """Storage files of a bag in order of time, and its metadata.

    Args:
        path: rosbag2 directory, or one of its files.

    Returns:
        The files, and the metadata; None for a file, and for a bag without it.

    Raises:
        RecordingError: no such bag, not a bag, or files are missing.
    """
    if path.is_file():
        return [path], None
    if not path.exists():
        raise RecordingError(path, "no such bag", "check the path")
    if not path.is_dir():
        problem = "is neither a folder nor a regular file"
        raise RecordingError(path, problem, "check the path")
    if not (path / FILE_NAME).exists():
        files = sorted(storage_files(path), key=file_number)
        if not files:
            problem = f"is not a bag: it has neither {FILE_NAME} nor .mcap or .db3 files"
            remedy = "name the directory that ur_energy record or import made"
            raise RecordingError(path, problem, remedy)
        return in_order_of_time(files), None
    metadata = read_metadata(path)
    files = present_files(path, [entry.name for entry in metadata.files])
    return in_order_of_time(files), metadata


def in_order_of_time(files: list[Path]) -> list[Path]:
    """Files of a bag in order of their first samples, whatever names users gave them.

    MCAP files without readable samples stay behind the one before. Bags with files of
    another kind keep their order.
    """
    if len(files) < 2 or any(file.suffix != ".mcap" for file in files):
        return files
    starts = dict[Path, int]()  # log time of the first sample [ns]
    start = 0
    for file in files:
        with suppress(RecordingError):
            first = next(McapReader(file).blocks(TELEMETRY_TOPIC), None)
            if first is not None:
                start = int(first.time[0])
        starts[file] = start
    return sorted(files, key=starts.__getitem__)


def file_number(path: Path) -> tuple[int, str]:
    """Sort key of the files of a bag, by the number at the end of their names."""
    tail = path.name.partition(".")[0].rpartition("_")[2]
    return (int(tail) if tail.isascii() and tail.isdigit() else -1), path.name


# FileSplit: when a bag continues in a new storage file.


class FileSplit(NamedTuple):
    """Largest extent of a storage file; None sets no limit.

    Attributes:
        seconds: between the first and the last log time [s].
        bytes: size of the file.
    """

    seconds: float | None = None
    bytes: int | None = None

    def is_due(self, age: int, size: int) -> bool:
        """Whether a file of this age [ns] and size [bytes] has reached a limit."""
        old = self.seconds is not None and age >= round(self.seconds * 1e9)
        return old or (self.bytes is not None and size >= self.bytes)


# Retention: the budget for the bags of a folder, kept by deleting whole storage files.
#
# Only what a recorder wrote into that folder under a budget counts, and may be deleted.

DAY = 86400.0
PARTS = 20  # files into which a budget is divided at least
LONGEST_FILE = 3600.0  # longest duration of a file under a budget [s]


class BagFile(NamedTuple):
    """A storage file of a bag under a budget.

    Attributes:
        path: in its bag.
        bytes: size of the file.
        modified: time of its last change [s since the epoch].
    """

    path: Path
    bytes: int
    modified: float


class Retention(NamedTuple):
    """Budget for the bags that are recorded into a folder; None sets no limit.

    Attributes:
        bytes: size of all storage files.
        days: greatest age of a file, from its end [days].
    """

    bytes: int | None = None
    days: float | None = None

    def is_due(self, file: BagFile, total: int, now: float) -> bool:
        """Whether the oldest file has to go.

        Args:
            file: the oldest one.
            total: size of all files [bytes].
            now: present time [s since the epoch].
        """
        old = self.days is not None and now - file.modified > self.days * DAY
        return old or (self.bytes is not None and total > self.bytes)

    def __str__(self) -> str:
        """The budget in words, such as "100 GB and 30 days"."""
        limits: list[str] = []
        if self.bytes is not None:
            limits.append(f"{self.bytes / 1e9:g} GB")
        if self.days is not None:
            limits.append(f"{self.days:g} days")
        return " and ".join(limits)

    @property
    def file_split(self) -> FileSplit:
        """When a file should end, so that whole files can go."""
        seconds = LONGEST_FILE if self.days is None else self.days * DAY / PARTS
        size = None if self.bytes is None else max(self.bytes // PARTS, 1)
        return FileSplit(min(LONGEST_FILE, seconds), size)


def stored_files(folder: Path, own: dict[Path, bool]) -> list[BagFile]:
    """MCAP files of the bags that were recorded into a folder under its budget, oldest first.

    Bags of other programs and commands, copies, and bags that were renamed do not count.

    Args:
        folder: of the bags.
        own: whether each bag that was seen before counts; new bags are added.
    """
    found = []
    for bag in folder.glob("*"):
        if bag not in own and os.access(bag / FILE_NAME, os.R_OK):
            own[bag] = False
            with suppress(RecordingError):
                recorded_at = read_metadata(bag).custom.get(BUDGET)
                linked = (bag / FILE_NAME).is_symlink()
                own[bag] = recorded_at == str(bag.resolve()) and not linked
        if bag.is_symlink() or not own.get(bag):
            continue
        for path in bag.glob("*.mcap"):
            with suppress(OSError):
                status = path.lstat()
                found.append(BagFile(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: (file.modified, file_number(file.path)))


def delete_file(file: Path, contents: FileContents) -> None:
    """Delete a storage file of a finished bag, and the bag with its last file.

    Where files are left, metadata.yaml is rewritten first, so that the bag is always
    complete.

    Args:
        file: to be deleted.
        contents: of that file.

    Raises:
        RecordingError: metadata.yaml is damaged.
        OSError: the disk fails.
    """
    bag = file.parent
    metadata = read_metadata(bag)
    left = [entry for entry in metadata.files if entry.name != file.name]
    if 0 < len(left) < len(metadata.files):
        topics: list[TopicEntry] = []
        for topic in metadata.topics:
            count = topic.messages - contents.messages.get(topic.name, 0)
            topics.append(topic._replace(messages=max(0, count)))
        rest = replace(metadata, files=left, topics=topics)
        removed = removed_samples(metadata.custom) + metadata.samples - rest.samples
        replace(rest, custom={**metadata.custom, REMOVED: str(removed)}).write(bag)
    file.unlink(missing_ok=True)
    if not left:
        (bag / FILE_NAME).unlink(missing_ok=True)
        with suppress(OSError):  # other files in it are not ours to delete
            bag.rmdir()
