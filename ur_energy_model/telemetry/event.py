"""Event: something that happened beside the samples of a recording."""

from __future__ import annotations

from dataclasses import dataclass

INFORMATION, WARNING, ERROR = 20, 30, 40
"""Levels of an event, as in rcl_interfaces/msg/Log."""


@dataclass(frozen=True)
class Event:
    """Something that happened while recording.

    Attributes:
        stamp: host time [ns since the epoch].
        kind: "mark", "message", "gap", ...
        text: for the reader of the bag.
        level: INFORMATION, WARNING or ERROR.
    """

    stamp: int
    kind: str
    text: str
    level: int = INFORMATION
