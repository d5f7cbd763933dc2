"""WrittenFiles: the storage files of a bag that is being written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_encoder import TELEMETRY
from ur_energy_model.telemetry.bag.message_types import BagTopic
from ur_energy_model.telemetry.bag.provenance import RECORD_NAME
from ur_energy_model.telemetry.samples import Gap
from ur_energy_model.typing import Array


@dataclass
class WrittenFile:
    """One storage file.

    Attributes:
        mcap: its writer.
        first_sample: number of the bag's samples in the files before it.
        first_time, last_time: controller times of its first and last sample [s].
    """

    mcap: McapWriter
    first_sample: int
    first_time: float = math.nan
    last_time: float = math.nan

    @property
    def samples(self) -> int:
        """Number of samples written to it."""
        return self.mcap.summary.counts.get(TELEMETRY, 0)

    def note(self, times: Array) -> None:
        """Samples of these controller times [n >= 1] were written, s."""
        if math.isnan(self.first_time):
            self.first_time = float(times[0])
        self.last_time = float(times[-1])


class WrittenFiles:
    """The storage files of one bag: one at most is open, the others are complete.

    Args:
        folder: of the bag.
        name: of the files, before their number.
        custom: provenance for each new file.
        topics: of each file, by number of the channel.
        durable: wait for the disk after each chunk.

    Attributes:
        current: the open file, None if there is none.
        intact: files that can be read back, by the last `verify`; the open one is among them.
        samples: written to all files.
        unreadable: samples of files that were deleted, moved, replaced or changed.
        released: samples of complete files that no longer belong to the bag.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        custom: Callable[[], Mapping[str, str]],
        topics: Mapping[int, BagTopic],
        *,
        durable: bool,
    ) -> None:
        self.current: WrittenFile | None = None
        self.intact: list[WrittenFile] = []
        self.samples = self.unreadable = self.released = 0
        self._folder, self._name, self._custom, self._durable = folder, name, custom, durable
        self._topics = topics
        self._opened = 0

    @property
    def size(self) -> int:
        """Bytes of the files that can be read back."""
        return sum(file.mcap.size for file in self.intact)

    def open(self) -> WrittenFile:
        """The open file; a new one if there is none.

        Raises:
            OSError: the disk fails.
        """
        if self.current is not None:
            return self.current
        path = self._folder / f"{self._name}_{self._opened}.mcap"
        mcap = McapWriter(path, durable=self._durable)
        try:
            mcap.add_metadata(RECORD_NAME, self._custom())
            for number, topic in self._topics.items():
                mcap.add_channel(*topic.definitions(number))
        except OSError:
            mcap.abandon()
            with suppress(OSError):
                path.unlink()
            raise
        self.current = WrittenFile(mcap, self.samples)
        self.intact.append(self.current)
        self._opened += 1
        return self.current

    def close(self) -> None:
        """Complete the open file; without its summary it is readable too.

        Raises:
            OSError: the disk fails.
        """
        file, self.current = self.current, None
        if file is not None:
            file.mcap.close()

    def abandon(self) -> None:
        """Close the open file without writing."""
        file, self.current = self.current, None
        if file is not None:
            file.mcap.abandon()

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it is no longer a part of it."""
        if self.current is not None and self.current.mcap.path == path:
            return False
        for file in [file for file in self.intact if file.mcap.path == path]:
            self.intact.remove(file)
            self.released += file.samples
        return True

    def verify(self) -> Gap | None:
        """Find files that can no longer be read back, and count their samples as unreadable.

        This compares what the file system states of the files, without reading them.

        Returns:
            The samples that were found lost, None if none were.
        """
        lost = [file for file in self.intact if not file.mcap.is_intact()]
        self.intact = [file for file in self.intact if file not in lost]
        count = sum(file.samples for file in lost)
        self.unreadable += count
        if not count:
            return None
        names = ", ".join(file.mcap.path.name for file in lost[:3])
        return Gap(
            index=self.samples,
            start=min(file.first_time for file in lost if file.samples),
            end=max(file.last_time for file in lost if file.samples),
            missing=count,
            cause=f"{names} can no longer be read: deleted, moved or changed by another program",
        )
