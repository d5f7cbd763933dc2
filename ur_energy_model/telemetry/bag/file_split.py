"""FileSplit: when a bag continues in a new storage file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileSplit:
    """Largest extent of a storage file; None sets no limit.

    Attributes:
        seconds: between its first and last log time [s].
        bytes: of the file.
    """

    seconds: float | None = None
    bytes: int | None = None

    def is_due(self, age: int, size: int) -> bool:
        """Whether a file of this age [ns] and size [bytes] has reached a limit."""
        return (self.seconds is not None and age >= round(self.seconds * 1e9)) or (
            self.bytes is not None and size >= self.bytes
        )
