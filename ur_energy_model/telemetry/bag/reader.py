"""Reads telemetry from rosbag2 directories: our own at full speed, others through rosbags."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.layout import (
    EVENTS_TOPIC,
    TELEMETRY_TOPIC,
    TelemetryLayout,
    decode_event,
)
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY
from ur_energy_model.telemetry.bag.message_types import DYNAMIC_JOINT_STATE
from ur_energy_model.telemetry.bag.metadata import (
    GAP_RECORD_NAME,
    RECORD_NAME,
    BagMetadata,
    gap_of_custom,
    info_of_custom,
)
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array, Bytes

BATCH = 5000


def read_bag(path: Path | str, fields: Sequence[str] | None = None) -> Telemetry:
    """All samples of a bag, bit for bit as they were recorded.

    Args:
        path: rosbag2 directory, or one of its .mcap files.
        fields: names wanted, None for all; those that the bag lacks are left out.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    reader = _BagReader(Path(path), fields)
    parts = list(reader.parts())
    return reader.assemble(parts)


def iterate_bag(
    path: Path | str, fields: Sequence[str] | None = None, samples: int = BATCH
) -> Iterator[Telemetry]:
    """Samples of a bag in batches of bounded size, with constant memory.

    A gap at index 0 of a batch lies in front of its first sample.

    Args:
        path: rosbag2 directory, or one of its .mcap files.
        fields: names wanted, None for all.
        samples: largest batch.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    reader = _BagReader(Path(path), fields)
    waiting: list[_Part] = []
    for part in reader.parts():
        waiting.append(part)
        while sum(len(each.stamp) for each in waiting) >= samples:
            joined = _join(waiting)
            yield reader.batch(joined.cut(0, samples))
            waiting = [joined.cut(samples, len(joined.stamp))]
    if any(len(each.stamp) for each in waiting):
        yield reader.batch(_join(waiting))


def read_events(path: Path | str) -> list[Event]:
    """Marks and messages of a bag.

    Raises:
        RecordingError: no such bag, not a bag, or damaged.
    """
    messages = (
        row.tobytes()
        for file in bag_files(Path(path))[0]
        for runs in McapReader(file).runs(EVENTS_TOPIC)
        for run in runs
        for row in run.payload
    )
    try:
        return sorted(map(decode_event, messages), key=lambda event: event.stamp)
    except CdrError as error:
        raise RecordingError(path, f"has a malformed event ({error})", "record again") from None


@dataclass
class _Part:
    """Decoded samples, in the order of the bag."""

    stamp: NDArray[np.int64]
    columns: dict[str, Array]

    def cut(self, start: int, stop: int) -> _Part:
        columns = {name: values[start:stop] for name, values in self.columns.items()}
        return _Part(self.stamp[start:stop], columns)


def _join(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    stamp = np.concatenate([part.stamp for part in parts])
    columns = {}
    for name in list(parts[0].columns):
        columns[name] = np.concatenate([part.columns.pop(name) for part in parts])
    return _Part(stamp, columns)


@dataclass
class _BagReader:
    """One pass over a bag.

    Attributes:
        path: of the bag.
        wanted: field names, None for all.
        position: samples handed out by `batch`.
    """

    path: Path
    wanted: Sequence[str] | None
    position: int = 0
    _layouts: dict[int, list[TelemetryLayout]] = field(default_factory=dict)
    _names: tuple[str, ...] | None = None
    _custom: dict[str, str] = field(default_factory=dict)
    _gaps: list[Gap] = field(default_factory=list)
    _info: RecordingInfo | None = None
    _before: float = math.nan
    _count: int = 0
    _ours: bool = False

    def parts(self) -> Iterator[_Part]:
        """Decoded samples, some hundreds at a time.

        Raises:
            RecordingError: see `read_bag`.
        """
        files, metadata = bag_files(self.path)
        count = 0
        for part in self._all_parts(files, metadata):
            count += len(part.stamp)
            yield part
        if count == 0:
            raise RecordingError(
                self.path,
                f"holds no samples on {TELEMETRY_TOPIC}",
                "record or import telemetry with ur_energy",
            )
        expected = 0 if metadata is None else metadata.messages.get(TELEMETRY_TOPIC, 0)
        if count < expected:
            raise RecordingError(
                self.path,
                f"is truncated: {count} of {expected} samples are there",
                "copy the bag again, or keep what is intact with 'ur_energy recover'",
            )

    def _all_parts(self, files: Sequence[Path], metadata: BagMetadata | None) -> Iterator[_Part]:
        if metadata is not None:
            self._custom = dict(metadata.custom)
        if metadata is not None and metadata.storage != "mcap":
            from ur_energy_model.telemetry.bag.sqlite_reader import sqlite_messages

            for messages in sqlite_messages(self.path):
                yield from self._decode(messages, trusted=False)
            return
        for file in files:
            reader = McapReader(file)
            try:
                yield from self._file_parts(reader)
            except OSError as error:
                raise RecordingError(
                    file, f"cannot be read ({error.strerror})", "check the file"
                ) from None

    def _file_parts(self, reader: McapReader) -> Iterator[_Part]:
        seen, first = 0, self._count
        for runs in reader.runs():
            seen = self._take_metadata(reader, seen, first)
            for run in runs:
                if self._is_telemetry(reader, run.channel):
                    self._count += len(run.payload)
                    trusted = reader.library == LIBRARY and len(runs) <= 2
                    yield from self._decode(run.payload, trusted=trusted)
        self._take_metadata(reader, seen, first)

    def _is_telemetry(self, reader: McapReader, number: int) -> bool:
        channel = reader.channels[number]
        schema = reader.schemas.get(channel.schema_id)
        return (
            channel.topic == TELEMETRY_TOPIC
            and schema is not None
            and schema.name == DYNAMIC_JOINT_STATE.name
        )

    def _take_metadata(self, reader: McapReader, seen: int, first: int) -> int:
        """Provenance and gaps; a gap's index counts from the first sample of its file."""
        for name, values in reader.metadata[seen:]:
            if name == RECORD_NAME:
                self._ours = True
                self._custom = {**values, **self._custom}
            elif name == GAP_RECORD_NAME:
                gap = gap_of_custom(values)
                if gap is not None:
                    self._gaps.append(replace(gap, index=gap.index + first))
        return len(reader.metadata)

    def _decode(self, messages: Bytes, *, trusted: bool) -> Iterator[_Part]:
        """Decode messages of one size, whose layouts may differ all the same."""
        known = self._layouts.setdefault(messages.shape[1], [])
        start = 0
        while start < len(messages):
            rest = messages[start:]
            count = 0
            for layout in known:
                if trusted:
                    count = len(rest)
                    break
                same = layout.template.matches(rest)
                count = len(rest) if same.all() else int(np.argmin(same))
                if count:
                    break
            else:
                layout = self._new_layout(rest[0].tobytes())
                known.append(layout)
                continue
            stamp, columns = layout.decode(rest[:count], self._fields(layout))
            yield _Part(stamp, columns)
            start += count

    def _new_layout(self, message: bytes) -> TelemetryLayout:
        try:
            layout = TelemetryLayout.of_message(message)
        except CdrError as error:
            raise RecordingError(
                self.path,
                f"has a malformed message ({error})",
                "keep what is intact with 'ur_energy recover'",
                field=TELEMETRY_TOPIC,
            ) from None
        if "timestamp" not in layout.places:
            raise MissingFieldError(
                self.path,
                "the messages carry no controller timestamp",
                "record with ur_energy record",
                field="timestamp",
            )
        return layout

    def _fields(self, layout: TelemetryLayout) -> tuple[str, ...]:
        """Fields to decode; the first message decides which there are."""
        if self._names is None:
            wanted = None if self.wanted is None else {"timestamp", *self.wanted}
            self._names = tuple(name for name in layout.names if wanted is None or name in wanted)
        for name in self._names:
            if name not in layout.places:
                raise MissingFieldError(
                    self.path, "is not in all messages", "record the bag again", field=name
                )
        return self._names

    def info(self) -> RecordingInfo:
        """Provenance, known once a part was read."""
        if self._info is None:
            self._info = info_of_custom(self._custom, str(self.path))
        return self._info

    def assemble(self, parts: list[_Part]) -> Telemetry:
        """Everything as one."""
        return self.batch(_join(parts))

    def batch(self, part: _Part) -> Telemetry:
        """Telemetry of the next samples, with the gaps in it and right in front of it."""
        info = self.info()
        time = part.columns["timestamp"]
        first, stop = self.position, self.position + len(time)
        if not self._ours:
            gaps = self._found_gaps(time, info)
        else:
            gaps = tuple(
                replace(gap, index=gap.index - first)
                for gap in self._gaps
                if first <= gap.index < stop
            )
        self.position, self._before = stop, float(time[-1])
        host = self._custom.get("stamps", "host") == "host"
        wanted = None if self.wanted is None else set(self.wanted)
        columns = {
            name: values
            for name, values in part.columns.items()
            if wanted is None or name in wanted
        }
        return Telemetry(time, columns, info, gaps, part.stamp if host else None)

    def _found_gaps(self, time: Array, info: RecordingInfo) -> tuple[Gap, ...]:
        """Gaps by the clock, for bags of other makers."""
        period = None if info.rate is None else 1.0 / info.rate
        if math.isnan(self._before):
            return find_gaps(time, period)
        gaps = find_gaps(np.concatenate([[self._before], time]), period)
        return tuple(replace(gap, index=gap.index - 1) for gap in gaps)
