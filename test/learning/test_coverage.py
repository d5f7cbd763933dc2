"""What work has shown is counted, in any batches."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.learning.needs import SPEED_EDGES, Coverage
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

RATE = 50.0


def samples(seconds: float, speed: float, *, bus: bool = True, start: float = 60.0) -> Telemetry:
    """Two joints: one at this speed, one at rest."""
    time = start + np.arange(round(seconds * RATE)) / RATE
    qd = np.column_stack([np.full(len(time), -speed), np.zeros(len(time))])
    columns = {"actual_qd": qd, "joint_temperatures": np.tile([30.0, 31.0], (len(time), 1))}
    if bus:
        columns["actual_robot_voltage"] = np.full(len(time), 48.0)
        columns["actual_robot_current"] = np.full(len(time), 1.0)
    return Telemetry(time, columns, RecordingInfo(rate=RATE))


def test_speeds_temperatures_and_standstill():
    coverage = Coverage(2)
    coverage.observe(samples(5.0, 0.5))
    coverage.observe(samples(4.0, 0.0))
    own = int(np.searchsorted(SPEED_EDGES, 0.5)) - 1
    assert coverage.speed_seconds[0, own] == pytest.approx(5.0, abs=0.1)
    assert coverage.speed_seconds.sum() == pytest.approx(5.0, abs=0.1)
    np.testing.assert_array_equal(coverage.temperature[0], [30.0, 30.0])
    assert np.isnan(coverage.temperature[1]).all()  # it has not moved
    assert coverage.still_seconds == pytest.approx(4.0, abs=0.1)
    assert coverage.bus_seconds == pytest.approx(9.0, abs=0.1)


def test_without_bus_power():
    coverage = Coverage(2)
    coverage.observe(samples(4.0, 0.0, bus=False))
    assert coverage.bus_seconds == coverage.still_seconds == 0.0


def test_unknown_speeds_and_gaps_count_for_nothing():
    coverage = Coverage(2)
    batch = samples(4.0, 0.5)
    batch.columns["actual_qd"][:] = np.nan
    coverage.observe(batch)
    assert coverage.speed_seconds.sum() == 0.0
    late = samples(2.0, 0.5)
    late.time[50:] += 3600.0
    coverage.observe(late)
    assert coverage.speed_seconds.sum() < 3.0


def test_state():
    coverage, other = Coverage(2), Coverage(2)
    coverage.observe(samples(5.0, 0.5))
    other.restore(coverage.state())
    np.testing.assert_array_equal(other.speed_seconds, coverage.speed_seconds)
    assert other.bus_seconds == coverage.bus_seconds
    with pytest.raises(ValueError, match="another arm"):
        Coverage(3).restore(coverage.state())
