# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Retention: the budget for the bags of a folder, kept by deleting whole storage files.

Only what a recorder wrote into that folder under a budget counts, and may be deleted.
Files into which a user put a mark are kept: `file_contents` has the marks of a file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.files import FileSplit, file_number
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock, Summary, summary_of
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import EVENTS_TOPIC, decode_event
from ur_energy_model.telemetry.bag.metadata import (
    BUDGET,
    FILE_NAME,
    REMOVED,
    TopicEntry,
    read_metadata,
    removed_samples,
)

DAY = 86400.0  # [s]
PARTS = 20  # files into which a budget is divided at least
LONGEST_FILE = 3600.0  # longest duration of a file under a budget [s]
MARK = "mark"
"""Kind of the events that a user puts into a bag."""


class BagFile(NamedTuple):
    """A storage file of a bag under a budget.

    Attributes:
        path: path of the file in its bag.
        bytes: size of the file.
        modified: time of its last change [s since the epoch].
    """

    path: Path
    bytes: int
    modified: float


class Retention(NamedTuple):
    """Budget for the bags that are recorded into a folder; None sets no limit.

    Attributes:
        bytes: size of all storage files.
        days: greatest age of a file, from its end [days].
    """

    bytes: int | None = None
    days: float | None = None

    def is_due(self, file: BagFile, total: int, now: float) -> bool:
        """Whether the oldest file has to go.

        Args:
            file: oldest file of the folder.
            total: size of all files [bytes].
            now: present time [s since the epoch].
        """
        old = self.days is not None and now - file.modified > self.days * DAY
        return old or (self.bytes is not None and total > self.bytes)

    def __str__(self) -> str:
        """The budget in words, such as "100 GB and 30 days"."""
        limits: list[str] = []
        if self.bytes is not None:
            limits.append(f"{self.bytes / 1e9:g} GB")
        if self.days is not None:
            limits.append(f"{self.days:g} days")
        return " and ".join(limits)

    @property
    def file_split(self) -> FileSplit:
        """When a file should end, so that whole files can go."""
        seconds = LONGEST_FILE if self.days is None else self.days * DAY / PARTS
        size = None if self.bytes is None else max(self.bytes // PARTS, 1)
        return FileSplit(min(LONGEST_FILE, seconds), size)


def stored_files(folder: Path, own: dict[Path, bool]) -> list[BagFile]:
    """MCAP files of the bags that were recorded into a folder under its budget, oldest first.

    Bags of other programs and commands, copies, and bags that were renamed do not count.

    Args:
        folder: folder of the bags.
        own: whether each bag that was seen before counts; new bags are added.
    """
    found = []
    for bag in folder.glob("*"):
        if bag not in own and os.access(bag / FILE_NAME, os.R_OK):
            own[bag] = False
            with suppress(RecordingError):
                recorded_at = read_metadata(bag).custom.get(BUDGET)
                linked = (bag / FILE_NAME).is_symlink()
                own[bag] = recorded_at == str(bag.resolve()) and not linked
        if bag.is_symlink() or not own.get(bag):
            continue
        for path in bag.glob("*.mcap"):
            with suppress(OSError):
                status = path.lstat()
                found.append(BagFile(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: (file.modified, file_number(file.path)))


# Files of a finished bag: their contents, and deletion.


class FileContents(NamedTuple):
    """Contents of a storage file.

    Attributes:
        messages: number of messages by topic.
        marked: whether a user put a mark into it.
    """

    messages: Mapping[str, int]
    marked: bool


def file_contents(path: Path) -> FileContents:
    """Contents of a storage file; if it has a summary, only summary and events are read.

    Args:
        path: path of the MCAP file.

    Returns:
        Messages by topic, and whether it has a mark.

    Raises:
        RecordingError: it cannot be read, or is damaged.
    """
    reader = McapReader(path)
    read = Counter[int]()  # messages by the number of the channel
    marked = False
    try:
        summary = summary_of(path)
        blocks = reader.blocks() if summary is None else _event_blocks(reader, summary)
        for block in blocks:
            read[block.channel] += len(block.records)
            if reader.channels[block.channel].topic.endswith(EVENTS_TOPIC):
                kinds = {decode_event(row.tobytes()).kind for row in block.payload}
                marked = marked or MARK in kinds
    except OSError as error:
        raise reader.refuse(
            f"cannot be read ({error.strerror})", "check the file"
        ) from None
    except (ValueError, CdrError) as error:
        raise reader.refuse(f"is damaged ({error})", "recover the bag") from None
    counts = read if summary is None else summary.counts
    messages: dict[str, int] = {}
    for number, count in counts.items():
        if number in reader.channels:
            messages[reader.channels[number].topic] = count
    return FileContents(messages, marked)


def _event_blocks(reader: McapReader, summary: Summary) -> Iterator[MessageBlock]:
    """Events of a file; only the chunks that have some by the summary are read."""
    reader.channels = summary.channels
    events = set[int]()
    for number, channel in reader.channels.items():
        if channel.topic.endswith(EVENTS_TOPIC):
            events.add(number)
    for chunk in summary.chunks:
        if events & chunk.message_index_offsets.keys():
            body = reader.chunk(chunk.chunk_start_offset)
            yield from reader.blocks_of(body, EVENTS_TOPIC)


def delete_file(file: Path, contents: FileContents) -> None:
    """Delete a storage file of a finished bag, and the bag with its last file.

    Where files are left, metadata.yaml is rewritten first, so that the bag is always
    complete.

    Args:
        file: file to be deleted.
        contents: contents of the file to be deleted.

    Raises:
        RecordingError: metadata.yaml is damaged.
        OSError: the disk fails.
    """
    bag = file.parent
    metadata = read_metadata(bag)
    left = [entry for entry in metadata.files if entry.name != file.name]
    if 0 < len(left) < len(metadata.files):
        topics: list[TopicEntry] = []
        for topic in metadata.topics:
            count = topic.messages - contents.messages.get(topic.name, 0)
            topics.append(topic._replace(messages=max(0, count)))
        rest = replace(metadata, files=left, topics=topics)
        removed = removed_samples(metadata.custom) + metadata.samples - rest.samples
        replace(rest, custom={**metadata.custom, REMOVED: str(removed)}).write(bag)
    file.unlink(missing_ok=True)
    if not left:
        (bag / FILE_NAME).unlink(missing_ok=True)
        with suppress(OSError):  # other files in it are not ours to delete
            bag.rmdir()
