# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recovers bags after a crash, a power cut or damage: `ur_energy recover`, and the logger."""

from __future__ import annotations

import math
import re
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import is_locked, remove_abandoned, temporary_name
from ur_energy_model.telemetry.bag.decoding import TelemetryDecoder
from ur_energy_model.telemetry.bag.files import bag_files, file_number, in_order_of_time
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock, blocks_at, summary_of
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY, McapWriter
from ur_energy_model.telemetry.bag.messages import TELEMETRY_TOPIC, TOPICS, topics_in
from ur_energy_model.telemetry.bag.metadata import (
    FILE_NAME,
    GAP_RECORD_NAME,
    HOST,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    REMOVED,
    BagMetadata,
    FileEntry,
    Note,
    TopicEntry,
    custom_of_note,
    gaps_to_text,
    info_of_custom,
    is_latched,
    name_of_custom,
    notes_of_custom,
    read_metadata,
)
from ur_energy_model.telemetry.bag.storage import PACKED
from ur_energy_model.telemetry.gaps import Gap, GapRule, typical_step
from ur_energy_model.typing import Array

DAMAGED = "damaged file"  # cause of a gap that damage left
MAX_PROBLEMS = 100  # most kinds of problems of a file that are named
_MOST_BLOCKS = 100_000
"""Most groups of messages of one size in a chunk; only a hostile one has more."""
_NUMBER = re.compile(r"\d+")
_OTHER_KINDS = ""
"""Kind of all problems beyond MAX_PROBLEMS kinds."""


@dataclass(frozen=True)
class Recovery:
    """Result of recovering a bag.

    Attributes:
        samples: number of samples that are readable.
        files: number of files that are left.
        problems: a line for each kind of damage.
    """

    samples: int
    files: int
    problems: tuple[str, ...]


def recover_bag(path: Path) -> Recovery:
    """Rebuild the files of a bag, or an .mcap file, from what is intact in them, and metadata.yaml.

    Each file is rewritten beside the old one and replaces it once it is complete.

    Args:
        path: rosbag2 directory, or an .mcap file.

    Returns:
        Numbers of readable samples and files, and the damage.

    Raises:
        RecordingError: no bag, still being recorded, nothing readable in it, or the disk
            fails.
    """
    files = _recoverable_files(path)
    old = None
    known = dict[str, str]()
    with suppress(RecordingError):
        old = read_metadata(path)
        known = dict(old.custom)
    removed = {key: value for key, value in known.items() if key == REMOVED}
    kept = list[_RecoveredFile]()
    problems = list[str]()
    try:
        for each in files:
            file = _RecoveredFile(each, known)
            file.rewrite()
            known = {**file.custom, **known}
            problems += [f"{each.name}: {problem}" for problem in file.problems]
            if file.is_kept:
                kept.append(file)
            else:
                problems.append(f"{each.name}: nothing in it is readable, it is left out")
        samples = sum(file.samples for file in kept)
        if samples == 0:
            problem = "holds no sample that could be read"
            raise RecordingError(path, problem, "record again")
        if path.is_dir():
            if old is None:
                state = "not readable" if (path / FILE_NAME).exists() else "missing"
                problems.append(f"{FILE_NAME} was {state}")
            elif old.samples > samples:
                lost = f"{old.samples - samples} of the {old.samples} samples"
                problems.append(f"{lost} that {FILE_NAME} counts are lost")
            _metadata_of(kept, removed).write(path)
    except OSError as error:
        problem = f"cannot be rewritten ({error.strerror or error})"
        raise RecordingError(path, problem, "check the disk") from None
    return Recovery(samples, len(kept), tuple(problems))


