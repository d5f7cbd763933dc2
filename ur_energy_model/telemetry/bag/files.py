"""Bags as directories: their names, safe creation, and their storage files."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.metadata import FILE_NAME, BagMetadata, read_metadata
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.temporary_files import remove_abandoned, temporary_name

DEFAULT_NAME = "{arm}_{date}_{time}"
_KEYS = ("arm", "robot", "serial", "date", "time", "number")


def bag_name(template: str, info: RecordingInfo, folder: Path, now: float | None = None) -> str:
    """Name of a new bag that does not exist in the folder.

    Args:
        template: text with {arm} (type and serial number, as far as they are known), {robot},
            {serial}, {date}, {time} (local), {number} (first free one).
        info: of the recording.
        folder: where the bag goes.
        now: time for the name [s since the epoch]; None for the present.

    Raises:
        InputError: the template has an unknown key, or makes no file name.
    """
    local = time.localtime(now)
    values = {
        "arm": "_".join(filter(None, (info.robot, info.serial))) or "robot",
        "robot": info.robot or "robot",
        "serial": info.serial or "unknown",
        "date": time.strftime("%Y%m%d", local),
        "time": time.strftime("%H%M%S", local),
    }
    number = 0
    while True:
        try:
            name = template.format(**values, number=number)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise InputError(
                template,
                f"is not a bag name template ({error})",
                "use " + ", ".join(f"{{{key}}}" for key in _KEYS),
                field="name",
            ) from None
        name = re.sub(r"[^\w.+-]", "_", name)
        if name.strip(".") == "":
            raise InputError(template, "makes an empty bag name", "add a word", field="name")
        if number and "{number" not in template:
            name = f"{name}_{number}"
        if not (folder / name).exists():
            return name
        number += 1


@contextmanager
def new_bag(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary directory name for a new bag, renamed to `path` after success.

    Args:
        path: of the bag.
        overwrite: replace an existing bag; nothing else is ever replaced.

    Yields:
        Name of a directory beside it, which does not exist yet.

    Raises:
        RecordingError: the path is taken, or the disk fails.
    """
    if path.exists() or path.is_symlink():
        if not overwrite:
            raise RecordingError(path, "exists already", "name another output, or add --overwrite")
        if not (path / "metadata.yaml").is_file():
            raise RecordingError(path, "exists and is not a bag", "name another output")
    remove_abandoned(path.parent)
    partial = temporary_name(path, "partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if path.exists():
            old = temporary_name(path, "replaced")
            path.rename(old)
            partial.rename(path)
            shutil.rmtree(old)
        else:
            partial.rename(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be written ({reason})", "check disk and path") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_abandoned_in_bags(folder: Path) -> None:
    """Remove what killed recorders left in the bags of a folder."""
    with suppress(OSError):
        remove_abandoned(folder)
        for bag in folder.iterdir():
            if (bag / FILE_NAME).exists() or (bag / f"{bag.name}_0.mcap").exists():
                remove_abandoned(bag)


def bag_files(path: Path) -> tuple[list[Path], BagMetadata | None]:
    """Storage files of a bag in order of time, and its metadata, None if it has none.

    Raises:
        RecordingError: no such bag, not a bag, or files are missing.
    """
    if path.is_file():
        return [path], None
    if not path.is_dir():
        problem = "is neither a folder nor a regular file" if path.exists() else "no such bag"
        raise RecordingError(path, problem, "check the path")
    if not (path / FILE_NAME).exists():
        files = sorted(path.glob("*.mcap"), key=file_number)
        if not files:
            raise RecordingError(
                path,
                "is not a bag: it has neither metadata.yaml nor .mcap files",
                "name the directory that ur_energy record or import made",
            )
        return in_order_of_time(files), None
    metadata = read_metadata(path)
    files = [path / entry.name for entry in metadata.files]
    for file in files:
        if not file.is_file():
            raise RecordingError(file, "is missing from the bag", "copy the whole bag again")
    return files if metadata.storage != "mcap" else in_order_of_time(files), metadata


def in_order_of_time(files: Sequence[Path]) -> list[Path]:
    """MCAP files of a bag in order of their first samples; files may be renamed into each other.

    Files without readable samples stay behind the one before.
    """
    starts, start = [], 0
    for file in files if len(files) > 1 else ():
        with suppress(RecordingError):
            first = next(McapReader(file).blocks(TELEMETRY_TOPIC), None)
            start = start if first is None else int(first.time[0])
        starts.append(start)
    return [files[i] for i in np.argsort(starts, kind="stable")] if starts else list(files)


def file_number(path: Path) -> tuple[int, str]:
    """Sort key of the files of a bag, by the number at the end of their names."""
    tail = path.stem.rpartition("_")[2]
    return (int(tail) if tail.isascii() and tail.isdigit() else -1), path.name
