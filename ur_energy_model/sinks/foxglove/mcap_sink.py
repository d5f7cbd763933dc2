"""An MCAP file with the messages that the Foxglove server sends."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.foxglove.reading_messages import ReadingMessages
from ur_energy_model.sinks.queued_sink import QueuedSink
from ur_energy_model.telemetry.bag.extra_messages import ExtraMessages
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter

CHUNK_SECONDS = 1.0
"""Time between writes: what a killed process loses at most."""
MOST_CHUNKS = 3600
"""Chunks of a file, an hour: the index of a file is in memory until the file is complete."""


def mcap_sink(path: Path) -> QueuedSink:
    """An MCAP file as a sink.

    Raises:
        InputError: the file exists already, or its folder does not.
    """
    if path.exists():
        raise InputError(path, "exists already", "name another file")
    if not path.parent.is_dir():
        raise InputError(path.parent, "is not a folder", "make it, or name another one")
    return QueuedSink(McapDelivery(path))


class McapDelivery:
    """Writes readings into files; see queued_sink.Delivery.

    A file is complete after every chunk: every reader opens it while it grows, and after a crash.

    Args:
        path: of the first file. Each hour, and after a failure, another one follows: its name has
            the next free number, such as live_1.mcap after live.mcap.
    """

    clients = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._messages = ReadingMessages()
        self._waiting = ExtraMessages()
        self._file: McapWriter | None = None
        self._written = 0

    @property
    def name(self) -> str:
        """Kind and file."""
        return f"mcap {self.path if self._file is None else self._file.path}"

    def open(self) -> None:
        """Create the next file.

        Raises:
            OSError: it cannot be made.
        """
        # Every file begins with the URDF and defines its channels.
        self._messages, self._waiting = ReadingMessages(), ExtraMessages()
        for number in count():
            path = self.path
            if number:
                path = path.with_name(f"{path.stem}_{number}{path.suffix}")
            try:
                self._file = McapWriter(path, profile="")
            except FileExistsError:
                continue
            return

    def deliver(self, reading: ArmReading) -> None:
        """Keep one reading, and write what waits once a second.

        Raises:
            OSError: the disk fails.
        """
        for messages in self._messages.of_reading(reading):
            self._waiting.append(messages)
        if not 0 <= reading.stamp - self._written < CHUNK_SECONDS * 1e9:
            self._write()
            self._written = reading.stamp
        if self._file is not None and len(self._file.summary.chunks) >= MOST_CHUNKS:
            self.close()
            self.open()

    def close(self) -> None:
        """Write what waits, and complete the file.

        Raises:
            OSError: the disk fails.
        """
        file = self._file
        if file is None:
            return
        try:
            self._write()
            file.close()
        finally:
            file.abandon()
            self._file = None

    def _write(self) -> None:
        if self._file is not None and self._waiting:
            blocks = self._waiting.blocks(self._file, self._file.summary.end_time)
            self._file.write_chunk(blocks)
            self._waiting.confirm()
