"""ArmCommands: what sinks may ask of the estimator whose readings they get."""

from __future__ import annotations

from typing import Protocol


class ArmCommands(Protocol):
    """Changes of the counters that a user may ask for through a sink, from any thread.

    Each raises UrEnergyError as long as the arm is not known.
    """

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue."""
        ...

    def read_interval(self) -> dict[str, object]:
        """Energies since the last call, as the service ~/read_interval returns them."""
        ...

    def start_cycle(self) -> None:
        """End the cycle; the next sample starts a new one."""
        ...
