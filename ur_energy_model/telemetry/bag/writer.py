"""Writes telemetry as a rosbag2 directory with MCAP storage."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.layout import (
    EVENTS_TOPIC,
    JOINT_NAMES,
    JOINT_STATES_TOPIC,
    TELEMETRY_TOPIC,
    JointStateLayout,
    TelemetryLayout,
    encode_event,
)
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter, MessageBlock, channel_of
from ur_energy_model.telemetry.bag.message_types import (
    DYNAMIC_JOINT_STATE,
    JOINT_STATE,
    LOG,
    MessageType,
)
from ur_energy_model.telemetry.bag.metadata import (
    GAP_RECORD_NAME,
    RECORD_NAME,
    BagMetadata,
    FileEntry,
    TopicEntry,
    custom_of_gap,
    custom_of_info,
    gaps_to_text,
)
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, concatenate

CHUNK_NS = 500_000_000
CHUNK_LIMIT_NS = 1_000_000_000
CHUNK_SAMPLES = 500
MOST_EVENTS = 1000
JOINT_STATES_PERIOD_NS = 20_000_000
_TOPICS: tuple[tuple[str, MessageType], ...] = (
    (TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE),
    (JOINT_STATES_TOPIC, JOINT_STATE),
    (EVENTS_TOPIC, LOG),
)
CHANNELS = {number: channel_of(number, *each) for number, each in enumerate(_TOPICS, 1)}
"""Channel and schema of each topic, the same in every file."""
TELEMETRY, JOINT_STATES, EVENTS = CHANNELS


class BagWriter:
    """A bag that grows, and is readable after every half second of it.

    Args:
        path: directory to make; it must not exist.
        info: what makes the recording.
        fields: field names to write, of the table; `timestamp` is always written.
        name: of the storage files, default the directory's.
        joint_names: of the arm, as in its URDF.
        durable: wait for the disk after each chunk (half a second), for the sake of power cuts.
        split_ns: start a new file after this time [ns].
        split_bytes: start a new file after this many bytes.

    Raises:
        RecordingError: the path exists, or a field is not in the table.
        OSError: from every method, where the disk refuses; what was not written is kept, and
            `flush` or `split` tries again.
    """

    def __init__(
        self,
        path: Path | str,
        info: RecordingInfo,
        fields: Sequence[str],
        *,
        name: str | None = None,
        joint_names: Sequence[str] = JOINT_NAMES,
        durable: bool = False,
        split_ns: int | None = None,
        split_bytes: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.info = info
        for field in fields:
            if field not in FIELDS:
                raise RecordingError(
                    self.path, "is not an RTDE field", "see 'ur_energy record --help'", field=field
                )
        self.fields = tuple(name for name in FIELDS if name in {"timestamp", *fields})
        self.gaps: list[Gap] = []
        self.samples = 0
        self._name = name or self.path.name
        self._durable, self._split_ns, self._split_bytes = durable, split_ns, split_bytes
        self._layout = TelemetryLayout.of_fields(self.fields, joint_names)
        self._joint_states = JointStateLayout.of_fields(self.fields, joint_names)
        self._pending: list[Telemetry] = []
        self._unrecorded_gaps: list[Gap] = []
        self._events: list[Event] = []
        self._host_clock: bool | None = None
        self._shift = 0
        self._last_stamp = 0
        self._last_log_time = 0
        self._last_slot = -1
        self._written = 0
        self._written_before = 0
        self._files: list[McapWriter] = []
        self._file: McapWriter | None = None
        self._opened = 0
        if self.path.exists():
            raise RecordingError(self.path, "exists already", "choose another name for the bag")
        self.path.mkdir(parents=True)
        try:
            self._open_file()
            self.write_metadata()
        except OSError:
            self.abandon()
            raise

    @property
    def size(self) -> int:
        """Bytes of the bag so far."""
        return sum(file.size for file in (*self._files, self._file) if file is not None)

    @property
    def pending_samples(self) -> int:
        """Samples taken over and not yet on their way to the disk."""
        return sum(len(part) for part in self._pending)

    def write(self, telemetry: Telemetry) -> None:
        """Append samples; a gap at index 0 is one in front of the batch.

        Raises:
            MissingFieldError: a field of this bag is not among the samples.
        """
        if len(telemetry) == 0:
            return
        telemetry.require(*(name for name in self.fields if name != "timestamp"), purpose="the bag")
        self._keep_gaps(telemetry)
        stamp = self._stamps(telemetry)
        columns = {name: telemetry.columns.get(name, telemetry.time) for name in self.fields}
        self._pending.append(Telemetry(telemetry.time, columns, stamp=stamp))
        self.samples += len(telemetry)
        waiting = self._pending[0].stamp
        if waiting is not None and (
            stamp[-1] - waiting[0] >= CHUNK_NS or self.pending_samples >= CHUNK_SAMPLES
        ):
            self.flush()

    def write_event(self, event: Event) -> None:
        """Append an event; it reaches the disk with the next chunk.

        A flood of events is cut off, for samples matter more.
        """
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)

    def flush(self) -> None:
        """Write everything that waits."""
        if self._file is None:
            self._open_file()
        while self._pending:
            waiting = concatenate(self._pending)
            self._pending = [waiting]
            count = _chunk_length(waiting)
            self._write_chunk(waiting.cut(slice(0, count)))
            self._pending = [waiting.cut(slice(count, None))] if count < len(waiting) else []
            self._split_if_due()
        if self._events:
            self._write_events(self._events)
            self._events.clear()

    def split(self) -> None:
        """Go on in the next file of the bag."""
        with suppress(OSError):  # a file that cannot be closed well is still a readable one
            self._close_file()
        self.path.mkdir(parents=True, exist_ok=True)  # a mount may have vanished
        self._open_file()
        self.flush()
        self.write_metadata()

    def check_file(self) -> None:
        """Check that the file being written still has its name.

        Raises:
            OSError: it was deleted, or its mount has vanished.
        """
        if self._file is not None:
            self._file.check()

    def close(self) -> None:
        """Write what waits, the index of the file and metadata.yaml."""
        self.flush()
        self._close_file()
        self.write_metadata()

    def abandon(self) -> None:
        """Close without writing anything more."""
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def write_metadata(self) -> None:
        """Bring metadata.yaml up to date."""
        files = [file for file in self._files if file.path.exists()]
        if self._file is not None:
            files.append(self._file)
        entries = [
            FileEntry(file.path.name, summary.start_time, summary.end_time, summary.messages)
            for file in files
            for summary in [file.summary]
        ]
        topics = [
            TopicEntry(topic, kind.name, kind.digest, sum(f.summary.counts[number] for f in files))
            for number, (topic, kind) in enumerate(_TOPICS, 1)
            if number != JOINT_STATES or self._joint_states is not None
        ]
        custom = {**self._custom(), "gaps": gaps_to_text(self.gaps)}
        BagMetadata(entries, topics, custom).write(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep_gaps(self, telemetry: Telemetry) -> None:
        gaps = [replace(gap, index=gap.index + self.samples) for gap in telemetry.gaps]
        self.gaps += gaps
        self._unrecorded_gaps += gaps

    def _stamps(self, telemetry: Telemetry) -> NDArray[np.int64]:
        """Host stamps, or the controller's clock where the recording has none."""
        if self._host_clock is None:
            self._host_clock = telemetry.stamp is not None
        if telemetry.stamp is not None:
            return telemetry.stamp
        stamp: NDArray[np.int64] = np.rint(telemetry.time * 1e9).astype(np.int64)
        steps = np.diff(stamp, prepend=self._last_stamp - self._shift if self.samples else stamp[0])
        # A clock that starts again goes on a second later: log times must not go back.
        steps[steps < 0] = 1_000_000_000
        first = self._last_stamp if self.samples else stamp[0]
        out: NDArray[np.int64] = first + np.cumsum(steps)
        self._shift = int(out[-1] - stamp[-1])
        self._last_stamp = int(out[-1])
        return out

    def _write_chunk(self, part: Telemetry) -> None:
        file = self._file
        if file is None or part.stamp is None:
            raise RuntimeError("no open file")
        stop = self._written + len(part)
        while self._unrecorded_gaps and self._unrecorded_gaps[0].index < stop:
            gap = self._unrecorded_gaps[0]
            # Relative to the file, so that a file lost from the bag does not shift the others'.
            in_file = replace(gap, index=gap.index - self._written_before)
            file.add_metadata(GAP_RECORD_NAME, custom_of_gap(in_file))
            self._unrecorded_gaps.pop(0)
        time = np.maximum.accumulate(np.maximum(part.stamp, self._last_log_time))
        blocks = [MessageBlock(TELEMETRY, time, self._layout.encode(part.stamp, part.columns))]
        slots = part.stamp // JOINT_STATES_PERIOD_NS
        if self._joint_states is not None:
            chosen = np.flatnonzero(np.diff(slots, prepend=self._last_slot) != 0)
            columns = {name: part.columns[name][chosen] for name in self._joint_states.columns}
            payload = self._joint_states.encode(part.stamp[chosen], columns)
            blocks.append(MessageBlock(JOINT_STATES, time[chosen], payload))
        file.write_chunk(blocks)
        self._written = stop
        self._last_slot = int(slots[-1])
        self._last_log_time = int(time[-1])

    def _write_events(self, events: Sequence[Event]) -> None:
        if self._file is None:
            raise RuntimeError("no open file")
        # Files without an index are read in order, so a late event takes the time it is written.
        last = self._last_log_time
        times = np.maximum.accumulate([max(event.stamp, last) for event in events])
        blocks = [
            MessageBlock(
                EVENTS, times[i : i + 1], np.frombuffer(encode_event(event), np.uint8)[None, :]
            )
            for i, event in enumerate(events)
        ]
        self._file.write_chunk(blocks)
        self._last_log_time = int(times[-1])

    def _split_if_due(self) -> None:
        file = self._file
        if file is None or not file.summary.chunks:
            return
        age = self._last_log_time - file.summary.start_time
        if (self._split_ns is not None and age >= self._split_ns) or (
            self._split_bytes is not None and file.size >= self._split_bytes
        ):
            self._close_file()
            self._open_file()
            self.write_metadata()

    def _open_file(self) -> None:
        if self._file is not None:
            return
        path = self.path / f"{self._name}_{self._opened}.mcap"
        file = McapWriter(path, durable=self._durable)
        try:
            file.add_metadata(RECORD_NAME, self._custom())
            for channel, schema in CHANNELS.values():
                file.add_channel(channel, schema)
        except OSError:
            file.abandon()
            with suppress(OSError):
                path.unlink()
            raise
        self._file = file
        self._opened += 1
        self._written_before = self._written

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        self._files.append(file)
        file.close()

    def _custom(self) -> dict[str, str]:
        return custom_of_info(self.info, self.fields, host_clock=self._host_clock is not False)


def _chunk_length(waiting: Telemetry) -> int:
    """Samples of the next chunk: at most a second of them, for damage costs a whole chunk."""
    stamp = waiting.stamp
    if stamp is None:
        raise RuntimeError("waiting samples have stamps")
    later = np.flatnonzero(stamp[:CHUNK_SAMPLES] - stamp[0] > CHUNK_LIMIT_NS)
    return int(later[0]) if len(later) else min(len(stamp), CHUNK_SAMPLES)
