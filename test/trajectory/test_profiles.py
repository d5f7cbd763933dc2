"""Trapezoidal speed profiles: way, limits, ends at rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ur_energy_model.trajectory.motions import Trapezoid

positive = st.floats(0.05, 10.0)


@given(positive, positive, positive)
def test_it_covers_the_distance_within_its_limits_from_rest_to_rest(distance, speed, acceleration):
    profile = Trapezoid(distance, speed, acceleration)
    way, pace, rate = profile.sample(np.linspace(0.0, profile.duration, 400))
    assert way[0] == pytest.approx(0.0)
    assert way[-1] == pytest.approx(distance)
    assert pace[[0, -1]] == pytest.approx(0.0, abs=1e-9)
    assert pace.max() <= speed * (1 + 1e-9)
    assert np.abs(rate).max() <= acceleration * (1 + 1e-9)
    assert np.all(np.diff(way) >= -1e-12)


@given(positive, positive, positive)
def test_speed_and_position_are_integrals(distance, speed, acceleration):
    profile = Trapezoid(distance, speed, acceleration)
    t = np.linspace(0.0, profile.duration, 4001)
    way, pace, _ = profile.sample(t)
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]) * np.diff(t))])
    # The trapezoidal rule misses at most the corner of one step at each of the four kinks.
    assert np.abs(integral - way).max() < 4 * profile.peak * t[1]


def test_a_short_move_does_not_reach_full_speed():
    profile = Trapezoid(distance=0.1, speed=3.0, acceleration=6.0)
    assert profile.peak == pytest.approx(np.sqrt(0.6))
    assert profile.duration == pytest.approx(2 * np.sqrt(0.1 / 6.0))


def test_a_move_without_distance_takes_no_time():
    profile = Trapezoid(0.0, 1.0, 1.0)
    assert profile.duration == 0.0
    way, pace, rate = profile.sample(np.array([0.0, 1.0]))
    assert not way.any()
    assert not pace.any()
    assert not rate.any()
