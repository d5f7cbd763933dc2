"""TelemetryDecoder: telemetry messages of a bag as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.samples import join_columns
from ur_energy_model.typing import Array, Bytes

MAX_MESSAGE = 1 << 18
"""Largest telemetry message in bytes; with all fields it has 20 kB."""
MAX_LAYOUTS = 64
"""Most layouts of the messages of a bag."""
MAX_CHANGES = 50_000
"""Most changes from one layout to another in a bag."""


@dataclass
class DecodedSamples:
    """Consecutive samples of a bag: stamps [n] (ns) and columns by field name."""

    stamp: NDArray[np.int64]
    columns: dict[str, Array]

    def __len__(self) -> int:
        return len(self.stamp)

    def cut(self, part: slice) -> DecodedSamples:
        """Part of the samples; the arrays are views."""
        columns = {name: values[part] for name, values in self.columns.items()}
        return DecodedSamples(self.stamp[part], columns)


def join_samples(parts: Sequence[DecodedSamples]) -> DecodedSamples:
    """Consecutive parts as one; the columns move out of the parts, to use memory once only."""
    if len(parts) == 1:
        return parts[0]
    stamp = np.concatenate([part.stamp for part in parts])
    return DecodedSamples(stamp, join_columns([part.columns for part in parts]))


@dataclass
class TelemetryDecoder:
    """Decodes the messages of one bag, whose layout may change from message to message.

    Attributes:
        path: of the bag, for error messages.
        wanted: RTDE names to decode beside `timestamp`; None for all fields of the first message.
    """

    path: Path
    wanted: Sequence[str] | None
    _layouts: dict[int, list[TelemetryLayout]] = field(default_factory=dict)
    _names: tuple[str, ...] | None = None
    _last: TelemetryLayout | None = None
    _changes: int = 0

    def decode(self, messages: Bytes, *, constant_layout: bool) -> Iterator[DecodedSamples]:
        """Samples of messages [n, size].

        Args:
            messages: all of one size.
            constant_layout: whether all messages of one size in this bag have one layout, which
                saves comparing them.

        Raises:
            RecordingError: a malformed message, or messages beyond the limits.
            MissingFieldError: a message lacks a field.
        """
        start = 0
        while start < len(messages):
            rest = messages[start:]
            layout = self._layout_of(rest)
            count = len(rest) if constant_layout else _same(layout, rest)
            yield DecodedSamples(*layout.decode(rest[:count], self._fields(layout)))
            start += count

    def _layout_of(self, messages: Bytes) -> TelemetryLayout:
        """Layout of the first message."""
        if messages.shape[1] > MAX_MESSAGE:
            raise self._refuse(f"has a message of {messages.shape[1]} bytes")
        known = self._layouts.setdefault(messages.shape[1], [])
        layout = next((each for each in known if each.template.matches(messages[:1])[0]), None)
        if layout is None:
            layout = self._new_layout(messages[0].tobytes())
            known.append(layout)
            if sum(map(len, self._layouts.values())) > MAX_LAYOUTS:
                raise self._refuse(f"has messages of more than {MAX_LAYOUTS} layouts")
        if layout is not self._last:
            self._last = layout
            self._changes += 1
            if self._changes > MAX_CHANGES:
                raise self._refuse(f"changes the layout of its messages {MAX_CHANGES} times")
        return layout

    def _new_layout(self, message: bytes) -> TelemetryLayout:
        try:
            layout = TelemetryLayout.of_message(message)
        except CdrError as error:
            raise self._refuse(f"has a malformed message ({error})") from None
        if "timestamp" not in layout.places:
            raise MissingFieldError(
                self.path,
                "the messages carry no controller timestamp",
                "record with ur_energy record",
                field="timestamp",
            )
        return layout

    def _fields(self, layout: TelemetryLayout) -> tuple[str, ...]:
        """Fields to decode; the first message decides."""
        if self._names is None:
            wanted = None if self.wanted is None else {"timestamp", *self.wanted}
            self._names = tuple(name for name in layout.names if wanted is None or name in wanted)
        for name in self._names:
            if name not in layout.places:
                raise MissingFieldError(
                    self.path, "is not in all messages", "record the bag again", field=name
                )
        return self._names

    def _refuse(self, problem: str) -> RecordingError:
        return RecordingError(self.path, problem, RECOVER, field=TELEMETRY_TOPIC)


def _same(layout: TelemetryLayout, messages: Bytes) -> int:
    """Number of messages [n, size] from the first on that have this layout.

    They are compared in growing parts, so that frequent changes of layout cost little.
    """
    start, stop = 0, 1
    while start < len(messages):
        same = layout.template.matches(messages[start:stop])
        if not same.all():
            return start + int(np.argmin(same))
        start, stop = stop, 8 * stop
    return len(messages)
