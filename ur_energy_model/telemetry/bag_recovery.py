"""Makes bags whole again after a crash, a power cut or damage: `ur_energy recover`."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag_layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag_metadata import (
    FILE_NAME,
    GAP_RECORD_NAME,
    RECORD_NAME,
    BagMetadata,
    FileEntry,
    TopicEntry,
    custom_of_gap,
    gap_of_custom,
    gaps_to_text,
    info_of_custom,
    read_metadata,
)
from ur_energy_model.telemetry.bag_reader import bag_files, file_number
from ur_energy_model.telemetry.bag_writer import CHANNELS
from ur_energy_model.telemetry.cdr import CdrError
from ur_energy_model.telemetry.mcap_format import MAGIC, MESSAGE_HEAD, PREFIX, Op, Summary
from ur_energy_model.telemetry.mcap_reader import MAX_RECORD, McapReader, unpack_chunk
from ur_energy_model.telemetry.mcap_writer import McapWriter
from ur_energy_model.telemetry.samples import Gap, find_gaps

DAMAGED = "damaged file"
_CHUNK_MARK = b"\x04\x00\x00\x00zstd"
_MARK_OFFSET = PREFIX.size + 28
_KNOWN = frozenset(Op)


@dataclass(frozen=True)
class Recovery:
    """What became of a bag.

    Attributes:
        samples: readable now.
        files: of the bag.
        problems: what was not intact, a line each.
    """

    samples: int
    files: int
    problems: tuple[str, ...]


@dataclass
class _Salvage:
    """What is intact in a file.

    Attributes:
        summary: of the file that holds it.
        custom: provenance found in the file.
        gaps: of the file, indexes from its first sample.
        samples: telemetry messages.
        problems: what was not intact.
        damaged: more than its end is missing.
    """

    summary: Summary
    custom: Mapping[str, str]
    gaps: tuple[Gap, ...]
    samples: int
    problems: list[str]
    damaged: bool


def recover_bag(path: Path) -> Recovery:
    """Rebuild the files of a bag from what is intact in them, and its metadata.yaml.

    Each file is written anew beside the old one and takes its place when it is complete.

    Args:
        path: rosbag2 directory, or a single .mcap file.

    Raises:
        RecordingError: no bag, nothing readable in it, or the disk refuses.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.mcap"), key=file_number)
    if not files:
        bag_files(path)  # says what is wrong with the path
        raise RecordingError(path, "has no .mcap files", "name a bag that ur_energy recorded")
    salvages: list[tuple[Path, _Salvage]] = []
    problems: list[str] = []
    try:
        for file in files:
            salvage = _rewrite(file)
            problems += [f"{file.name}: {problem}" for problem in salvage.problems]
            if salvage.samples or not salvage.damaged:
                salvages.append((file, salvage))
            else:
                problems.append(f"{file.name}: nothing in it is readable, it is left out")
        samples = sum(salvage.samples for _, salvage in salvages)
        if samples == 0:
            raise RecordingError(path, "holds no sample that could be read", "record again")
        if path.is_dir():
            problems += _rebuild_metadata(path, salvages)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be rewritten ({reason})", "check the disk") from None
    return Recovery(samples, len(salvages), tuple(problems))


def _rebuild_metadata(folder: Path, salvages: list[tuple[Path, _Salvage]]) -> list[str]:
    """Write metadata.yaml; returns what was not right with the old one."""
    entries: list[FileEntry] = []
    counts: dict[str, int] = {}
    kinds: dict[str, tuple[str, str]] = {}
    gaps: list[Gap] = []
    custom: dict[str, str] = {}
    first = 0
    for file, salvage in salvages:
        summary = salvage.summary
        entries.append(FileEntry(file.name, summary.start_time, summary.end_time, summary.messages))
        schemas = {schema.id: schema.name for schema in summary.schemas}
        for channel in summary.channels:
            counts[channel.topic] = counts.get(channel.topic, 0) + summary.counts[channel.id]
            digest = channel.metadata.get("topic_type_hash", "")
            kinds[channel.topic] = schemas.get(channel.schema_id, ""), digest
        gaps += [replace(gap, index=gap.index + first) for gap in salvage.gaps]
        custom = {**salvage.custom, **custom}
        first += salvage.samples
    problems = _faults_of_old_metadata(folder, first)
    custom["gaps"] = gaps_to_text(gaps)
    topics = [TopicEntry(name, *kinds[name], counts[name]) for name in kinds]
    BagMetadata(entries, topics, custom).write(folder)
    return problems


def _faults_of_old_metadata(folder: Path, samples: int) -> list[str]:
    if not (folder / FILE_NAME).exists():
        return [f"{FILE_NAME} was missing"]
    try:
        counted = read_metadata(folder).messages.get(TELEMETRY_TOPIC, 0)
    except RecordingError:
        return [f"{FILE_NAME} was not readable"]
    if counted > samples:
        return [f"{counted - samples} of the {counted} samples that {FILE_NAME} counts are gone"]
    return []


def _rewrite(path: Path) -> _Salvage:
    """Write a file anew from what is intact in it."""
    temporary = path.with_name(f".{path.name}.recovering")
    with suppress(FileNotFoundError):
        temporary.unlink()
    writer = McapWriter(temporary)
    try:
        salvage = _Rewriter(path, writer).run()
        writer.close()
        if salvage.samples or not salvage.damaged:
            temporary.replace(path)
    finally:
        writer.abandon()
        with suppress(FileNotFoundError):
            temporary.unlink()
    return salvage


