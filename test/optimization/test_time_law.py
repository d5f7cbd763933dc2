"""Time laws of single moves: energy, limits, duration, path."""

from __future__ import annotations

import numpy as np
import pytest

from test.optimization.simulated_cycle import LIFT, PICK, PLACE, ROBOT, arm_model
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.optimization.least_energy import EnergyLaws, fastest_law
from ur_energy_model.optimization.path import JointPath, PathDynamics, PathLimits, with_jerk_limit
from ur_energy_model.optimization.plan_optimization import optimize_plan
from ur_energy_model.trajectory.motions import move
from ur_energy_model.trajectory.plan import Plan

LIMITS = PathLimits.of_robot(ROBOT)


def straight_plan(speed: float = 2.5, acceleration: float = 5.0) -> Plan:
    segment = move(PICK + LIFT, PLACE + LIFT, speed, acceleration)
    time = np.linspace(0.0, segment.duration, 800)
    return Plan(time, *segment.sample(time))


def motion_of(plan: Plan) -> tuple[np.ndarray, ...]:
    parts = list(plan.motion())
    return tuple(
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("time", "q", "qd", "qdd")
    )


def arm_on(plan: Plan, intervals: int | None = None) -> PathDynamics:
    model = arm_model()
    path = JointPath(*motion_of(plan)[:3])
    return PathDynamics(model, model.dynamics(), path, intervals=intervals)


def curved_plan() -> Plan:
    """A blend of two lines that does not stop."""
    time = np.linspace(0.0, 2.0, 1001)
    s = (time / 2.0) ** 3 * (10 - 15 * time / 2.0 + 6 * (time / 2.0) ** 2)
    bend = np.sin(np.pi * s)[:, None] * np.array([0.0, 0.3, -0.4, 0.2, 0.0, 0.5])
    return Plan(time, PICK + s[:, None] * (PLACE - PICK) + bend)


@pytest.mark.parametrize("plan", [straight_plan(), curved_plan()], ids=["straight", "curved"])
@pytest.mark.parametrize("factor", [1.05, 1.6, 3.0])
def test_it_takes_less_energy_than_an_even_slowdown_and_keeps_path_and_limits(
    plan: Plan, factor: float
) -> None:
    model, duration = arm_model(), factor * plan.duration
    new = optimize_plan(model, plan, duration=duration, limits=LIMITS)
    assert new.duration == pytest.approx(duration, abs=1e-6)
    slowed = predict_energy(model, plan, speed_scaling=1.0 / factor).total
    assert predict_energy(model, new).total < slowed
    _, q, qd, qdd = motion_of(new)
    assert (np.abs(qd) <= LIMITS.speed).all()
    assert (np.abs(qdd) <= ROBOT.max_acceleration).all()
    assert np.linalg.norm(model.dynamics().flange_speed(q, qd), axis=1).max() <= LIMITS.tool_speed
    fine = np.linspace(0.0, plan.duration, 20_000)
    recorded = np.stack([np.interp(fine, plan.time, column) for column in plan.q.T], axis=1)
    gaps = [np.linalg.norm(recorded - point, axis=1).min() for point in q[::5]]
    assert max(gaps) < 1e-3
    assert new.q[0] == pytest.approx(plan.q[0], abs=1e-4)
    assert new.q[-1] == pytest.approx(plan.q[-1], abs=1e-4)


def test_a_plan_is_never_answered_with_a_dearer_one() -> None:
    model, plan = arm_model(), straight_plan()
    best = optimize_plan(model, plan)
    again = optimize_plan(model, best)
    assert predict_energy(model, again).total <= predict_energy(model, best).total


def test_a_duration_below_the_time_optimal_one_is_refused_with_that() -> None:
    with pytest.raises(InputError, match=r"takes at least 0\.\d+ s"):
        optimize_plan(arm_model(), straight_plan(), duration=0.2)


def test_a_plan_that_does_not_move_is_refused() -> None:
    with pytest.raises(InputError, match="does not move"):
        optimize_plan(arm_model(), Plan(np.array([0.0, 1.0]), np.stack([PICK, PICK])))


def test_the_fastest_law_of_a_straight_move_is_the_trapezoid_of_its_limits() -> None:
    arm = arm_on(straight_plan(), 200)
    wide = PathLimits(LIMITS.speed, np.full(6, 4.0), np.full(6, 1e4), tool_speed=10.0)
    fastest = fastest_law(arm, wide).duration
    step = np.abs(PLACE - PICK).max()
    exact = step / wide.speed.max() + wide.speed.max() / 4.0
    if step * 4.0 < wide.speed.max() ** 2:  # it never gets to full speed
        exact = 2 * np.sqrt(step / 4.0)
    assert fastest == pytest.approx(exact, rel=0.01)


def test_a_higher_price_of_time_gives_slower_and_cheaper_moves_down_to_a_minimum() -> None:
    arm = arm_on(straight_plan())
    laws = EnergyLaws(arm, LIMITS)
    found = [laws.cheapest(price) for price in (-1000.0, -30.0, 0.0, 20.0)]
    durations = [law.duration for law in found]
    energies = [laws.energy(law.b) for law in found]
    assert (np.diff(durations) > 0).all()
    assert energies[2] == min(energies)


def test_finer_intervals_find_the_same_energy() -> None:
    plan = straight_plan()
    energies = []
    for intervals in (60, 180):
        laws = EnergyLaws(arm_on(plan, intervals), LIMITS)
        law = laws.cheapest(10.0)
        energies.append(laws.energy(law.b) - 10.0 * law.duration)
    assert energies[0] == pytest.approx(energies[1], rel=2e-3)


@pytest.mark.parametrize("limit", [20.0, 80.0, 400.0])
def test_the_jerk_limit_holds_on_the_sampled_motion(limit: float) -> None:
    laws = EnergyLaws(arm_on(curved_plan()), LIMITS)
    law = with_jerk_limit(laws.cheapest(-50.0), limit)
    time, q, qd, qdd = law.sample(0.002)
    assert np.abs(np.diff(qdd, axis=0)).max() / (time[1] - time[0]) <= limit
    assert np.abs(qdd[[0, -1]]).max() < 0.05 * np.abs(qdd).max()
    assert np.gradient(q, time, axis=0)[5:-5] == pytest.approx(qd[5:-5], abs=0.01)
    assert q[-1] == pytest.approx(PLACE, abs=1e-4)
