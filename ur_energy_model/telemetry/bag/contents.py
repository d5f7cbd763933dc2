# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a storage file holds, for the budget of its folder: messages by topic, and marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.mcap_reader import McapReader, summary_of
from ur_energy_model.telemetry.bag.messages import EVENTS_TOPIC, decode_event

MARK = "mark"
"""Kind of the events that a user puts into a bag."""


class FileContents(NamedTuple):
    """What a storage file holds.

    Attributes:
        messages: number of messages by topic.
        marked: whether a user put a mark into it.
    """

    messages: Mapping[str, int]
    marked: bool


def file_contents(path: Path) -> FileContents:
    """What a storage file holds; only its summary and its events are read, if it has a summary.

    Args:
        path: of the MCAP file.

    Returns:
        Messages by topic, and whether it has a mark.

    Raises:
        RecordingError: it cannot be read, or is damaged.
    """
    reader = McapReader(path)
    counts = Counter[int]()
    marked = False
    try:
        summary = summary_of(path)
        blocks = reader.blocks()
        if summary is not None:
            reader.channels = summary.channels
            events = {
                n
                for n, each in reader.channels.items()
                if each.topic.endswith(EVENTS_TOPIC)
            }
            chunks = [
                each
                for each in summary.chunks
                if events & each.message_index_offsets.keys()
            ]
            bodies = (reader.chunk(each.chunk_start_offset) for each in chunks)
            blocks = (
                block for body in bodies for block in reader.blocks_of(body, EVENTS_TOPIC)
            )
        for block in blocks:
            counts[block.channel] += len(block.records)
            if reader.channels[block.channel].topic.endswith(EVENTS_TOPIC):
                kinds = {decode_event(row.tobytes()).kind for row in block.payload}
                marked = marked or MARK in kinds
    except OSError as error:
        raise reader.refuse(
            f"cannot be read ({error.strerror})", "check the file"
        ) from None
    except (ValueError, CdrError) as error:
        raise reader.refuse(f"is damaged ({error})", "recover the bag") from None
    found = counts if summary is None else summary.counts
    topics = {number: channel.topic for number, channel in reader.channels.items()}
    return FileContents(
        {topics[n]: count for n, count in found.items() if n in topics}, marked
    )
