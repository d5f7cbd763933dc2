"""Acceptance: chance does not replace a model, an improvement does."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.learning.learner import first_model
from ur_energy_model.learning.trial import ModelRecord, Trial, better_or_worse
from ur_energy_model.model.robots import load_robot


def losses(scale: float, seed: int, cells: int = 60) -> np.ndarray:
    return np.asarray(scale * np.random.default_rng(seed).chisquare(1, cells))


def test_equal_models_are_rarely_told_apart() -> None:
    """A one-sided test of 5 % is wrong in about 5 % of cases; these have nothing in common."""
    verdicts = [better_or_worse(losses(1.0, k), losses(1.0, 1000 + k)) for k in range(300)]
    assert np.mean(np.array(verdicts) == 1) < 0.09
    assert np.mean(np.array(verdicts) == -1) < 0.09


def test_correlated_errors_do_not_look_like_evidence() -> None:
    """Errors that persist for five cells count once."""
    wrong = 0
    for seed in range(200):
        slow = np.repeat(np.random.default_rng(seed).normal(size=12), 5)
        wrong += better_or_worse(1.0 + 0.2 * slow, np.ones(60)) != 0
    assert wrong < 40


def test_an_improvement_is_found() -> None:
    shared = losses(1.0, 1)
    assert better_or_worse(2.0 * shared, shared) == 1
    assert better_or_worse(shared, 2.0 * shared) == -1


def test_a_gain_that_does_not_matter_is_no_gain() -> None:
    shared = losses(1.0, 2)
    assert better_or_worse(1.002 * shared, shared) == 0


def trial(supply: float, currents: float) -> Trial:
    """A candidate with intervals half as wide and slightly different errors."""
    robot = load_robot("ur5e")
    model = first_model(robot)
    out = Trial(ModelRecord(model, robot), ModelRecord(model, robot))
    loss = 1.0 + 0.5 * np.random.default_rng(1).normal(size=40)
    other = 1.0 + 0.5 * np.random.default_rng(2).normal(size=40)
    out.present.supply = loss.tolist()
    ratio = np.sqrt(supply * np.square(loss).mean() / np.square(other).mean())
    out.candidate.supply = (ratio * other).tolist()
    out.present.currents = [np.full(6, value) for value in np.abs(loss)]
    scale = currents * np.abs(loss).mean() / np.abs(other).mean()
    out.candidate.currents = [np.full(6, scale * value) for value in np.abs(other)]
    return out


@pytest.mark.parametrize(
    ("supply", "currents", "accepted"),
    [(1.0, 1.0, True), (0.97, 1.005, True), (1.03, 1.0, False), (1.0, 1.03, False)],
)
def test_narrower_intervals_excuse_no_larger_errors(
    monkeypatch: pytest.MonkeyPatch, supply: float, currents: float, accepted: bool
) -> None:
    """Differences too small to be certain either way; only the intervals speak for it."""
    made = trial(supply, currents)
    widths = {id(made.present): 0.1, id(made.candidate): 0.05}
    monkeypatch.setattr(
        ModelRecord, "joint_intervals", property(lambda self: np.full(6, widths[id(self)]))
    )
    assert made.verdict()[0] == accepted