def _recoverable_files(path: Path) -> list[Path]:
    """MCAP files of a bag, or the one file, in order of time.

    Raises:
        RecordingError: there are none, or the bag is still being recorded.
    """
    files = [path] if path.is_file() else in_order_of_time(_files_of(path))
    if not files:
        others, _ = bag_files(path)  # raises if the path is the problem
        raise _not_recoverable(path, others[0])
    if any(file.suffix in (".db3", PACKED) for file in files):
        raise _not_recoverable(path, files[0])
    if any(is_locked(file) for file in files):
        raise RecordingError(path, "is still being recorded", "stop the recording first")
    return files


def _not_recoverable(bag: Path, file: Path) -> RecordingError:
    """The error for a bag whose files are no MCAP files."""
    if file.suffix == PACKED:
        problem = "its files are packed as a whole"
        remedy = "unpack them first: zstd -d --rm FILE"
    else:
        problem = "is stored by sqlite3, which is not rebuilt here"
        remedy = "commands read it as it is; if they do not, use sqlite3 FILE .recover"
    return RecordingError(bag, problem, remedy)


def _files_of(folder: Path) -> list[Path]:
    """Files of a bag in the order of its metadata, by number where that does not list all."""
    files = sorted(folder.glob("*.mcap"), key=file_number)
    with suppress(RecordingError):
        listed = [folder / entry.name for entry in read_metadata(folder).files]
        if set(listed) == set(files):
            return listed
    return files


def _metadata_of(
    files: Sequence[_RecoveredFile], custom: Mapping[str, str]
) -> BagMetadata:
    """Content of metadata.yaml by the files that are left.

    Args:
        files: recovered files in order of time.
        custom: key-value pairs that have precedence over the provenance in the files.
    """
    topics: dict[str, TopicEntry] = {}
    gaps: list[Gap] = []
    first = 0
    for file in files:
        schemas = {number: each.name for number, each in file.summary.schemas.items()}
        for channel in file.summary.channels.values():
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
    return BagMetadata(
        entries, [*topics.values()], {**custom, "gaps": gaps_to_text(gaps)}
    )


