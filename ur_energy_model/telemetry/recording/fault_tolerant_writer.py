"""FaultTolerantWriter: keeps recording through disk errors."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.robot_modes import ROBOT_MODES
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.file_split import FileSplit
from ur_energy_model.telemetry.bag.files import remove_abandoned_in_bags
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.event import ERROR, WARNING, Event
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.modes import SAFETY_MODES
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry

FLUSH_SECONDS = 0.5
METADATA_SECONDS = 2.0
"""Period of metadata.yaml, so that of a killed recorder states what can be read [s]."""
METADATA_SHARE = 0.01
"""Largest share of the time that is spent on it; a bag of many files takes longer periods."""
ROOM_SECONDS = 10.0
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
_MODES = (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES))


class DiskNearlyFullError(RecordingError):
    """The disk has too little room for a recording."""


class FaultTolerantWriter:
    """Writes one bag; after a failure of the disk it continues in a new file.

    Args:
        path: directory to make.
        info: robot and recording.
        fields: RTDE names to write.
        split: when to start a new file.
        resume: never give up a full disk.
        messages: returns messages of other topics since its last call.
        in_budget: whether files may be deleted later for the budget of the folder.

    Attributes:
        bag: the writer of the bag.
        failure: why the disk fails, None if it works. No samples must be written before `retry`
            has cleared it.
        last_failure: the last failure, also if it is over.
        reason: of that failure, in a few words.

    Raises:
        RecordingError: the path exists, or the disk fails.
    """

    def __init__(
        self,
        path: Path,
        info: RecordingInfo,
        fields: Sequence[str],
        *,
        split: FileSplit | None = None,
        resume: bool = False,
        messages: Callable[[], Iterable[Messages]] = tuple,
        in_budget: bool = False,
    ) -> None:
        self.failure: str | None = None
        self.last_failure: str | None = None
        self.reason = ""
        self._full_since: float | None = None
        self._using_reserve = False
        self._resume, self._messages = resume, messages
        self._modes: dict[str, float] = {}
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._next_metadata = now + METADATA_SECONDS
        remove_abandoned_in_bags(path.parent)
        check_room(path)
        try:
            self.bag = BagWriter(path, info, fields, durable=True, split=split, in_budget=in_budget)
        except OSError as error:
            raise _refusal(path, error) from None
        messages()  # those from before the bag

    def write(self, item: Telemetry | Event | None) -> None:
        """Write samples, an event or nothing; twice a second flush and check file and disk."""
        try:
            if isinstance(item, Telemetry):
                self._note_modes(item)
                self.bag.write(item)
            elif isinstance(item, Event):
                self.bag.write_event(item)
            if time.monotonic() >= self._next_flush:
                self._maintain()
        except OSError as error:
            self._fail(error)

    def retry(self) -> None:
        """After a failure: try to continue in the next file of the bag.

        Raises:
            DiskNearlyFullError: the disk has been full for too long; the bag must be finished.
        """
        try:
            if not self._has_room():
                return
            self.bag.split()
        except OSError as error:
            self._fail(error)
            return
        self.failure = None
        self.bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", "writing again, in a new file"))

    def split(self) -> None:
        """Continue in the next file.

        Raises:
            RecordingError: the disk fails.
        """
        try:
            self.bag.split()
        except OSError as error:
            self._fail(error)
            raise _refusal(self.bag.path, error) from None

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it no longer belongs to it."""
        try:
            return self.bag.release(path)
        except OSError as error:
            self._fail(error)
            return False

    def use_reserve(self) -> None:
        """Write from now on even on a nearly full disk: the bag is about to be finished."""
        self._using_reserve, self.failure = True, None

    def finish(self, outages: Sequence[Gap] = ()) -> str | None:
        """Close the bag; returns why that failed, None if it worked.

        What is on the disk stays readable.

        Args:
            outages: samples that are missing behind the last one.
        """
        for gap in outages:
            text = f"{gap.missing} samples missing at the end ({gap.cause})"
            self.bag.write_event(Event(self.bag.last_stamp, "gap", text, WARNING))
            self.bag.end_with(gap)
        self._take_messages()
        try:
            self.bag.close()
        except OSError as error:
            self.bag.abandon()
            with suppress(OSError):
                self.bag.write_metadata()
            return f"the bag cannot be finished ({error.strerror or error})"
        return None

    def _maintain(self) -> None:
        """Flush, check that the file exists and the disk has room, update metadata."""
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._take_messages()
        self.bag.flush()
        self.bag.check_file()
        if now >= self._next_metadata:
            began = time.thread_time()
            self.bag.write_metadata()
            spent = time.thread_time() - began
            self._next_metadata = now + max(METADATA_SECONDS, spent / METADATA_SHARE)
        self._has_room()

    def _take_messages(self) -> None:
        for messages in self._messages():
            self.bag.write_messages(messages)

    def _has_room(self) -> bool:
        """Whether the disk has room; if not, samples wait for up to ROOM_SECONDS."""
        try:
            check_room(self.bag.path)
        except DiskNearlyFullError as error:
            now = time.monotonic()
            if self._using_reserve:
                return True
            if self._full_since is None:
                self._full_since = now
            if now - self._full_since > ROOM_SECONDS and not self._resume:
                raise
            self._fail(OSError(error.problem))
            return False
        self._full_since = None
        return True

    def _fail(self, error: OSError) -> None:
        self.reason = error.strerror or str(error)
        text = f"writing failed ({self.reason}), samples wait in memory"
        if self.failure is None:
            self.bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", text, ERROR))
        self.failure = self.last_failure = text

    def _note_modes(self, batch: Telemetry) -> None:
        """Write an event for each change of robot mode and safety mode."""
        for name, known in _MODES:
            values = batch.columns.get(name)
            if values is None:
                continue
            before = self._modes.get(name, values[0])
            for i in np.flatnonzero(np.diff(values, prepend=before)):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                stamp = HOST_CLOCK.stamp() if batch.stamp is None else int(batch.stamp[i])
                text = f"{name}: {known.get(code, code)}"
                self.bag.write_event(Event(stamp, "mode", text))
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
        return  # writing will report the problem
    if usage.free < min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        raise DiskNearlyFullError(
            path,
            f"the disk is nearly full ({usage.free / 1e6:.1f} MB are left)",
            "make room, or record elsewhere",
        )


def _refusal(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(path, f"cannot be written ({reason})", "check the disk")
