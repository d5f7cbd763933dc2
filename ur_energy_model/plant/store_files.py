"""Files of a history store: what they are named, how they are written, and whether they are whole.

A store is a folder or a prefix of a bucket. Nothing outside of it is read, written or removed, also
where a link leads there.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, user_path
from ur_energy_model.plant.energy_parts import NOTHING, TimeRanges
from ur_energy_model.plant.schema import LIVE, TABLES, UNDIVIDED, arrow_schema
from ur_energy_model.typing import Self

DAY = 86_400 * 1_000_000_000  # ns
RANGES = b"ur_energy_model.ranges"
"""Key in the footer of a file: begins and ends of the time that its rows cover [ns]."""
COUNTED = ("seconds", "cycles", "health")  # tables whose rows a record counts
S3 = "s3://"
TIMEOUT = 20.0  # of a connection or request to an S3 server [s]
_PLAIN = r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*"
OWN_NAME = re.compile(rf".*/{_PLAIN}-(?P<crc32>[0-9a-f]{{8}})\.parquet")
"""Paths of files that `StoreFiles.write` makes."""
_DAY = r"day=(?P<day>\d{4}-\d\d-\d\d)"
_OLD_FILES = [
    re.compile(rf"(?P<table>[a-z][a-z_]*)/{place}/(?P<source>{_PLAIN})\.parquet")
    for place in (f"{_DAY}/(?P<arm>{_PLAIN})", f"arm=(?P<arm>{_PLAIN})/{_DAY}")
]
"""Paths in stores of before, with the day in front and, before that, with the arm."""
_OLD_RECORD = re.compile(rf"(?:sources|writers)/{_PLAIN}\.json")
_OLD_MODEL = re.compile(r"models/[0-9a-z]+-[A-Za-z0-9_]+\.parquet")

Rows = tuple[pa.Table, TimeRanges]  # rows and the time that they cover


class StoreError(InputError):
    """A history store that cannot be read or written."""


@dataclass(frozen=True)
class SourceRecord:
    """A source: a row of the table `sources`, see there; `bag` is "" for a live writer.

    `start` and `end` are ns since 1970 UTC, `rows` numbers of rows by table.
    """

    source: str
    bag: str
    arm: str
    robot: str
    model: str
    start: int
    end: int
    host_time: bool
    rows: dict[str, int]
    energy: float
    accounted: float
    left_out: float

    def table(self) -> pa.Table:
        """As a row."""
        row = asdict(self) | {name: self.rows.get(name, 0) for name in COUNTED}
        times = {name: row[name] // 1000 for name in ("start", "end")}
        return pa.Table.from_pylist([row | times], arrow_schema("sources"))

    @classmethod
    def of(cls, rows: pa.Table) -> list[Self]:
        """From rows."""
        found = []
        for row in rows.to_pylist():
            counts = {name: row.pop(name) for name in COUNTED}
            times = {name: nanoseconds(row[name]) for name in ("start", "end")}
            found.append(cls(rows=counts, **row | times))
        return found


@dataclass(frozen=True)
class StoredFile:
    """A file that the log of a table names, or a record of an earlier version.

    `path` is that in the store, `size` in bytes; what is not known is None. `sources` are the first
    and last name of the sources of its rows, `times` those of the first and last row [ns].
    """

    path: str
    size: int | None = None
    crc32: int | None = None
    rows: int | None = None
    day: str | None = None
    arm: str | None = None
    sources: tuple[str, str] = ("", "")
    times: tuple[int, int] | None = None

    @property
    def table(self) -> str:
        """Whose file it is."""
        return self.path.partition("/")[0]

    @property
    def inside(self) -> str:
        """Path in the table."""
        return self.path.partition("/")[2]

    @property
    def source(self) -> str | None:
        """Whose rows it has; None if they are of several sources, which then are all complete."""
        return self.sources[0] if self.sources[0] == self.sources[1] else None

    @property
    def live(self) -> bool:
        """Whether a live writer wrote its rows."""
        return self.sources[0].startswith(LIVE)

    def may_hold(self, source: str) -> bool:
        """Whether rows of a source can be in it."""
        return self.sources[0] <= source <= self.sources[1]


class OldSource(NamedTuple):
    """A record of an earlier version: its path, what it states, and its files.

    The path is "" for the file of a model; `record` is None for that, and for a live writer.
    """

    name: str
    record: SourceRecord | None
    files: tuple[StoredFile, ...]


class StoreFiles:
    """Files of a store, by paths with "/" between folders; arguments as of `HistoryStore`.

    `folder` is an absolute path, None on an S3 server; `options` are that server's for Delta Lake.
    """

    def __init__(self, address: str) -> None:
        self.folder = _folder(address)
        self.options: dict[str, str] = {}
        self._system: pyarrow.fs.FileSystem
        if self.folder is not None:
            self.address, self._root = str(self.folder), f"{self.folder}/"
            self._system = pyarrow.fs.LocalFileSystem()
            return
        path, endpoint = address.removeprefix(S3).strip("/"), os.environ.get("AWS_ENDPOINT_URL", "")
        self.address, self._root = S3 + path, f"{path}/"
        self.options = {"timeout": "20s", "connect_timeout": "5s", "max_retries": "3"}
        self.options |= {"retry_timeout": "30s"}
        self.options |= {"allow_http": str(endpoint.startswith("http://")).lower()}
        # Not the file system of Delta Lake: while it waits, no other thread of Python works.
        server = urlsplit(endpoint)
        self._system = pyarrow.fs.S3FileSystem(
            endpoint_override=server.netloc or None,
            scheme=server.scheme or None,
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
            connect_timeout=TIMEOUT,
            request_timeout=TIMEOUT,
        )

    def path(self, name: str) -> Path:
        """Where a file of a local store is.

        Raises:
            OSError: that is not in its folder.
        """
        assert self.folder is not None
        path, home = self.folder / name, os.path.realpath(self.folder)
        if os.path.commonpath([home, os.path.realpath(path.parent)]) != home:
            raise OSError(errno.EPERM, f"{name} leads out of the store")
        return path

    def write(
        self, table: str, arm: str, day: str, source: str, rows: pa.Table, ranges: TimeRanges
    ) -> AddAction:
        """Write rows of one arm and day; they count once the action is committed.

        The same rows have the same name: a process that was killed is repeated, not added to.
        """
        divided = table not in UNDIVIDED
        if divided and "arm" not in rows.schema.names:
            rows = with_arm(rows, arm)
        footer = {**(rows.schema.metadata or {}), RANGES: json.dumps(ranges.pairs()).encode()}
        out = io.BytesIO()
        rows = rows.replace_schema_metadata(footer)
        pq.write_table(rows, out, compression="zstd", version="2.6")
        data = out.getvalue()
        name = f"{source}-{zlib.crc32(data):08x}.parquet"
        inside = f"day={day}/{arm}/{name}" if divided else name
        if self.folder is None:
            with self._system.open_output_stream(f"{self._root}{table}/{inside}") as stream:
                stream.write(data)
        else:
            path = self.path(f"{table}/{inside}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with new_file(path, "wb") as file:
                file.write(data)
            sync(path.parent)
        ends: list[dict[str, Any]] = [{}, {}]  # by which readers select files
        for column in ("arm", "source", "model", TABLES[table][0].name):
            if column in rows.schema.names and len(rows):
                for end, value in zip(ends, pc.min_max(rows[column]).as_py().values(), strict=True):
                    if isinstance(value, datetime):
                        value = value.isoformat().replace("+00:00", "Z")
                    end[column] = value
        stats = {"numRecords": len(rows), "minValues": ends[0], "maxValues": ends[1]}
        values = {"day": day} if divided else {}
        return AddAction(inside, len(data), values, int(time.time() * 1e3), True, json.dumps(stats))

    def is_good(self, file: StoredFile) -> bool:
        """Whether a file is there as it was written; on an S3 server, of that size."""
        if self.folder is None:
            info = self._system.get_file_info(self._root + file.path)
            return bool(info.is_file and file.size in (None, info.size))
        with suppress(OSError):
            data = self._read(file.path)
            return len(data) > 0 and file.crc32 in (None, zlib.crc32(data))
        return False

    def _read(self, name: str) -> bytes:
        """Content of a file; b"" if there is none, or a link, pipe or device."""
        path = None if self.folder is None else self.path(name)
        if path is None or (path.is_file() and not path.is_symlink()):
            with (
                suppress(FileNotFoundError, NotADirectoryError),
                self._system.open_input_file(self._root + name) as stream,
            ):
                return bytes(stream.read())
        return b""

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        if self.folder is not None:
            self.path(name)
        with suppress(FileNotFoundError):
            self._system.delete_file(self._root + name)

    def ranges(self, file: StoredFile) -> list[tuple[int, int]]:
        """Begins and ends of the time that the rows of a file cover [ns]."""
        with self._system.open_input_file(self._root + file.path) as stream:
            metadata = pq.read_schema(stream).metadata or {}
        return [(int(start), int(end)) for start, end in json.loads(metadata.get(RANGES, b"[]"))]

    def listing(self, folder: str) -> dict[str, int | None]:
        """Sizes of all files below a folder [bytes] by path; None for links, pipes and devices.

        Logs and hidden files are left out.
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
                with suppress(FileNotFoundError):
                    status = os.lstat(f"{place}/{name}")
                    if not name.startswith("."):
                        path = f"{place}/{name}".removeprefix(self._root)
                        found[path] = status.st_size if stat.S_ISREG(status.st_mode) else None
        return found

    def dataset(self, table: str, files: Sequence[StoredFile]) -> ds.Dataset:
        """Rows of files, see `HistoryStore.rows`; conditions on day and arm leave out files."""
        columns = [field.with_nullable(True) for field in arrow_schema(table)]
        divided = table not in UNDIVIDED
        columns += [pa.field(name, pa.string()) for name in ("arm", "day")] if divided else []
        schema = pa.schema(columns)
        if not files:
            return ds.dataset(schema.empty_table())
        kind, parts = ds.ParquetFileFormat(), []
        for file in files:
            known = ds.scalar(True)
            if divided:
                known = (ds.field("arm") == file.arm) & (ds.field("day") == file.day)
            path = self._root + file.path
            parts.append(kind.make_fragment(path, self._system, partition_expression=known))
        return ds.FileSystemDataset(parts, schema, kind, self._system)

    def old_sources(self) -> Iterator[OldSource]:
        """What an earlier version wrote, with a JSON record per source in place of logs."""
        there = [name for folder in ("sources", "writers") for name in self.listing(folder)]
        for name in filter(_OLD_RECORD.fullmatch, there):
            # A record that is none, or names what is not its own, is foreign.
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                yield _old_source(name, json.loads(self._read(name)))
        for name in filter(_OLD_MODEL.fullmatch, self.listing("models")):
            yield OldSource("", None, (StoredFile(name, sources=(name, name)),))


