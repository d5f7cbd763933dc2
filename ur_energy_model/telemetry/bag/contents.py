# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contents of a storage file, for the budget of its folder: messages by topic, and marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock, Summary, summary_of
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.messages import EVENTS_TOPIC, decode_event

MARK = "mark"
"""Kind of the events that a user puts into a bag."""


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
        path: of the MCAP file.

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
