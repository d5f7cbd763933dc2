# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A system clock that a test sets, as an administrator or NTP would."""

import time
from types import SimpleNamespace

import pytest

from ur_energy_model.telemetry import clock as host_clock


class SystemClock:
    """Replaces the wall clock that `host_clock` reads; the monotonic clock stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._shift = 0
        clocks = SimpleNamespace(time_ns=self.time_ns, monotonic_ns=time.monotonic_ns)
        monkeypatch.setattr(host_clock, "time", clocks)

    def time_ns(self) -> int:
        return time.time_ns() + self._shift

    def step(self, seconds: float) -> None:
        self._shift += round(seconds * 1e9)