@dataclass
class _Rewriter:
    """Copies what is intact in one file to a writer.

    Attributes:
        path: of the damaged file.
        writer: of the new one.
    """

    path: Path
    writer: McapWriter
    _problems: list[str] = field(default_factory=list)
    _times: list[NDArray[np.float64]] = field(default_factory=list)
    _layouts: dict[int, TelemetryLayout] = field(default_factory=dict)
    _damaged: bool = False

    def run(self) -> _Salvage:
        """Copy everything."""
        reader = McapReader(self.path)
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            data: mmap.mmap | bytes = b""
            if size:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for op, content in self._intact_records(data):
                if op == Op.CHUNK:
                    self._copy_chunk(reader, content)
                else:
                    with suppress(RecordingError):
                        reader.note(op, content)
        custom: dict[str, str] = {}
        for name, values in reader.metadata:
            if name == RECORD_NAME:
                custom.update(values)
        self._copy_metadata(reader, custom)
        old = [gap_of_custom(values) for name, values in reader.metadata if name == GAP_RECORD_NAME]
        gaps = self._place_gaps([gap for gap in old if gap is not None], custom)
        for gap in gaps:
            self.writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))
        samples = sum(map(len, self._times))
        return _Salvage(self.writer.summary, custom, gaps, samples, self._problems, self._damaged)

    def _intact_records(self, data: mmap.mmap | bytes) -> Iterator[tuple[int, bytes]]:
        """Records outside chunks whose frame is plausible, and chunks that are intact."""
        size = len(data)
        position = len(MAGIC)
        if data[: len(MAGIC)] != MAGIC:
            position = self._resume(data, 0, "the beginning is damaged")
        while position + PREFIX.size <= size:
            op, length = PREFIX.unpack_from(data, position)
            start = position + PREFIX.size
            if op == Op.DATA_END and length == 4:
                return
            if op not in _KNOWN or length > min(MAX_RECORD, size - start):
                reason = f"damaged or cut off at byte {position}"
                position = self._resume(data, position + 1, reason)
                continue
            content = bytes(data[start : start + length])
            if op == Op.CHUNK:
                try:
                    unpack_chunk(content, self.path)
                except RecordingError:
                    reason = f"the chunk at byte {position} is damaged"
                    position = self._resume(data, position + 1, reason)
                    continue
            yield op, content
            position = start + length
        if position < size:
            self._problems.append("the last record is incomplete")
        elif size and not self._problems:
            self._problems.append("the file was not finished")

    def _resume(self, data: mmap.mmap | bytes, position: int, problem: str) -> int:
        """Where the next chunk may begin, the size of the data where there is none."""
        self._problems.append(problem)
        self._damaged = True
        found = data.find(_CHUNK_MARK, position + _MARK_OFFSET)
        return len(data) if found < 0 else found - _MARK_OFFSET

    def _copy_chunk(self, reader: McapReader, content: bytes) -> None:
        body = unpack_chunk(content, self.path)
        try:
            places = reader.places_in_chunk(body)
            index = {}
            for channel, (starts, lengths) in places.items():
                self._know_channel(reader, channel)
                times = [MESSAGE_HEAD.unpack_from(body, start)[2] for start in starts]
                offsets = np.array(starts, np.int64) - PREFIX.size
                index[channel] = np.stack([np.array(times, np.int64), offsets], axis=1)
                if reader.channels[channel].topic == TELEMETRY_TOPIC:
                    self._keep_times(body, starts, lengths)
        except (RecordingError, CdrError, struct.error, KeyError, OverflowError) as error:
            self._problems.append(f"a chunk holds nonsense ({error})")
            self._damaged = True
            return
        if index:
            self.writer.write_body(body, index)

    def _know_channel(self, reader: McapReader, number: int) -> None:
        """Define a channel in the new file; ours have fixed numbers where definitions are lost."""
        if any(channel.id == number for channel in self.writer.summary.channels):
            return
        channel = reader.channels.get(number)
        schema = None if channel is None else reader.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            reader.channels[number], reader.schemas[number] = CHANNELS[number]
            channel, schema = CHANNELS[number]
        self.writer.add_channel(channel, schema)

    def _keep_times(self, body: bytes, starts: list[int], lengths: list[int]) -> None:
        """Controller timestamps of telemetry messages."""
        times = np.empty(len(starts))
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            message = body[start + MESSAGE_HEAD.size : start + length]
            if len(message) not in self._layouts:
                self._layouts[len(message)] = TelemetryLayout.of_message(message)
            layout = self._layouts[len(message)]
            times[i] = struct.unpack_from("<d", message, layout.offset_of("timestamp"))[0]
        self._times.append(times)

    def _copy_metadata(self, reader: McapReader, custom: Mapping[str, str]) -> None:
        if custom:
            self.writer.add_metadata(RECORD_NAME, custom)
        for name, values in reader.metadata:
            if name not in (RECORD_NAME, GAP_RECORD_NAME):
                self.writer.add_metadata(name, values)

    def _place_gaps(self, old: list[Gap], custom: Mapping[str, str]) -> tuple[Gap, ...]:
        """Gaps of the new file: the old ones where they are now, and what damage tore."""
        samples = sum(map(len, self._times))
        if not self._damaged or samples == 0:
            return tuple(gap for gap in old if gap.index < samples)
        time = np.concatenate(self._times)
        known = {(gap.start, gap.end): gap for gap in old}
        rate = info_of_custom(custom, str(self.path)).rate
        found = {gap.index: gap for gap in find_gaps(time, None if rate is None else 1.0 / rate)}
        steps = zip(time[:-1].tolist(), time[1:].tolist(), strict=True)
        for i, step in enumerate(steps, 1):
            if step in known:
                found[i] = replace(known[step], index=i)
            elif i in found:
                found[i] = replace(found[i], cause=DAMAGED)
        return tuple(found[i] for i in sorted(found))
