# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of a history store: what they are named, how they are written, and whether they are whole.

A store is a folder or a prefix of a bucket. Nothing outside the store is read, written or
removed, also where a link leads outside: a link in place of a file counts as a lost file,
and writing replaces the link; a link in place of a folder is refused.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, remove_abandoned, temporary_name, user_path
from ur_energy_model.plant.energy_parts import NOTHING, SECOND, TimeRanges
from ur_energy_model.plant.schema import LIVE, TABLES, UNDIVIDED, arrow_schema
from ur_energy_model.plant.sources import (
    PARTS,
    Parts,
    SourcePart,
    covered_by,
    nanoseconds,
    parts_from_text,
    parts_text,
)

DAY = 86_400 * SECOND  # ns
S3 = "s3://"
TIMEOUT = 20.0  # longest time of a connection or request to an S3 server [s]
PLAIN = r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*"
DAY_FOLDER = r"day=(?P<day>\d{4}-\d\d-\d\d)"
_NAMED = rf"{PLAIN}-(?P<crc32>[0-9a-f]{{8}})\.parquet"
_DIVIDED = "|".join(table for table in TABLES if table not in UNDIVIDED)
OWN_PATHS = (
    rf"^(?P<table>{_DIVIDED})/{DAY_FOLDER}/(?P<arm>{PLAIN})/{_NAMED}$",
    rf"^(?P<table>{'|'.join(UNDIVIDED)})/{_NAMED}$",
)
"""Paths in the store of files that `StoreFiles.write` makes: no other is believed to be
its own."""
_OWN = [re.compile(pattern) for pattern in OWN_PATHS]

Rows = tuple[pa.Table, TimeRanges]
"""Rows of a table, and the time that they cover."""


class StoreError(InputError):
    """A history store that cannot be read or written."""


class OutsideError(OSError):
    """A path in the store whose folder is a link."""


@dataclass(frozen=True)
class StoredFile:
    """A file that the log of a store names; what is not known about it is None.

    Attributes:
        path: path in the store, with "/" between folders.
        size: size in bytes.
        crc32: CRC-32 of the content.
        rows: number of rows.
        day: UTC day of the rows, YYYY-MM-DD; None in tables without days.
        arm: name of the arm; None in tables without days.
        sources: first and last name of the sources of its rows in alphabetical order; in
            the table `models`, of the models.
        times: times of the first and the last row [ns since 1970 UTC].
        covered: time that its rows cover [ns since 1970 UTC].
        lost: whether its loss was noticed before. Such a file stays in the log, until
            its rows are there again.
        written: when the file was added [ns since 1970 UTC].
    """

    path: str
    size: int | None = None
    crc32: int | None = None
    rows: int | None = None
    day: str | None = None
    arm: str | None = None
    sources: tuple[str, str] = ("", "")
    times: tuple[int, int] | None = None
    covered: TimeRanges | None = None
    lost: bool = False
    written: int | None = None

    @property
    def table(self) -> str:
        """Name of the table whose rows it has."""
        return self.path.partition("/")[0]

    @property
    def inside(self) -> str:
        """Path in the folder of the table."""
        return self.path.partition("/")[2]

    @property
    def source(self) -> str | None:
        """Name of the source of its rows; None if they are of several sources."""
        return self.sources[0] if self.sources[0] == self.sources[1] else None

    @property
    def live(self) -> bool:
        """Whether a live writer wrote its rows."""
        return self.sources[0].startswith(LIVE)

    def may_hold(self, source: str) -> bool:
        """Whether rows of a source can be in the file, by the names of its sources."""
        return self.sources[0] <= source <= self.sources[1]

    @property
    def span(self) -> tuple[int, int] | None:
        """Begin of the first row and end of the last row [ns since 1970 UTC]; None if unknown."""
        if self.times is None:
            return None
        first, last = self.times
        lengths = {"seconds": SECOND, "joint_seconds": SECOND, "cycles": 0}
        return first, last + lengths.get(self.table, 60 * SECOND)


def own_path(path: str) -> dict[str, str] | None:
    """Facts that a path of the store's own states about a file.

    Args:
        path: path in the store.

    Returns:
        `table`, `crc32` and, in a table that is divided, `day` and `arm`; None if the
        path is not one that `StoreFiles.write` makes.
    """
    for pattern in _OWN:
        match = pattern.match(path)
        if match is not None:
            return match.groupdict()
    return None


