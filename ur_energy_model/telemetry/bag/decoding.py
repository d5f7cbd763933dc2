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
_CHANGE_ITEMS = 5
"""What a layout of messages, and a change to another one, cost of a bag's budget."""
Samples: TypeAlias = dict[str, NDArray[Any]]
"""Consecutive samples: values by field, [n] or [n, width], and host times [n], ns, by STAMP."""
STAMP = ""


def are_packed(messages: Bytes) -> bool:
    """Whether messages [n, size] are packed one by one, as of `--compression-mode message`.

    Encoded messages begin with two bytes 0 and 1, or 0 and 0.
    """
    begin = np.frombuffer(ZSTD_FRAME, np.uint8)
    return messages.shape[1] >= len(begin) and bool(
        (messages[:1, : len(begin)] == begin).all()
    )


def unpacked_messages(path: Path, messages: Bytes, budget: Budget) -> Iterator[Bytes]:
    """Messages [n, size] that are packed one by one, unpacked, those of one size together.

    RecordingError: one of them cannot be unpacked, or is larger than any message.
    """
    try:
        unpacked = [unpacked_message(row.tobytes(), MAX_MESSAGE) for row in messages]
    except UnpackingError:
        problem = "has a packed message that cannot be unpacked"
        raise RecordingError(path, problem, RECOVER, field=TELEMETRY_TOPIC) from None
    for _, group in groupby(unpacked, len):
        data = b"".join(members := list(group))
        budget.spend(volume=len(data))
        yield np.frombuffer(data, np.uint8).reshape(len(members), -1)


class TelemetryDecoder:
    """Decodes the messages of one bag, whose layout may change from message to message.

    `chosen` are the RTDE names to decode beside `timestamp`; None for all fields of the
    first message.
    """

    def __init__(self, path: Path, chosen: Sequence[str] | None, budget: Budget) -> None:
        self._path = path
        self._budget = budget
        self._chosen = None if chosen is None else {"timestamp", *chosen}
        self._layouts: dict[int, list[TelemetryLayout]] = {}
        self._names: tuple[str, ...] | None = None
        self._last: TelemetryLayout | None = None

    def decode(self, messages: Bytes, *, constant_layout: bool) -> Iterator[Samples]:
        """Samples of messages [n, size]; with `constant_layout` they need not be compared.

        RecordingError: a malformed message, or beyond the limits; MissingFieldError: it
        lacks a field.
        """
        while len(messages):
            layout = self._layout_of(messages)
            if self._names is None:  # the first message decides
                names = layout.places.keys()
                chosen = self._chosen
                self._names = tuple(
                    name for name in names if chosen is None or name in chosen
                )
            for name in self._names:
                if name not in layout.places:
                    problem = "is not in all messages"
                    remedy = "record the bag again"
                    raise MissingFieldError(self._path, problem, remedy, field=name)
            count = len(messages) if constant_layout else 0
            # compared in growing parts, so that frequent changes of layout cost little
            size = 1
            while count < len(messages):
                same = layout.template.matches(messages[count : count + size])
                count += len(same) if same.all() else int(np.argmin(same))
                if not same.all():
                    break
                size *= 8
            stamp, columns = layout.decode(messages[:count], self._names)
            yield {STAMP: stamp, **columns}
            messages = messages[count:]

    def _layout_of(self, messages: Bytes) -> TelemetryLayout:
        """Layout of the first message."""
        known = self._layouts.setdefault(messages.shape[1], [])
        layout = next(
            (each for each in known if each.template.matches(messages[:1])[0]), None
        )
        if layout is None:
            self._budget.spend(items=_LAYOUT_ITEMS)
            try:
                if messages.shape[1] > MAX_MESSAGE:
                    raise CdrError(f"of {messages.shape[1]} bytes")
                layout = TelemetryLayout(messages[0].tobytes())
            except CdrError as error:
                problem = f"has a malformed message ({error})"
                raise RecordingError(
                    self._path, problem, RECOVER, field=TELEMETRY_TOPIC
                ) from None
            if "timestamp" not in layout.places:
                problem = "the messages carry no controller timestamp"
                remedy = "record with ur_energy record"
                raise MissingFieldError(self._path, problem, remedy, field="timestamp")
            known.append(layout)
        if layout is not self._last:
            self._budget.spend(items=_CHANGE_ITEMS)
            self._last = layout
        return layout
