# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What work has shown is counted, and what it has not is named, the most useful first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.made_up_motion import N, generic
from ur_energy_model.codec import built, plain
from ur_energy_model.learning.needs import (
    LEAST_SHARE,
    MOST,
    SPEED_EDGES,
    Coverage,
    needs,
    next_needed,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.needs import Need


def work(top: dict[int, float] | None = None) -> Coverage:
    """Varied work of a warm arm with bus power, joints up to 3 rad/s or as given."""
    coverage = Coverage(N)
    fastest = np.array([(top or {}).get(j, 3.2) for j in range(N)])
    coverage.speed_seconds[:] = 30.0 * (SPEED_EDGES[1:] <= fastest[:, None] + 1e-9)
    coverage.temperature[:] = 25.0, 42.0
    coverage.bus_seconds = 1000.0
    coverage.still_seconds = 100.0
    return coverage


def certain() -> EnergyModel:
    """A model with its currents known as well as after hours of varied work."""
    joints = tuple(
        replace(joint, current_covariance=1e-8 * joint.current_covariance)
        for joint in generic().joints
    )
    return replace(generic(), joints=joints)


def with_variance(joint: int, place: int, variance: float) -> EnergyModel:
    """A certain model but for one coefficient of a joint's current: 0 is that of its load."""
    model = certain()
    covariance = np.zeros_like(generic().joints[joint].current_covariance)
    covariance[place, place] = variance
    joints = list(model.joints)
    joints[joint] = replace(joints[joint], current_covariance=covariance)
    return replace(model, joints=tuple(joints))


def test_standstill_bus_power_and_a_cold_start_are_asked_for() -> None:
    coverage = work()
    assert needs(certain(), coverage) == ()
    assert next_needed(()) == "nothing"
    coverage.still_seconds = 0.0
    assert [need.what for need in needs(certain(), coverage)] == ["standstill"]
    coverage = work()
    coverage.temperature[:] = 38.0, 40.0
    assert needs(certain(), coverage) == ()  # the friction law knows it
    warm = tuple(
        replace(joint, friction=replace(joint.friction, temperature_range=(38.0, 40.0)))
        for joint in certain().joints
    )
    (need,) = needs(replace(certain(), joints=warm), coverage)
    assert need.what == "temperature"
    found = needs(generic(), Coverage(N))
    assert len(found) == MOST
    shares = [need.energy_share_percent for need in found]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("model", "coverage", "joint", "what", "words"),
    [
        (
            certain(),
            work({4: 0.4}),
            4,
            "speed",
            "wrist_2_joint has not moved faster than 0.4 rad",
        ),
        (with_variance(1, 0, 1.0), work(), 1, "load", "torque constant"),
        (
            with_variance(0, 1, 0.1**2),
            work(),
            0,
            "speed",
            "shoulder_pan_joint has moved too",
        ),
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
