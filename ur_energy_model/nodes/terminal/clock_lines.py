"""ClockLines: steps of the system's clock, as lines for the operator."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.terminal.problem_lines import RepeatedLines
from ur_energy_model.telemetry.host_clock import HOST_CLOCK, HostClock


class ClockLines:
    """Lines about steps of the system's clock.

    Args:
        host_clock: notices the steps.
        clock: time [s].
    """

    def __init__(
        self, host_clock: HostClock = HOST_CLOCK, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._host_clock = host_clock
        self._steps = host_clock.check()
        self._lines = RepeatedLines(Level.WARN, clock)

    def update(self) -> list[Line]:
        """Lines due now."""
        if self._host_clock.check() == self._steps:
            return []
        self._steps = self._host_clock.steps
        return self._lines.happened(self._host_clock.describe_step())
