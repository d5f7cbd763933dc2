"""HistoryStore: the files of the history of many arms.

    STORE/<table>/arm=<arm>/day=<YYYY-MM-DD>/<source>.parquet   rows, for any Parquet reader
    STORE/sources/<source>.json                                 a source that is complete
    STORE/begun/<source>.json                                   one whose files are being written

A source is written by one process at a time: first its file below `begun`, with the names of its
files, then these, then its record; at last the one below `begun` is removed. What a killed process
left is removed by the next one that writes, so that adding the source again completes it. The
footer of each file of `seconds` tells which time it covers, so that no time of an arm is counted
twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.files import user_path
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.local_place import LocalPlace
from ur_energy_model.plant.history.parquet_files import covered_time, day_files
from ur_energy_model.plant.history.places import Place, StoreError
from ur_energy_model.plant.history.s3_place import S3Place
from ur_energy_model.plant.history.source_keys import is_live
from ur_energy_model.plant.history.source_record import SourceRecord
from ur_energy_model.plant.history.time_ranges import TimeRanges

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

SOURCES, BEGUN = "sources", "begun"
MOST_KNOWN = 10_000
"""Files whose covered time is kept in memory."""
_S3, _JSON = "s3://", ".json"


class TimeTakenError(Exception):
    """Another source covers some of the time of the rows that were to be written."""


class HistoryStore:
    """A store in a folder, or below an s3:// address.

    Args:
        address: folder, made by the first writing, or s3://BUCKET/PREFIX.

    Raises:
        StoreError: no such address.
        MissingPackageError: pyarrow is not installed.
    """

    def __init__(self, address: str | Path) -> None:
        with needed_here():
            import pyarrow.parquet  # noqa: F401
        self._place = _place(str(address))
        self.address = self._place.address
        """Absolute path of the folder, or s3:// address."""
        self._known: dict[str, list[tuple[int, int]]] = {}

    def has(self, source: str) -> bool:
        """Whether a source is complete.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            return self._place.read(_record(source)) is not None

    def sources(self) -> Iterator[SourceRecord]:
        """All sources that are complete.

        Raises:
            StoreError: the store cannot be read, or a record is damaged.
        """
        with self._problems("read"):
            for name in self._place.names(SOURCES):
                content = self._place.read(f"{SOURCES}/{name}")
                if content is not None:
                    yield SourceRecord.from_json(content)

    def covered(self, arm: str, days: Iterable[str], *, besides: str) -> TimeRanges:
        """Time of an arm that the sources besides one cover on some days (YYYY-MM-DD).

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            return self._covered(arm, days, besides)

    def add(
        self, record: SourceRecord, tables: Mapping[str, pyarrow.Table], ranges: TimeRanges
    ) -> SourceRecord | None:
        """Write a source.

        Args:
            record: of the source; its files are filled in here.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.

        Returns:
            the record as written; None if the source is complete already.

        Raises:
            TimeTakenError: another source covers some of that time meanwhile; nothing is written.
            StoreError: the store cannot be written.
        """
        with self._problems("written"), self._place.exclusive() as in_turn:
            self._remove_abandoned()
            if self._place.read(_record(record.source)) is not None:
                return None
            files = day_files(record.arm, record.source, tables, ranges)
            days = {name.split("/")[2].removeprefix("day=") for name in files}
            taken = self._covered(record.arm, days, record.source)
            if any(taken.within(start, end) for start, end in ranges.pairs()):
                raise TimeTakenError
            record = replace(record, files=tuple(files))
            self._write(record, files)
            if not in_turn():
                self._remove(record.source, record.files)
                raise TimeTakenError
        return record

    def tidy(self) -> None:
        """Remove what killed processes left; the next `add` would do it too.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"):
            if any(self._place.names(BEGUN)):
                with self._place.exclusive():
                    self._remove_abandoned()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A block in which no other process writes sources.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"), self._place.exclusive():
            yield

    def replace(self, name: str, content: bytes) -> None:
        """Write a file of a live writer, which has one hour of rows.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"):
            self._place.write(name, content)

    def dataset(self, table: str) -> pyarrow.dataset.Dataset | None:
        """Rows of a table, with the partition keys arm and day as text; None if there are none.

        Raises:
            StoreError: the store cannot be read.
            MissingPackageError: pyarrow is not installed.
        """
        with needed_here():
            import pyarrow.dataset as ds
            import pyarrow.fs
        with self._problems("read"):
            files, root = self._place.filesystem()
            folder = f"{root}/{table}"
            if files.get_file_info(folder).type != pyarrow.fs.FileType.Directory:
                return None
            keys = pyarrow.schema([("arm", pyarrow.string()), ("day", pyarrow.string())])
            return ds.dataset(
                folder,
                filesystem=files,
                format="parquet",
                partitioning=ds.partitioning(keys, flavor="hive"),
                exclude_invalid_files=False,
            )

    def _covered(self, arm: str, days: Iterable[str], besides: str) -> TimeRanges:
        pairs: list[tuple[int, int]] = []
        for day in days:
            folder = f"seconds/arm={arm}/day={day}"
            for name in self._place.names(folder):
                if name.endswith(".parquet") and not name.startswith((besides, ".")):
                    pairs += self._covered_by(f"{folder}/{name}")
        return TimeRanges.of(pairs)

    def _covered_by(self, file: str) -> list[tuple[int, int]]:
        """Time that a file of `seconds` covers; files of bags never change."""
        if file not in self._known:
            content = self._place.read(file)
            pairs = [] if content is None else covered_time(content).pairs()
            if content is None or is_live(file.rpartition("/")[2]):
                return pairs
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[file] = pairs
        return self._known[file]

    def _write(self, record: SourceRecord, files: Mapping[str, bytes]) -> None:
        begun = _begun(record.source)
        try:
            self._place.write(begun, json.dumps(list(files)).encode())
            for name, content in files.items():
                self._place.write(name, content)
            self._place.write(_record(record.source), record.to_json())
        except BaseException:
            with suppress(OSError):
                self._remove(record.source, files)
            raise
        self._place.remove(begun)

    def _remove(self, source: str, files: Iterable[str]) -> None:
        self._place.remove(_record(source))
        for name in files:
            self._place.remove(name)
        self._place.remove(_begun(source))

    def _remove_abandoned(self) -> None:
        """Remove the files of sources that killed processes began."""
        for name in self._place.names(BEGUN):
            source = name.removesuffix(_JSON)
            content = self._place.read(f"{BEGUN}/{name}")
            if self._place.read(_record(source)) is None:
                self._remove(source, json.loads(content or b"[]"))
            else:
                self._place.remove(f"{BEGUN}/{name}")

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        """Errors of files and servers as one of this package."""
        with needed_here():
            import pyarrow
        try:
            yield
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            if isinstance(error, OSError) and error.strerror:
                problem = error.strerror
            else:
                problem = str(error)
            raise StoreError(
                self.address,
                f"cannot be {what} ({problem})",
                "check the place and its free space, then repeat the command",
            ) from error


def _place(address: str) -> Place:
    if address.startswith(_S3):
        path = address.removeprefix(_S3).strip("/")
        if not path:
            raise StoreError(address, "names no bucket", "give s3://BUCKET/PREFIX")
        return S3Place(path)
    if "://" in address:
        raise StoreError(address, "is neither a folder nor an s3:// address", "give one of these")
    folder = user_path(address).absolute()
    if folder.exists() and not folder.is_dir():
        raise StoreError(folder, "is not a folder", "name the folder of the store")
    return LocalPlace(folder)


def _record(source: str) -> str:
    return f"{SOURCES}/{source}{_JSON}"


def _begun(source: str) -> str:
    return f"{BEGUN}/{source}{_JSON}"
