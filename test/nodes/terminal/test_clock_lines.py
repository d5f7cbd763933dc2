"""Lines about steps of the system's clock."""

from __future__ import annotations

import pytest

from test.nodes.terminal.made_up_clock import Clock
from test.telemetry.system_clock import SystemClock
from ur_energy_model.nodes.lines import ClockLines, Level
from ur_energy_model.telemetry.clock import HostClock


def test_steps_are_told_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    system, clock = SystemClock(monkeypatch), Clock()
    lines = ClockLines(HostClock(), clock)
    assert lines.update() == []
    system.step(3600.0)
    (line,) = lines.update()
    assert line.level is Level.WARN
    assert "forward by 3600.0 s" in line.text
    for _ in range(3):
        system.step(-5.0)
        assert lines.update() == []
    clock.wait(10.0)
    system.step(7.0)
    (line,) = lines.update()
    assert "forward by 7.0 s" in line.text
    assert "3 more times" in line.text
