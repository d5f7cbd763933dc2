"""Recovers bags after a crash, a power cut or damage: `ur_energy recover`, and the logger."""

from __future__ import annotations

import math
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import remove_abandoned, temporary_name
from ur_energy_model.telemetry.bag.cdr import STAMP_OFFSET, CdrError
from ur_energy_model.telemetry.bag.files import bag_files, file_number, in_order_of_time, is_own_bag
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import MESSAGE_HEAD, PREFIX, Summary
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

DAMAGED = "damaged file"
"""Cause of a gap that damage left."""
_ODD_STEP = 1.2
"""Steps of the clock above so many usual ones may be gaps; smaller than the limit of any."""
MAX_PROBLEMS = 100
"""Most problems of a file that are named; more are counted."""


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
    custom: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    samples: int = 0
    problems: list[str] = field(default_factory=list)
    damaged: bool = False


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
    temporary.unlink(missing_ok=True)
    writer = McapWriter(temporary)
    try:
        salvage = _Rewriter(path, writer, seen).run()
        writer.close()
        if salvage.samples or not salvage.damaged:
            temporary.replace(path)
    finally:
        writer.abandon()
        temporary.unlink(missing_ok=True)
    return salvage


class _Rewriter:
    """Copies what is intact in one file to a writer.

    Args:
        path: of the damaged file.
        writer: of the new one.
        seen: what the bag had so far.
    """

    def __init__(self, path: Path, writer: McapWriter, seen: SeenContent) -> None:
        self._reader = McapReader(path, report=self._report)
        self._writer, self._seen = writer, seen
        self._salvage = Salvage(writer.summary)
        self._samples, self._last_time, self._typical = 0, math.nan, math.nan
        self._steps: list[tuple[int, float, float]] = []
        """Indexes of samples behind odd steps of the clock, and the times around these [s]."""
        self._offsets: dict[int, int] = {}
        """Of the controller time in messages, by their sizes."""
        self._gaps: list[Gap] = []
        self._programs: list[tuple[int, str | None]] = []
        self._programs_ahead: list[tuple[int, str | None]] = []
        """Of samples that are not copied yet."""
        self._others: list[tuple[str, Mapping[str, str]]] = []
        self._numbers = SampleNumbers(0)
        self._more_problems = self._repeated = 0

    def run(self) -> Salvage:
        """Copy everything."""
        for body in self._reader.bodies():
            self._take_metadata()
            self._copy_chunk(body)
        self._take_metadata()
        return self._finish()

    def _take_metadata(self) -> None:
        with suppress(RecordingError):
            for name, values in self._reader.take_metadata():
                if name == RECORD_NAME:
                    self._salvage.custom.update(values)
                elif name == GAP_RECORD_NAME:
                    gap = gap_of_custom(values)
                    self._gaps += [] if gap is None else [gap]
                elif name == PROGRAM_RECORD_NAME:
                    program = program_of_custom(values)
                    self._programs_ahead += [] if program is None else [program]
                else:
                    self._others.append((name, values))

    def _finish(self) -> Salvage:
        """Write metadata and gaps."""
        salvage, samples = self._salvage, self._samples
        if salvage.custom:
            self._writer.add_metadata(RECORD_NAME, salvage.custom)
        for index, program in (*self._programs, *self._numbers.rest(self._programs_ahead)):
            self._writer.add_metadata(PROGRAM_RECORD_NAME, custom_of_program(index, program))
        for name, values in self._others:
            self._writer.add_metadata(name, values)
        gaps = tuple(gap for gap in self._gaps if gap.index <= samples)
        if self._repeated:
            text = f"{self._repeated} samples were in the bag twice; each is kept once"
            self._report(text, False)
            gaps = ()
        if (salvage.damaged or self._repeated) and samples:
            rate = None
            with suppress(RecordingError):  # the samples are worth saving without it
                rate = info_of_custom(salvage.custom, str(self._reader.path)).rate
            gaps = tuple(self._found_gaps(None if rate is None else 1.0 / rate))
        for gap in gaps:
            self._writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))
        if self._more_problems:
            salvage.problems.append(f"{self._more_problems} more places are damaged")
        salvage.gaps, salvage.samples = gaps, samples
        return salvage

    def _found_gaps(self, period: float | None) -> Iterator[Gap]:
        """Gaps among the samples that are left: the old ones at their new indexes, and new ones.

        Args:
            period: of the recording [s], None if it is unknown.
        """
        known = {(gap.start, gap.end): gap for gap in self._gaps}
        for index, start, end in self._steps:
            found = find_gaps(np.array([start, end]), period, typical=self._typical)
            new = [replace(gap, cause=DAMAGED) for gap in found]
            for gap in [known[start, end]] if (start, end) in known else new:
                yield replace(gap, index=index)
        for gap in self._gaps:
            if gap.start == self._last_time:
                yield replace(gap, index=self._samples)

    def _report(self, problem: str, damage: bool) -> None:
        self._salvage.damaged |= damage
        if len(self._salvage.problems) < MAX_PROBLEMS:
            self._salvage.problems.append(problem)
        else:
            self._more_problems += 1

    def _copy_chunk(self, body: bytes) -> None:
        try:
            places = self._reader.message_places(body)
            lost = [number for number in places if not self._has_channel(number)]
            if lost:
                body = _without(body, [places.pop(number) for number in lost])
            repeated = self._take_samples(body, self._reader.message_places(body))
            chunk = zlib.crc32(body), len(body)
            if repeated is not None:
                if chunk in self._seen.chunks:
                    return
                body = _without(body, [repeated])
                chunk = zlib.crc32(body), len(body)
            self._seen.chunks.add(chunk)
            index = {}
            for channel, (starts, _) in self._reader.message_places(body).items():
                heads = np.frombuffer(body, np.uint8)[starts[:, None] + np.arange(6, 14)]
                times = heads.view("<i8")[:, 0]  # log times
                index[channel] = np.stack([times, starts - PREFIX.size], axis=1)
        except (RecordingError, CdrError, KeyError, IndexError, OverflowError) as error:
            self._report(f"a chunk is malformed ({error})", True)
            return
        if index:
            self._writer.write_body(body, index)

    def _take_samples(self, body: bytes, places: Mapping[int, Places]) -> Places | None:
        """Keep the times of the new samples of a chunk; returns the places of the repeated ones."""
        channels = self._reader.channels
        found = [places[n] for n in places if channels[n].topic.endswith(TELEMETRY_TOPIC)]
        if not found:
            return None
        starts, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
        times, stamps = self._times_of(body, starts, lengths)
        new = self._seen.samples.are_new(times, stamps)
        ahead = self._programs_ahead
        if self._salvage.damaged:  # behind damage, only the number of a chunk is known
            ahead[:] = [(self._numbers.recorded, name) for _, name in ahead]
        self._programs += self._numbers.count(ahead, new, stamps)
        self._note_steps(times[new])
        if new.all():
            return None
        self._repeated += int(np.count_nonzero(~new))
        return starts[~new], lengths[~new]

    def _note_steps(self, times: Array) -> None:
        """Keep the odd steps of the clock in front of and among the next samples [n], s."""
        if not len(times):
            return
        edges = np.append(self._last_time, times)
        steps = np.diff(edges)
        if math.isnan(self._typical):
            self._typical = typical_step(steps)
        odd = np.flatnonzero((steps < 0) | (steps > _ODD_STEP * self._typical))
        self._steps += [(self._samples + i, *edges[i : i + 2].tolist()) for i in odd.tolist()]
        self._samples, self._last_time = self._samples + len(times), float(times[-1])

    def _has_channel(self, number: int) -> bool:
        """Define a channel in the new file; a lost definition of ours follows from its number.

        Returns:
            False if the definition of another topic is lost.
        """
        if number in self._writer.summary.counts:
            return True
        reader = self._reader
        channel = reader.channels.get(number)
        schema = None if channel is None else reader.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            if number not in TOPICS:
                problem = f"the definition of channel {number} is lost, with its messages"
                if problem not in self._salvage.problems:
                    self._report(problem, False)
                return False
            namespace = name_of_custom(self._salvage.custom or self._seen.custom, "namespace")
            channel, schema = topics_in(namespace)[number].definitions(number)
            reader.channels[number], reader.schemas[number] = channel, schema
        self._writer.add_channel(channel, schema)
        return True

    def _times_of(
        self, body: bytes, starts: Indices, lengths: Indices
    ) -> tuple[Array, NDArray[np.int64]]:
        """Controller times [n], s, and stamps [n], ns, of telemetry messages."""
        times, stamps = np.empty(len(starts)), np.empty(len(starts), np.int64)
        data = np.frombuffer(body, np.uint8)
        for length in np.unique(lengths).tolist():
            rows = lengths == length
            firsts = starts[rows, None] + MESSAGE_HEAD.size
            if length not in self._offsets:
                message = data[firsts[0, 0] : firsts[0, 0] + length - MESSAGE_HEAD.size].tobytes()
                if len(message) > MAX_MESSAGE:
                    raise CdrError("messages are no telemetry")
                self._reader.budget.spend(items=LAYOUT_ITEMS)
                layout = TelemetryLayout.of_message(message)
                self._offsets[length] = layout.offset_of("timestamp")
            places = np.arange(8)
            times[rows] = data[firsts + self._offsets[length] + places].view("<f8")[:, 0]
            stamp = data[firsts + STAMP_OFFSET + places].view([("s", "<i4"), ("ns", "<u4")])[:, 0]
            stamps[rows] = stamp["s"].astype(np.int64) * 1_000_000_000 + stamp["ns"]
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


# Recovering whole bags.


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
    topics: dict[str, TopicEntry] = {}
    gaps: list[Gap] = []
    custom = {key: value for key, value in known_custom.items() if key == REMOVED}
    first = 0
    for file, salvage in salvages:
        summary = salvage.summary
        entries.append(FileEntry.of_summary(file.name, summary))
        schemas = {schema.id: schema.name for schema in summary.schemas}
        for channel in summary.channels:
            before = topics[channel.topic].messages if channel.topic in topics else 0
            topics[channel.topic] = TopicEntry(
                channel.topic,
                schemas.get(channel.schema_id, ""),
                channel.metadata.get("topic_type_hash", ""),
                before + summary.counts[channel.id],
                is_latched(channel.metadata.get("offered_qos_profiles", "")),
            )
        gaps += [replace(gap, index=gap.index + first) for gap in salvage.gaps]
        custom = {**salvage.custom, **custom}
        first += salvage.samples
    problems = _faults_of_old_metadata(folder, first)
    custom["gaps"] = gaps_to_text(gaps)
    BagMetadata(entries, list(topics.values()), custom).write(folder)
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
