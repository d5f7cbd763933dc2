"""Whether reported = readable = received minus the losses that were said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from test.torture.case import Verdict
from ur_energy_model.typing import Array

TOLERANCE = 1e-7
"""Of a controller timestamp [s]."""
SLACK = 1.0
"""Time that a recording may be shorter than asked without being called short [s]."""
SHORT = 3
"""Exit code of a recording that is shorter than asked."""


@dataclass(frozen=True)
class Recorded:
    """A recording, as reported and as read back.

    Attributes:
        times: readable controller timestamps [samples], s.
        samples, lost: as reported.
        lost_seconds: as reported, 0 where it is not.
        rate: samples per second.
    """

    times: Array
    samples: int
    lost: int
    lost_seconds: float = 0.0
    rate: float = 500.0

    @classmethod
    def of(cls, times: Array, summary: Mapping[str, Any], rate: float = 500.0) -> Recorded:
        """From the JSON of `ur_energy record`."""
        seconds = float(summary.get("lost_seconds") or 0.0)
        return cls(times, int(summary["samples"]), int(summary["lost"]), seconds, rate)

    @property
    def span(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.times[-1] - self.times[0]) + 1.0 / self.rate if len(self.times) else 0.0


def check_counts(verdict: Verdict, recorded: Recorded, *, honest: bool = True) -> None:
    """Reported = readable, in order, and every missing cycle in between is reported as lost.

    Args:
        verdict: to note problems in.
        recorded: what was recorded.
        honest: whether the timestamps that were sent can be relied upon.
    """
    readable = len(recorded.times)
    verdict.expect(
        recorded.samples == readable, f"{recorded.samples} samples reported, {readable} readable"
    )
    if not readable or not honest:
        return
    verdict.expect(bool((np.diff(recorded.times) > 0.0).all()), "samples are out of order")
    missing = round(recorded.span * recorded.rate) - readable
    verdict.expect(
        missing <= recorded.lost, f"{missing} cycles are missing, {recorded.lost} reported as lost"
    )


def check_received(verdict: Verdict, recorded: Recorded, passed: Sequence[float]) -> None:
    """What is readable was received, and what was received is readable or reported as lost."""
    received = np.unique(np.asarray(passed, dtype=float))
    if not len(recorded.times):
        return
    if not verdict.expect(len(received) > 0, "samples are readable that were never sent"):
        return
    places = np.clip(np.searchsorted(received, recorded.times - TOLERANCE), 0, len(received) - 1)
    invented = int((np.abs(received[places] - recorded.times) > TOLERANCE).sum())
    verdict.expect(invented == 0, f"{invented} readable samples were never sent")
    first, last = recorded.times[0], recorded.times[-1]
    early = int((received < first - TOLERANCE).sum())
    within = int(((received >= first - TOLERANCE) & (received <= last + TOLERANCE)).sum())
    absent = within - (len(recorded.times) - invented)
    verdict.expect(
        early + absent <= recorded.lost,
        f"{early} packages before the first sample and {absent} later ones are not in the bag, "
        f"{recorded.lost} reported as lost",
    )


def check_duration(
    verdict: Verdict, recorded: Recorded, asked: float, code: int, passed: Sequence[float] = ()
) -> None:
    """A recording shorter than asked says so: exit code, and seconds lost.

    The exit code may be 0 where samples came again when the time was over: then what is missing is
    a gap like any other.
    """
    short = asked - recorded.span
    if short <= SLACK or not len(recorded.times):
        return
    back = max(passed, default=0.0) >= recorded.times[0] + asked
    verdict.expect(
        back or code == SHORT,
        f"{recorded.span:.1f} s of {asked:g} s recorded with exit code {code}",
    )
    said = max(recorded.lost_seconds, recorded.lost / recorded.rate)
    verdict.expect(
        said >= short - SLACK, f"{short:.1f} s are missing at the end, {said:.1f} s reported"
    )
