"""The writing side of a recorder: keeps a bag going whatever the disk does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.event import ERROR, Event
from ur_energy_model.telemetry.modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

FLUSH_SECONDS = 0.5
METADATA_SECONDS = 10.0
ROOM_SECONDS = 10.0
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
_MODES = (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES))


class DiskNearlyFullError(RecordingError):
    """Recording stops before a disk is full."""


class FaultTolerantWriter:
    """One bag that is being recorded.

    Args:
        path: directory to make.
        info: what makes the recording.
        fields: to write.
        split_ns, split_bytes: start a new file after that much.
        retention: which old bags beside it to delete.

    Attributes:
        failure: why the disk refuses, None while it does not. Samples must not be written before
            `retry` has cleared it.
        last_failure: the last one, even if it is over.

    Raises:
        RecordingError: the path exists, or the disk refuses.
    """

    def __init__(
        self,
        path: Path,
        info: RecordingInfo,
        fields: Sequence[str],
        *,
        split_ns: int | None = None,
        split_bytes: int | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.failure: str | None = None
        self.last_failure: str | None = None
        self._full_since: float | None = None
        self._last_stand = False
        self._retention = retention
        self._modes: dict[str, float] = {}
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._next_metadata = now + METADATA_SECONDS
        if retention is not None:
            retention.apply(path.parent, spare=path)
        check_room(path)
        try:
            self.writer = BagWriter(
                path, info, fields, durable=True, split_ns=split_ns, split_bytes=split_bytes
            )
        except OSError as error:
            raise _refusal(path, error) from None

    def write(self, item: Telemetry | Event | None) -> None:
        """Write samples or an event, and twice a second what else there is to do."""
        try:
            if isinstance(item, Telemetry):
                self._note_modes(item)
                self.writer.write(item)
            elif isinstance(item, Event):
                self.writer.write_event(item)
            if time.monotonic() >= self._next_flush:
                self._upkeep()
        except OSError as error:
            self._fail(error)

    def retry(self) -> None:
        """After a failure: try to go on in the next file of the bag.

        Raises:
            DiskNearlyFullError: there was no room for too long; the bag must be finished.
        """
        try:
            if not self._has_room():
                return
            self.writer.split()
        except OSError as error:
            self._fail(error)
            return
        self.failure = None
        self.writer.write_event(Event(time.time_ns(), "recorder", "writing again, in a new file"))

    def split(self) -> None:
        """Go on in the next file.

        Raises:
            RecordingError: the disk refuses.
        """
        try:
            self.writer.split()
        except OSError as error:
            self._fail(error)
            raise _refusal(self.writer.path, error) from None

    def use_reserve(self) -> None:
        """From now on write whatever the room: the bag is about to be finished."""
        self._last_stand, self.failure = True, None

    def finish(self) -> str | None:
        """Close the bag; returns why that did not work, None where it did.

        What is on the disk stays readable in either case.
        """
        try:
            self.writer.close()
        except OSError as error:
            self.writer.abandon()
            with suppress(OSError):
                self.writer.write_metadata()
            return f"the bag cannot be finished ({error.strerror or error})"
        return None

    def _upkeep(self) -> None:
        """Everything to the disk; is the file still there, and room for more."""
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self.writer.flush()
        self.writer.check_file()
        if now >= self._next_metadata:
            self._next_metadata = now + METADATA_SECONDS
            self.writer.write_metadata()
            if self._retention is not None:
                self._retention.apply(self.writer.path.parent, spare=self.writer.path)
        self._has_room()

    def _has_room(self) -> bool:
        """Whether there is room; where there is none, samples wait for some seconds."""
        try:
            check_room(self.writer.path)
        except DiskNearlyFullError as error:
            now = time.monotonic()
            if self._last_stand:
                return True
            if self._full_since is None:
                self._full_since = now
            if now - self._full_since > ROOM_SECONDS:
                raise
            self._fail(OSError(error.problem))
            return False
        self._full_since = None
        return True

    def _fail(self, error: OSError) -> None:
        text = f"writing failed ({error.strerror or error}), samples wait in memory"
        if self.failure is None:
            self.writer.write_event(Event(time.time_ns(), "recorder", text, ERROR))
        self.failure = self.last_failure = text

    def _note_modes(self, batch: Telemetry) -> None:
        """An event for each change of the robot's and of the safety mode."""
        for name, known in _MODES:
            values = batch.columns.get(name)
            if values is None:
                continue
            before = self._modes.get(name, values[0])
            for i in np.flatnonzero(np.diff(values, prepend=before)):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                stamp = time.time_ns() if batch.stamp is None else int(batch.stamp[i])
                text = f"{name}: {known.get(code, code)}"
                self.writer.write_event(Event(stamp, "mode", text))
            self._modes[name] = float(values[-1])


def check_room(path: Path) -> None:
    """Check that the disk has room for a recording.

    Raises:
        DiskNearlyFullError: less than 64 MB, and less than a tenth of a small disk, are left.
    """
    folder = path
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        usage = shutil.disk_usage(folder)
    except OSError:
        return  # writing will say what is wrong
    if usage.free < min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        raise DiskNearlyFullError(
            path,
            f"the disk is nearly full ({usage.free / 1e6:.1f} MB are left)",
            "make room, or record elsewhere",
        )


def _refusal(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(path, f"cannot be written ({reason})", "check the disk")
