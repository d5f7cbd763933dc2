"""ExtraMessages: messages of other topics in a bag, beside telemetry and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.mcap_format import MessageBlock
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_encoder import TOPICS, BagTopic
from ur_energy_model.telemetry.bag.metadata import RECORD_NAME, BagMetadata, FileEntry
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Bytes, Self

MOST_BYTES = 4 << 20
"""Limit of the messages that wait for a chunk."""


@dataclass(frozen=True)
class Messages:
    """Consecutive messages of one topic and one size.

    Times [n] in ns do not decrease; the payload [n, size] is CDR with its encapsulation header.
    """

    topic: BagTopic
    stamp: NDArray[np.int64]
    payload: Bytes

    @classmethod
    def single(cls, topic: BagTopic, stamp: int, payload: bytes) -> Messages:
        """One message."""
        return cls(topic, np.array([stamp]), np.frombuffer(payload, np.uint8)[None])


class ExtraMessages:
    """Messages that wait for the next chunk of a bag, and the channels of their topics.

    A channel is defined in a file where its first message comes. Its number is the same in all
    files of the bag.

    Attributes:
        topics: by number of the channel.
        dropped: number of messages left out because too many waited.
    """

    def __init__(self) -> None:
        self.topics: dict[int, BagTopic] = {}
        self.dropped = 0
        self._numbers: dict[BagTopic, int] = {}
        self._waiting: dict[BagTopic, list[Messages]] = {}
        self._left: dict[BagTopic, list[Messages]] = {}
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def append(self, messages: Messages) -> None:
        """Keep messages for the next chunk, unless too many wait."""
        if self._bytes + messages.payload.nbytes > MOST_BYTES:
            self.dropped += len(messages.stamp)
            return
        self._bytes += messages.payload.nbytes
        self._waiting.setdefault(messages.topic, []).append(messages)
        if messages.topic not in self._numbers:
            number = len(TOPICS) + 1 + len(self.topics)
            self._numbers[messages.topic] = number
            self.topics[number] = messages.topic

    def blocks(
        self, file: McapWriter, written: int, until: int | None = None
    ) -> list[MessageBlock]:
        """Waiting messages for a chunk of a file, and the definitions of channels that it lacks.

        Readers of a file without an index (of a killed recorder) need all messages in the order of
        their log times: those older than `written` get it [ns], those later than `until` wait for
        the next chunk.

        Raises:
            OSError: the disk fails; the messages keep waiting.
        """
        defined = {channel.id for channel in file.summary.channels}
        blocks, self._left = [], {}
        for topic, parts in self._waiting.items():
            stamps = np.concatenate([part.stamp for part in parts])
            time = np.maximum.accumulate(np.maximum(stamps, written))
            count = len(time) if until is None else int(np.searchsorted(time, until, "right"))
            number, start = self._numbers[topic], 0
            if count and number not in defined:
                file.add_channel(*topic.definitions(number))
            for run in equal_runs([part.payload.shape[1] for part in parts]):
                payload = np.concatenate([part.payload for part in parts[run]])
                stop = min(start + len(payload), max(count, start))
                split = stop - start
                if split:
                    blocks.append(MessageBlock(number, time[start:stop], payload[:split]))
                if split < len(payload):
                    rest = Messages(topic, stamps[stop : start + len(payload)], payload[split:])
                    self._left.setdefault(topic, []).append(rest)
                start += len(payload)
        return blocks

    def confirm(self) -> None:
        """The blocks made last were written."""
        self._waiting, self._left = self._left, {}
        self._bytes = sum(each.payload.nbytes for parts in self._waiting.values() for each in parts)


# MessageBag: writes a bag of messages without telemetry.


class MessageBag:
    """A rosbag2 directory with one MCAP file, and `custom` pairs about its content.

    Raises:
        OSError: from every method, if the disk fails.
    """

    def __init__(self, path: Path, name: str, custom: Mapping[str, str]) -> None:
        self.path, self._custom = path, custom
        path.mkdir(parents=True)
        self._file = McapWriter(path / f"{name}_0.mcap")
        self._messages = ExtraMessages()
        self._file.add_metadata(RECORD_NAME, custom)

    def write(self, messages: Iterable[Messages]) -> None:
        """Write messages as one chunk, in order of their times."""
        for each in messages:
            self._messages.append(each)
        self._file.write_chunk(self._messages.blocks(self._file, self._file.summary.end_time))
        self._messages.confirm()

    def close(self) -> None:
        """Complete the file, and write metadata.yaml."""
        self._file.close()
        counts = Counter(self._file.summary.counts)
        topics = [topic.entry(counts[number]) for number, topic in self._messages.topics.items()]
        file = FileEntry.of_summary(self._file.path.name, self._file.summary)
        BagMetadata([file], topics, self._custom).write(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.close()
        else:
            self._file.abandon()
