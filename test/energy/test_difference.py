# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Intervals of differences cover the true one as often as they say, and are unknown else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ur_energy_model.energy.difference import Difference
from ur_energy_model.typing import Array

RUNS = 2000
TRUE = 36.0

Draw = Callable[[np.random.Generator], Difference]


def normal(random: np.random.Generator, mean: float, scatter: float, count: int) -> Array:
    """Energies of independent cycles."""
    return mean + scatter * random.standard_normal(count)


def means(before: int, after: int, ratio: float = 1.0) -> Draw:
    """Cycles before and after, which scatter `ratio` times as much."""
    return lambda random: Difference.of_means(
        normal(random, 916.0, 2.0, before), normal(random, 880.0, 2.0 * ratio, after)
    )


def drifting_pairs(random: np.random.Generator) -> Difference:
    """Six pairs on a drift of several times the scatter."""
    drift = 3.0 * np.arange(6.0)
    before = normal(random, 916.0, 2.0, 6) + drift
    return Difference.of_pairs(before, normal(random, 880.0, 2.0, 6) + drift)


def sessions(random: np.random.Generator) -> Difference:
    """Means of three sessions before and two after."""
    return Difference.of_groups(
        normal(random, 916.0, 20.0, 3), normal(random, 880.0, 20.0, 2)
    )


def with_another_error(random: np.random.Generator) -> Difference:
    """Scatter of four cycles each, and an error of known size that they have in common."""
    found = means(4, 4)(random)
    moved = Difference(
        found.value + 3.0 * random.standard_normal(), found.variance, found.freedom
    )
    return moved.widened(9.0)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(means(6, 8), id="6 and 8 cycles"),
        pytest.param(means(3, 20, 5.0), id="few steady cycles, many that scatter"),
        pytest.param(means(20, 3, 5.0), id="many steady cycles, few that scatter"),
        pytest.param(means(2, 2), id="2 and 2 cycles"),
        pytest.param(means(1, 5), id="one cycle before"),
        pytest.param(means(2, 1), id="one cycle after"),
        pytest.param(drifting_pairs, id="pairs"),
        pytest.param(sessions, id="sessions"),
        pytest.param(with_another_error, id="another error"),
    ],
)
def test_the_interval_covers_the_true_difference(draw: Draw) -> None:
    random = np.random.default_rng(17)
    inside = 0
    for _ in range(RUNS):
        low, high = draw(random).interval
        inside += low < TRUE < high
    assert 0.90 <= inside / RUNS <= 0.99


def test_one_value_on_each_side_shows_no_scatter() -> None:
    one = np.array([916.0])
    found = Difference.of_means(one, one - TRUE)
    assert found.value == TRUE
    assert np.isnan(found.interval).all()
    assert np.isnan(found.widened(4.0).interval).all()
    assert np.isnan(Difference.of_pairs(one, one).interval).all()


def test_values_without_any_scatter_have_no_width() -> None:
    found = Difference.of_means(np.full(3, 916.0), np.full(4, 880.0))
    assert found.interval == (TRUE, TRUE)
