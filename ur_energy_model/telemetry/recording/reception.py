"""Reception: what a recorder received for one bag, and what did not arrive."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.telemetry.recording.options_and_status import RecorderStatus
from ur_energy_model.telemetry.samples import Gap, Telemetry
from ur_energy_model.telemetry.source import LinkStatus


@dataclass
class Reception:
    """Samples accepted for one bag, counted before anything can happen to them.

    Attributes:
        duration: length of the bag that was asked for [s], None without limit.
        samples: accepted.
        missing: samples that did not arrive, by the gaps of the batches.
        missing_seconds: time of these gaps [s].
        first_time, last_time: controller times of the first and the last sample [s]; the first one
            by the present clock, if the controller restarted.
        began: when the bag began [monotonic s].
    """

    duration: float | None = None
    samples: int = 0
    missing: int = 0
    missing_seconds: float = 0.0
    first_time: float = math.nan
    last_time: float = math.nan
    began: float = field(default_factory=time.monotonic)

    def accept(self, batch: Telemetry) -> Telemetry:
        """Count a batch, and limit the gap in front of the bag's first sample to the bag."""
        if not len(batch):
            return batch
        if not self.samples:
            batch = self._limit_first_gap(batch)
            self.first_time = float(batch.time[0])
        for gap in batch.gaps:
            self.missing += gap.missing
            self.missing_seconds += gap.seconds
        self.samples += len(batch)
        self.last_time = float(batch.time[-1])
        return batch

    def note_restart(self, batch: Telemetry) -> None:
        """Refer the bag's begin to the clock of a controller that restarted, by the host's clock.

        Args:
            batch: next one.
        """
        first = float(batch.time[0])
        away = any(gap.index == 0 and gap.away is not None for gap in batch.gaps)
        if self.samples and (away or first < self.last_time):
            self.first_time = first - (time.monotonic() - self.began)

    def within_duration(self, batch: Telemetry, rate: float | None) -> tuple[Telemetry, bool]:
        """The part of a batch that belongs into the bag, and whether the bag ends with it."""
        if self.duration is None:
            return batch, False
        self.note_restart(batch)
        begin = float(batch.time[0]) if math.isnan(self.first_time) else self.first_time
        half = 0.5 / (rate or 1000.0)
        keep = int(np.searchsorted(batch.time, begin + self.duration - half))
        gaps = tuple(gap for gap in batch.gaps if gap.index < keep)  # one may lie in front
        return replace(batch.cut(slice(0, keep)), gaps=gaps), keep < len(batch)

    def outage(self, link: LinkStatus, rate: float | None) -> Gap | None:
        """The present outage as a gap behind the last sample, None if samples arrive.

        It begins with the bag at the earliest and ends with its duration at the latest.

        Args:
            link: state of the source.
            rate: of its samples [Hz], None if unknown.
        """
        away = min(link.outage, time.monotonic() - self.began)
        if away <= 0.0:
            return None
        what = "no samples" if link.connected else "connection lost"
        return self._last_gap(away, rate, f"{what}: {link.problem}")

    def counted(
        self, status: RecorderStatus, outage: Gap | None, rate: float | None
    ) -> RecorderStatus:
        """State of a bag with the samples that are missing in it.

        Args:
            status: as on the writing side.
            outage: in which the bag ends, or that lasts; None if there is none.
            rate: of the samples [Hz], None if unknown.
        """
        dropped = status.overflow + status.unreadable
        if status.state in ("idle", "stopped"):  # now the bag counts
            dropped = max(0, self.samples - status.samples - status.removed)
            status = replace(status, unreadable=max(0, dropped - status.overflow))
        return replace(
            status,
            lost=self.missing + dropped + (0 if outage is None else outage.missing),
            lost_seconds=self.missing_seconds
            + (dropped / rate if rate else 0.0)
            + (0.0 if outage is None else outage.seconds),
        )

    def cut_gap(self, gap: Gap, rate: float | None) -> Gap | None:
        """The part within the bag of a gap at whose end the bag's duration is over."""
        cut = self._last_gap(math.inf, rate, gap.cause)
        return None if cut is None or (rate and not cut.missing) else cut

    def _last_gap(self, away: float, rate: float | None, cause: str) -> Gap | None:
        """A gap behind the last sample that ends with the bag's duration at the latest."""
        periods, start = round(min(away * (rate or 0.0), 2**53)), 0.0
        if self.samples:
            start = self.last_time
        if self.duration is not None and start >= self.first_time:
            rest = self.first_time + self.duration - start
            if rest <= away:  # the next sample would be the first behind the bag
                away, periods = rest, round(rest * (rate or 0.0)) - 1
        if not math.isfinite(away) or away <= 0.0:
            return None
        return Gap(self.samples, start, start + away, max(periods, 0), cause, away)

    def _limit_first_gap(self, batch: Telemetry) -> Telemetry:
        """A batch whose gap in front is no longer than the time since the bag began."""
        gaps = batch.gaps
        if not gaps or gaps[0].index > 0:
            return batch
        first, seconds = gaps[0], time.monotonic() - self.began
        if first.seconds > seconds:
            share = seconds / first.seconds
            first = replace(first, missing=round(share * first.missing), away=seconds)
        return replace(batch, gaps=(first, *gaps[1:]))
