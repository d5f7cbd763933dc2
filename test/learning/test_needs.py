"""What work has shown is counted, and what it has not is named, the most useful first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.learning.made_up_motion import N, generic
from ur_energy_model.codec import built, plain
from ur_energy_model.learning.history import Need
from ur_energy_model.learning.needs import (
    LEAST_SHARE,
    MOST,
    SPEED_EDGES,
    Coverage,
    needs,
    next_needed,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


def work(top: dict[int, float] | None = None) -> Coverage:
    """Varied work of a warm arm with bus power, joints up to 3 rad/s or as given."""
    coverage = Coverage(N)
    fastest = np.array([(top or {}).get(j, 3.2) for j in range(N)])
    coverage.speed_seconds[:] = 30.0 * (SPEED_EDGES[1:] <= fastest[:, None] + 1e-9)
    coverage.temperature[:] = 25.0, 42.0
    coverage.bus_seconds, coverage.still_seconds = 1000.0, 100.0
    return coverage


def certain(model: EnergyModel | None = None, factor: float = 1e-8) -> EnergyModel:
    """A model with its currents known as well as after hours of varied work."""
    model = generic() if model is None else model
    joints = tuple(
        replace(joint, current_covariance=factor * joint.current_covariance)
        for joint in model.joints
    )
    return replace(model, joints=joints)


def test_nothing_is_asked_for_when_all_is_known():
    found = needs(certain(), work())
    assert found == ()
    assert next_needed(found) == "nothing"


def with_variance(joint: int, place: int, variance: float) -> EnergyModel:
    """A certain model but for one coefficient of a joint's current: 0 is that of its load."""
    model = certain()
    covariance = np.zeros_like(generic().joints[joint].current_covariance)
    covariance[place, place] = variance
    joints = list(model.joints)
    joints[joint] = replace(joints[joint], current_covariance=covariance)
    return replace(model, joints=tuple(joints))


def test_standby_without_bus_power_or_standstill():
    coverage = work()
    coverage.still_seconds = 0.0
    assert [need.what for need in needs(certain(), coverage)] == ["standstill"]
    coverage.bus_seconds = 0.0
    assert [need.what for need in needs(certain(), coverage)] == ["bus_power"]


def test_a_cold_start_is_asked_for_unless_the_friction_law_knows_it():
    coverage = work()
    coverage.temperature[:] = 38.0, 40.0
    assert needs(certain(), coverage) == ()
    warm = tuple(
        replace(joint, friction=replace(joint.friction, temperature_range=(38.0, 40.0)))
        for joint in certain().joints
    )
    (need,) = needs(replace(certain(), joints=warm), coverage)
    assert need.what == "temperature"
    assert "39 degC" in need.words


def test_the_list_is_short_and_sorted():
    found: tuple[Need, ...] = needs(generic(), Coverage(N))
    assert len(found) == MOST
    shares = [need.energy_share_percent for need in found]
    assert shares == sorted(shares, reverse=True)


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


@pytest.mark.parametrize(
    ("model", "coverage", "joint", "what", "words"),
    [
        (certain(), work({4: 0.4}), 4, "speed", "wrist_2_joint has not moved faster than 0.4 rad"),
        (certain(), work({2: 0.0}), 2, "speed", "elbow_joint has hardly moved"),
        (with_variance(1, 0, 1.0), work(), 1, "load", "torque constant"),
        (with_variance(0, 1, 0.1**2), work(), 0, "speed", "shoulder_pan_joint has moved too"),
    ],
)
def test_what_a_joint_lacks(
    model: EnergyModel, coverage: Coverage, joint: int, what: str, words: str
) -> None:
    (need,) = needs(model, coverage)
    assert (need.joint, need.what) == (joint, what)
    assert words in need.words
    assert next_needed((need,)) == need.words
    assert need.energy_share_percent >= LEAST_SHARE
    assert built(Need, plain(need)) == need
