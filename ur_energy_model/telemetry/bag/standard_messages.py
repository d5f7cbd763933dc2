"""Encoded messages of the standard types Float64, String and DiagnosticArray."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.diagnostic_status import Status, text_of
from ur_energy_model.telemetry.bag.cdr import ENCAPSULATION, CdrBuilder
from ur_energy_model.typing import Array, Bytes


def encode_numbers(values: Array) -> Bytes:
    """Float64 messages [n, 12] of values [n]."""
    out = np.empty((len(values), len(ENCAPSULATION) + 8), np.uint8)
    out[:, : len(ENCAPSULATION)] = np.frombuffer(ENCAPSULATION, np.uint8)
    out[:, len(ENCAPSULATION) :] = np.asarray(values, "<f8").view(np.uint8).reshape(-1, 8)
    return out


def encode_text(text: str) -> bytes:
    """A std_msgs/String."""
    builder = CdrBuilder()
    builder.string(text)
    return bytes(builder.body)


def encode_diagnostics(stamp: int, statuses: Sequence[Status]) -> bytes:
    """A DiagnosticArray stamped in ns since the epoch."""
    builder = CdrBuilder()
    for number in divmod(stamp, 1_000_000_000):
        builder.u32(number)
    builder.string("")
    builder.u32(len(statuses))
    for status in statuses:
        builder.u8(status.level)
        for text in (status.name, status.message, ""):
            builder.string(text)
        builder.u32(len(status.values))
        for key, value in status.values.items():
            builder.string(key)
            builder.string(text_of(value))
    return bytes(builder.body)