class StoreFiles:
    """Files of a store, by paths with "/" between folders.

    Args:
        address: address of the store, as in `HistoryStore`.

    Attributes:
        address: absolute path, or s3://BUCKET/PREFIX.
        folder: absolute path; None on an S3 server.
        options: options of the S3 server, as Delta Lake takes them; empty for a folder.
    """

    def __init__(self, address: str) -> None:
        self.folder = _folder(address)
        self.options: dict[str, str] = {}
        self._parts: dict[str, dict[str, SourcePart]] = {}
        """Parts of sources that were read from footers, by path of the file."""
        self._system: pyarrow.fs.FileSystem
        if self.folder is not None:
            self.address = str(self.folder)
            self._root = f"{self.folder}/"
            self._system = pyarrow.fs.LocalFileSystem()
            return
        path = address.removeprefix(S3).strip("/")
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        self.address = S3 + path
        self._root = f"{path}/"
        self.options = {
            "timeout": "20s",
            "connect_timeout": "5s",
            "max_retries": "3",
            "retry_timeout": "30s",
            "allow_http": "true" if endpoint.startswith("http://") else "false",
        }
        # Not the file system of Delta Lake: while it waits, no other thread of Python
        # works.
        server = urlsplit(endpoint)
        self._system = pyarrow.fs.S3FileSystem(
            endpoint_override=server.netloc or None,
            scheme=server.scheme or None,
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
            connect_timeout=TIMEOUT,
            request_timeout=TIMEOUT,
        )

    def path(self, name: str) -> Path:
        """Path of a file of a store in a folder.

        Args:
            name: path in the store.

        Raises:
            OutsideError: a folder on the way to it is a link.
        """
        assert self.folder is not None
        place = self.folder
        for part in Path(name).parent.parts:
            place /= part
            if place.is_symlink() or part == "..":
                link = place.relative_to(self.folder)
                problem = f"{link} is a link out of the store; remove the link"
                raise OutsideError(errno.EPERM, problem)
        return self.folder / name

    def write(
        self, table: str, arm: str, day: str, name: str, rows: pa.Table, parts: Parts
    ) -> StoredFile:
        """Write rows of one arm and day; they count once the file is committed.

        The same rows have the same name: what a killed process has written is replaced,
        not added to.

        Args:
            table: name of the table.
            arm: name of the arm; without effect in tables without days.
            day: UTC day of the rows, YYYY-MM-DD; without effect in tables without days.
            name: begin of the name of the file.
            rows: rows of the table.
            parts: what the rows have of each source, for the footer.

        Returns:
            The file, as a commit names it.
        """
        divided = table not in UNDIVIDED
        if divided and "arm" not in rows.schema.names:
            rows = with_arm(rows, arm)
        footer = dict(rows.schema.metadata or {})
        footer.pop(PARTS, None)
        if divided:
            footer[PARTS] = parts_text(parts)
        out = io.BytesIO()
        rows = rows.replace_schema_metadata(footer)
        pq.write_table(rows, out, compression="zstd", version="2.6")
        data = out.getvalue()
        crc32 = zlib.crc32(data)
        inside = f"{name}-{crc32:08x}.parquet"
        path = f"{table}/day={day}/{arm}/{inside}" if divided else f"{table}/{inside}"
        self._put(path, data)
        covered = covered_by(parts)
        return StoredFile(
            path=path,
            size=len(data),
            crc32=crc32,
            rows=len(rows),
            day=day if divided else None,
            arm=arm if divided else None,
            sources=_ends(rows["model" if table == "models" else "source"]) or ("", ""),
            times=_times(table, rows),
            covered=covered if table == "seconds" else None,
        )

    def _put(self, name: str, data: bytes) -> None:
        """Write a file; what a folder has in its place, such as a link, is replaced."""
        if self.folder is None:
            with self._system.open_output_stream(self._root + name) as stream:
                stream.write(data)
            return
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            kind = path.lstat().st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                path.unlink()  # `new_file` would write what a link points to
        with new_file(path, "wb") as file:
            file.write(data)
        sync(path.parent)

    def is_good(self, file: StoredFile) -> bool:
        """Whether a file is there as it was written: same checksum, on an S3 server same size."""
        if self.folder is None:
            info = self._system.get_file_info(self._root + file.path)
            return bool(info.is_file and file.size in (None, info.size))
        with suppress(OSError):
            data = self.read(file.path)
            return len(data) > 0 and file.crc32 in (None, zlib.crc32(data))
        return False

    def read(self, name: str) -> bytes:
        """Content of a file; b"" if there is none, or a link, pipe or device."""
        if self.folder is None:
            with (
                suppress(FileNotFoundError),
                self._system.open_input_file(self._root + name) as stream,
            ):
                return bytes(stream.read())
            return b""
        with suppress(FileNotFoundError, NotADirectoryError, OutsideError):
            path = self.path(name)
            if stat.S_ISREG(path.lstat().st_mode):
                return path.read_bytes()
        return b""

    def remove(self, name: str) -> bool:
        """Remove a file, or a link in its place; returns whether there was one."""
        with suppress(FileNotFoundError, OutsideError):
            if self.folder is not None:
                self.path(name).unlink()
            else:
                self._system.delete_file(self._root + name)
            return True
        return False

    def remove_stand_in(self, name: str) -> None:
        """Remove a link, pipe or device in place of a file that does not count any more."""
        if self.folder is not None:
            with suppress(FileNotFoundError, NotADirectoryError, OutsideError):
                kind = self.path(name).lstat().st_mode
                if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                    self.remove(name)

    def parts(self, file: StoredFile) -> dict[str, SourcePart]:
        """The parts of the sources in a file, from its footer, which is read once.

        Args:
            file: a file that is whole.

        Raises:
            ValueError: the footer does not state them.
        """
        if file.path not in self._parts:
            self._parts[file.path] = self._read_parts(file)
        return self._parts[file.path]

    def _read_parts(self, file: StoredFile) -> dict[str, SourcePart]:
        """As `parts`; a file of `sources` has one row of each of its sources."""
        name = self._root + file.path
        if file.table in UNDIVIDED:
            rows = pq.read_table(name, columns=["source"], filesystem=self._system)
            return dict.fromkeys(rows["source"].to_pylist(), SourcePart(1))
        with self._system.open_input_file(name) as stream:
            metadata = pq.read_metadata(stream).metadata or {}
        try:
            return parts_from_text(metadata[PARTS])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{file.path} does not state its sources") from None

    def listing(self, folder: str) -> dict[str, int | None]:
        """Sizes of all files below a folder [bytes] by path; None for links, pipes and devices.

        Logs and hidden files are left out.

        Args:
            folder: path in the store.
        """
        found: dict[str, int | None] = {}
        if self.folder is None:
            selector = pyarrow.fs.FileSelector(
                self._root + folder, allow_not_found=True, recursive=True
            )
            for info in self._system.get_file_info(selector):
                if info.is_file and "/_delta_log/" not in info.path:
                    found[info.path.removeprefix(self._root)] = info.size
            return found
        if (self.folder / folder).is_symlink():
            return {folder: None}
        for place, folders, names in os.walk(self.folder / folder):
            folders[:] = sorted(each for each in folders if each != "_delta_log")
            links = [each for each in folders if Path(place, each).is_symlink()]
            for name in sorted([*names, *links]):
                if name.startswith("."):
                    continue
                path = f"{place}/{name}"
                with suppress(FileNotFoundError):  # removed meanwhile
                    status = os.lstat(path)
                    is_file = stat.S_ISREG(status.st_mode)
                    size = status.st_size if is_file else None
                    found[path.removeprefix(self._root)] = size
        return found

    def log_names(self, table: str) -> list[str]:
        """Names of the files of a log; none if there is no log.

        Args:
            table: name of a table, or of the log of the store.
        """
        if self.folder is not None:
            with suppress(FileNotFoundError, NotADirectoryError, OutsideError):
                place = self.path(f"{table}/_delta_log/x").parent
                return [path.name for path in place.iterdir()]
            return []
        prefix = f"{self._root}{table}/_delta_log"
        selector = pyarrow.fs.FileSelector(prefix, allow_not_found=True)
        entries = self._system.get_file_info(selector)
        return [entry.base_name for entry in entries if entry.is_file]

    def discard_log(self, table: str) -> None:
        """Remove a log that is damaged, or a link in its place.

        The folder gets another name first: other processes must not write a new log into
        a folder that is being removed.

        Args:
            table: name of a table, or of the log of the store.
        """
        if self.folder is None:
            for name in sorted(self.log_names(table), reverse=True):
                self.remove(f"{table}/_delta_log/{name}")
            return
        place = self.path(f"{table}/_delta_log")
        remove_abandoned(place.parent)
        with suppress(FileNotFoundError):
            if place.is_symlink():
                place.unlink()
                return
            aside = temporary_name(place, "damaged")
            shutil.rmtree(aside, ignore_errors=True)
            place.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)

    def dataset(self, table: str, files: Sequence[StoredFile]) -> ds.Dataset:
        """Rows of files, which are read when the rows are; arm and day are text columns.

        Args:
            table: name of the table.
            files: files of the table; conditions on day and arm leave out whole files.
        """
        columns = [field.with_nullable(True) for field in arrow_schema(table)]
        divided = table not in UNDIVIDED
        if divided:
            columns += [pa.field("arm", pa.string()), pa.field("day", pa.string())]
        schema = pa.schema(columns)
        if not files:
            return ds.dataset(schema.empty_table())
        kind = ds.ParquetFileFormat()
        parts = []
        for file in files:
            all_rows = ds.scalar(True)  # condition that all rows of the file meet
            if divided:
                all_rows = (ds.field("arm") == file.arm) & (ds.field("day") == file.day)
            path = self._root + file.path
            parts.append(
                kind.make_fragment(path, self._system, partition_expression=all_rows)
            )
        return ds.FileSystemDataset(parts, schema, kind, self._system)

    def rows(
        self,
        table: str,
        files: Sequence[StoredFile],
        condition: ds.Expression | None = None,
    ) -> pa.Table:
        """Rows of files as `write` takes them: with the arm, without the day, in order of time.

        Args:
            table: name of the table.
            files: files of the table.
            condition: condition that the rows must meet; None for all.
        """
        rows = self.dataset(table, files).to_table(filter=condition)
        if table in UNDIVIDED:
            return rows
        others = [name for name in rows.schema.names if name not in ("arm", "day")]
        return rows.select(["arm", *others]).sort_by(TABLES[table][0].name)


