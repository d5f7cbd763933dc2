"""Recovers bags after a crash, a power cut or damage: `ur_energy recover`, and the logger."""

from __future__ import annotations

import socket
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import remove_abandoned, temporary_name
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET, CdrError
from ur_energy_model.telemetry.bag.file_contents import has_summary
from ur_energy_model.telemetry.bag.files import bag_files, file_number, in_order_of_time, is_own_bag
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import (
    MESSAGE_HEAD,
    PREFIX,
    McapDefinitions,
    Op,
    Summary,
)
from ur_energy_model.telemetry.bag.mcap_reader import IntactRecords, McapReader, Positions
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter, is_written
from ur_energy_model.telemetry.bag.message_decoder import (
    MAX_LAYOUTS,
    MAX_MESSAGE,
    SampleNumbers,
    SeenSamples,
)
from ur_energy_model.telemetry.bag.message_encoder import TOPICS, topics_in
from ur_energy_model.telemetry.bag.metadata import (
    FILE_NAME,
    GAP_RECORD_NAME,
    HOST,
    MAX_GAPS,
    MAX_PROVENANCE,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    REMOVED,
    BagMetadata,
    FileEntry,
    TopicEntry,
    custom_of_gap,
    custom_of_program,
    gap_of_custom,
    gaps_to_text,
    info_of_custom,
    is_latched,
    name_of_custom,
    program_of_custom,
    read_metadata,
)
from ur_energy_model.telemetry.samples import Gap, find_gaps, typical_step
from ur_energy_model.typing import Array, Indices

# Gaps of a file that was rewritten from what is intact in it.

DAMAGED = "damaged file"
_IN_MEMORY = 32 << 20
_BLOCK = 1_000_000
"""Samples that are looked at together."""


class SampleTimes:
    """Controller timestamps of a recording [s]; a long one is kept in a temporary file."""

    def __init__(self) -> None:
        self._count = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115

    def __len__(self) -> int:
        return self._count

    def append(self, times: Array) -> None:
        """Append times [n]."""
        self._file.write(np.ascontiguousarray(times, dtype=float).tobytes())
        self._count += len(times)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Index of the first sample of each block, and its times; a block overlaps the next one."""
        for first in range(0, max(self._count - 1, 1), _BLOCK):
            self._file.seek(8 * first)
            yield first, np.frombuffer(self._file.read(8 * (_BLOCK + 1)))
        self._file.seek(0, 2)

    def close(self) -> None:
        """Release memory or file."""
        self._file.close()


def place_gaps(times: SampleTimes, old: Sequence[Gap], rate: float | None) -> tuple[Gap, ...]:
    """Gaps among the samples that are left: the old ones at their new indexes, and new ones.

    Args:
        times: of the samples that are left.
        old: gaps of the recording.
        rate: of the recording [Hz], None if it is unknown.
    """
    known = {(gap.start, gap.end): gap for gap in old}
    starts = np.array(sorted({gap.start for gap in old}))
    period = None if rate is None else 1.0 / rate
    typical: float | None = None
    out: list[Gap] = []
    for first, time in times.blocks():
        if typical is None:
            typical = typical_step(np.diff(time))
        found = {gap.index: gap for gap in find_gaps(time, period, typical=typical)}
        indexes = {*found, *(np.flatnonzero(np.isin(time[:-1], starts)) + 1).tolist()}
        for index in sorted(indexes):
            gap = known.get((float(time[index - 1]), float(time[index])))
            if gap is None and index in found:
                gap = replace(found[index], cause=DAMAGED)
            if gap is not None:
                out.append(replace(gap, index=first + index))
    at_end = [gap for gap in old if len(times) and gap.start == time[-1]]
    return (*out, *(replace(gap, index=len(times)) for gap in at_end))


# Rewrites a damaged or unfinished storage file with what is intact in it.

MAX_PROBLEMS = 100
"""Most problems of a file that are named; more are counted."""
MAX_OTHERS = 10_000
"""Most metadata records of other writers that are kept."""


@dataclass
class Salvage:
    """What is intact in a file that was rewritten.

    Attributes:
        summary: of the file that holds it.
        custom: provenance found in the file.
        gaps: of the file, indexes from its first sample.
        samples: telemetry messages.
        problems: what was not intact.
        damaged: whether more than its end is missing.
    """

    summary: Summary
    custom: Mapping[str, str]
    gaps: tuple[Gap, ...]
    samples: int
    problems: list[str]
    damaged: bool


@dataclass
class SeenContent:
    """What the files of a bag had so far: samples, and checksums and sizes of chunks.

    Attributes:
        custom: provenance of the bag.
    """

    custom: Mapping[str, str] = field(default_factory=dict)
    samples: SeenSamples = field(default_factory=SeenSamples)
    chunks: set[tuple[int, int]] = field(default_factory=set)


def rewrite(path: Path, seen: SeenContent) -> Salvage:
    """Rewrite a file with what is intact in it; it is left alone if nothing is.

    Args:
        path: of the file.
        seen: what the files before it had, and is left out here; brought up to date.
    """
    remove_abandoned(path.parent)
    temporary = temporary_name(path, "recovering")
    with suppress(FileNotFoundError):
        temporary.unlink()
    writer = McapWriter(temporary)
    try:
        salvage = _Rewriter(path, writer, seen).run()
        writer.close()
        if salvage.samples or not salvage.damaged:
            temporary.replace(path)
    finally:
        writer.abandon()
        with suppress(FileNotFoundError):
            temporary.unlink()
    return salvage


_OWN = (RECORD_NAME, GAP_RECORD_NAME, PROGRAM_RECORD_NAME)


@dataclass
class _Metadata:
    """Metadata of a file: about the recording, gaps, and that of other writers."""

    custom: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    programs: list[tuple[int, str | None]] = field(default_factory=list)
    """Of samples that are not copied yet."""
    others: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    left_out: int = 0

    def keep(self, records: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Keep what is within the limits, count the rest."""
        for name, values in records:
            gap = gap_of_custom(values) if name == GAP_RECORD_NAME else None
            program = program_of_custom(values) if name == PROGRAM_RECORD_NAME else None
            if name == RECORD_NAME and len(self.custom) + len(values) <= MAX_PROVENANCE:
                self.custom.update(values)
            elif gap is not None and len(self.gaps) < MAX_GAPS:
                self.gaps.append(gap)
            elif program is not None and len(self.programs) < MAX_GAPS:
                self.programs.append(program)
            elif name not in _OWN and len(self.others) < MAX_OTHERS:
                self.others.append((name, values))
            else:
                self.left_out += 1


