"""TelemetryDecoder: telemetry messages of a bag as columns, and SeenSamples: each sample once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.files import Budget
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.samples import join_columns
from ur_energy_model.typing import Array, Bytes, Mask

MAX_MESSAGE = 1 << 18
"""Largest telemetry message in bytes; with all fields it has 20 kB."""
LAYOUT_ITEMS, CHANGE_ITEMS = 4000, 5
"""What a layout of messages, and a change to another one, cost of a bag's budget."""
_BLOCK = 4096
"""Samples whose times are kept together."""
_MIX = (np.int64(0x1E3779B97F4A7C15), np.int64(0x42B2AE3D27D4EB4F))
"""Odd factors that make one key of two times."""
_T = TypeVar("_T")


class DecodedSamples(NamedTuple):
    """Consecutive samples of a bag: stamps [n] (ns) and columns by field name."""

    stamp: NDArray[np.int64]
    columns: dict[str, Array]

    def cut(self, part: slice | Mask) -> DecodedSamples:
        """Part of the samples; the arrays of a slice are views."""
        columns = {name: values[part] for name, values in self.columns.items()}
        return DecodedSamples(self.stamp[part], columns)


def join_samples(parts: Sequence[DecodedSamples]) -> DecodedSamples:
    """Consecutive parts as one; the columns move out of the parts, to use memory once only."""
    if len(parts) == 1:
        return parts[0]
    stamp = np.concatenate([part.stamp for part in parts])
    return DecodedSamples(stamp, join_columns([part.columns for part in parts]))


class TelemetryDecoder:
    """Decodes the messages of one bag, whose layout may change from message to message.

    Args:
        path: of the bag, for error messages.
        chosen: RTDE names to decode beside `timestamp`; None for all fields of the first message.
        budget: of the bag.
    """

    def __init__(self, path: Path, chosen: Sequence[str] | None, budget: Budget) -> None:
        self._path, self._budget = path, budget
        self._chosen = None if chosen is None else {"timestamp", *chosen}
        self._layouts: dict[int, list[TelemetryLayout]] = {}
        self._names: tuple[str, ...] | None = None
        self._last: TelemetryLayout | None = None

    def decode(self, messages: Bytes, *, constant_layout: bool) -> Iterator[DecodedSamples]:
        """Samples of messages [n, size]; with `constant_layout` they need not be compared.

        Raises:
            RecordingError: a malformed message, or messages beyond the limits.
            MissingFieldError: a message lacks a field.
        """
        while len(messages):
            layout = self._layout_of(messages)
            if self._names is None:  # the first message decides
                chosen = self._chosen
                names = (name for name in layout.names if chosen is None or name in chosen)
                self._names = tuple(names)
            for name in self._names:
                if name not in layout.places:
                    problem, remedy = "is not in all messages", "record the bag again"
                    raise MissingFieldError(self._path, problem, remedy, field=name)
            count = len(messages) if constant_layout else 0
            size = 1  # compared in growing parts, so that frequent changes of layout cost little
            while count < len(messages):
                same = layout.template.matches(messages[count : count + size])
                count += len(same) if same.all() else int(np.argmin(same))
                if not same.all():
                    break
                size *= 8
            yield DecodedSamples(*layout.decode(messages[:count], self._names))
            messages = messages[count:]

    def _layout_of(self, messages: Bytes) -> TelemetryLayout:
        """Layout of the first message."""
        known = self._layouts.setdefault(messages.shape[1], [])
        layout = next((each for each in known if each.template.matches(messages[:1])[0]), None)
        if layout is None:
            self._budget.spend(items=LAYOUT_ITEMS)
            try:
                if messages.shape[1] > MAX_MESSAGE:
                    raise CdrError(f"of {messages.shape[1]} bytes")
                layout = TelemetryLayout.of_message(messages[0].tobytes())
            except CdrError as error:
                problem = f"has a malformed message ({error})"
                raise RecordingError(self._path, problem, RECOVER, field=TELEMETRY_TOPIC) from None
            if "timestamp" not in layout.places:
                problem = "the messages carry no controller timestamp"
                remedy = "record with ur_energy record"
                raise MissingFieldError(self._path, problem, remedy, field="timestamp")
            known.append(layout)
        if layout is not self._last:
            self._budget.spend(items=CHANGE_ITEMS)
            self._last = layout
        return layout