def json_of(text: bytes) -> Any:
    """The content of a JSON text.

    Raises:
        ValueError: the text is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _ends(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """The first and the last text of a column in alphabetical order; None without any."""
    if not len(column):
        return None
    ends = pc.min_max(column).as_py()
    return ends["min"], ends["max"]


def _times(table: str, rows: pa.Table) -> tuple[int, int] | None:
    """Times of the first and the last row [ns since 1970 UTC].

    Args:
        table: name of the table.
        rows: rows of the table.

    Returns:
        Both times; None without rows, or for a table without times.
    """
    if not len(rows):
        return None
    ends = pc.min_max(rows[TABLES[table][0].name]).as_py()
    if not isinstance(ends["min"], datetime):
        return None
    return nanoseconds(ends["min"]), nanoseconds(ends["max"])


def divided(
    table: str, rows: pa.Table, ranges: TimeRanges, span: int = DAY
) -> Iterator[tuple[int, str, pa.Table, TimeRanges]]:
    """Divide rows of a table by spans of time, so that each has rows of one day.

    Args:
        table: name of the table.
        rows: rows of the table.
        ranges: host time that the rows cover [ns since 1970 UTC].
        span: length of the spans, at most a day [ns].

    Yields:
        Begin of the span [ns since 1970 UTC], its UTC day (YYYY-MM-DD), its rows, and the
        part of the ranges in it; all rows at once of a table without days.
    """
    if table in UNDIVIDED:
        yield 0, "", rows, NOTHING
        return
    spans = rows[TABLES[table][0].name].cast("int64").to_numpy() * 1000 // span
    for begin in (np.unique(spans) * span).tolist():
        within = ranges.within(begin, begin + span) if table == "seconds" else NOTHING
        day = str(np.datetime64(begin, "ns").astype("datetime64[D]"))
        yield begin, day, rows.filter(spans == begin // span), within


def with_arm(rows: pa.Table, arm: str) -> pa.Table:
    """Rows with the arm as a first column; in the name of a folder alone, 0123 would become 123.

    Args:
        rows: rows of one arm.
        arm: name of the arm.
    """
    return rows.add_column(0, "arm", pa.repeat(pa.scalar(arm), len(rows)))


def sync(*paths: Path) -> None:
    """Flush files, and folders with their names, to the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _folder(address: str) -> Path | None:
    """The folder of a store; None for a store on an S3 server.

    Args:
        address: address of the store.

    Raises:
        StoreError: no store can be there.
    """
    if address.startswith(S3):
        if not address.removeprefix(S3).strip("/"):
            raise StoreError(address, "names no bucket", "give s3://BUCKET/PREFIX")
        return None
    if "://" in address:
        raise StoreError(
            address, "is neither a folder nor an s3:// address", "give one of these"
        )
    folder = user_path(address).absolute()
    if str(folder) != str(folder).encode(errors="replace").decode():
        raise StoreError(
            folder, "has a name that is not UTF-8, which Parquet needs", "rename it"
        )
    if folder.exists() and not folder.is_dir():
        raise StoreError(folder, "is not a folder", "name the folder of the store")
    return folder
