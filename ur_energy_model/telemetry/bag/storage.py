# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Storage files of bags: their kinds, places and budget, and files packed as a whole.

rosbag2 stores messages in MCAP files or sqlite3 databases. Recorded with
`--compression-mode file`, each of them is packed by zstd once it is complete and gets the
suffix `.zstd`. What a file is shows in its first bytes: `ros2 bag reindex` leaves the
storage identifier of metadata.yaml empty, and users rename files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.bag.compression import (
    ZSTD_FRAME,
    UnpackingError,
    unpack_zstd_file,
)
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, RECOVER

SUFFIXES = (".mcap", ".db3")  # suffixes of the files of a bag
PACKED = ".zstd"  # further suffix of a file that is packed as a whole

StorageKind = Literal["mcap", "sqlite3", "zstd"]

_KINDS: tuple[tuple[bytes, StorageKind], ...] = (
    (MAGIC, "mcap"),
    (b"SQLite format 3\0", "sqlite3"),
    (ZSTD_FRAME, "zstd"),
)
"""First bytes of the files of bags."""
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "is a zip archive", "unpack it, and name the folder of the bag"),
    (
        b"\x1f\x8b",
        "is packed by gzip",
        "unpack it (tar xzf, or gunzip), and name the bag",
    ),
    (b"BZh", "is packed by bzip2", "unpack it (tar xjf, or bunzip2), and name the bag"),
    (b"\xfd7zXZ", "is packed by xz", "unpack it (tar xJf, or unxz), and name the bag"),
    (b"7z\xbc\xaf", "is a 7z archive", "unpack it, and name the folder of the bag"),
    (
        b"#ROSBAG",
        "is a bag of ROS 1",
        "convert it to ROS 2, such as with rosbags-convert",
    ),
    (
        b"version https://git-lfs",
        "is only a pointer of Git LFS",
        "fetch the file: git lfs pull",
    ),
)
"""First bytes of other files that users name as bags, what they are, and what to do."""
_TAR = b"ustar"  # mark of tar archives
_TAR_PLACE = 257  # place of this mark [bytes]


def storage_kind(path: Path) -> StorageKind:
    """Which kind of storage file a file is, by its first bytes.

    Raises:
        RecordingError: it cannot be read, or is another kind of file; with what to do.
    """
    try:
        with open_regular(path) as file:
            head = file.read(_TAR_PLACE + len(_TAR))
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise RecordingError(path, problem, "check the file") from None
    for begin, kind in _KINDS:
        if head.startswith(begin):
            return kind
    if not head:
        raise RecordingError(path, "is empty", f"copy it again, or {RECOVER}")
    for begin, problem, remedy in _OTHERS:
        if head.startswith(begin):
            raise RecordingError(path, problem, remedy)
    if head[_TAR_PLACE:] == _TAR:
        remedy = "unpack it (tar xf), and name the folder of the bag"
        raise RecordingError(path, "is a tar archive", remedy)
    remedy = "name a bag that ur_energy or ros2 bag recorded"
    if path.suffix == SUFFIXES[0]:
        remedy = f"{remedy}, or {RECOVER}"
    raise RecordingError(
        path, "is neither an MCAP file nor a database of rosbag2", remedy
    )


def storage_files(folder: Path) -> list[Path]:
    """Storage files in a folder, without the packed copies of files that are there."""
    found = set[Path]()
    for suffix in SUFFIXES:
        found.update(folder.glob(f"*{suffix}"))
    packed = set[Path]()
    for suffix in SUFFIXES:
        packed.update(folder.glob(f"*{suffix}{PACKED}"))
    without_copies = {path for path in packed if path.with_suffix("") not in found}
    return sorted(found | without_copies)


def present_files(folder: Path, listed: Sequence[str]) -> list[Path]:
    """The storage files of a bag that metadata.yaml lists; renamed ones under their new names.

    Files that are not listed stand for listed files that are missing, if there are as
    many of both.

    Args:
        folder: folder of the bag.
        listed: names of the files.

    Raises:
        RecordingError: files are missing.
    """
    files = [folder / name for name in listed]
    missing = [file for file in files if not file.is_file()]
    if not missing:
        return files
    others = [file for file in storage_files(folder) if file not in files]
    if len(others) == len(missing):
        renamed = dict(zip(missing, others, strict=True))
        return [renamed.get(file, file) for file in files]
    names = f"{missing[0].name} is"
    if len(missing) > 1:
        names = f"{missing[0].name} and {len(missing) - 1} more files are"
    remedy = "copy the whole bag again"
    if others or len(missing) < len(files):
        remedy += "; to use the rest of it, delete metadata.yaml"
    raise RecordingError(folder, f"{names} missing from the bag", remedy)


@contextmanager
def plain_file(path: Path, budget: Budget) -> Iterator[tuple[Path, StorageKind]]:
    """A storage file and its kind, unpacked into a temporary file if it is packed as a whole.

    The temporary file is removed at the end of the block.

    Args:
        path: path of the file.
        budget: memory budget of the bag, which bounds the size of the temporary file.

    Raises:
        RecordingError: it cannot be read or unpacked, or is no storage file.
    """
    kind = storage_kind(path)
    if kind != "zstd":
        yield path, kind
        return
    suffix = Path(path.stem).suffix or SUFFIXES[0]
    try:
        with tempfile.NamedTemporaryFile(prefix="ur_energy-", suffix=suffix) as target:
            with open_regular(path) as source:
                for size in unpack_zstd_file(source, target):
                    budget.spend(volume=size)
            target.flush()
            unpacked = Path(target.name)
            inner = storage_kind(unpacked)
            if inner == "zstd":
                raise RecordingError(path, "is packed twice", "unpack it with zstd -d")
            yield unpacked, inner
    except UnpackingError:
        problem = "is damaged or incomplete: it cannot be unpacked"
        raise RecordingError(path, problem, "copy it again") from None
    except OSError as error:
        problem = f"cannot be unpacked into {tempfile.gettempdir()} ({error.strerror})"
        remedy = "set TMPDIR to a folder with more room, or unpack it with zstd -d"
        raise RecordingError(path, problem, remedy) from None


# Budget: the bound against decompression bombs.

MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of large files (for an arm at rest it is below 50)."""
_FREE = 512 << 20  # unpacked volume that is allowed for files of any size [bytes]
_MEMORY = 128 << 20  # memory for definitions [bytes]
_ITEMS = 500_000  # number of records beside messages
_ITEMS_OF_FILE = 20  # further ones for each file, which repeats definitions


def budget_of(source: Path, files: Sequence[Path]) -> Budget:
    """Budget for reading the files of a bag: the bound against decompression bombs.

    Unpacked volume is bounded by the size of the files, at MAX_RATIO; memory for
    definitions and the number of records have bounds of their own. Files that cannot be
    read count nothing.

    Args:
        source: bag or file, for errors.
        files: files of the bag.

    Returns:
        The budget, whose `spend` raises RecordingError beyond it.
    """
    size = sum(file.stat().st_size for file in files if file.is_file())
    volume = max(_FREE, MAX_RATIO * size)
    items = _ITEMS + _ITEMS_OF_FILE * len(files)
    return Budget(source, RecordingError, volume, _MEMORY, items)
