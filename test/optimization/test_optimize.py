# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""From a recording to a cheaper cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.energy.work_cycles import (
    ROBOT,
    arm_model,
    bag_of,
    pick_and_place,
    recorded,
)
from ur_energy_model.errors import InputError, WrongRobotError
from ur_energy_model.optimization.cycle import OptimizationOptions, Stretch
from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.typing import Array


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chain = pick_and_place()
    return bag_of(tmp_path_factory.mktemp("cycle"), recorded(chain, 2.4 * chain.duration))


@pytest.fixture(scope="module")
def result(bag: Path) -> OptimizedCycle:
    return optimize_cycle(arm_model(), bag, OptimizationOptions(pareto=True))


Motions = list[list[Array]]  # position, velocity and acceleration of the moves of a cycle


def motions(stretches: Iterable[Stretch]) -> Motions:
    return [[*each.plan.sampled()[1:]] for each in stretches if each.moving]


def tool_speed(moves: Motions) -> float:
    speed = arm_model().dynamics().flange_speed
    return max(float(np.linalg.norm(speed(q, qd), axis=1).max()) for q, qd, _ in moves)


def test_the_same_work_in_the_same_time_takes_less_within_the_limits_of_the_arm(
    result: OptimizedCycle,
) -> None:
    assert result.duration == pytest.approx(pick_and_place().duration, abs=0.01)
    assert result.new_energy < result.scaled_energy < result.energy
    low, high = result.saving_interval
    assert low < result.saving_percent < high
    assert result.bound_gap < 0.01 * result.new_energy
    kept = [rest.kept for rest in result.cycle.rests if rest.kept > 0.01]
    assert kept == pytest.approx([0.3, 0.3], abs=0.005)
    assert result.pareto is not None
    times, energies = result.pareto.T
    assert times[0] == pytest.approx(result.time_optimal_duration)
    assert np.interp(result.duration, times, energies) == pytest.approx(
        result.new_energy, rel=0.01
    )
    new = motions(result.stretches)
    dynamics = arm_model().dynamics()
    assert tool_speed(new) <= 1.5
    for q, qd, qdd in new:
        assert (np.abs(qd) <= ROBOT.max_velocity).all()
        assert (np.abs(qdd) <= ROBOT.max_acceleration).all()
        torque = dynamics.inverse_dynamics(q, qd, qdd)
        assert (np.abs(torque + ROBOT.reflected_inertia * qdd) <= ROBOT.max_torque).all()


def test_a_cycle_time_just_above_the_fastest_is_met_and_impossible_ones_are_refused(
    bag: Path, result: OptimizedCycle
) -> None:
    fastest = f"{result.time_optimal_duration:.2f} s"
    with pytest.raises(InputError, match=f"below the time-optimal one of {fastest}"):
        optimize_cycle(
            arm_model(), bag, OptimizationOptions(cycle_time=1.0, session=False)
        )
    with pytest.raises(WrongRobotError, match="ur5e"):
        optimize_cycle(replace(arm_model(), robot="ur3e"), bag)
    problem = CycleProblem(arm_model(), result.cycle, OptimizationOptions(), ROBOT)
    wanted = 1.002 * problem.shortest
    run = [part.stretch for part in problem.run(problem.allocate(wanted).laws)]
    assert 0.999 * wanted < sum(stretch.plan.duration for stretch in run) <= wanted + 1e-6
    for _, _, qdd in motions(run):
        assert (np.abs(qdd) <= ROBOT.max_acceleration).all()
    # A tool speed that the user gives counts even below the recorded one.
    slow = CycleProblem(
        arm_model(), result.cycle, OptimizationOptions(tool_speed=0.6), ROBOT
    )
    laws = slow.allocate(1.2 * slow.shortest).laws
    assert tool_speed(motions(part.stretch for part in slow.run(laws))) <= 0.6


def test_locks_and_speedup_are_kept_and_the_others_share_the_time(
    bag: Path, result: OptimizedCycle
) -> None:
    """Steps 3 and 5 are moves, 2 is a wait; the ceiling stays that of all free moves."""
    options = OptimizationOptions(keep=(3, 5), max_speedup=1.2)
    kept = optimize_cycle(arm_model(), bag, options)
    for number, step in enumerate(kept.sheet, 1):
        if number in (3, 5):
            assert step.kept
            assert (step.new_speed, step.new_acceleration) == (
                step.speed,
                step.acceleration,
            )
    recorded_time = [move.move.duration for move in kept.moves if move.step.kept]
    assert [move.duration for move in kept.moves if move.step.kept] == recorded_time
    assert kept.duration == result.duration
    assert result.new_energy < kept.new_energy < kept.energy
    assert kept.ceiling.most_saving_percent == pytest.approx(
        result.ceiling.most_saving_percent, abs=0.1
    )
    assert max(step.speedup for step in kept.sheet) <= 1.2 * 1.01
    for each, (_, qd, _) in zip(kept.moves, motions(kept.stretches), strict=True):
        assert np.abs(qd).max() <= 1.03 * 1.2 * np.abs(each.move.qd).max()


@pytest.mark.truth
def test_a_long_wait_is_spent_switched_off_where_that_is_known_to_save(
    tmp_path: Path,
) -> None:
    chain = pick_and_place(wait=50.0)
    telemetry = recorded(chain, 2.1 * chain.duration, 25.0)
    end = chain.duration - 40.0
    modes = np.full(len(telemetry), 7.0)
    power = np.full(len(telemetry), 48.0)
    since = telemetry.time - 60.0
    modes[(since > end) & (since < end + 20.0)] = 5.0
    modes[(since > end + 2.0) & (since < end + 18.0)] = 3.0
    power[modes == 3.0] = 4.8
    bus = {
        "actual_robot_voltage": np.full(len(telemetry), 48.0),
        "actual_robot_current": power / 48,
    }
    bag = bag_of(tmp_path, telemetry, robot_mode=modes, **bus)
    off = optimize_cycle(arm_model(), bag, OptimizationOptions(power_off_after=10.0))
    assert off.new_energy < 0.5 * off.scaled_energy
    assert any("switched off" in note for note in off.notes)
