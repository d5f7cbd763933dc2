"""Options of learning."""

from __future__ import annotations

from dataclasses import dataclass

SCHEDULE = (5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 240.0, 480.0)
"""Learned time at which the model is fitted again [s]; every LATER seconds after the last."""
LATER = 600.0


@dataclass(frozen=True)
class LearningOptions:
    """How a model is learned.

    Attributes:
        serial: serial number of the arm; samples of another arm are left out. None takes that of
            the first samples that state one.
        friction: law of friction by name, or "auto" to choose one per joint.
    """

    serial: str | None = None
    friction: str = "auto"


def next_refit(learned: float) -> float:
    """Learned time of the next refit after `learned` [s]."""
    for time in SCHEDULE:
        if time > learned + 1e-6:
            return time
    return LATER * (learned // LATER + 1)