@dataclass
class _Rewriter:
    """Copies what is intact in one file to a writer.

    Attributes:
        path: of the damaged file.
        writer: of the new one.
        seen: what the bag had so far.
    """

    path: Path
    writer: McapWriter
    seen: SeenContent
    _problems: list[str] = field(default_factory=list)
    _times: SampleTimes = field(default_factory=SampleTimes)
    _offsets: dict[int, int] = field(default_factory=dict)
    _metadata: _Metadata = field(default_factory=_Metadata)
    _numbers: SampleNumbers = field(default_factory=lambda: SampleNumbers(0))
    _programs: list[tuple[int, str | None]] = field(default_factory=list)
    _more_problems: int = 0
    _repeated: int = 0
    _damaged: bool = False

    def run(self) -> Salvage:
        """Copy everything."""
        reader = McapReader(self.path)
        try:
            for op, content in IntactRecords(self.path, self._report):
                with suppress(RecordingError):
                    if op == Op.CHUNK:
                        self._copy_chunk(reader, content)
                    else:
                        reader.definitions.note(op, content)
                    self._metadata.keep(reader.definitions.take_metadata())
            return self._finish()
        finally:
            self._times.close()

    def _finish(self) -> Salvage:
        """Write metadata and gaps."""
        custom = self._metadata.custom
        if custom:
            self.writer.add_metadata(RECORD_NAME, custom)
        for index, program in (*self._programs, *self._numbers.rest(self._metadata.programs)):
            self.writer.add_metadata(PROGRAM_RECORD_NAME, custom_of_program(index, program))
        for name, values in self._metadata.others:
            self.writer.add_metadata(name, values)
        if self._metadata.left_out:
            self._report(f"{self._metadata.left_out} metadata records are left out", False)
        samples = len(self._times)
        gaps = tuple(gap for gap in self._metadata.gaps if gap.index <= samples)
        if self._repeated:
            self._report(
                f"{self._repeated} samples were in the bag twice; each is kept once", False
            )
            gaps = ()
        if (self._damaged or self._repeated) and samples:
            rate = None
            with suppress(RecordingError):  # the samples are worth saving without it
                rate = info_of_custom(custom, str(self.path)).rate
            gaps = place_gaps(self._times, self._metadata.gaps, rate)
        for gap in gaps:
            self.writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))
        if self._more_problems:
            self._problems.append(f"{self._more_problems} more places are damaged")
        return Salvage(self.writer.summary, custom, gaps, samples, self._problems, self._damaged)

    def _report(self, problem: str, damage: bool) -> None:
        self._damaged |= damage
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more_problems += 1

    def _copy_chunk(self, reader: McapReader, body: bytes) -> None:
        try:
            places = reader.message_positions(body)
            lost = [n for n in places if not self._know_channel(reader.definitions, n)]
            if lost:
                body = _without(body, [places[n] for n in lost])
                places = reader.message_positions(body)
            repeated = self._take_samples(reader, body, places)
            if repeated is not None:
                chunk = zlib.crc32(body), len(body)
                if chunk in self.seen.chunks:
                    return
                body = _without(body, [repeated])
                places = reader.message_positions(body)
            self.seen.chunks.add((zlib.crc32(body), len(body)))
            index = {}
            for channel, (starts, _) in places.items():
                times = [MESSAGE_HEAD.unpack_from(body, start)[2] for start in starts.tolist()]
                index[channel] = np.stack([np.array(times, np.int64), starts - PREFIX.size], axis=1)
        except (RecordingError, CdrError, struct.error, KeyError, OverflowError) as error:
            self._report(f"a chunk is malformed ({error})", True)
            return
        if index:
            self.writer.write_body(body, index)

    def _take_samples(
        self, reader: McapReader, body: bytes, places: Mapping[int, Positions]
    ) -> Positions | None:
        """Keep the times of the new samples of a chunk; returns the places of the repeated ones."""
        found = [
            places[number]
            for number in places
            if reader.definitions.channels[number].topic.endswith(TELEMETRY_TOPIC)
        ]
        if not found:
            return None
        starts, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
        times, stamps = self._times_of(body, starts.tolist(), lengths.tolist())
        new = self.seen.samples.are_new(times, stamps)
        programs = self._metadata.programs
        if self._damaged:  # behind damage, the number of a sample is not known; that of a chunk is
            programs[:] = [(self._numbers.recorded, name) for _, name in programs]
        self._programs += self._numbers.count(programs, new, stamps)
        self._times.append(times[new])
        if new.all():
            return None
        self._repeated += int(np.count_nonzero(~new))
        return starts[~new], lengths[~new]

    def _know_channel(self, definitions: McapDefinitions, number: int) -> bool:
        """Define a channel in the new file; a lost definition of ours follows from its number.

        Returns:
            False if the definition of another topic is lost.
        """
        if number in self.writer.summary.counts:
            return True
        channel = definitions.channels.get(number)
        schema = None if channel is None else definitions.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            if number not in TOPICS:
                problem = f"the definition of channel {number} is lost, with its messages"
                if problem not in self._problems:
                    self._report(problem, False)
                return False
            namespace = name_of_custom(self._metadata.custom or self.seen.custom, "namespace")
            channel, schema = topics_in(namespace)[number].definitions(number)
            definitions.channels[number], definitions.schemas[number] = channel, schema
        self.writer.add_channel(channel, schema)
        return True

    def _times_of(
        self, body: bytes, starts: list[int], lengths: list[int]
    ) -> tuple[Array, NDArray[np.int64]]:
        """Controller times [n], s, and stamps [n], ns, of telemetry messages."""
        times, stamps = np.empty(len(starts)), np.empty(len(starts), np.int64)
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            first = start + MESSAGE_HEAD.size
            if length not in self._offsets:
                message = body[first : start + length]
                if len(message) > MAX_MESSAGE or len(self._offsets) == MAX_LAYOUTS:
                    raise CdrError("messages are no telemetry")
                layout = TelemetryLayout.of_message(message)
                self._offsets[length] = layout.offset_of("timestamp")
            times[i] = struct.unpack_from("<d", body, first + self._offsets[length])[0]
            seconds, nanoseconds = STAMP.unpack_from(body, first + STAMP_OFFSET)
            stamps[i] = seconds * 1_000_000_000 + nanoseconds
        return times, stamps


