"""Sink: the interface between the estimator and whatever shows or forwards its readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.sinks.arm_reading import ArmReading

NOT_OPEN = "not open yet"
"""Problem of a sink that was made a moment ago."""


@dataclass(frozen=True)
class SinkStatus:
    """State of a sink.

    Attributes:
        name: such as "foxglove 127.0.0.1:8765".
        problem: why readings do not arrive now, None while they do.
        delivered: number of readings delivered.
        dropped: number of readings left out because the sink was too slow or away.
        waiting: number of readings that wait.
        clients: number of connected clients, None where a sink does not know.
    """

    name: str
    problem: str | None = None
    delivered: int = 0
    dropped: int = 0
    waiting: int = 0
    clients: int | None = None


class Sink(Protocol):
    """Takes readings; never blocks and never raises once it is made.

    Making one checks what the user stated (address, files) and raises UrEnergyError; a server that
    cannot be reached or a port in use later is a `problem` of its status, and is tried again.
    """

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        ...

    def offer(self, reading: ArmReading) -> None:
        """Take a reading; it is left out and counted if the queue is full."""
        ...

    def close(self) -> None:
        """Deliver what waits, for a short time at most, and release everything."""
        ...


def problem_words(error: Exception) -> str:
    """Why a sink failed, for users: in the system's words, or as in the message of a library."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    if isinstance(error, UrEnergyError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else repr(error)
