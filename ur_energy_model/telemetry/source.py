"""TelemetrySource: the small interface that live and recorded telemetry share."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import Self

from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


class TelemetrySource(Protocol):
    """Samples in batches, oldest first, none twice and none left out.

    A source is a context manager: entering it connects (or opens), leaving it closes.
    """

    @property
    def info(self) -> RecordingInfo:
        """What is known of the robot; complete after the source was entered."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns that batches have; known after the source was entered."""
        ...

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch of at least one sample.

        Args:
            timeout: longest time to wait [s].

        Returns:
            The batch, or None where none came in time (or a live source is reconnecting).

        Raises:
            EOFError: a recorded source has no more samples.
            UrEnergyError: the source failed for good.
        """
        ...

    def close(self) -> None:
        """Release the source; reading afterwards is an error."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
