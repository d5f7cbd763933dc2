"""JointStateFormat: sensor_msgs/JointState messages of a driver, decoded as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import CdrError, CdrParser, Template
from ur_energy_model.typing import Array, Bytes

MOST_FORMATS = 16
"""Formats that are kept; a topic has one for each of its publishers."""
LARGEST = 1_000_000
"""Size of the largest message that is decoded [bytes]; that of an arm is below 1000."""
NAMES_SHOWN, LETTERS_SHOWN = 3, 40
"""Joint names, and letters of each, that a message to the user quotes."""


@dataclass(frozen=True)
class JointStateFormat:
    """Messages with the same joint names, in the same order, and the same numbers of values.

    Attributes:
        names: joint names.
        template: encoded message.
    """

    names: tuple[str, ...]
    template: Template

    @classmethod
    def of_message(cls, message: bytes) -> JointStateFormat:
        """Format of an encoded message.

        Raises:
            CdrError: it is not a JointState, or too large.
        """
        if len(message) > LARGEST:
            raise CdrError("message is too large for an arm")
        parser = CdrParser(message)
        parser.u32()
        parser.u32()
        parser.string()
        names = parser.strings()
        blocks = tuple(parser.doubles() for _ in range(3))
        return cls(names, Template(message, blocks, tuple(parser.padding)))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of positions, velocities and efforts."""
        position, velocity, effort = (count for _, count in self.template.blocks)
        return position, velocity, effort

    def names_any(self, joints: Sequence[str]) -> bool:
        """Whether the messages name at least one of these joints."""
        return not set(joints).isdisjoint(self.names)

    def problem(self, joints: Sequence[str]) -> str | None:
        """Why these messages are not samples of an arm with these joints; None if they are."""
        missing = [name for name in joints if name not in self.names]
        if missing:
            return f"lack {_quoted(missing)} (they name {_quoted(self.names)}); check tf_prefix"
        if any(self.names.count(name) > 1 for name in joints):
            return "name a joint twice"
        positions, velocities, _ = self.counts
        if not velocities:
            return "have no velocities, which the energy model needs"
        for count, what in ((positions, "positions"), (velocities, "velocities")):
            if count != len(self.names):
                return f"have {count} {what} for {len(self.names)} joints"
        return None

    def decode(
        self, messages: Sequence[bytes], joints: Sequence[str]
    ) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Stamps [n] (ns), positions, velocities and efforts, each [n, joints].

        Efforts are NaN where the messages have none. The format must have no `problem`.
        """
        order = [self.names.index(name) for name in joints]
        stamp, values = self.template.decode(as_array(messages))
        count = len(self.names)
        position, velocity = values[:, :count], values[:, count : 2 * count]
        effort = values[:, 2 * count :]
        if effort.shape[1] != count:
            effort = np.full((len(stamp), count), np.nan)
        return stamp, position[:, order], velocity[:, order], effort[:, order]


@dataclass
class JointStateFormats:
    """The formats seen on one topic."""

    _known: dict[int, list[JointStateFormat]] = field(default_factory=dict)

    def run(self, messages: Sequence[bytes], start: int) -> tuple[JointStateFormat, int]:
        """Format of the message at `start`, and the index behind the last one of its format.

        Raises:
            CdrError: it is not a JointState.
        """
        found = self._format_of(messages[start])
        size = len(messages[start])
        stop = start + 1
        while stop < len(messages) and len(messages[stop]) == size:
            stop += 1
        same = found.template.matches(as_array(messages[start:stop]))
        return found, start + (len(same) if same.all() else int(np.argmin(same)))

    def _format_of(self, message: bytes) -> JointStateFormat:
        known = self._known.setdefault(len(message), [])
        raw = as_array([message])
        for each in known:
            if each.template.matches(raw)[0]:
                return each
        if sum(map(len, self._known.values())) >= MOST_FORMATS:
            self._known.clear()
        found = JointStateFormat.of_message(message)
        self._known.setdefault(len(message), []).append(found)
        return found


def as_array(messages: Sequence[bytes]) -> Bytes:
    """Messages of one size as bytes [n, size]."""
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(ascii(name)[1:-1][:LETTERS_SHOWN] for name in names[:NAMES_SHOWN])
    shown = shown or "no joints"
    return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