class _Problems:
    """What is wrong with a file: one line for each kind of problem, however many there are."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, problem: str) -> None:
        """Count a problem; problems that differ in numbers only are of one kind."""
        kind = _NUMBER.sub("#", problem)
        if kind not in self._first and len(self._first) >= MAX_PROBLEMS:
            kind = _OTHER_KINDS
            problem = "other problems"
        self._first.setdefault(kind, problem)
        self._counts[kind] += 1

    def lines(self) -> list[str]:
        """The first problem of each kind, with the number of further ones of the kind."""
        found: list[str] = []
        for kind, first in self._first.items():
            more = self._counts[kind] - 1
            found.append(f"{first}, and {more} more" if more else first)
        return found


class _RecoveredFile:
    """Rewrites one file with what is intact in it; it is left alone if nothing is.

    What a file has twice stays in it: readers recognise repeated samples, and count each
    of them once.

    Args:
        path: path of the file.
        known: provenance of the bag, for a file that has lost its own.

    Attributes:
        path: path of the file.
        summary: summary of the new file.
        custom: provenance in the file.
        gaps: gaps in the new file, with indexes among its samples.
        samples: number of samples in the new file.
    """

    def __init__(self, path: Path, known: Mapping[str, str]) -> None:
        self.path = path
        self.custom: dict[str, str] = {}
        self.gaps: list[Gap] = []
        self.samples = 0
        self._known = known
        self._problems = _Problems()
        self._reader = McapReader(path, report=self._report)
        self._decoder = TelemetryDecoder(path, (), self._reader.budget)
        self._damaged = False
        self._lost_channels = set[int]()  # numbers of lost channels that were reported
        self._last_time = math.nan  # controller time of the last sample counted [s]
        # Gaps that the times of the samples show, and by which rule.
        self._rule: GapRule | None = None
        self._found: list[Gap] = []
        # What the old file states: gaps, programs with the indexes of their samples, and
        # metadata of other programs.
        self._old_gaps: list[Gap] = []
        self._programs: list[tuple[int, Note]] = []
        self._others: list[tuple[str, Mapping[str, str]]] = []

    @property
    def problems(self) -> list[str]:
        """A line for each kind of problem."""
        return self._problems.lines()

    @property
    def is_kept(self) -> bool:
        """Whether anything in it is worth keeping."""
        return bool(self.samples) or not self._damaged

    def rewrite(self) -> None:
        """Copy everything that is intact to a new file, which replaces the old one.

        Raises:
            OSError: the disk fails; the old file is as it was.
        """
        remove_abandoned(self.path.parent)
        temporary = temporary_name(self.path, "recovering")
        temporary.unlink(missing_ok=True)
        self._writer = McapWriter(temporary)
        self.summary = self._writer.summary
        try:
            for body in self._reader.bodies():
                self._take_metadata()
                try:
                    blocks = self._intact_blocks(body)
                except (RecordingError, KeyError, OverflowError) as error:
                    self._report(f"a chunk is malformed ({error})", True)
                else:
                    self._writer.write_chunk(blocks, numbered=True)
            self._take_metadata()
            self._write_records()
            self._writer.close()
            if self.is_kept:
                temporary.replace(self.path)
        finally:
            self._writer.abandon()
            temporary.unlink(missing_ok=True)

    def _report(self, problem: str, damage: bool) -> None:
        """Note a problem, and whether it is damage."""
        self._damaged |= damage
        self._problems.add(problem)

    def _take_metadata(self) -> None:
        """Keep the metadata records that were read since the last call."""
        with suppress(RecordingError):
            for name, values in self._reader.take_metadata():
                if name == RECORD_NAME:
                    self.custom.update(values)
                elif name not in (GAP_RECORD_NAME, PROGRAM_RECORD_NAME):
                    self._others.append((name, values))
                for index, note in notes_of_custom(name, values):
                    if isinstance(note, Gap):
                        self._old_gaps.append(note)
                    else:
                        self._programs.append((index, note))

    def _intact_blocks(self, body: bytes) -> list[MessageBlock]:
        """Messages of a chunk, without messages of lost channels; its samples are counted."""
        reader = self._reader
        places = reader.message_places(body)
        blocks: list[MessageBlock] = []
        for number in places:
            if not self._has_channel(number):
                continue
            for block in blocks_at(body, number, places[number]):
                blocks.append(block)
                if len(blocks) > _MOST_BLOCKS:
                    raise reader.refuse("has a chunk of messages of too many sizes")
        is_own = reader.library == LIBRARY
        times: list[Array] = []  # times of all samples, before any is counted
        for block in blocks:
            if reader.channels[block.channel].topic.endswith(TELEMETRY_TOPIC):
                parts = self._decoder.decode(block.payload, constant_layout=is_own)
                times += [part["timestamp"] for part in parts]
        for time in times:
            self._count(time)
        return blocks

    def _has_channel(self, number: int) -> bool:
        """Whether the new file has a channel, which is defined at its first messages.

        Lost definitions of the channels that every bag has are restored; messages of other
        lost channels cannot be kept.
        """
        if number in self.summary.counts:
            return True
        reader = self._reader
        channel = reader.channels.get(number)
        schema = None if channel is None else reader.schemas.get(channel.schema_id)
        is_lost = channel is None or schema is None
        if is_lost and number not in TOPICS:
            if number not in self._lost_channels:
                self._lost_channels.add(number)
                lost = f"the definition of channel {number} is lost, with its messages"
                self._report(lost, False)
            return False
        if channel is None or schema is None:
            namespace = name_of_custom(self.custom or self._known, "namespace")
            channel, schema = topics_in(namespace)[number].definitions(number)
            reader.channels[number] = channel
            reader.schemas[number] = schema
        self._writer.add_channel(channel, schema)
        return True

    def _count(self, time: Array) -> None:
        """Count the next samples by their controller times [n], s, and find the gaps among them.

        Damage in front of a program's record has changed the number of the sample from
        which the program ran. The next sample takes its place, since the record stands
        closely in front of that sample.
        """
        if self._damaged:
            self._programs = [
                (min(index, self.samples), program) for index, program in self._programs
            ]
        if self._rule is None:
            self._rule = self._rule_of(time)
        for gap in self._rule.find_behind(self._last_time, time):
            self._found.append(replace(gap, index=self.samples + gap.index))
        self.samples += len(time)
        self._last_time = float(time[-1])

    def _rule_of(self, time: Array) -> GapRule:
        """Which steps are gaps: by the rate of the recording, else by its first times [n], s."""
        with suppress(RecordingError):  # the samples are worth saving without it
            custom = {**self._known, **self.custom}
            rate = info_of_custom(custom, str(self.path)).rate
            if rate is not None:
                return GapRule.of_period(1.0 / rate)
        return GapRule.of_typical_step(typical_step(np.diff(time)))

    def _write_records(self) -> None:
        """Write provenance, programs, gaps and the metadata of others behind the chunks."""
        if self._damaged:
            self.gaps = self._gaps_behind_damage()
        else:
            self.gaps = [gap for gap in self._old_gaps if gap.index <= self.samples]
        if self.custom:
            self._writer.add_metadata(RECORD_NAME, self.custom)
        for index, program in self._programs:
            self._writer.add_metadata(*custom_of_note(index, program))
        for name, values in self._others:
            self._writer.add_metadata(name, values)
        for gap in self.gaps:
            self._writer.add_metadata(*custom_of_note(gap.index, gap))

    def _gaps_behind_damage(self) -> list[Gap]:
        """Gaps among the samples that are left.

        Old gaps get the indexes of the samples behind them in the new file; gaps that the
        old file does not state were left by the damage.
        """
        known = {(gap.start, gap.end): gap for gap in self._old_gaps}
        gaps = []
        for found in self._found:
            gap = known.get((found.start, found.end), replace(found, cause=DAMAGED))
            gaps.append(replace(gap, index=found.index))
        at_end = [gap for gap in self._old_gaps if gap.start == self._last_time]
        return gaps + [replace(gap, index=self.samples) for gap in at_end]


# Bags whose recorder was killed.


def bag_state(
    bag: Path,
) -> tuple[Literal["finished", "written", "killed", "unknown"], str]:
    """Whether a bag is finished, being written, or its recorder was killed.

    Args:
        bag: the folder.

    Returns:
        The state, and the computer that wrote the bag, in words. The state of a bag
        without end is unknown if it is of another computer, or on a file system without
        locks.

    Raises:
        OSError: the bag cannot be read.
        RecordingError: its metadata cannot be read.
    """
    files = _files_of(bag)
    host = read_metadata(bag).custom.get(HOST)
    writer = "another computer" if host is None else f"computer {host}"
    written = {is_locked(file) for file in files}
    if True in written:
        return "written", writer
    if all(summary_of(file) is not None for file in files):
        return "finished", writer
    known = None not in written and host == socket.gethostname()
    return "killed" if known else "unknown", writer


def recover_killed(
    folder: Path, report: Callable[[str, bool], None], stopping: Callable[[], bool]
) -> None:
    """Recover the bags of a folder whose recorder was killed.

    Bags that are being written are left alone. So are bags that might be: bags of another
    computer, and bags on a file system without locks.

    Args:
        folder: folder of the bags.
        report: called with a line about each bag, and whether it needs attention.
        stopping: whether to end in front of the next bag.
    """
    for bag in sorted(folder.glob("*")):
        if stopping():
            return
        try:
            is_own = False
            with suppress(RecordingError):
                is_own = bag.is_dir() and "package_version" in read_metadata(bag).custom
            if not is_own:
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
            text = f"{bag} was not finished, and cannot be completed: {error.problem}"
            report(text, True)
        except OSError:
            continue  # the file was removed meanwhile
        else:
            text = f"{bag} was not finished; {recovery.samples} samples are recovered"
            report(text, False)
