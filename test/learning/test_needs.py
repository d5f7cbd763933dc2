"""What work has not shown is asked for, the most useful first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.learning.made_up_motion import N, generic
from ur_energy_model.learning.history import Need, need_from_json
from ur_energy_model.learning.needs import (
    LEAST_SHARE,
    MOST,
    SPEED_EDGES,
    Coverage,
    needs,
    next_needed,
)
from ur_energy_model.model.energy_model import EnergyModel


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


def test_a_slow_joint():
    (need,) = needs(certain(), work({4: 0.4}))
    assert (need.joint, need.what) == (4, "speed")
    assert need.speed_range is not None
    assert need.speed_range[0] == 0.4
    assert 2.0 < need.speed_range[1] <= 3.2
    assert LEAST_SHARE <= need.energy_share_percent < 10.0
    assert need.words.startswith("wrist_2_joint has not moved faster than 0.4 rad/s: its friction")
    assert next_needed((need,)) == need.words
    assert need_from_json(need.as_json()) == need


def test_the_slower_the_more():
    shares = [needs(certain(), work({0: top}))[0].energy_share_percent for top in (0.1, 0.4, 1.0)]
    assert shares[0] > shares[1] > shares[2]


def test_large_joints_first():
    found = needs(certain(), work({0: 0.4, 5: 0.4}))
    assert [need.joint for need in found] == [0, 5]


def test_a_joint_that_has_never_moved():
    coverage = work()
    coverage.speed_seconds[2] = 0.0
    (need,) = needs(certain(), coverage)
    assert "elbow_joint has hardly moved" in need.words
    assert need.joint == 2


def with_variance(joint: int, place: int, variance: float) -> EnergyModel:
    """A certain model but for one coefficient of a joint's current: 0 is that of its load."""
    model = certain()
    covariance = np.zeros_like(generic().joints[joint].current_covariance)
    covariance[place, place] = variance
    joints = list(model.joints)
    joints[joint] = replace(joints[joint], current_covariance=covariance)
    return replace(model, joints=tuple(joints))


def test_an_uncertain_torque_constant_wants_load():
    (need,) = needs(with_variance(1, 0, 1.0), work())
    assert (need.joint, need.what) == (1, "load")
    assert "torque constant" in need.words


def test_uncertain_friction_wants_more_motion():
    (need,) = needs(with_variance(0, 1, 0.1**2), work())
    assert (need.joint, need.what) == (0, "speed")
    assert "shoulder_pan_joint has moved too little: its friction" in need.words


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
