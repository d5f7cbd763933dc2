"""MessageEncoder and StampRule: samples and events as stamped messages of a bag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.layout import (
    EVENTS_TOPIC,
    FIELDS_TOPIC,
    JOINT_STATES_TOPIC,
    TELEMETRY_TOPIC,
    JointStateLayout,
    NamedFieldsLayout,
    TelemetryLayout,
    encode_event,
)
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock
from ur_energy_model.telemetry.bag.message_types import (
    DYNAMIC_JOINT_STATE,
    JOINT_STATE,
    LOG,
    BagTopic,
)
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import Telemetry

CHUNK_LIMIT_NS = 1_000_000_000
CHUNK_SAMPLES = 500
VIEWERS_PERIOD_NS = 20_000_000
TOPICS: Mapping[int, BagTopic] = {
    1: BagTopic(TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE),
    2: BagTopic(JOINT_STATES_TOPIC, JOINT_STATE),
    3: BagTopic(EVENTS_TOPIC, LOG),
    4: BagTopic(FIELDS_TOPIC, JOINT_STATE),
}
"""Topic of each channel outside of any namespace, the same in every file."""
TELEMETRY, JOINT_STATES, EVENTS, NAMED_FIELDS = TOPICS


def topics_in(namespace: str) -> dict[int, BagTopic]:
    """TOPICS in a namespace, "" or with a leading slash."""
    return {n: replace(topic, name=namespace + topic.name) for n, topic in TOPICS.items()}


class MessageEncoder:
    """Encodes consecutive parts of one recording; log times never decrease.

    Args:
        fields: recorded fields of the table.
        joint_names: of the arm.

    Attributes:
        last_log_time: of the messages confirmed so far [ns].
    """

    def __init__(self, fields: Sequence[str], joint_names: Sequence[str]) -> None:
        self._telemetry = TelemetryLayout.of_fields(fields, joint_names)
        self._joint_states = JointStateLayout.of_fields(fields, joint_names)
        self._named_fields = NamedFieldsLayout.of_fields(fields, joint_names)
        self.last_log_time = 0
        self._last_slot = -1
        self._unconfirmed = (0, -1)

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels that can have messages."""
        has_states = self._joint_states is not None
        return tuple(number for number in TOPICS if number != JOINT_STATES or has_states)

    def encode_samples(self, part: Telemetry) -> list[MessageBlock]:
        """Messages of stamped samples, and those for viewers at 50 Hz."""
        if part.stamp is None:
            raise ValueError("samples need stamps")
        time = np.maximum.accumulate(np.maximum(part.stamp, self.last_log_time))
        blocks = [MessageBlock(TELEMETRY, time, self._telemetry.encode(part.stamp, part.columns))]
        slots = part.stamp // VIEWERS_PERIOD_NS
        chosen = np.flatnonzero(np.diff(slots, prepend=self._last_slot) != 0)
        self._unconfirmed = int(time[-1]), int(slots[-1])
        if not len(chosen):  # few samples, which the viewers' last message stands for
            return blocks
        stamp = part.stamp[chosen]
        columns = {name: values[chosen] for name, values in part.columns.items()}
        if self._joint_states is not None:
            payload = self._joint_states.encode(stamp, columns)
            blocks.append(MessageBlock(JOINT_STATES, time[chosen], payload))
        payload = self._named_fields.encode(stamp, columns)
        blocks.append(MessageBlock(NAMED_FIELDS, time[chosen], payload))
        return blocks

    def encode_events(self, events: Sequence[Event]) -> list[MessageBlock]:
        """Messages of events; a late event gets the time at which it is written."""
        if not events:
            return []
        last = self.last_log_time
        times = np.maximum.accumulate([max(event.stamp, last) for event in events])
        self._unconfirmed = int(times[-1]), self._last_slot
        return [
            MessageBlock(
                EVENTS, times[i : i + 1], np.frombuffer(encode_event(event), np.uint8)[None]
            )
            for i, event in enumerate(events)
        ]

    def advance(self, time: int) -> None:
        """Other messages of the bag were written up to this log time [ns]."""
        self.last_log_time = max(self.last_log_time, time)

    def confirm(self) -> None:
        """The messages encoded last were written; later ones follow them."""
        self.last_log_time, self._last_slot = self._unconfirmed


def chunk_length(waiting: Telemetry) -> int:
    """Number of samples of the next chunk: at most a second, as damage costs a whole chunk."""
    stamp = waiting.stamp
    if stamp is None:
        raise RuntimeError("waiting samples have stamps")
    later = np.flatnonzero(stamp[:CHUNK_SAMPLES] - stamp[0] > CHUNK_LIMIT_NS)
    return int(later[0]) if len(later) else min(len(stamp), CHUNK_SAMPLES)


class StampRule:
    """Stamps of consecutive batches of one recording.

    Attributes:
        host_clock: whether the recording has host stamps; None before the first batch.
    """

    def __init__(self) -> None:
        self.host_clock: bool | None = None
        self._shift = 0
        self._last: int | None = None

    def stamps(self, batch: Telemetry) -> NDArray[np.int64]:
        """Host stamps [n] of a batch (ns), or its controller times where it has none.

        Where the controller's clock starts again, its times continue one second later: log times
        must not go back.
        """
        if self.host_clock is None:
            self.host_clock = batch.stamp is not None
        if batch.stamp is not None:
            return batch.stamp
        stamp: NDArray[np.int64] = np.rint(batch.time * 1e9).astype(np.int64)
        first = int(stamp[0]) if self._last is None else self._last
        steps = np.diff(stamp, prepend=first - self._shift)
        steps[steps < 0] = 1_000_000_000
        out: NDArray[np.int64] = first + np.cumsum(steps)
        self._last = int(out[-1])
        self._shift = self._last - int(stamp[-1])
        return out
