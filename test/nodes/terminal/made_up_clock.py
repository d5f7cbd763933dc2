"""A clock that a test moves."""

from __future__ import annotations


class Clock:
    """Time [s], called like time.monotonic."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