def _without(body: bytes, messages: Sequence[tuple[Indices, Indices]]) -> bytes:
    """Records of a chunk without some messages, given by offsets and lengths of their contents."""
    lost = sorted(
        (start - PREFIX.size, start + length)
        for starts, lengths in messages
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    edges = [0, *(edge for span in lost for edge in span), len(body)]
    return b"".join(body[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))


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
    salvages: list[tuple[Path, Salvage]] = []
    problems: list[str] = []
    seen = SeenContent()
    with suppress(RecordingError):
        seen.custom = read_metadata(path).custom
    try:
        for file in files:
            salvage = rewrite(file, seen)
            seen.custom = {**salvage.custom, **seen.custom}
            problems += [f"{file.name}: {problem}" for problem in salvage.problems]
            if salvage.samples or not salvage.damaged:
                salvages.append((file, salvage))
            else:
                problems.append(f"{file.name}: nothing in it is readable, it is left out")
        samples = sum(salvage.samples for _, salvage in salvages)
        if samples == 0:
            raise RecordingError(path, "holds no sample that could be read", "record again")
        if path.is_dir():
            problems += _rebuild_metadata(path, salvages, seen.custom)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be rewritten ({reason})", "check the disk") from None
    finally:
        seen.samples.close()
    return Recovery(samples, len(salvages), tuple(problems))


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
    if all(map(has_summary, files)):
        return "finished", writer
    known = None not in written and host == socket.gethostname()
    return "killed" if known else "unknown", writer


def recover_killed(
    folder: Path, report: Callable[[str, bool], None], stopping: Callable[[], bool]
) -> None:
    """Recover the bags of a folder whose recorder was killed.

    Bags that are being written are left alone, and those of which this cannot be told: of another
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
            if not is_own_bag(bag):
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


def _files_of(folder: Path) -> list[Path]:
    """Files of a bag in the order of its metadata, by number where that does not list all."""
    files = sorted(folder.glob("*.mcap"), key=file_number)
    with suppress(RecordingError):
        listed = [folder / entry.name for entry in read_metadata(folder).files]
        if set(listed) == set(files):
            return listed
    return files


def _rebuild_metadata(
    folder: Path, salvages: list[tuple[Path, Salvage]], known_custom: Mapping[str, str]
) -> list[str]:
    """Write metadata.yaml; returns the problems of the old one."""
    entries: list[FileEntry] = []
    counts: dict[str, int] = {}
    known: dict[str, TopicEntry] = {}
    gaps: list[Gap] = []
    custom = {key: value for key, value in known_custom.items() if key == REMOVED}
    first = 0
    for file, salvage in salvages:
        summary = salvage.summary
        entries.append(FileEntry.of_summary(file.name, summary))
        schemas = {schema.id: schema.name for schema in summary.schemas}
        for channel in summary.channels:
            counts[channel.topic] = counts.get(channel.topic, 0) + summary.counts[channel.id]
            known[channel.topic] = TopicEntry(
                channel.topic,
                schemas.get(channel.schema_id, ""),
                channel.metadata.get("topic_type_hash", ""),
                counts[channel.topic],
                is_latched(channel.metadata.get("offered_qos_profiles", "")),
            )
        gaps += [replace(gap, index=gap.index + first) for gap in salvage.gaps]
        custom = {**salvage.custom, **custom}
        first += salvage.samples
    problems = _faults_of_old_metadata(folder, first)
    custom["gaps"] = gaps_to_text(gaps)
    BagMetadata(entries, list(known.values()), custom).write(folder)
    return problems


def _faults_of_old_metadata(folder: Path, samples: int) -> list[str]:
    if not (folder / FILE_NAME).exists():
        return [f"{FILE_NAME} was missing"]
    try:
        counted = read_metadata(folder).samples
    except RecordingError:
        return [f"{FILE_NAME} was not readable"]
    if counted > samples:
        return [f"{counted - samples} of the {counted} samples that {FILE_NAME} counts are lost"]
    return []
