"""TelemetrySource: the interface that live and recorded telemetry share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Self


@dataclass(frozen=True)
class LinkStatus:
    """State of a source's connection; the defaults are those of a recorded source.

    Attributes:
        connected: samples can arrive.
        reconnects: connections after the first one.
        duplicates: packets left out because the controller sent the same tick again.
        last_error: why the connection was last lost or refused, None if it never was.
        problem: why no samples arrive now, None while they do. Complete at any time: also while
            the source is being entered and waits for its controller.
        lost: samples lost so far since the source was entered, those of the present outage
            included (estimated from the rate where the controller restarted or does not answer).
        lost_seconds: time without samples so far, the present outage included [s].
        outage: length of the present outage [s], 0 while samples arrive.
        identity: how the controller is told from another one at the same address, None for a
            recorded source.
    """

    connected: bool = True
    reconnects: int = 0
    duplicates: int = 0
    last_error: str | None = None
    problem: str | None = None
    lost: int = 0
    lost_seconds: float = 0.0
    outage: float = 0.0
    identity: str | None = None


class TelemetrySource(Protocol):
    """Samples in batches, in order, each exactly once.

    A source is a context manager: entering it connects (or opens), leaving it closes.
    """

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording; complete once the source is entered."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns of each batch; known once the source is entered."""
        ...

    @property
    def status(self) -> LinkStatus:
        """State of the connection, at any time."""
        ...

    def take_events(self) -> list[Event]:
        """Events since the last call, in order; a recorded source has none."""
        ...

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch of at least one sample.

        Args:
            timeout: longest time to wait [s].

        Returns:
            The batch, or None if none came in time (or a live source is reconnecting).

        Raises:
            EOFError: the source is closed, or a recorded source has ended.
            UrEnergyError: the source failed for good.
        """
        ...

    def close(self) -> None:
        """Release the source, entered or not; another thread may be reading it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
