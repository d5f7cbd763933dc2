# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction to expect of the next session: drift is followed, scatter is averaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from test.properties import examples
from test.truth import first_fast
from ur_energy_model.model.next_session import expected_friction
from ur_energy_model.model.sessions import FRICTION_SPREAD
from ur_energy_model.typing import Array

N = 6
SESSIONS = 6
ARMS = 40


def wearing(random: np.random.Generator) -> Array:
    """Friction that falls by 6 % a session, with little scatter."""
    sessions = np.arange(SESSIONS + 1)[:, None]
    return -0.06 * sessions + 0.03 * random.standard_normal((SESSIONS + 1, N))


def wandering(random: np.random.Generator) -> Array:
    """A random walk of each joint, 5 % a session."""
    return 0.05 * random.standard_normal((SESSIONS + 1, N)).cumsum(axis=0)


def scattering(random: np.random.Generator) -> Array:
    """Friction that only scatters, by 7 %, half of it in common."""
    common = random.standard_normal((SESSIONS + 1, 1))
    return 0.05 * (common + random.standard_normal((SESSIONS + 1, N)))


def running_in(random: np.random.Generator) -> Array:
    """Friction that scatters and falls by 30 %, soon ever more slowly."""
    fallen = 0.3 * (1.0 - np.exp(-np.arange(SESSIONS + 1)[:, None] / 5.0))
    return 0.5 * scattering(random) + np.log(1.0 - fallen)


@pytest.mark.parametrize(
    ("friction", "of_last", "of_mean"),
    first_fast(
        [
            (wearing, 0.9, 0.35),
            (wandering, 1.12, 0.9),
            (scattering, 0.85, 1.08),
            (running_in, 1.0, 0.8),
        ]
    ),
)
def test_the_next_session_is_expected_at_least_as_well_as_by_the_last_or_the_mean(
    friction, of_last, of_mean
):
    """Ratios of rms errors over arms, and z of the stated spread."""
    expected = []
    last = []
    mean = []
    z = []
    for arm in range(ARMS):
        random = np.random.default_rng([4801, arm])
        levels = friction(random)
        levels = levels - levels[:-1].mean(axis=0)
        measured = levels[:-1] + 0.01 * random.standard_normal((SESSIONS, N))
        found = expected_friction(measured, np.full((SESSIONS, N), 0.01))
        truth = levels[-1]
        expected.append(np.log(found.factor) - truth)
        last.append(measured[-1] - truth)
        mean.append(-truth)
        z.append(expected[-1] / found.spread)
    rms = [float(np.sqrt(np.mean(np.square(each)))) for each in (expected, last, mean)]
    assert rms[0] < of_last * rms[1]
    assert rms[0] < of_mean * rms[2]
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.3
    assert np.mean(np.abs(z) < 1.96) > 0.88


def test_sessions_in_no_order_give_their_mean_and_scatter():
    levels = scattering(np.random.default_rng(4802))
    levels = levels - levels.mean(axis=0)
    errors = np.full_like(levels, 0.01)
    found = expected_friction(levels, errors, ordered=False)
    turned = expected_friction(levels[::-1], errors, ordered=False)
    np.testing.assert_allclose(found.factor, 1.0, atol=0.003)
    np.testing.assert_allclose(found.factor, turned.factor, rtol=1e-6)
    worn = expected_friction(wearing(np.random.default_rng(4803)), errors, ordered=False)
    assert (worn.spread > found.spread).all()


def test_a_joint_that_varies_more_has_a_wider_spread_and_one_that_never_moved_the_prior():
    levels = 0.02 * np.random.default_rng(4804).standard_normal((12, N))
    levels[:, 2] *= 8.0
    levels[:, 5] = np.nan
    found = expected_friction(levels, np.full_like(levels, 0.01))
    assert found.spread[2] > 2.0 * found.spread[[0, 1, 3, 4]].max()
    assert (found.factor[5], found.spread[5]) == (1.0, FRICTION_SPREAD)


@examples(20)
@given(
    arrays(float, st.tuples(st.integers(1, 45), st.integers(1, 7)),
           elements=st.floats(-1.7, 1.7) | st.just(float("nan"))),
    st.floats(0.0, 1e6),
    st.booleans(),
)  # fmt: skip
def test_any_levels_give_a_possible_friction(levels, error, ordered):
    found = expected_friction(levels, np.full_like(levels, error), ordered=ordered)
    assert (found.factor > 0.0).all()
    assert np.isfinite(found.factor).all()
    assert (found.spread > 0.0).all()
    assert np.isfinite(found.spread).all()
