"""Recovers bags after a crash, a power cut or damage: `ur_energy recover`, and the logger."""

from __future__ import annotations

import math
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import remove_abandoned, temporary_name
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.files import bag_files, file_number, in_order_of_time
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import MESSAGE_HEAD, PREFIX
from ur_energy_model.telemetry.bag.mcap_reader import McapReader, Places, summary_of
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter, is_written
from ur_energy_model.telemetry.bag.message_decoder import (
    LAYOUT_ITEMS,
    MAX_MESSAGE,
    SampleNumbers,
    SeenSamples,
)
from ur_energy_model.telemetry.bag.message_encoder import TOPICS, topics_in
from ur_energy_model.telemetry.bag.metadata import (
    FILE_NAME,
    GAP_RECORD_NAME,
    HOST,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    REMOVED,
    BagMetadata,
    FileEntry,
    TopicEntry,
    custom_of_gap,
    custom_of_program,
    gaps_to_text,
    info_of_custom,
    is_latched,
    name_of_custom,
    placed_record,
    read_metadata,
)
from ur_energy_model.telemetry.samples import Gap, find_gaps, typical_step
from ur_energy_model.typing import Indices

DAMAGED = "damaged file"
"""Cause of a gap that damage left."""
_ODD_STEP = 1.2
"""Steps of the clock above so many usual ones may be gaps; smaller than the limit of any."""
MAX_PROBLEMS = 100
"""Most problems of a file that are named."""


@dataclass(frozen=True)
class Recovery:
    """Result of a recovery.

    Attributes:
        samples: number of readable samples.
        files: number of files of the bag.
        problems: what was damaged, a line each.
    """

    samples: int
    files: int
    problems: tuple[str, ...]


def recover_bag(path: Path) -> Recovery:
    """Rebuild the files of a bag from what is intact in them, and its metadata.yaml.

    Each file is rewritten beside the old one and replaces it once it is complete.

    Args:
        path: rosbag2 directory, or a single .mcap file.

    Raises:
        RecordingError: no bag, still being recorded, nothing readable in it, or the disk fails.
    """
    files = [path] if path.is_file() else in_order_of_time(_files_of(path))
    if not files:
        bag_files(path)  # raises if the path is the problem
        raise RecordingError(path, "has no .mcap files", "name a bag that ur_energy recorded")
    if any(is_written(file) for file in files):
        raise RecordingError(path, "is still being recorded", "stop the recording first")
    kept: list[_RecoveredFile] = []
    problems: list[str] = []
    custom: Mapping[str, str] = {}
    with suppress(RecordingError):
        custom = read_metadata(path).custom
    seen, chunks = SeenSamples(), set[tuple[int, int]]()
    try:
        for path_of_file in files:
            file = _RecoveredFile(path_of_file, custom, seen, chunks)
            file.rewrite()
            custom = {**file.custom, **custom}
            problems += [f"{path_of_file.name}: {problem}" for problem in file.problems]
            if file.is_kept:
                kept.append(file)
            else:
                problems.append(f"{path_of_file.name}: nothing in it is readable, it is left out")
        samples = sum(file.samples for file in kept)
        if samples == 0:
            raise RecordingError(path, "holds no sample that could be read", "record again")
        if path.is_dir():
            if not (path / FILE_NAME).exists():
                problems.append(f"{FILE_NAME} was missing")
            else:
                try:
                    counted = read_metadata(path).samples
                except RecordingError:
                    problems.append(f"{FILE_NAME} was not readable")
                else:
                    if counted > samples:
                        lost = f"{counted - samples} of the {counted} samples"
                        problems.append(f"{lost} that {FILE_NAME} counts are lost")
            _write_metadata(path, kept, custom)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be rewritten ({reason})", "check the disk") from None
    return Recovery(samples, len(kept), tuple(problems))


def _files_of(folder: Path) -> list[Path]:
    """Files of a bag in the order of its metadata, by number where that does not list all."""
    files = sorted(folder.glob("*.mcap"), key=file_number)
    with suppress(RecordingError):
        listed = [folder / entry.name for entry in read_metadata(folder).files]
        if set(listed) == set(files):
            return listed
    return files


