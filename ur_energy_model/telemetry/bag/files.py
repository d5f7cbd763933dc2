# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags as directories: their names, safe creation, and their storage files."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.files import remove_abandoned, temporary_folder, temporary_name
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.metadata import (
    FILE_NAME,
    BagMetadata,
    read_metadata,
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
        info: provenance of the recording.
        folder: folder of the bag.
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
        path: path of the bag.
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
        seconds: time between the first and the last log time [s].
        bytes: size of the file.
    """

    seconds: float | None = None
    bytes: int | None = None

    def is_due(self, age: int, size: int) -> bool:
        """Whether a file of this age [ns] and size [bytes] has reached a limit."""
        old = self.seconds is not None and age >= round(self.seconds * 1e9)
        return old or (self.bytes is not None and size >= self.bytes)
