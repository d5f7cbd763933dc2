"""DroppedSamples: samples that a queue could not take, as a gap in front of those that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ur_energy_model.telemetry.samples import Gap, Telemetry


@dataclass
class DroppedSamples:
    """Consecutive samples that were dropped, with the gaps among them.

    Attributes:
        start, end: controller times of the first and the last one [s].
        missing: number of them, and of those that were missing among them.
        cause: of the gap.
    """

    start: float = math.nan
    end: float = math.nan
    missing: int = 0
    cause: str = ""
    _seconds: float = 0.0
    _restarted: bool = False

    def count(self, batch: Telemetry, cause: str) -> None:
        """One more batch was dropped; the longest of the causes counts."""
        if not self.missing:
            self.start = float(batch.time[0])
        self.end = float(batch.time[-1])
        self.missing += len(batch) + batch.lost
        self.cause = max(self.cause, cause, key=len)
        self._seconds += batch.duration + sum(gap.seconds for gap in batch.gaps)
        self._restarted |= any(gap.away is not None for gap in batch.gaps)

    def join(self, later: DroppedSamples) -> None:
        """Add samples that were dropped after these."""
        self.end, self.missing = later.end, self.missing + later.missing
        self.cause = max(self.cause, later.cause, key=len)
        self._seconds += later._seconds
        self._restarted |= later._restarted

    def gap(self, end: float | None = None) -> Gap:
        """A gap in front of samples that begin at this controller time [s]; None for the last."""
        away = self._seconds if self._restarted else None
        return Gap(0, self.start, self.end if end is None else end, self.missing, self.cause, away)

    def in_front_of(self, batch: Telemetry) -> Telemetry:
        """The batch with a gap in front of it, which includes the one that is there."""
        front = [gap for gap in batch.gaps if gap.index == 0]
        gap = self.gap(float(batch.time[0]))
        missing = gap.missing + sum(each.missing for each in front)
        away = [each.away for each in (gap, *front) if each.away is not None]
        gap = replace(gap, missing=missing, away=sum(away) if away else None)
        return replace(batch, gaps=(gap, *(each for each in batch.gaps if each.index > 0)))
