# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of a bag as columns: packed one by one, and of changing layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.files import Budget
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.compression import (
    ZSTD_FRAME,
    UnpackingError,
    unpacked_message,
)
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.bag.messages import (
    TELEMETRY_TOPIC,
    TelemetryLayout,
)
from ur_energy_model.typing import Bytes

MAX_MESSAGE = 1 << 18
"""Largest telemetry message in bytes; with all fields it has 20 kB."""
_LAYOUT_ITEMS = 4000
"""Share of a bag's budget that each layout of messages costs, in records."""
_CHANGE_ITEMS = 5
"""Share of a bag's budget that each change to another layout costs, in records."""
Samples: TypeAlias = dict[str, NDArray[Any]]
"""Consecutive samples: values by field, [n] or [n, width], and host times [n], ns, by STAMP."""
STAMP = ""  # key of the host times, which no field has


def are_packed(messages: Bytes) -> bool:
    """Whether messages [n, size] are packed one by one, by `--compression-mode message`.

    The first message decides: messages that are not packed begin with the bytes 0 and 1,
    or 0 and 0.
    """
    mark = np.frombuffer(ZSTD_FRAME, np.uint8)
    if messages.shape[1] < len(mark):
        return False
    return bool((messages[:1, : len(mark)] == mark).all())


def unpacked_messages(path: Path, messages: Bytes, budget: Budget) -> Iterator[Bytes]:
    """Unpacked messages, consecutive ones of one size together.

    Args:
        path: path of the file, for errors.
        messages: messages that are packed one by one [n, size].
        budget: memory budget of the bag.

    Yields:
        Messages [k, size of the unpacked ones].

    Raises:
        RecordingError: a message cannot be unpacked, or is larger than any message.
    """
    try:
        unpacked = [unpacked_message(row.tobytes(), MAX_MESSAGE) for row in messages]
    except UnpackingError:
        problem = "has a packed message that cannot be unpacked"
        raise RecordingError(path, problem, RECOVER, field=TELEMETRY_TOPIC) from None
    for size, group in groupby(unpacked, len):
        data = b"".join(group)
        budget.spend(volume=len(data))
        yield np.frombuffer(data, np.uint8).reshape(-1, size)


class TelemetryDecoder:
    """Decodes the messages of one bag, whose layout may change from message to message.

    Args:
        path: path of the bag, for errors.
        chosen: RTDE names to decode beside `timestamp`; None for all fields of the first
            message.
        budget: memory budget of the bag.
    """

    def __init__(self, path: Path, chosen: Sequence[str] | None, budget: Budget) -> None:
        self._path = path
        self._budget = budget
        self._chosen = None if chosen is None else {"timestamp", *chosen}
        self._layouts: dict[int, list[TelemetryLayout]] = {}
        self._names: tuple[str, ...] | None = None
        self._last: TelemetryLayout | None = None

    def decode(self, messages: Bytes, *, constant_layout: bool) -> Iterator[Samples]:
        """Samples of consecutive messages.

        Args:
            messages: CDR with its encapsulation header [n, size].
            constant_layout: whether all messages have the layout of the first message, so
                that they need not be compared.

        Yields:
            Samples of messages of one layout.

        Raises:
            RecordingError: a message is malformed, or the budget is exceeded.
            MissingFieldError: a message lacks the timestamp or a field of the first
                message.
        """
        while len(messages):
            layout = self._layout_of(messages)
            if self._names is None:  # the first message decides
                chosen = layout.places.keys() if self._chosen is None else self._chosen
                self._names = tuple(name for name in layout.places if name in chosen)
            for name in self._names:
                if name not in layout.places:
                    problem = "is not in all messages"
                    remedy = "record the bag again"
                    raise MissingFieldError(self._path, problem, remedy, field=name)
            count = len(messages)
            if not constant_layout:
                count = _length_of_run(layout, messages)
            stamp, columns = layout.decode(messages[:count], self._names)
            yield {STAMP: stamp, **columns}
            messages = messages[count:]

    def _layout_of(self, messages: Bytes) -> TelemetryLayout:
        """Layout of the first of some messages [n, size]; a change of layout costs budget."""
        size = messages.shape[1]
        known = self._layouts.setdefault(size, [])
        fitting = (each for each in known if each.template.matches(messages[:1])[0])
        layout = next(fitting, None)
        if layout is None:
            self._budget.spend(items=_LAYOUT_ITEMS)
            layout = self._new_layout(messages[0].tobytes())
            known.append(layout)
        if layout is not self._last:
            self._budget.spend(items=_CHANGE_ITEMS)
            self._last = layout
        return layout

    def _new_layout(self, message: bytes) -> TelemetryLayout:
        """Layout of a message that no known layout fits.

        Raises:
            RecordingError: the message is malformed or too large.
            MissingFieldError: it has no timestamp.
        """
        try:
            if len(message) > MAX_MESSAGE:
                raise CdrError(f"of {len(message)} bytes")
            layout = TelemetryLayout(message)
        except CdrError as error:
            problem = f"has a malformed message ({error})"
            raise RecordingError(
                self._path, problem, RECOVER, field=TELEMETRY_TOPIC
            ) from None
        if "timestamp" not in layout.places:
            problem = "the messages carry no controller timestamp"
            remedy = "record with ur_energy record"
            raise MissingFieldError(self._path, problem, remedy, field="timestamp")
        return layout


def _length_of_run(layout: TelemetryLayout, messages: Bytes) -> int:
    """Number of messages [n, size], from the first one on, that have a layout.

    They are compared in growing parts, so that frequent changes of layout cost little.
    """
    count = 0
    size = 1
    while count < len(messages):
        same = layout.template.matches(messages[count : count + size])
        if not same.all():
            return count + int(np.argmin(same))
        count += len(same)
        size *= 8
    return count
