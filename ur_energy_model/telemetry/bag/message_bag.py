"""MessageBag: writes a bag of messages without telemetry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ur_energy_model.telemetry.bag.extra_messages import ExtraMessages, Messages
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.metadata import BagMetadata, FileEntry
from ur_energy_model.telemetry.bag.provenance import RECORD_NAME
from ur_energy_model.typing import Self


class MessageBag:
    """A rosbag2 directory with one MCAP file.

    Args:
        path: directory to make; it must not exist.
        name: of the storage file.
        custom: key-value pairs about the content.

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
