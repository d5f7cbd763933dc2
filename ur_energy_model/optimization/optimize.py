"""From a recorded cycle to a cheaper one: the same work, the same paths, less energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.evaluation.evaluation import identify_session
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import WorkCycle
from ur_energy_model.optimization.cycle_energy import Stretch, StretchEnergy
from ur_energy_model.optimization.cycle_problem import CycleProblem
from ur_energy_model.optimization.motion_limits import TOOL_SPEED_SHARE
from ur_energy_model.optimization.moves import find_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle, OptimizedMove
from ur_energy_model.optimization.options import OptimizationOptions
from ur_energy_model.optimization.pareto import pareto_curve
from ur_energy_model.optimization.saving_interval import energy_std, saving_interval
from ur_energy_model.optimization.switched_off import switched_off, with_long_waits
from ur_energy_model.optimization.typed_cost import TypedCost
from ur_energy_model.optimization.typed_moves import with_typed_moves
from ur_energy_model.typing import Progress


def optimize_cycle(
    model: EnergyModel,
    bag: str | Path,
    options: OptimizationOptions | None = None,
    *,
    robot: RobotDescription | None = None,
    progress: Progress | None = None,
) -> OptimizedCycle:
    """The cycle of a recording with the least energy for its work.

    The cycle is found in the recording, and each move keeps its path exactly; only its time law
    and the waiting between moves change. All energies are those of `predict`, for the whole arm at
    the supply, with payload and temperatures of the recording.

    Args:
        model: of the arm that was recorded.
        bag: recording of the running program.
        options: the defaults if None.
        robot: the arm; the model's if None.
        progress: called with fraction and text.

    Raises:
        UrEnergyError: no cycle, freedrive, another arm, or a cycle time below the time-optimal.
    """
    options = OptimizationOptions() if options is None else options
    robot = model.description() if robot is None else robot
    report = _silent if progress is None else progress
    report(0.0, "reading the recording")
    if options.session:
        model = in_session_of(model, bag)
    cycle = find_cycle(model, bag, robot, options.keep_dwell)
    duration = cycle.duration if options.cycle_time is None else options.cycle_time
    report(0.2, "finding the fastest cycle")
    problem = _feasible_problem(model, cycle, options, robot, duration)
    report(0.3, "distributing time over the moves")
    before = problem.recorded_energies
    allocation = problem.allocate(duration)
    scaled = problem.scaled(duration)
    others = [scaled] if duration != cycle.duration else [scaled, problem.recorded]
    new, after, remarks = _cheapest(
        problem,
        [
            problem.stretches(allocation.laws, allocation.waiting),
            *(other for other in others if problem.permits(other)),
            *with_long_waits(problem, duration),
        ],
    )
    report(0.6, "drawing energy over cycle time" if options.pareto else "summing up")
    curve = pareto_curve(problem) if options.pareto else None
    found = OptimizedCycle(
        cycle=problem.cycle,
        duration=duration,
        moves=_moves(problem, new, after),
        dwells=problem.dwells(new),
        energy=_total(before),
        new_energy=_total(after),
        saving_interval=saving_interval(before, after),
        time_optimal_duration=problem.shortest,
        time_optimal_energy=problem.energies.total(problem.fastest()),
        scaled_energy=problem.energies.total(scaled),
        bound_gap=allocation.gap,
        pareto=curve,
        notes=(*cycle.notes, *problem.notes(), *remarks),
    )
    report(0.9, "choosing what to type")
    return with_typed_moves(found, robot, TypedCost(problem))


def _silent(fraction: float, text: str) -> None:
    """Report nothing."""


def in_session_of(model: EnergyModel, bag: str | Path) -> EnergyModel:
    """The model with standby power and friction of the recording, where it shows them."""
    try:
        return model.in_session(identify_session(model, bag))
    except (RecordingError, IdentificationError):  # it shows no session, or not enough of one
        return model


def _feasible_problem(
    model: EnergyModel,
    cycle: WorkCycle,
    options: OptimizationOptions,
    robot: RobotDescription,
    duration: float,
) -> CycleProblem:
    """The problem, with the recorded tool speed as limit only where the cycle time needs it.

    Raises:
        InputError: the cycle time [s] is below the time-optimal one.
    """
    problem = CycleProblem(model, cycle, options, robot)
    recorded = problem.recorded_tool_speed
    free = options.tool_speed is None and recorded > problem.limits.tool_speed
    if duration < problem.shortest and free:
        problem = CycleProblem(
            model, cycle, replace(options, tool_speed=1.001 * recorded / TOOL_SPEED_SHARE), robot
        )
    problem.require(duration)
    return problem


def _cheapest(
    problem: CycleProblem, cycles: Sequence[list[Stretch]]
) -> tuple[list[Stretch], list[StretchEnergy], list[str]]:
    """The cycle that takes the least energy, its energies, and remarks on switching off.

    The recorded cycle is among them: the search may round where the supply does not.
    """
    found = [switched_off(problem, cycle, problem.energies.of(cycle)) for cycle in cycles]
    stretches, (energies, remarks) = min(
        zip(cycles, found, strict=True), key=lambda each: _total(each[1][0])
    )
    return stretches, energies, remarks


def _moves(
    problem: CycleProblem, stretches: Sequence[Stretch], energies: Sequence[StretchEnergy]
) -> tuple[OptimizedMove, ...]:
    """The moves among the stretches of the new cycle."""
    out, start, moves = [], 0.0, iter(problem.cycle.moves)
    for stretch, energy in zip(stretches, energies, strict=True):
        plan = stretch.plan
        if stretch.moving:
            nan = float("nan")
            qd = np.gradient(plan.q, plan.time, axis=0) if plan.qd is None else plan.qd
            qdd = np.gradient(qd, plan.time, axis=0) if plan.qdd is None else plan.qdd
            out.append(
                OptimizedMove(
                    move=next(moves),
                    start=start,
                    time=plan.time,
                    q=plan.q,
                    qd=qd,
                    qdd=qdd,
                    energy=energy.energy,
                    energy_std=energy_std(energy),
                    speed=nan,
                    acceleration=nan,
                    typed_energy=nan,
                )
            )
        start += plan.duration
    return tuple(out)


def _total(energies: Sequence[StretchEnergy]) -> float:
    return sum(part.energy for part in energies)
