# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of any topics on their way into a bag, and bags of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.bag.mcap_format import MessageBlock
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.messages import (
    LOG,
    TOPICS,
    BagTopic,
    Messages,
)
from ur_energy_model.telemetry.bag.metadata import (
    RECORD_NAME,
    BagMetadata,
    FileEntry,
    TopicEntry,
)
from ur_energy_model.typing import Self

MOST_BYTES = 4 << 20
"""Limit of the messages of other topics that wait for a chunk."""


class ExtraMessages:
    """Messages beside telemetry that wait for the next chunk of a bag, and their channels.

    A channel is defined in a file where its first message comes. Its number is the same
    in all files of the bag.

    Attributes:
        topics: topics by number of the channel, without the topics that every bag has.
        dropped: number of messages left out because too many waited; events have further
            room.
    """

    def __init__(self, known: Iterable[tuple[int, BagTopic]] = ()) -> None:
        self.topics: dict[int, BagTopic] = {}
        self.dropped = 0
        self._numbers = {topic: number for number, topic in known}
        # Messages by the number of their channel and their size: all that wait, and the
        # part that will still wait once the blocks made last are written.
        self._waiting: dict[tuple[int, int], list[Messages]] = {}
        self._left: dict[tuple[int, int], list[Messages]] = {}
        self._bytes = 0  # size of all messages that wait [bytes]

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def append(self, messages: Messages) -> None:
        """Keep messages for the next chunk, unless too many wait."""
        topic = messages.topic
        size = messages.payload.nbytes
        limit = 2 * MOST_BYTES if topic.kind is LOG else MOST_BYTES
        if self._bytes + size > limit:
            self.dropped += len(messages.stamp)
            return
        self._bytes += size
        if topic not in self._numbers:
            self._numbers[topic] = len(TOPICS) + 1 + len(self.topics)
            self.topics[self._numbers[topic]] = topic
        key = self._numbers[topic], messages.payload.shape[1]
        self._waiting.setdefault(key, []).append(messages)

    def blocks(
        self, file: McapWriter, written: int, until: int | None = None
    ) -> list[MessageBlock]:
        """Waiting messages for a chunk of a file, and the definitions of channels that it lacks.

        Readers of a file without an index (of a killed recorder) need all messages in the
        order of their log times. All messages keep waiting until `confirm`.

        Args:
            file: file to which the chunk is written.
            written: log time of the last message of the file [ns], which older messages
                get.
            until: latest log time of the chunk [ns], later messages wait for the next
                one; None takes all.

        Returns:
            The messages; blocks of several channels are not in a common order.

        Raises:
            OSError: the disk fails.
        """
        blocks = []
        self._left = {}
        for (number, size), parts in self._waiting.items():
            stamps = np.concatenate([part.stamp for part in parts])
            payload = np.concatenate([part.payload for part in parts])
            time = np.maximum.accumulate(np.maximum(stamps, written))
            count = len(time)
            if until is not None:
                count = int(np.searchsorted(time, until, "right"))
            if count:
                if number not in file.summary.counts:
                    file.add_channel(*self.topics[number].definitions(number))
                blocks.append(MessageBlock.of(number, time[:count], payload[:count]))
            if count < len(time):
                rest = parts[0]._replace(stamp=stamps[count:], payload=payload[count:])
                self._left[number, size] = [rest]
        return blocks

    def confirm(self) -> None:
        """Note that the blocks made last are written: their messages wait no longer."""
        self._waiting = self._left
        self._left = {}
        self._bytes = sum(rest.payload.nbytes for [rest] in self._waiting.values())


class MessageBag:
    """A rosbag2 directory with one MCAP file.

    Args:
        path: path of the directory, which is made.
        name: name of the file, without its suffix.
        custom: key-value pairs about the content.

    Raises:
        OSError: raised by every method: the disk fails.
    """

    def __init__(self, path: Path, name: str, custom: Mapping[str, str]) -> None:
        self.path = path
        self._custom = custom
        path.mkdir(parents=True)
        self._file = McapWriter(path / f"{name}_0.mcap")
        self._messages = ExtraMessages()
        self._file.add_metadata(RECORD_NAME, custom)

    def write(self, messages: Iterable[Messages]) -> None:
        """Write messages as one chunk, in order of their times."""
        for each in messages:
            self._messages.append(each)
        self._file.write_chunk(
            self._messages.blocks(self._file, self._file.summary.end_time)
        )
        self._messages.confirm()

    def close(self) -> None:
        """Complete the file, and write metadata.yaml."""
        self._file.close()
        summary = self._file.summary
        topics: list[TopicEntry] = []
        for number, topic in self._messages.topics.items():
            topics.append(TopicEntry.of_topic(topic, summary.counts.get(number, 0)))
        file = FileEntry.of_summary(self._file.path.name, summary)
        BagMetadata([file], topics, self._custom).write(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.close()
        else:
            self._file.abandon()
