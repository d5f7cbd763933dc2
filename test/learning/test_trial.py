# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Acceptance: chance does not replace a model, an improvement does."""

from __future__ import annotations

import numpy as np

from ur_energy_model.learning.trial import better_or_worse


def losses(scale: float, seed: int, cells: int = 60) -> np.ndarray:
    return np.asarray(scale * np.random.default_rng(seed).chisquare(1, cells))


def test_equal_models_are_rarely_told_apart() -> None:
    """A one-sided test of 5 % is wrong in about 5 % of cases; these have nothing in common."""
    verdicts = [
        better_or_worse(losses(1.0, k), losses(1.0, 1000 + k)) for k in range(300)
    ]
    assert np.mean(np.array(verdicts) == 1) < 0.09
    assert np.mean(np.array(verdicts) == -1) < 0.09


def test_correlated_errors_do_not_look_like_evidence() -> None:
    """Errors that persist for five cells count once."""
    wrong = 0
    for seed in range(200):
        slow = np.repeat(np.random.default_rng(seed).normal(size=12), 5)
        wrong += better_or_worse(1.0 + 0.2 * slow, np.ones(60)) != 0
    assert wrong < 40
    shared = losses(1.0, 1)
    assert better_or_worse(2.0 * shared, shared) == 1
    assert better_or_worse(1.002 * shared, shared) == 0  # a gain that does not matter