def _old_source(name: str, values: Any) -> OldSource:
    """From the content of a record; raises any of several errors if it is none."""
    source, live = Path(name).stem, isinstance(values, list)
    named = values if live else values["files"]
    named = named if isinstance(named, dict) else {path: {} for path in named}
    files = []
    for path, known in named.items():
        found = next(filter(None, (old.fullmatch(path) for old in _OLD_FILES)), None)
        if not found or source.partition(".")[0] not in found["source"]:
            raise ValueError(path)
        if found["table"] not in TABLES or not date.fromisoformat(found["day"]):
            raise ValueError(path)
        place = (found["day"], found["arm"], (found["source"],) * 2)
        files.append(StoredFile(path, known.get("size"), known.get("crc32"), None, *place))
    record = None
    if not live:
        record = SourceRecord(**{each.name: values[each.name] for each in fields(SourceRecord)})
        if record.source != source:
            raise ValueError(source)
    return OldSource(name, record, tuple(files))


def divided(
    table: str, rows: pa.Table, ranges: TimeRanges, span: int = DAY
) -> Iterator[tuple[int, str, pa.Table, TimeRanges]]:
    """Rows of a table by spans of at most a day [ns]: begin [ns], UTC day, rows, time covered."""
    if table in UNDIVIDED:
        yield 0, "", rows, NOTHING
        return
    spans = rows[TABLES[table][0].name].cast("int64").to_numpy() * 1000 // span
    for begin in (np.unique(spans) * span).tolist():
        within = ranges.within(begin, begin + span) if table == "seconds" else NOTHING
        day = str(np.datetime64(begin, "ns").astype("datetime64[D]"))
        yield begin, day, rows.filter(spans == begin // span), within


def with_arm(rows: pa.Table, arm: str) -> pa.Table:
    """With the arm as a column: in the name of a folder, 0123 would be the number 123."""
    return rows.add_column(0, "arm", pa.repeat(pa.scalar(arm), len(rows)))


def nanoseconds(time: datetime) -> int:
    """Of a time in UTC, since 1970."""
    return int(np.datetime64(time.replace(tzinfo=None), "us").astype(np.int64)) * 1000


def sync(*paths: Path) -> None:
    """Let files, and the names of folders, be on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _folder(address: str) -> Path | None:
    """The folder of a store; None for one on an S3 server. StoreError: no such address."""
    if address.startswith(S3):
        if not address.removeprefix(S3).strip("/"):
            raise StoreError(address, "names no bucket", "give s3://BUCKET/PREFIX")
        return None
    if "://" in address:
        raise StoreError(address, "is neither a folder nor an s3:// address", "give one of these")
    folder = user_path(address).absolute()
    if str(folder) != str(folder).encode(errors="replace").decode():
        raise StoreError(folder, "has a name that is not UTF-8, which Parquet needs", "rename it")
    if folder.exists() and not folder.is_dir():
        raise StoreError(folder, "is not a folder", "name the folder of the store")
    return folder