class SeenSamples:
    """Separates samples of a bag that came before from new ones.

    A repeated sample has the controller time and the host time of an earlier one; a controller that
    started again has new host times. The times seen are kept compressed, some bytes a sample, and
    are compared only where host times do not all advance.

    Attributes:
        in_order: whether the host times of all samples so far advanced.
    """

    def __init__(self) -> None:
        self.in_order = True
        self._newest = np.iinfo(np.int64).min
        self._waiting: list[NDArray[np.int64]] = []
        self._count = 0
        self._kept: list[tuple[int, int, bytes]] = []
        """Lowest and highest host time of a block, and its times."""

    def are_new(self, time: Array, stamp: NDArray[np.int64]) -> Mask:
        """Which samples [n >= 1] are new; they count as seen from now on.

        Args:
            time: controller times [n], s.
            stamp: host times [n], ns; samples without one (not positive) are new.
        """
        rows = np.stack([np.ascontiguousarray(time, float).view(np.int64), stamp])
        new = np.ones(len(stamp), bool)
        if stamp[0] <= self._newest or (np.diff(stamp) <= 0).any():
            self.in_order = False
            new = self._compare(_keys(rows), int(stamp.min()), int(stamp.max())) | (stamp <= 0)
        self._newest = max(self._newest, int(stamp.max()))
        self._waiting.append(rows if new.all() else rows[:, new])
        self._count += int(np.count_nonzero(new))
        if self._count >= _BLOCK:
            self._keep()
        return new

    def _compare(self, keys: NDArray[np.int64], low: int, high: int) -> Mask:
        """Which keys [n] of samples between two host times [ns] come for the first time."""
        new = np.zeros(len(keys), bool)
        new[np.unique(keys, return_index=True)[1]] = True
        for rows in self._waiting:
            if rows.size and rows[1].min() <= high and rows[1].max() >= low:
                new &= ~np.isin(keys, _keys(rows))
        for lowest, highest, packed in self._kept:
            if lowest <= high and highest >= low:
                steps = np.frombuffer(zstandard.decompress(packed), np.uint8).reshape(8, -1)
                steps = steps.T.copy().view(np.int64).reshape(2, -1)
                new &= ~np.isin(keys, _keys(np.cumsum(steps, axis=1)))
        return new

    def _keep(self) -> None:
        """Compress the times that wait; their differences repeat."""
        rows = np.concatenate(self._waiting, axis=1)
        self._waiting, self._count = [], 0
        steps = np.diff(rows, axis=1, prepend=0).view(np.uint8).reshape(-1, 8)
        packed = zstandard.ZstdCompressor(level=1).compress(steps.T.tobytes())
        self._kept.append((int(rows[1].min()), int(rows[1].max()), packed))


class SampleNumbers:
    """Indexes of the samples of a file in the bag, where each sample counts once.

    Records of a file name its samples by their indexes among those that it was recorded with. Some
    of them may be in an earlier file too; samples that the file has twice were copied later.

    Args:
        first: index in the bag of the file's first new sample.

    Attributes:
        recorded: number of the file's samples so far, without copies within it.
    """

    def __init__(self, first: int) -> None:
        self.recorded, self._next = 0, first
        self._newest = np.iinfo(np.int64).min

    def count(
        self, waiting: list[tuple[int, _T]], new: Mask, stamp: NDArray[np.int64]
    ) -> list[tuple[int, _T]]:
        """Count the next samples; returns the records that name one of them, at indexes in the bag.

        `waiting` has indexes in the file, and loses those that are returned; `new` are the samples
        [n] that are in the bag for the first time, with host times `stamp` [n], ns.
        """
        own = new
        if not new.all():
            newest = np.maximum.accumulate(np.append(self._newest, stamp))
            own = new | (stamp > newest[:-1])
        stop = self.recorded + int(np.count_nonzero(own))
        found = []
        if waiting:
            places = self.recorded + np.append(0, np.cumsum(own))
            kept = self._next + np.append(0, np.cumsum(new))
            found = self.rest([each for each in waiting if each[0] < self.recorded])
            found += [
                (int(kept[np.searchsorted(places, index)]), what)
                for index, what in waiting
                if self.recorded <= index < stop
            ]
            waiting[:] = [each for each in waiting if each[0] >= stop]
        self.recorded, self._next = stop, self._next + int(np.count_nonzero(new))
        self._newest = max(self._newest, int(stamp.max()))
        return found

    def rest(self, waiting: list[tuple[int, _T]]) -> list[tuple[int, _T]]:
        """Records behind their samples, or of the end of the file, with indexes in the bag."""
        shift = self._next - self.recorded
        return [(index + shift, what) for index, what in waiting if index <= self.recorded]


def _keys(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number [n] for the bits of controller time and the host time of each sample [2, n]."""
    keys: NDArray[np.int64] = rows[0] * _MIX[0] + rows[1] * _MIX[1]
    return keys
