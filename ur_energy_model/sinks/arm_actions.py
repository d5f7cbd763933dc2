"""ArmActions: what sinks may ask of the estimator, such as a reset of the counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ArmActions:
    """Actions on one arm; called from threads of sinks, so each must take the estimator's lock.

    Attributes:
        reset: sets the counters since reset to zero; its argument is the reason.
        read_interval: energies since the last call, as ~/read_interval returns them
            (energy_topics.statuses.interval_energies).
    """

    reset: Callable[[str], None]
    read_interval: Callable[[], Mapping[str, object]]
