"""How long packets wait for their power."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from ur_energy_model.nodes.estimator_health import latencies
from ur_energy_model.telemetry.samples import Telemetry

START = 1_700_000_000_000_000_000


def batch(first: float, count: int = 10) -> Telemetry:
    """Packets at 500 Hz whose stamps begin at START at controller time 100 s."""
    time = first + 0.002 * np.arange(count)
    stamp = START + np.rint((time - 100.0) * 1e9).astype(np.int64)
    return Telemetry(time, {}, stamp=stamp)


def known(*pairs: tuple[float, float]) -> deque[tuple[float, int]]:
    """(controller time, latency) of packets."""
    return deque((time, START + round((time - 100.0 + late) * 1e9)) for time, late in pairs)


def test_latency_is_from_the_stamp_to_the_power() -> None:
    waiting = known((100.002, 0.0003), (100.016, 0.004), (100.03, 0.001))
    assert latencies(waiting, batch(100.0)) == pytest.approx([0.0003, 0.004], abs=1e-6)
    assert [time for time, _ in waiting] == [100.03]
    assert latencies(waiting, batch(100.02)) == pytest.approx([0.001], abs=1e-6)


def test_packets_of_another_clock_do_not_stay() -> None:
    waiting = known((5000.0, 0.001), (100.004, 0.002))
    assert latencies(waiting, batch(100.0)) == pytest.approx([0.002], abs=1e-6)
    assert not waiting


def test_samples_without_stamps_have_no_latency() -> None:
    assert latencies(known((100.0, 0.001)), Telemetry(np.array([100.0]), {})) == []
