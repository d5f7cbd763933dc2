# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writes bags, rosbag2 directories with MCAP storage: of telemetry, and of any messages."""

from __future__ import annotations

import math
import shutil
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_bag import ExtraMessages
from ur_energy_model.telemetry.bag.messages import (
    EVENTS,
    JOINT_NAMES,
    JOINT_STATES,
    TELEMETRY,
    Messages,
    TelemetryLayout,
    encode_event,
    topics_in,
)
from ur_energy_model.telemetry.bag.metadata import (
    BUDGET,
    HOST,
    RECORD_NAME,
    REMOVED,
    BagMetadata,
    FileEntry,
    Note,
    TopicEntry,
    custom_of_info,
    custom_of_note,
    gaps_to_text,
)
from ur_energy_model.telemetry.bag.viewer_messages import ViewerMessages
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.gaps import NO_LOSSES, Gap, Losses
from ur_energy_model.telemetry.samples import (
    WARNING,
    DroppedSamples,
    Event,
    RecordingInfo,
    Telemetry,
    concatenate,
)
from ur_energy_model.typing import ClosedOnExit

CHUNK_NS = 500_000_000  # time span of the samples of a chunk [ns]
_LONGEST_CHUNK_NS = 1_000_000_000  # longest time span, of samples with gaps [ns]
CHUNK_SAMPLES = 500
"""Most samples of a chunk; damage costs a whole chunk."""
_RESTART_NS = 1_000_000_000
"""Step between two stamps by the controller's clock where that clock starts again [ns]."""
LATENCY_NS = 250_000_000
"""Delay of messages of other topics behind the samples of the same time, up to which both are
written in order [ns]."""
UNREADABLE = "can no longer be read: deleted, moved or changed by another program"
"""Cause of the gap in place of a file; it follows the name of the file."""
NOT_WRITTEN = "not written"
"""Cause of the gap at the end of a bag whose disk still failed when the bag ended."""


class StampRule:
    """Stamps of consecutive batches of one recording.

    Attributes:
        host_clock: whether the recording has host stamps; None before the first batch.
    """

    def __init__(self) -> None:
        self.host_clock: bool | None = None
        self._last: int | None = None  # the last stamp [ns]
        self._shift = 0  # last stamp minus the controller's time [ns]

    def stamps(self, batch: Telemetry) -> NDArray[np.int64]:
        """Host stamps [n] of a batch (ns), or its controller times where it has none.

        Where the controller's clock starts again, its times continue one second later:
        log times must not go back.
        """
        if self.host_clock is None:
            self.host_clock = batch.stamp is not None
        if batch.stamp is not None:
            return batch.stamp
        clock = np.rint(batch.time * 1e9).astype(np.int64)
        last = int(clock[0]) if self._last is None else self._last
        last_clock = last - self._shift
        steps = np.diff(clock, prepend=last_clock)
        steps[steps < 0] = _RESTART_NS
        stamp: NDArray[np.int64] = last + np.cumsum(steps)
        self._last = int(stamp[-1])
        self._shift = self._last - int(clock[-1])
        return stamp


class _BagFile(McapWriter):
    """One storage file of a bag.

    Attributes:
        first_sample: number of samples in the files of the bag before this one.
        time_before: controller time of the sample before its first sample [s]; in the
            first file of a bag, of its first sample.
        last_time: controller time of its last sample [s].
    """

    first_sample = 0
    time_before = math.nan
    last_time = math.nan

    @property
    def samples(self) -> int:
        """Number of samples written to it."""
        return self.summary.counts.get(TELEMETRY, 0)


