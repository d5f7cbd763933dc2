# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time laws of moves, plans of several moves, and a cycle as one motion."""

from __future__ import annotations

import numpy as np
import pytest

from test.energy.work_cycles import LIFT, PICK, PLACE, ROBOT, arm_model
from test.optimization.hand_made import HOME, sampled
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.optimization.least_energy import EnergyLaws, fastest_law
from ur_energy_model.optimization.path import PathDynamics, PathLimits
from ur_energy_model.optimization.plan_optimization import (
    LONGEST,
    optimize_moves,
    optimize_plan,
    trajectory_points,
)
from ur_energy_model.optimization.time_law import with_jerk_limit
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.plan import Plan

LIMITS = PathLimits.of_robot(ROBOT)


def straight_plan(speed: float = 2.5, acceleration: float = 5.0) -> Plan:
    segment = move(PICK + LIFT, PLACE + LIFT, speed, acceleration)
    time = np.linspace(0.0, segment.duration, 800)
    return Plan(time, *segment.sample(time))


def arm_on(plan: Plan, intervals: int | None = None) -> PathDynamics:
    model = arm_model()
    time, q, qd, _ = plan.sampled()
    return PathDynamics(model, model.dynamics(), (time, q, qd), intervals=intervals)


def curved_plan() -> Plan:
    """A blend of two lines that does not stop."""
    time = np.linspace(0.0, 2.0, 1001)
    s = (time / 2.0) ** 3 * (10 - 15 * time / 2.0 + 6 * (time / 2.0) ** 2)
    bend = np.sin(np.pi * s)[:, None] * np.array([0.0, 0.3, -0.4, 0.2, 0.0, 0.5])
    return Plan(time, PICK + s[:, None] * (PLACE - PICK) + bend)


@pytest.mark.parametrize(
    ("plan", "factor"), [(straight_plan(), 3.0), (curved_plan(), 1.05)]
)
def test_it_takes_less_energy_than_an_even_slowdown_and_keeps_path_and_limits(
    plan: Plan, factor: float
) -> None:
    model = arm_model()
    duration = factor * plan.duration
    new = optimize_plan(model, plan, duration=duration, limits=LIMITS)
    assert new.duration == pytest.approx(duration, abs=1e-6)
    slowed = predict_energy(model, plan, speed_scaling=1.0 / factor).total
    assert predict_energy(model, new).total < slowed
    _, q, qd, qdd = new.sampled()
    assert (np.abs(qd) <= LIMITS.speed).all()
    assert (np.abs(qdd) <= ROBOT.max_acceleration).all()
    assert (
        np.linalg.norm(model.dynamics().flange_speed(q, qd), axis=1).max()
        <= LIMITS.tool_speed
    )
    fine = np.linspace(0.0, plan.duration, 20_000)
    recorded = np.stack(
        [np.interp(fine, plan.time, column) for column in plan.q.T], axis=1
    )
    gaps = [np.linalg.norm(recorded - point, axis=1).min() for point in q[::5]]
    assert max(gaps) < 1e-3
    assert new.q[0] == pytest.approx(plan.q[0], abs=1e-4)
    assert new.q[-1] == pytest.approx(plan.q[-1], abs=1e-4)


def test_the_fastest_law_of_a_straight_move_is_the_trapezoid_of_its_limits() -> None:
    arm = arm_on(straight_plan(), 200)
    wide = PathLimits(LIMITS.speed, np.full(6, 4.0), np.full(6, 1e4), tool_speed=10.0)
    fastest = fastest_law(arm, wide).duration
    step = np.abs(PLACE - PICK).max()
    exact = step / wide.speed.max() + wide.speed.max() / 4.0
    if step * 4.0 < wide.speed.max() ** 2:  # it never gets to full speed
        exact = 2 * np.sqrt(step / 4.0)
    assert fastest == pytest.approx(exact, rel=0.01)


def test_the_jerk_limit_holds_on_the_sampled_motion() -> None:
    limit = 20.0
    laws = EnergyLaws(arm_on(curved_plan()), LIMITS)
    law = with_jerk_limit(laws.cheapest(-50.0), limit)
    time, q, qd, qdd = law.sample(0.002)
    assert np.abs(np.diff(qdd, axis=0)).max() / (time[1] - time[0]) <= limit
    assert np.abs(qdd[[0, -1]]).max() < 0.05 * np.abs(qdd).max()
    assert np.gradient(q, time, axis=0)[5:-5] == pytest.approx(qd[5:-5], abs=0.01)
    assert q[-1] == pytest.approx(PLACE, abs=1e-4)


MODEL = arm_model()
AWAY = HOME + np.array([0.9, -0.2, 0.3, 0.1, 0.0, 0.8])
STOP = 0.6


def there_and_back() -> Plan:
    """Two fast moves with a stop between them, both with triangular speed."""
    there, back = (sampled(move(a, b, 3.0, 2.5)) for a, b in ((HOME, AWAY), (AWAY, HOME)))
    for part in (there, back):
        part[3][[0, -1]] = 0.0
    time = np.concatenate([there[0], back[0] + there[0][-1] + STOP])
    q, qd, qdd = (np.concatenate(pair) for pair in zip(there[1:], back[1:], strict=True))
    return Plan(time, q, qd, qdd)


def test_less_energy_with_the_same_stops_path_and_duration() -> None:
    plan = there_and_back()
    motion = optimize_moves(MODEL, plan)
    new = trajectory_points(motion)
    assert new.duration == pytest.approx(plan.duration, abs=1e-6)
    before, after = (predict_energy(MODEL, each).total for each in (plan, new))
    assert after < 0.995 * before
    rest = 0.5 * plan.duration
    q, qd, _ = motion.sample(np.array([0.0, rest, plan.duration]))
    np.testing.assert_allclose(q, [HOME, AWAY, HOME], atol=1e-4)
    assert np.abs(qd).max() < 1e-6
    q = motion.sample(np.linspace(0.0, rest, 200))[0]
    share = (q - HOME) @ (AWAY - HOME) / np.sum((AWAY - HOME) ** 2)
    np.testing.assert_allclose(q, HOME + share[:, None] * (AWAY - HOME), atol=1e-4)


def test_plans_that_cannot_be_optimized_are_refused() -> None:
    plan = there_and_back()
    assert plan.qd is not None
    with pytest.raises(InputError, match="rest"):
        optimize_moves(MODEL, Plan(plan.time, plan.q, plan.qd + 0.1))
    still = Plan(np.array([0.0, 1.0]), np.stack([HOME, HOME]))
    with pytest.raises(InputError, match="does not move"):
        optimize_moves(MODEL, still)
    with pytest.raises(InputError, match="stops"):
        optimize_moves(MODEL, Plan(np.array([0.0, 2 * LONGEST]), np.stack([HOME, AWAY])))
