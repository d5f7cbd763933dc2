"""HistoryStore: the files of the history of many arms.

    STORE/<table>/day=<YYYY-MM-DD>/<arm>/<source>.parquet   rows, for any Parquet reader
    STORE/models/<model>-<robot>.parquet                    a row per model
    STORE/sources/<source>.json                             a source that is complete
    STORE/begun/<source>.json                               one whose files are being written
    STORE/writers/<writer>.<day>.json                       files of a live writer

A source is written by one process at a time: first its file below `begun`, with the names of its
files, then these, then its record; at last the one below `begun` is removed. What a killed process
left is removed by the next one that writes, so that adding the source again completes it. The
footer of each file of `seconds` states which time it covers, so that no time of an arm is counted
twice.

A record states what its files contain. Only these files count; what is lost, changed or foreign
is reported (`holdings`), and adding a bag again mends it. Nothing that no record
of the store names is ever removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow
import pyarrow.dataset

from ur_energy_model.errors import optional_import
from ur_energy_model.files import user_path
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.plant.energy_parts import TimeRanges
from ur_energy_model.plant.places import LocalPlace, Place, S3Place, StoreError
from ur_energy_model.plant.schema import TABLES, SourceKeys, arrow_schema, model_row
from ur_energy_model.plant.source_record import (
    BEGUN,
    MODELS,
    SOURCES,
    WRITERS,
    Content,
    FileName,
    SourceRecord,
    covered_time,
    day_files,
    files_of,
    is_model_file,
    model_file,
    parquet_file,
    record_name,
    recorded_source,
)

# Holdings: which files of a history store count, and what is wrong with the others, in words.

MOST_LINES = 20
"""Warnings; of more, the number."""


@dataclass(frozen=True)
class Holdings:
    """What a store holds.

    Attributes:
        files: names of those that count, with the models.
        warnings: what is lost, changed, left out or foreign, in one line each.
    """

    files: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass
class Comparison:
    """Collects what is found of the files of a store.

    Attributes:
        good: names of files that count.
        unfinished: those of sources whose adding has not ended.
    """

    good: list[str] = field(default_factory=list)
    unfinished: set[str] = field(default_factory=set)
    _changed: dict[str, list[str]] = field(default_factory=dict)
    _lost: dict[str, list[str]] = field(default_factory=dict)
    _foreign: dict[str, list[str]] = field(default_factory=dict)
    _records: list[str] = field(default_factory=list)

    def add(self, name: str, owner: str, *, good: bool) -> None:
        """A file that a record names.

        Args:
            name: of the file.
            owner: path of its bag; "" for a live writer.
            good: whether it is what was written.
        """
        if good:
            self.good.append(name)
        else:
            self._changed.setdefault(owner, []).append(name)

    def lost(self, name: str, owner: str) -> None:
        """A file that a record names is not there."""
        self._lost.setdefault(owner, []).append(name)

    def foreign(self, name: str) -> None:
        """A file that no record names."""
        file = FileName.of(name)
        self._foreign.setdefault(name if file is None else file.source, []).append(name)

    def foreign_record(self, name: str, problem: str) -> None:
        """What is no record of the store."""
        self._records.append(f"{name}: {problem}; it is left as it is")

    def warnings(self) -> tuple[str, ...]:
        """All that is wrong, in one line each."""
        lines = []
        for words, wrong in (("lost", self._lost), ("changed", self._changed)):
            for owner, names in wrong.items():
                where = f"{_some(names)} {'are' if len(names) > 1 else 'is'} {words}"
                lines.append(
                    f"{where}, the sums lack its rows; add {owner} again"
                    if owner
                    else f"{where}, the sums lack the rows that the estimator wrote there"
                )
        lines += [
            f"{_some(names)}: no record names it (a copy?); it does not count, and is left as it is"
            for names in self._foreign.values()
        ]
        lines += self._records
        if self.unfinished:
            lines.append(
                f"{_some(sorted(self.unfinished))}: adding it has not ended; it does not count "
                "until it is added again"
            )
        more = len(lines) - MOST_LINES
        return (*lines[:MOST_LINES], *([f"and {more} more of this kind"] if more > 0 else []))


def _some(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} more file{'s' * (more > 1)}"


MOST_KNOWN = 10_000
"""Files whose covered time is kept in memory."""
MOST_LIVE = 8
"""Records of a live writer that are kept in memory."""
MOST_CHECKED = 256_000_000
"""Of larger files together, sizes are compared, not contents [bytes]."""
_S3 = "s3://"


class OverlapError(Exception):
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
        with optional_import():
            import pyarrow.parquet  # noqa: F401
        self._place = _place(str(address))
        self.address = self._place.address
        """Absolute path of the folder, or s3:// address."""
        self.notes: list[str] = []
        """What writing has found that a user should see."""
        self._known: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._live: dict[str, list[str]] = {}
        self._models: set[str] = set()

    def has(self, source: str) -> bool:
        """Whether a source is complete: its record and all its files are there, as written.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            record = self._recorded(source)
            return record is not None and self._intact(record)

    def sources(self) -> Iterator[SourceRecord]:
        """All sources that were complete once they were written.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            for name in self._place.files(SOURCES):
                record = self._recorded(recorded_source(name))
                if record is not None:
                    yield record

    def covered(self, arm: str, days: Iterable[str], *, besides: str) -> TimeRanges:
        """Time of an arm that the sources besides one cover on some days (YYYY-MM-DD).

        Raises:
            StoreError: the store cannot be read.
        """
        with self._problems("read"):
            return self._covered(arm, days, besides)

    def add(
        self,
        record: SourceRecord,
        tables: Mapping[str, pyarrow.Table],
        ranges: TimeRanges,
        model: tuple[EnergyModel | None, Path | None] = (None, None),
    ) -> SourceRecord | None:
        """Write a source; one whose files were lost or changed is written again.

        Args:
            record: of the source; its files are filled in here.
            tables: rows by name of the table.
            ranges: host time that the rows cover; nothing where it is not known.
            model: with which its energies were computed, and its path, see `keep_model`.

        Returns:
            the record as written; None if the source is complete already.

        Raises:
            OverlapError: another source covers some of that time meanwhile; nothing is written.
            StoreError: the store cannot be written.
        """
        with self._problems("written"), self._place.exclusive() as in_turn:
            self._remove_abandoned()
            earlier = self._recorded(record.source)
            if earlier is not None and self._intact(earlier):
                return None
            files = day_files(record.arm, record.source, tables, ranges)
            days = {file.day for file in map(FileName.of, files) if file is not None}
            taken = self._covered(record.arm, days, record.source)
            if any(taken.within(start, end) for start, end in ranges.pairs()):
                raise OverlapError
            if earlier is not None:
                self._remove(record.source, earlier.files)
                self._say(f"{record.bag}: files of it were lost or changed, it is added again")
            self.keep_model(SourceKeys(record.source, record.robot, record.model), *model)
            contents = {name: Content.of(data) for name, data in files.items()}
            record = replace(record, files=contents)
            self._write(record, files)
            if not in_turn():
                self._remove(record.source, record.files)
                raise OverlapError
        return record

    def tidy(self) -> None:
        """Remove what killed processes left; the next `add` would do it too.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"):
            if self._place.files(BEGUN):
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

    def write_live(self, files: Mapping[str, bytes]) -> None:
        """Write files of a live writer, each with one hour of rows; first that they will be there.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._problems("written"):
            for name, content in files.items():
                file = FileName.of(name)
                assert file is not None
                record = record_name(WRITERS, f"{file.writer}.{file.day}")
                if record not in self._live:
                    if len(self._live) > MOST_LIVE:
                        self._live.clear()
                    with suppress(ValueError):
                        known = self._place.read(record) or b"[]"
                        self._live[record] = list(files_of(known, str(file.writer)))
                names = self._live.setdefault(record, [])
                if name not in names:
                    self._place.write(record, json.dumps([*names, name]).encode())
                    names.append(name)
                self._place.write(name, content)

    def keep_model(self, keys: SourceKeys, model: EnergyModel | None, path: Path | None) -> None:
        """Write the row of a model, unless it is there; within `exclusive`.

        Args:
            keys: of a source whose energies were computed with the model.
            model: the model; None for the generic one.
            path: of its file; None for the generic one.

        Raises:
            StoreError: the store cannot be written.
        """
        name = model_file(keys.model, keys.robot)
        if name in self._models:
            return
        with self._problems("written"):
            if self._place.read(name) is None:
                self._place.write(name, parquet_file(model_row(keys, model, path)))
        self._models.add(name)

    def holdings(
        self, first: str | None = None, last: str | None = None, arms: Collection[str] = ()
    ) -> Holdings:
        """Compare what the records state with what the store holds.

        Args:
            first: first day that matters, YYYY-MM-DD; None for the first one.
            last: last day that matters; None for the last one.
            arms: names of the arms that matter; () for all.

        Raises:
            StoreError: the store cannot be read, or is none.
        """

        def matters(name: str) -> bool:
            file = FileName.of(name)
            if file is None:
                return True
            within = (first is None or file.day >= first) and (last is None or file.day <= last)
            return within and (not arms or file.arm in arms)

        with self._problems("read"), self._place.settled():
            # Files first: where other writers cannot be kept out, one that is written meanwhile has
            # its record by then, or is begun.
            files = {
                name: size
                for folder in TABLES
                for name, size in self._place.files(folder).items()
                if matters(name)
            }
            records = {
                name: size
                for folder in (BEGUN, WRITERS, SOURCES)
                for name, size in self._place.files(folder).items()
            }
            if not files and not records and not any(map(self._place.files, TABLES)):
                raise StoreError(
                    self.address,
                    "is no history store, or holds nothing yet",
                    "add recordings with ur_energy history add",
                )
            return self._compared(files, records, matters)

    def rows(self, table: str, holdings: Holdings) -> pyarrow.dataset.Dataset:
        """Rows of the files of a table that count, with the columns of today's schema.

        Columns that a file lacks are null; a table without files has no rows. Arm and day are text.

        Raises:
            StoreError: the store cannot be read.
            MissingPackageError: pyarrow is not installed.
        """
        with optional_import():
            import pyarrow as pa
            import pyarrow.dataset as ds
        fields = [field.with_nullable(True) for field in arrow_schema(table)]
        if table != MODELS:
            fields += [pa.field("arm", pa.string()), pa.field("day", pa.string())]
        schema = pa.schema(fields)
        names = [name for name in holdings.files if name.startswith(f"{table}/")]
        if not names:
            return ds.dataset(schema.empty_table())
        keys = [FileName.of(name) for name in names]
        with self._problems("read"):
            files, root = self._place.filesystem()
            return ds.FileSystemDataset.from_paths(
                [f"{root}/{name}" for name in names],
                schema=schema,
                format=ds.ParquetFileFormat(),
                filesystem=files,
                partitions=[
                    ds.scalar(True)
                    if key is None
                    else (ds.field("arm") == key.arm) & (ds.field("day") == key.day)
                    for key in keys
                ],
            )

    def _compared(
        self,
        files: Mapping[str, int | None],
        records: Mapping[str, int | None],
        matters: Callable[[str], bool],
    ) -> Holdings:
        """What records say about files; both by name, with their sizes."""
        found = Comparison()
        expected: dict[str, tuple[str, Content]] = {}
        for name, size in records.items():
            try:
                owner, contents = self._files_of(name, size)
            except ValueError as error:
                found.foreign_record(name, str(error))
                continue
            begun = name.startswith(f"{BEGUN}/")
            for own, content in contents.items():
                if matters(own):
                    expected[own] = (owner, content)
                    found.unfinished.discard(own)
                    if begun:
                        found.unfinished.add(own)
        total = sum(size or 0 for size in files.values())
        look = isinstance(self._place, LocalPlace) and total <= MOST_CHECKED
        writers = {each.writer for each in map(FileName.of, expected) if each is not None}
        for name, size in files.items():
            file = FileName.of(name)
            if size is None:
                found.foreign(name)
            elif name in found.unfinished or (name.startswith(f"{MODELS}/") and file is None):
                continue
            elif name in expected:
                owner, content = expected[name]
                data = self._place.read(name) if look and content.has_size(size) else None
                whole = content.is_of(data, name) if data is not None else content.has_size(size)
                found.add(name, owner, good=whole)
            elif file is not None and (
                not records or (file.writer is not None and file.writer not in writers)
            ):
                found.add(name, "", good=True)  # made elsewhere, or by an earlier version
            else:
                found.foreign(name)
        for name, (owner, _) in expected.items():
            there = name in files or name in found.unfinished
            if not there and self._place.read(name) is None:
                found.lost(name, owner)
        models = tuple(
            name
            for name, size in self._place.files(MODELS).items()
            if is_model_file(name) and size is not None
        )
        warnings = found.warnings()
        if not records:
            warnings += ("no record states which files there must be: some may be lost or copies",)
        return Holdings((*found.good, *models), warnings)

    def _files_of(self, name: str, size: int | None) -> tuple[str, Mapping[str, Content]]:
        """Whose files a record names, in words, and what these contain.

        Raises:
            ValueError: it is no record.
        """
        source = recorded_source(name)
        content = self._place.read(name) if source is not None and size is not None else None
        if source is None or content is None:
            raise ValueError("is no record of this store")
        if name.startswith(f"{SOURCES}/"):
            record = SourceRecord.from_json(content, source)
            return record.bag, record.files
        return "", files_of(content, source.partition(".")[0])

    def _recorded(self, source: str | None) -> SourceRecord | None:
        """The record of a source; None if there is none, or something else in its place."""
        content = None if source is None else self._place.read(record_name(SOURCES, source))
        if source is None or content is None:
            return None
        with suppress(ValueError):
            return SourceRecord.from_json(content, source)
        return None

    def _intact(self, record: SourceRecord) -> bool:
        """Whether all files of a source are there as they were written."""
        contents = ((self._place.read(name), name) for name in record.files)
        return all(
            data is not None and record.files[name].is_of(data, name) for data, name in contents
        )

    def _covered(self, arm: str, days: Iterable[str], besides: str) -> TimeRanges:
        pairs: list[tuple[int, int]] = []
        for day in days:
            for folder in (f"seconds/day={day}/{arm}", f"seconds/arm={arm}/day={day}"):
                for name, size in self._place.files(folder).items():
                    file = FileName.of(name)
                    if file is None or size is None or file.source.startswith(besides):
                        continue
                    pairs += self._covered_by(name, file, size)
        return TimeRanges.of(pairs)

    def _covered_by(self, name: str, file: FileName, size: int) -> list[tuple[int, int]]:
        """Time that a file of `seconds` covers; nothing if it does not count."""
        known = self._known.get((name, size))
        if known is not None:
            return known
        content = self._place.read(name)
        if content is None:
            return []
        if file.writer is None:
            record = self._recorded(file.source)
            expected = None if record is None else record.files.get(name)
            if expected is None or not expected.is_of(content, name):
                return []
        pairs = covered_time(content).pairs()
        if file.writer is None:  # the file of a live writer grows
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[name, size] = pairs
        return pairs

    def _write(self, record: SourceRecord, files: Mapping[str, bytes]) -> None:
        begun = record_name(BEGUN, record.source)
        try:
            self._place.write(begun, json.dumps(list(files)).encode())
            for name, content in files.items():
                self._place.write(name, content)
            self._place.write(record_name(SOURCES, record.source), record.to_json())
        except BaseException:
            with suppress(OSError):
                self._remove(record.source, files)
            raise
        self._place.remove(begun)

    def _remove(self, source: str, files: Iterable[str]) -> None:
        """Remove a source.

        Args:
            source: its name.
            files: names that were checked to be its own, see `read_files`.
        """
        self._place.remove(record_name(SOURCES, source))
        for name in files:
            self._place.remove(name)
        self._place.remove(record_name(BEGUN, source))

    def _remove_abandoned(self) -> None:
        """Remove the files of sources that killed processes began; nothing else."""
        for name, size in self._place.files(BEGUN).items():
            try:
                _, files = self._files_of(name, size)
            except ValueError as error:
                self._say(f"{name}: {error}; it is left as it is")
                continue
            source = str(recorded_source(name))
            if self._recorded(source) is None:
                self._remove(source, files)
            else:
                self._place.remove(name)

    def _say(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    @contextmanager
    def _problems(self, what: str) -> Iterator[None]:
        """Errors of files and servers as one of this package."""
        with optional_import():
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
    if str(folder) != str(folder).encode(errors="replace").decode():
        raise StoreError(folder, "has a name that is not UTF-8, which Parquet needs", "rename it")
    if folder.exists() and not folder.is_dir():
        raise StoreError(folder, "is not a folder", "name the folder of the store")
    return LocalPlace(folder)