class BagWriter(ClosedOnExit):
    """A growing bag, readable after every chunk (half a second).

    Args:
        path: directory to make; it must not exist.
        info: robot and recording; topics are in its namespace, and joints have its
            prefix.
        fields: RTDE names to write; `timestamp` is always written.
        name: beginning of the names of the storage files; None for the name of the
            directory.
        joint_names: names of the arm's joints, without prefix.
        durable: wait for the disk after each chunk, so that a power cut loses little.
        split: extent at which a new file starts.
        in_budget: whether files of the bag may be deleted later for the budget of its
            folder.

    Attributes:
        gaps: gaps of the samples that were accepted, with indexes among them.
        samples: number of samples that were accepted.
        unreadable_samples: number of samples in files that cannot be read back, or that
            were never written.
        released_samples: number of samples in files that were released.

    Raises:
        RecordingError: the path exists, or a field is not in the table.
        OSError: raised by every method if the disk fails; samples that were not written
            are kept, and `flush` or `split` tries again.
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
        split: FileSplit | None = None,
        in_budget: bool = False,
    ) -> None:
        self.path = Path(path)
        self.info = info
        for field in fields:
            if field not in FIELDS:
                remedy = "see 'ur_energy record --help'"
                raise RecordingError(
                    self.path, "is not an RTDE field", remedy, field=field
                )
        self.fields = tuple(name for name in FIELDS if name in {"timestamp", *fields})
        self.gaps: list[Gap] = []
        self.samples = 0
        self.unreadable_samples = 0
        self.released_samples = 0
        self._name = name or self.path.name
        self._durable = durable
        self._split = FileSplit() if split is None else split
        self._budget = {BUDGET: str(self.path.resolve())} if in_budget else {}
        self._prepare_topics(joint_names)
        # Files that can be read back, and are not released; the open one is among them.
        self._files: list[_BagFile] = []
        self._current: _BagFile | None = None
        self._opened = 0  # number of files
        self._written = 0  # number of samples in them
        self._last_time = math.nan  # controller time of the last of these samples [s]
        self._last_log_time = 0  # last log time of all messages [ns]
        # Data that wait for the next chunk: samples, and how many of them the last chunk
        # has held back; gaps and programs with the indexes of their samples; and other messages.
        self._stamp_rule = StampRule()
        self._pending: list[Telemetry] = []
        self._dropped = DroppedSamples()
        self._held = 0
        self._notes: list[tuple[int, Note]] = []
        self._extra = ExtraMessages(self._topics.items())
        self._named = 0  # number of their topics in metadata.yaml
        if self.path.exists():
            remedy = "choose another name for the bag"
            raise RecordingError(self.path, "exists already", remedy)
        self.path.mkdir(parents=True)
        try:
            self._open()
            self.write_metadata()
        except (OSError, RecordingError):
            self.abandon()
            shutil.rmtree(self.path, ignore_errors=True)  # it holds nothing yet
            raise

    def _prepare_topics(self, joint_names: Sequence[str]) -> None:
        """Topics and layouts of the messages that follow from fields and joints."""
        joints = [self.info.tf_prefix + joint for joint in joint_names]
        self._telemetry = TelemetryLayout.of_fields(self.fields, joints)
        self._viewers = ViewerMessages(self.fields, joints)
        self._topics = topics_in(self.info.namespace)
        self._listed = dict(self._topics)  # topics that metadata.yaml lists
        if not self._viewers.has_joint_states:
            del self._listed[JOINT_STATES]

    @property
    def size(self) -> int:
        """Bytes of the files that can be read back."""
        return sum(file.size for file in self._files)

    @property
    def readable_samples(self) -> int:
        """Number of samples in files that could be read back at the last `write_metadata`."""
        gone = self.unreadable_samples + self.released_samples
        return self.samples - self.pending_samples - gone

    @property
    def losses(self) -> Losses:
        """Samples that are missing in the bag: in its gaps, and in the gap that has not ended."""
        losses = NO_LOSSES.after(self.gaps)
        open_gap = self._dropped.gap
        return losses if open_gap is None else losses.after([open_gap])

    @property
    def last_stamp(self) -> int:
        """Log time of the last message, the present time before the first one [ns]."""
        return self._last_log_time or HOST_CLOCK.stamp()

    @property
    def pending_samples(self) -> int:
        """Number of samples that wait for the next chunk."""
        return sum(map(len, self._pending))

    def write(self, telemetry: Telemetry) -> None:
        """Append samples; a gap at index 0 lies before the batch.

        Raises:
            MissingFieldError: the samples lack a field of this bag.
        """
        if not len(telemetry):
            return
        self.append(telemetry)
        age = _stamps(self._pending[-1])[-1] - _stamps(self._pending[0])[0]
        if age >= CHUNK_NS or self.pending_samples >= CHUNK_SAMPLES:
            self.flush()

    def append(self, telemetry: Telemetry) -> None:
        """Append samples without writing a chunk; a gap at index 0 lies before the batch.

        `write`, `flush`, `split` and `close` write the samples that wait for a chunk.

        Raises:
            MissingFieldError: the samples lack a field of this bag.
        """
        values = [name for name in self.fields if name != "timestamp"]
        telemetry.require(*values, purpose="the bag")
        telemetry = self._dropped.in_front_of(telemetry)
        for gap in telemetry.gaps:
            self.add_gap(replace(gap, index=gap.index + self.samples))
        if telemetry.info.program != self.info.program:
            self.info = replace(self.info, program=telemetry.info.program)
            self._note(self.samples, telemetry.info.program)
        stamp = self._stamp_rule.stamps(telemetry)
        columns = {
            name: telemetry.columns.get(name, telemetry.time) for name in self.fields
        }
        self._pending.append(Telemetry(telemetry.time, columns, stamp=stamp))
        self.samples += len(telemetry)

    def drop(self, telemetry: Telemetry, cause: str) -> None:
        """Leave samples out for which there is no room; they are a gap with this cause."""
        if len(telemetry):
            self._dropped.add(telemetry, cause)

    def drop_gap(self, gap: Gap) -> None:
        """Leave out samples that were dropped on their way here."""
        self._dropped.add_gap(gap)

    def write_event(self, event: Event) -> None:
        """Append an event to the next chunk; one that comes late gets the time of the chunk."""
        self._extra.append(
            Messages.single(self._topics[EVENTS], event.stamp, encode_event(event))
        )

    def write_messages(self, messages: Messages) -> None:
        """Append messages of another topic to the next chunk, unless too many wait for it."""
        self._extra.append(messages)

    def flush(self) -> None:
        """Write what waits for a chunk.

        Where messages of other topics come, which may be late, the newest samples wait
        for the messages of the same time, unless no sample has followed since the last
        call.
        """
        hold = bool(self._extra.topics) and self.pending_samples > self._held
        self._flush(LATENCY_NS if hold else 0)

    def split(self) -> None:
        """Continue in the next file of the bag."""
        with suppress(OSError):  # a file without summary is still readable
            self._close()
        self.path.mkdir(parents=True, exist_ok=True)  # its mount may have disappeared
        self._verify()
        self._flush()
        self.write_metadata()

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag, so that it can be deleted; False if it is open."""
        if self._current is not None and self._current.path == path:
            return False
        released = [file for file in self._files if file.path == path]
        self._files = [file for file in self._files if file not in released]
        self.released_samples += sum(file.samples for file in released)
        self.write_metadata()
        return True

    def check_file(self) -> None:
        """Check that the file being written still exists as it was begun; OSError: it does not."""
        if self._current is not None:
            self._current.check()

    def add_gap(self, gap: Gap) -> None:
        """Note missing samples; `gap.index` is among all accepted samples."""
        self.gaps.append(gap)
        self._note(gap.index, gap)

    def close(self) -> None:
        """Write pending samples, the summary of the file and metadata.yaml."""
        gap = self._dropped.take()
        if gap is not None:
            self.add_gap(replace(gap, index=self.samples))
        self._flush()
        self._write_notes(self._open(), self.samples + 1)
        self._close()
        self.write_metadata()

    def abandon(self) -> None:
        """Close the file as it is; samples that wait for a chunk are lost, and a gap."""
        file = self._current
        self._current = None
        if file is not None:
            file.abandon()
        if self._pending:
            first = float(self._pending[0].time[0])
            start = first if math.isnan(self._last_time) else self._last_time
            end = float(self._pending[-1].time[-1])
            count = self.pending_samples
            self.gaps.append(Gap(self._written, start, end, count, NOT_WRITTEN))
            self.unreadable_samples += count
            self._pending = []

    def write_metadata(self) -> None:
        """Update metadata.yaml; files that can no longer be read back are left out."""
        self._verify()
        files = self._files
        entries = [FileEntry.of_summary(file.path.name, file.summary) for file in files]
        counts = Counter[int]()  # messages by the number of the channel
        for file in files:
            counts.update(file.summary.counts)
        topics: list[TopicEntry] = []
        for number, topic in {**self._listed, **self._extra.topics}.items():
            topics.append(TopicEntry.of_topic(topic, counts[number]))
        custom = {**self._custom(), "gaps": gaps_to_text(self.gaps)}
        if self.released_samples:
            custom[REMOVED] = str(self.released_samples)
        BagMetadata(entries, topics, custom).write(self.path)
        self._named = len(self._extra.topics)

    def _open(self) -> _BagFile:
        """The open file; a new one if there is none."""
        if self._current is not None:
            return self._current
        path = self.path / f"{self._name}_{self._opened}.mcap"
        file = _BagFile(path, durable=self._durable)
        try:
            file.add_metadata(RECORD_NAME, self._custom())
            for number, topic in self._topics.items():
                file.add_channel(*topic.definitions(number))
        except OSError:
            file.abandon()
            with suppress(OSError):
                path.unlink()
            raise
        file.first_sample = self._written
        file.time_before = self._last_time
        self._current = file
        self._files.append(file)
        self._opened += 1
        return file

    def _close(self) -> None:
        """Complete the open file, if there is one; without its summary it is readable too."""
        file = self._current
        self._current = None
        if file is not None:
            file.close()

    def _custom(self) -> dict[str, str]:
        """Key-value pairs about the recording, for files and metadata.yaml."""
        host_clock = self._stamp_rule.host_clock is not False
        custom = custom_of_info(self.info, self.fields, host_clock=host_clock)
        return {**custom, HOST: socket.gethostname(), **self._budget}

    def _note(self, index: int, note: Note) -> None:
        """Keep a gap or program for the next chunk; the index is among all accepted samples."""
        self._notes.append((index, note))
        self._notes.sort(key=lambda each: each[0])

    def _verify(self) -> None:
        """Leave out the files that can no longer be read back: their samples are a gap."""
        lost = [file for file in self._files if not file.is_intact()]
        self._files = [file for file in self._files if file not in lost]
        for file in lost:
            count = file.samples
            if not count:
                continue
            self.unreadable_samples += count
            cause = f"{file.path.name} {UNREADABLE}"
            # Readers see this gap by the clock, between the files that are left.
            start = file.time_before
            self.gaps.append(Gap(file.first_sample, start, file.last_time, count, cause))
            text = f"{count} samples: {cause}"
            self.write_event(Event(self.last_stamp, "gap", text, WARNING))

    def _flush(self, hold: int = 0) -> None:
        """Write everything that waits for a chunk, but for samples of the last `hold` ns."""
        self._open()
        # some readers read only topics in metadata.yaml
        if len(self._extra.topics) > self._named:
            self.write_metadata()
        wrote_samples = self._write_pending(hold)
        self._held = self.pending_samples
        if hold and (wrote_samples or self._pending):
            return  # messages of other topics go into the chunks of samples of their time
        if self._extra:
            file = self._open()
            blocks = self._extra.blocks(file, self._last_log_time)
            file.write_chunk(blocks)
            self._extra.confirm()
            self._last_log_time = max(int(block.time[-1]) for block in blocks)

    def _write_pending(self, hold: int) -> bool:
        """Write the samples that wait, but for the last `hold` ns; whether there were any."""
        wrote = False
        while self._pending:
            waiting = concatenate(self._pending)
            self._pending = [waiting]
            count = _samples_of_chunk(_stamps(waiting), hold)
            if not count:
                break
            file = self._write_chunk(waiting.cut(slice(0, count)))
            wrote = True
            self._pending = []
            if count < len(waiting):
                self._pending = [waiting.cut(slice(count, None))]
            age = self._last_log_time - file.summary.chunks[0].message_start_time
            if self._split.is_due(age, file.size):
                self._close()
                self._open()
                self.write_metadata()
        return wrote

    def _write_chunk(self, part: Telemetry) -> _BagFile:
        """Write a chunk of samples, with the notes and messages that belong to them.

        The state of the writer advances only once the chunk is written.

        Returns:
            The file that has the chunk.
        """
        file = self._open()
        self._write_notes(file, self._written + len(part))
        stamp = _stamps(part)
        time = np.maximum.accumulate(np.maximum(stamp, self._last_log_time))
        blocks = self._extra.blocks(file, self._last_log_time, int(time[-1]))
        samples = self._telemetry.encode(stamp, part.columns)
        blocks.append(MessageBlock.of(TELEMETRY, time, samples))
        blocks += self._viewers.blocks(part, stamp, time)
        file.write_chunk(blocks)
        self._last_log_time = int(time[-1])
        self._viewers.confirm(stamp)
        self._extra.confirm()
        if math.isnan(file.time_before):
            file.time_before = float(part.time[0])
        file.last_time = float(part.time[-1])
        self._last_time = file.last_time
        self._written += len(part)
        return file

    def _write_notes(self, file: _BagFile, stop: int) -> None:
        """Write the gaps and programs in front of the samples before `stop`."""
        while self._notes and self._notes[0][0] < stop:
            index, note = self._notes[0]
            # Relative to the file: the loss of a file must not shift the notes of the
            # others.
            file.add_metadata(*custom_of_note(index - file.first_sample, note))
            self._notes.pop(0)


def _stamps(samples: Telemetry) -> NDArray[np.int64]:
    """Stamps [n], ns, of samples that wait for a chunk."""
    assert samples.stamp is not None, "waiting samples have stamps"
    return samples.stamp


def _samples_of_chunk(stamp: NDArray[np.int64], hold: int) -> int:
    """Number of samples that the next chunk takes.

    Args:
        stamp: host times of the samples that wait [n >= 1], ns.
        hold: time before the newest stamp from which on samples stay [ns]; 0 for none.
    """
    first = stamp[:CHUNK_SAMPLES]
    later = np.flatnonzero(first - stamp[0] > _LONGEST_CHUNK_NS)
    count = int(later[0]) if len(later) else len(first)
    if hold:
        newest = np.maximum.accumulate(stamp)
        count = min(count, int(np.searchsorted(newest, newest[-1] - hold, "right")))
    return count
