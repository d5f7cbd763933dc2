"""JournalEntry: the numbers of one entry of the journal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.live.counters_check import check_highest, check_reading, check_time
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class JournalEntry:
    """Counters at one publication.

    Attributes:
        lifetime: energies since the state file was created.
        clock: controller time of the last sample [s], None where there was none.
        highest: as in Counters; None in entries of earlier versions.
    """

    lifetime: MeterReading
    clock: float | None
    highest: Array | None = None

    @property
    def values(self) -> Array:
        """The entry as numbers."""
        lifetime = self.lifetime
        clock = float("nan") if self.clock is None else self.clock
        highest = () if self.highest is None else (self.highest,)
        times = (lifetime.accounted, lifetime.unaccounted, clock)
        return np.concatenate([lifetime.net, lifetime.consumed, times, *highest])

    @staticmethod
    def lengths(channels: int) -> tuple[int, int]:
        """Possible numbers of values: of earlier versions, and of this one."""
        return 2 * channels + 3, 3 * channels + 3

    @classmethod
    def from_values(cls, values: list[float], channels: int) -> JournalEntry:
        """The entry that `values` state.

        Raises:
            ValueError: counters that no arm can have.
        """
        net, consumed, rest = np.split(np.array(values), (channels, 2 * channels))
        lifetime = MeterReading(net, consumed, float(rest[0]), float(rest[1]))
        check_reading(lifetime)
        clock = None if np.isnan(rest[2]) else check_time(float(rest[2]))
        highest = check_highest(rest[3:], lifetime) if rest[3:].size else None
        return cls(lifetime, clock, highest)