def _write_metadata(
    folder: Path, files: Sequence[_RecoveredFile], known: Mapping[str, str]
) -> None:
    topics: dict[str, TopicEntry] = {}
    gaps: list[Gap] = []
    custom = {key: value for key, value in known.items() if key == REMOVED}
    first = 0
    for file in files:
        schemas = {schema.id: schema.name for schema in file.summary.schemas}
        for channel in file.summary.channels:
            before = topics[channel.topic].messages if channel.topic in topics else 0
            topics[channel.topic] = TopicEntry(
                channel.topic,
                schemas.get(channel.schema_id, ""),
                channel.metadata.get("topic_type_hash", ""),
                before + file.summary.counts[channel.id],
                is_latched(channel.metadata.get("offered_qos_profiles", "")),
            )
        gaps += [replace(gap, index=gap.index + first) for gap in file.gaps]
        custom = {**file.custom, **custom}
        first += file.samples
    entries = [FileEntry.of_summary(file.path.name, file.summary) for file in files]
    custom["gaps"] = gaps_to_text(gaps)
    BagMetadata(entries, list(topics.values()), custom).write(folder)


class _RecoveredFile:
    """Rewrites one file with what is intact in it; it is left alone if nothing is.

    `known` is the bag's provenance. `seen` and `chunks` are samples, and checksums and sizes of
    chunks, of the files before it: they are left out here, and brought up to date.
    """

    def __init__(
        self,
        path: Path,
        known: Mapping[str, str],
        seen: SeenSamples,
        chunks: set[tuple[int, int]],
    ) -> None:
        self.path, self._known, self._seen, self._chunks = path, known, seen, chunks
        self.custom: dict[str, str] = {}
        self.gaps: tuple[Gap, ...] = ()
        self.samples = 0
        self.problems: list[str] = []
        self._reader = McapReader(path, report=self._report)
        self._damaged = False
        self._last_time, self._typical = math.nan, math.nan
        self._steps: list[tuple[int, float, float]] = []
        """Indexes of samples behind odd steps of the clock, and the times around these [s]."""
        self._layouts: dict[int, TelemetryLayout] = {}
        """By the sizes of messages."""
        self._old_gaps: list[Gap] = []
        self._programs: list[tuple[int, str | None]] = []
        self._programs_ahead: list[tuple[int, str | None]] = []
        """Of samples that are not copied yet."""
        self._others: list[tuple[str, Mapping[str, str]]] = []
        self._numbers = SampleNumbers(0)
        self._repeated = 0

    @property
    def is_kept(self) -> bool:
        """Whether anything in it is worth keeping."""
        return bool(self.samples) or not self._damaged

    def rewrite(self) -> None:
        """Copy everything that is intact to a new file, which replaces the old one."""
        remove_abandoned(self.path.parent)
        temporary = temporary_name(self.path, "recovering")
        temporary.unlink(missing_ok=True)
        self._writer = McapWriter(temporary)
        self.summary = self._writer.summary
        try:
            for body in self._reader.bodies():
                self._take_metadata()
                self._copy_chunk(body)
            self._take_metadata()
            self._write_records()
            self._writer.close()
            if self.is_kept:
                temporary.replace(self.path)
        finally:
            self._writer.abandon()
            temporary.unlink(missing_ok=True)

    def _take_metadata(self) -> None:
        with suppress(RecordingError):
            for name, values in self._reader.take_metadata():
                if name == RECORD_NAME:
                    self.custom.update(values)
                elif name not in (GAP_RECORD_NAME, PROGRAM_RECORD_NAME):
                    self._others.append((name, values))
                for index, what in placed_record(name, values):
                    if isinstance(what, Gap):
                        self._old_gaps.append(what)
                    else:
                        self._programs_ahead.append((index, what))

    def _write_records(self) -> None:
        """Write provenance, programs and gaps behind the chunks."""
        if self.custom:
            self._writer.add_metadata(RECORD_NAME, self.custom)
        for index, program in (*self._programs, *self._numbers.rest(self._programs_ahead)):
            self._writer.add_metadata(PROGRAM_RECORD_NAME, custom_of_program(index, program))
        for name, values in self._others:
            self._writer.add_metadata(name, values)
        self.gaps = tuple(gap for gap in self._old_gaps if gap.index <= self.samples)
        if self._repeated:
            text = f"{self._repeated} samples were in the bag twice; each is kept once"
            self._report(text, False)
            self.gaps = ()
        if (self._damaged or self._repeated) and self.samples:
            rate = None
            with suppress(RecordingError):  # the samples are worth saving without it
                rate = info_of_custom(self.custom, str(self.path)).rate
            self.gaps = tuple(self._found_gaps(None if rate is None else 1.0 / rate))
        for gap in self.gaps:
            self._writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))

    def _found_gaps(self, period: float | None) -> Iterator[Gap]:
        """Gaps among the samples that are left: the old ones at their new indexes, and new ones.

        Args:
            period: of the recording [s], None if it is unknown.
        """
        known = {(gap.start, gap.end): gap for gap in self._old_gaps}
        for index, start, end in self._steps:
            found = find_gaps(np.array([start, end]), period, typical=self._typical)
            new = [replace(gap, cause=DAMAGED) for gap in found]
            for gap in [known[start, end]] if (start, end) in known else new:
                yield replace(gap, index=index)
        for gap in self._old_gaps:
            if gap.start == self._last_time:
                yield replace(gap, index=self.samples)

    def _report(self, problem: str, damage: bool) -> None:
        self._damaged |= damage
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def _copy_chunk(self, body: bytes) -> None:
        """Copy a chunk without messages of lost channels, and without repeated samples."""
        try:
            places = self._reader.message_places(body)
            lost = [number for number in places if not self._has_channel(number)]
            if lost:
                body = _without(body, [places[number] for number in lost])
                places = self._reader.message_places(body)
            chunk = zlib.crc32(body), len(body)
            repeated = self._take_samples(body, places)
            if repeated is not None:
                if chunk in self._chunks:
                    return
                body = _without(body, [repeated])
                places = self._reader.message_places(body)
                chunk = zlib.crc32(body), len(body)
            self._chunks.add(chunk)
            index = {
                channel: np.stack([_log_times(body, starts), starts - PREFIX.size], axis=1)
                for channel, (starts, _) in places.items()
            }
        except (RecordingError, CdrError, KeyError, IndexError, OverflowError) as error:
            self._report(f"a chunk is malformed ({error})", True)
            return
        if index:
            self._writer.write_body(body, index)

    def _has_channel(self, number: int) -> bool:
        """Define a channel in the new file; a lost definition of ours follows from its number.

        Returns:
            False if the definition of another topic is lost.
        """
        if number in self.summary.counts:
            return True
        reader = self._reader
        channel = reader.channels.get(number)
        schema = None if channel is None else reader.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            if number not in TOPICS:
                problem = f"the definition of channel {number} is lost, with its messages"
                if problem not in self.problems:
                    self._report(problem, False)
                return False
            namespace = name_of_custom(self.custom or self._known, "namespace")
            channel, schema = topics_in(namespace)[number].definitions(number)
            reader.channels[number], reader.schemas[number] = channel, schema
        self._writer.add_channel(channel, schema)
        return True

    def _take_samples(self, body: bytes, places: Mapping[int, Places]) -> Places | None:
        """Count the new samples of a chunk; returns the places of the repeated ones."""
        channels = self._reader.channels
        found = [places[n] for n in places if channels[n].topic.endswith(TELEMETRY_TOPIC)]
        if not found:
            return None
        starts, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
        data = np.frombuffer(body, np.uint8)
        times, stamps = np.empty(len(starts)), np.empty(len(starts), np.int64)
        for length in np.unique(lengths).tolist():
            if length > MAX_MESSAGE:
                raise CdrError("messages are no telemetry")
            rows = lengths == length
            messages = data[starts[rows][:, None] + np.arange(MESSAGE_HEAD.size, length)]
            if length not in self._layouts:
                self._reader.budget.spend(items=LAYOUT_ITEMS)
                self._layouts[length] = TelemetryLayout.of_message(messages[0].tobytes())
            stamps[rows], columns = self._layouts[length].decode(messages, ["timestamp"])
            times[rows] = columns["timestamp"]
        new = self._seen.are_new(times, stamps)
        ahead = self._programs_ahead
        if self._damaged:  # behind damage, only the number of a chunk is known
            ahead[:] = [(self._numbers.recorded, name) for _, name in ahead]
        self._programs += self._numbers.count(ahead, new, stamps)
        if new.any():  # odd steps of the clock may be gaps
            edges = np.append(self._last_time, times[new])
            steps = np.diff(edges)
            if math.isnan(self._typical):
                self._typical = typical_step(steps)
            odd = np.flatnonzero((steps < 0) | (steps > _ODD_STEP * self._typical)).tolist()
            self._steps += [(self.samples + i, *edges[i : i + 2].tolist()) for i in odd]
            self.samples, self._last_time = self.samples + len(steps), float(edges[-1])
        if new.all():
            return None
        self._repeated += int(np.count_nonzero(~new))
        return starts[~new], lengths[~new]


