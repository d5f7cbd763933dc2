"""Speeds and accelerations are recovered from moves, and chosen for new ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from test.optimization.hand_made import (
    FAST,
    HOME,
    ROBOT,
    effort,
    sampled,
)
from ur_energy_model.optimization.pendant import (
    ProgrammedPath,
    best_trapezoid,
    fit_trapezoid,
    programmed_path,
    rounded_up,
)
from ur_energy_model.trajectory.motions import Motion, Trapezoid, move

STEP = np.array([0.2, -0.5, 0.9, 0.0, 0.1, -0.3])


def joint_path() -> ProgrammedPath:
    path = programmed_path(sampled(move(HOME, HOME + STEP, *FAST))[1], ROBOT)
    assert path is not None
    return path


@pytest.mark.parametrize(("speed", "acceleration"), [(1.5, 3.0), (0.3, 5.0), (3.0, 2.0)])
@pytest.mark.parametrize("late", [0.0, 0.0013])
def test_a_trapezoid_is_recovered(speed: float, acceleration: float, late: float) -> None:
    """Also where the move starts between two samples, and where it never reaches its speed."""
    truth = Trapezoid(0.9, speed, acceleration)
    time = np.arange(0.0, truth.duration + 0.004, 0.002)
    found = fit_trapezoid(time, truth.sample(time - late)[0])
    assert found.peak == pytest.approx(truth.peak, rel=2e-3)
    assert found.acceleration == pytest.approx(acceleration, rel=5e-3)


def test_the_best_trapezoid_fills_its_slot_and_is_never_longer() -> None:
    """Its energy is that of the best one, found by trying many."""
    slot = 2.0
    best = best_trapezoid(joint_path(), slot, effort)
    assert best is not None
    assert 0.97 * slot < best.duration <= slot
    others = []
    for ratio in np.linspace(1.02, 2.0, 200):
        speed = ratio * 0.9 / slot
        others.append(effort(move(HOME, HOME + STEP, speed, speed / (slot - 0.9 / speed))))
    assert best.energy <= 1.01 * min(others)


def test_typed_numbers_are_round_on_the_pendant() -> None:
    best = best_trapezoid(joint_path(), 1.7, effort)
    assert best is not None
    for value in (best.speed, best.acceleration):
        degrees = math.degrees(value)
        assert float(f"{degrees:.3g}") == pytest.approx(degrees, rel=1e-9)
    assert rounded_up(0.12341, 1e-3) == pytest.approx(0.124)
    assert rounded_up(0.124, 1e-3) == pytest.approx(0.124)


def test_limits_are_kept_and_no_trapezoid_is_offered_where_none_keeps_them() -> None:
    def within(motion: Motion) -> float:
        highest = np.abs(motion.sample(np.linspace(0, motion.duration, 400))[1]).max()
        return effort(motion) if highest < 0.5 else math.inf

    kept = best_trapezoid(joint_path(), 2.2, within)
    assert kept is not None
    assert kept.speed < 0.5
    assert best_trapezoid(joint_path(), 1.5, within) is None
