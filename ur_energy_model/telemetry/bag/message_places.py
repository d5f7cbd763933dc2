"""Places of the messages in a chunk, found a pattern at a time.

Recorders write the same topics in the same order over and over. Once a pattern of messages has come
twice, the rest of the chunk is compared with it as an array, which finds the same places as reading
record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.mcap_format import PREFIX

Positions = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Offsets [n] and lengths [n] of messages in a chunk."""
_HEAD = PREFIX.size + 2
"""Bytes of a record that name its type, length and channel."""
_GROWTH = 8


class _Place(NamedTuple):
    channel: int
    start: int
    length: int


class MessagePlaces:
    """Collects the places of messages, in order."""

    def __init__(self) -> None:
        self._single: list[_Place] = []
        self._channels: list[NDArray[np.int64]] = []
        self._starts: list[NDArray[np.int64]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, channel: int, start: int, length: int) -> None:
        """Add one message: its channel, and offset and length of its content."""
        self._single.append(_Place(channel, start, length))

    def repeat(self, body: bytes, position: int, last: int) -> int:
        """Add the messages that repeat the pattern of the last ones added.

        Args:
            body: records of a chunk.
            position: behind the last message added.
            last: number of messages added last that have no other records between them.

        Returns:
            Position behind the last message that belongs to the pattern.
        """
        pattern = _pattern(self._single[-last:])
        if not pattern:
            return position
        begin = pattern[0].start - PREFIX.size
        stride = position - begin
        heads = np.array([place.start - PREFIX.size for place in pattern])
        expected = _heads(body, heads)
        count, limit = 0, (len(body) - position) // stride
        step = 1
        while count < limit:  # compared in growing parts, so that short repeats cost little
            rounds = np.arange(count, min(count + step, limit))
            same = _heads(body, position + stride * rounds[:, None] + heads - begin) == expected
            fits = same.all(axis=(1, 2))
            if not fits.all():
                count += int(np.argmin(fits))
                break
            count, step = count + len(rounds), _GROWTH * step
        self._flush()
        rounds = np.arange(count)[:, None]
        starts = position + stride * rounds + heads - begin + PREFIX.size
        self._starts.append(starts.ravel())
        self._channels.append(np.tile([place.channel for place in pattern], count))
        self._lengths.append(np.tile([place.length for place in pattern], count))
        return position + stride * count

    def by_channel(self) -> dict[int, Positions]:
        """Offsets and lengths of the messages of each channel, in order."""
        self._flush()
        if not self._channels:
            return {}
        channels, starts, lengths = map(
            np.concatenate, (self._channels, self._starts, self._lengths)
        )
        return {
            int(channel): (starts[channels == channel], lengths[channels == channel])
            for channel in dict.fromkeys(channels.tolist())
        }

    def _flush(self) -> None:
        """Move messages added one by one to the arrays."""
        if self._single:
            channel, start, length = np.array(self._single, np.int64).T
            self._channels.append(channel)
            self._starts.append(start)
            self._lengths.append(length)
            self._single = []


def _pattern(places: Sequence[_Place]) -> Sequence[_Place]:
    """The last messages, if those before them have the same channels and lengths; else none.

    Patterns are a quarter to a half of the messages long, so that they hold rare topics too.
    """
    kinds = [(place.channel, place.length) for place in places]
    count = len(kinds)
    for size in range(max(1, count // 4), count // 2 + 1):
        if kinds[count - size :] == kinds[count - 2 * size : count - size]:
            return places[count - size :]
    return ()


def _heads(body: bytes, places: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Type, length and channel of the records at these offsets [..., bytes]."""
    data = np.frombuffer(body, np.uint8)
    heads: NDArray[np.uint8] = data[places[..., None] + np.arange(_HEAD)]
    return heads
