"""Reads messages of bags with sqlite3 storage, through the rosbags library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.typing import Bytes

_GROUP = 1000


def sqlite_messages(path: Path) -> Iterator[Bytes]:
    """Telemetry messages in order, as arrays [n, size] of equal size.

    Raises:
        RecordingError: the bag cannot be read.
    """
    from rosbags.rosbag2 import Reader, ReaderError

    group: list[bytes] = []
    try:
        with Reader(path) as reader:
            wanted = [each for each in reader.connections if each.topic == TELEMETRY_TOPIC]
            for _, _, data in reader.messages(wanted):
                if group and (len(data) != len(group[0]) or len(group) == _GROUP):
                    yield _stack(group)
                    group = []
                group.append(bytes(data))
    except (ReaderError, OSError, ValueError) as error:
        raise RecordingError(
            path, f"cannot be read ({error})", "convert the bag to MCAP storage"
        ) from None
    if group:
        yield _stack(group)


def _stack(group: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(group), np.uint8).reshape(len(group), -1)