def _log_times(body: bytes, starts: Indices) -> NDArray[np.int64]:
    """Log times [n] of messages whose contents start at these places."""
    data = np.frombuffer(body, np.uint8)[starts[:, None] + np.arange(6, 14)]
    times: NDArray[np.int64] = data.view("<i8")[:, 0]
    return times


def _without(body: bytes, messages: Sequence[Places]) -> bytes:
    """Records of a chunk without some messages, given by offsets and lengths of their contents."""
    lost = sorted(
        (start - PREFIX.size, start + length)
        for starts, lengths in messages
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    edges = [0, *(edge for span in lost for edge in span), len(body)]
    return b"".join(body[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))


# Bags whose recorder was killed.


def bag_state(bag: Path) -> tuple[Literal["finished", "written", "killed", "unknown"], str]:
    """Whether a bag is finished, being written, or its recorder was killed; and its computer.

    This is unknown of a bag without end of another computer, or on a file system without locks.

    Raises:
        OSError: it cannot be read.
        RecordingError: its metadata cannot be read.
    """
    files = _files_of(bag)
    host = read_metadata(bag).custom.get(HOST)
    writer = "another computer" if host is None else f"computer {host}"
    written = {is_written(file) for file in files}
    if True in written:
        return "written", writer
    if all(map(summary_of, files)):
        return "finished", writer
    known = None not in written and host == socket.gethostname()
    return "killed" if known else "unknown", writer


def recover_killed(
    folder: Path, report: Callable[[str, bool], None], stopping: Callable[[], bool]
) -> None:
    """Recover the bags of a folder whose recorder was killed.

    Bags that are being written are left alone, and those that may be: of another
    computer, or on a file system without locks.

    Args:
        folder: of bags.
        report: called with a line about each bag, and whether it needs attention.
        stopping: returns whether to end before the next bag.
    """
    for bag in sorted(folder.glob("*")):
        if stopping():
            return
        try:
            own = False
            with suppress(RecordingError):
                own = bag.is_dir() and "package_version" in read_metadata(bag).custom
            if not own:
                continue
            state, writer = bag_state(bag)
            if state in ("finished", "written"):
                continue
            if state == "unknown":
                text = f"{bag} was not finished, and {writer} may still write it"
                report(f"{text}; if not, complete it with 'ur_energy recover'", True)
                continue
            recovery = recover_bag(bag)
        except RecordingError as error:
            report(f"{bag} was not finished, and cannot be completed: {error.problem}", True)
        except OSError:
            continue  # it was removed meanwhile
        else:
            report(f"{bag} was not finished; {recovery.samples} samples are recovered", False)
