"""HostClock: the one clock of a process, for the stamps of samples, events, marks and bag names.

It follows the monotonic clock, so that nothing jumps when the system's clock is set. A step of the
system's clock takes effect between recordings: at once where none runs, else with the next bag.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ur_energy_model.telemetry.samples import Telemetry

STEP_SECONDS = 1.0
"""Change of the system's clock that counts as a step [s]; smaller ones add up until they do."""
READING_NS = 1_000_000
"""Longest time between two readings of the clocks that belong together [ns]."""
_ATTEMPTS = 10


class HostClock:
    """Wall-clock time that does not jump when the system's clock is set.

    Sources stamp samples and events by `now`, which never steps. Consumers add the `correction`
    (`corrected`, `stamp`), which is constant while somebody holds it.

    Attributes:
        correction: what steps of the system's clock have added to `now` [ns].
        steps: number of steps noticed so far.
        last_step: extent of the last one [s], positive where the clock was set forward.
    """

    def __init__(self) -> None:
        self.correction = 0
        self.steps = 0
        self.last_step = 0.0
        self._lock = threading.Lock()
        self._holders = 0
        self._offset = self._seen = _wall_minus_monotonic()

    def now(self) -> int:
        """Nanoseconds since the epoch by the system's clock as it was when the process started."""
        return time.monotonic_ns() + self._offset

    def stamp(self) -> int:
        """Corrected time, for events and names [ns since the epoch]."""
        return self.now() + self.correction

    def corrected(self, batch: Telemetry) -> Telemetry:
        """A live batch with corrected stamps."""
        if self.correction == 0 or batch.stamp is None:
            return batch
        return replace(batch, stamp=batch.stamp + self.correction)

    def check(self) -> int:
        """Look for steps of the system's clock; returns `steps`."""
        offset = _wall_minus_monotonic()
        with self._lock:
            step = (offset - self._seen) * 1e-9
            if abs(step) >= STEP_SECONDS:
                self._seen, self.last_step = offset, step
                self.steps += 1
            if self._holders == 0:
                self.correction = self._due()
            return self.steps

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the correction constant in this block."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def hold(self) -> None:
        """Keep the correction constant from now on, until `release` was called as often."""
        self.check()
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """End a `hold`."""
        with self._lock:
            self._holders -= 1

    def describe_step(self) -> str:
        """The last step, for events and diagnostics."""
        direction = "forward" if self.last_step > 0 else "back"
        applied = "stamps follow it"
        if self.correction != self._due():
            applied = "stamps follow it from the next recording on"
        return f"the system's clock was set {direction} by {abs(self.last_step):.1f} s; {applied}"

    def _due(self) -> int:
        """Correction that all steps so far ask for; steps that cancel out ask for none [ns]."""
        total = self._seen - self._offset
        return total if abs(total) * 1e-9 >= STEP_SECONDS else 0


def _wall_minus_monotonic() -> int:
    """Offset between the clocks [ns]; the process may be interrupted between two readings."""
    best: tuple[int, int] | None = None
    for _ in range(_ATTEMPTS):
        before = time.monotonic_ns()
        wall = time.time_ns()
        width = time.monotonic_ns() - before
        if best is None or width < best[0]:
            best = (width, wall - before - width // 2)
        if width < READING_NS:
            break
    assert best is not None
    return best[1]


HOST_CLOCK = HostClock()
"""The clock of this process."""
