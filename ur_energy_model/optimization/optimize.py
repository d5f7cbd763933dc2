"""From a recorded cycle to a cheaper one: the same work, the same paths, less energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.evaluation import identify_session
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import (
    CycleEnergies,
    OptimizationOptions,
    Stretch,
    StretchEnergy,
)
from ur_energy_model.optimization.cycle_problem import SLOWEST, CycleProblem
from ur_energy_model.optimization.moves import find_cycle, saving_interval
from ur_energy_model.optimization.optimized_cycle import (
    ArmLoad,
    Ceiling,
    OptimizedCycle,
    OptimizedMove,
)
from ur_energy_model.optimization.path import TOOL_SPEED, TOOL_SPEED_SHARE
from ur_energy_model.optimization.pendant import (
    Step,
    as_recorded,
    pendant_unit,
    sheet_notes,
    sheet_of,
    typed_stretches,
    with_locks,
)
from ur_energy_model.typing import Array, Progress

SHADOW_PRICES = np.geomspace(SLOWEST, 300.0, 16)
"""Shadow prices of time at the points of the curve of energy over cycle time [W]."""
NEXT = 1.003
"""Least ratio of consecutive cycle times."""
LONGEST = 2.0
"""Longest cycle time of the curve, relative to the recorded one."""


def pareto_curve(problem: CycleProblem) -> Array:
    """Cycle times [s] and least energies [J] [k, 2], from the time-optimal to twice the recorded.

    Every point is an optimal cycle: one price of time for all moves. Beyond the time at which
    moves have become as slow as is worthwhile, the rest of the time is waited.
    """
    longest = LONGEST * problem.cycle.duration
    points = [(problem.shortest, problem.fastest())]
    for price in SHADOW_PRICES[::-1].tolist():
        laws = problem.allocator.at(price)
        duration = sum(law.duration for law in laws) + problem.kept
        if NEXT * points[-1][0] < duration < longest:
            points.append((duration, problem.stretches(laws)))
    last = problem.allocate(longest)
    points.append((longest, problem.stretches(last.laws, last.waiting)))
    return np.array([(duration, problem.energies.total(cycle)) for duration, cycle in points])


def switched_off(
    problem: CycleProblem, stretches: Sequence[Stretch]
) -> tuple[list[StretchEnergy], list[str]]:
    """Energies of a cycle whose long waits are spent switched off, and a note on it."""
    energies = problem.energies.of(stretches)
    after, switching = problem.options.power_off_after, problem.cycle.switching
    if after is None:
        return energies, []
    if switching is None:
        return energies, [
            "Switching off is left out: the recording does not show what it takes on this arm "
            "(record robot_mode and the bus while it is switched off and on once)."
        ]
    out, count = [], 0
    for stretch, energy in zip(stretches, energies, strict=True):
        wait = stretch.plan.duration
        off = switching.energy + switching.power * (wait - switching.time)
        long = not stretch.moving and wait > max(after, switching.time)
        if long and off < energy.energy:
            count += 1
            energy = replace(energy, energy=off, motion=0.0, sensitivity=0.0 * energy.sensitivity)
        out.append(energy)
    return out, [
        f"{count} of the waits are spent switched off; switching takes {switching.time:.1f} s and "
        f"{switching.energy:.0f} J as recorded."
        if count
        else "No wait is long enough for switching off to save energy."
    ]


SHORTEST_STEP = 1e-3
"""Share of the cycle time that a cycle must be able to lose so that this is worth a figure."""
FAR = 0.05
"""Relative difference of modelled and measured energy from which it is reported."""
LATE = 1.005
"""Factor on the slot of a move from which it is late as typed."""


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
    report = progress or (lambda fraction, text: None)
    report(0.0, "reading the recording")
    if options.session:
        model = in_session_of(model, bag)
    cycle = find_cycle(model, bag, robot, options.keep_dwell)
    cycle, locked, slow = with_locks(
        cycle, options, CycleEnergies(model, cycle.temperature).dynamics(None)
    )
    duration = cycle.duration if options.cycle_time is None else options.cycle_time
    report(0.2, "finding the fastest cycle")
    problem = CycleProblem(model, cycle, options, robot, locked)
    beyond = problem.recorded_tool_speed > problem.limits.tool_speed
    if duration < problem.shortest and options.tool_speed is None and beyond:
        # The recorded tool speed is a limit only where the cycle time needs it.
        options = replace(
            options, tool_speed=1.001 * problem.recorded_tool_speed / TOOL_SPEED_SHARE
        )
        problem = CycleProblem(model, cycle, options, robot, locked, problem.arms)
    problem.require(duration)
    report(0.3, "distributing time over the moves")
    before = problem.recorded_energies
    allocation = problem.allocate(duration)
    scaled = problem.scaled(duration)
    # The recorded cycle is a candidate: the search may round where the supply does not.
    others = [scaled] if duration != cycle.duration else [scaled, problem.recorded]
    candidates = [
        problem.stretches(allocation.laws, allocation.waiting),
        *(other for other in others if problem.permits(other)),
    ]
    if options.power_off_after is not None and cycle.switching is not None:
        # Moves that are as fast as pays when long waits are switched off.
        off = problem.allocate(duration, waiting=cycle.switching.power)
        candidates.append(problem.stretches(off.laws, off.waiting))
    found = [(each, *switched_off(problem, each)) for each in candidates]
    new, after, remarks = min(found, key=lambda each: _total(each[1]))
    report(0.6, "drawing energy over cycle time" if options.pareto else "summing up")
    curve = pareto_curve(problem) if options.pareto else None
    report(0.7, "choosing what to type")
    sheet, run, typed = _typed(problem, new, duration)
    notes = [*sheet_notes(sheet, slow), *cycle.notes, *problem.notes(), *remarks]
    off_by = _total(before) / (cycle.measured_energy or _total(before)) - 1.0
    if abs(off_by) > FAR:
        notes.insert(
            0,
            f"The predicted energy of the recorded cycle is {100.0 * abs(off_by):.0f} % "
            f"{'above' if off_by > 0.0 else 'below'} the measured one: check payload and model; "
            "the saving may be off by as much.",
        )
    as_fast = problem.energies.of(problem.fastest(), std=False)
    report(0.9, "finding what can be saved at all")
    return OptimizedCycle(
        cycle=problem.cycle,
        duration=duration,
        moves=_moves(problem, new, after, sheet, typed),
        energy=_total(before),
        new_energy=_total(after),
        saving_interval=saving_interval(before, after),
        time_optimal_duration=problem.shortest,
        time_optimal_energy=_total(as_fast),
        scaled_energy=problem.energies.total(scaled),
        bound_gap=allocation.gap,
        pareto=curve,
        notes=tuple(notes),
        sheet=sheet,
        typed_energy=_total(typed),
        typed_duration=sum(stretch.plan.duration for stretch in run),
        typed_interval=saving_interval(before, typed),
        ceiling=_ceiling(problem, duration, min(_total(after), _total(typed))),
        loads=(
            _load(robot, before),
            _load(robot, typed),
            _load(robot, as_fast),
        ),
    )


def in_session_of(model: EnergyModel, bag: str | Path) -> EnergyModel:
    """The model with standby power and friction of the recording, where it shows them."""
    try:
        return model.in_session(identify_session(model, bag))
    except (RecordingError, IdentificationError):  # it shows no session, or not enough of one
        return model


def _typed(
    problem: CycleProblem, new: Sequence[Stretch], duration: float
) -> tuple[tuple[Step, ...], list[Stretch], list[StretchEnergy]]:
    """What to type for the new cycle, the cycle that is run then, and its energies.

    Moves whose slot is too short for any trapezoid stay as recorded, and the others share what
    time is left. Nothing changes where the recorded values take less.
    """
    found, late = _sheet(problem, new, duration)
    if any(late):
        locked = np.logical_or(problem.locked, late).tolist()
        other = CycleProblem(
            problem.model, problem.cycle, problem.options, problem.robot, locked, problem.arms
        )
        if duration >= other.shortest:
            best = other.allocate(duration)
            found, _ = _sheet(other, other.stretches(best.laws, best.waiting), duration)
    sheets = [found]
    if duration == problem.cycle.duration:
        sheets.append(as_recorded(found))
    tried = []
    for sheet in sheets:
        run = typed_stretches(problem.cycle, sheet, problem.robot)
        tried.append((sheet, run, switched_off(problem, run)[0]))
    return min(tried, key=lambda each: _total(each[2]))


def _sheet(
    problem: CycleProblem, new: Sequence[Stretch], duration: float
) -> tuple[tuple[Step, ...], list[bool]]:
    """What to type for a cycle, and which of its moves take longer than their slot then."""
    slots = [stretch.plan.duration for stretch in new if stretch.moving]
    sheet = sheet_of(
        problem.cycle,
        slots,
        duration,
        problem.robot,
        problem.typed_cost,
        waiting_after=problem.waiting_after,
        locked=problem.locked,
        max_speedup=problem.options.max_speedup or math.inf,
    )
    run = typed_stretches(problem.cycle, sheet, problem.robot)
    taken = [stretch.plan.duration for stretch in run if stretch.moving]
    return sheet, [time > LATE * slot for time, slot in zip(taken, slots, strict=True)]


def _ceiling(problem: CycleProblem, duration: float, found: float) -> Ceiling:
    """What can be saved at all, with every move and every wait free.

    `found` is the least energy of a cycle of this duration [s] that was found so far [J].
    """
    cycle, options = problem.cycle, problem.options
    before = _total(problem.recorded_energies)
    free, asked = problem, (options.jerk, options.max_speedup, options.recorded_limits or None)
    if any(problem.locked) or asked != (None, None, None):
        usual = max(problem.limits.tool_speed / TOOL_SPEED_SHARE, TOOL_SPEED)
        free = CycleProblem(
            problem.model,
            cycle,
            OptimizationOptions(tool_speed=usual),
            problem.robot,
            arms=problem.arms,
        )
    if duration >= sum(law.duration for law in free.fastest_laws):
        best = free.allocator.allocate(duration)
        ideal = free.stretches(best.laws, best.waiting, kept=False)
        found = min(found, free.energies.total(ideal))
    step, second_less = min(1.0, 0.5 * (duration - problem.shortest)), None
    if step >= SHORTEST_STEP * duration:
        tried = [problem.allocate(each) for each in (duration, duration - step)]
        energies = [problem.energies.total(problem.stretches(x.laws, x.waiting)) for x in tried]
        second_less = (energies[0] - energies[1]) / step
    off = 0.0 if cycle.switching is None else cycle.switching.power
    return Ceiling(
        problem.model.bus.standby * cycle.duration / before,
        100.0 * (1.0 - found / before),
        second_less,
        problem.holding - off,
    )


def _load(robot: RobotDescription, energies: Sequence[StretchEnergy]) -> ArmLoad:
    """What a cycle demands of the arm."""
    torque = np.concatenate([part.torque for part in energies]) / robot.max_torque
    time = np.concatenate([np.gradient(part.time) for part in energies])
    most = np.abs(torque).max(axis=0)
    joint = int(np.argmax(most))
    square = float((time[:, None] * torque**2).sum() / time.sum() / torque.shape[1])
    return ArmLoad(
        robot.joint_names[joint],
        float(most[joint]),
        square**0.5,
        max(part.peak_power for part in energies),
    )


def _moves(
    problem: CycleProblem,
    stretches: Sequence[Stretch],
    energies: Sequence[StretchEnergy],
    sheet: Sequence[Step],
    typed: Sequence[StretchEnergy],
) -> tuple[OptimizedMove, ...]:
    """The moves among the stretches of the new cycle, with what to type for them."""
    out, scale = [], problem.cycle.scaling
    starts = np.cumsum([0.0, *(stretch.plan.duration for stretch in stretches)])
    new = zip(starts.tolist(), stretches, energies, strict=False)
    for move, step, run, (start, stretch, energy) in zip(
        problem.cycle.moves,
        (step for step in sheet if step.do != "wait"),
        (part for part in typed if part.moving),
        (each for each in new if each[1].moving),
        strict=True,
    ):
        plan = stretch.plan
        qd = np.gradient(plan.q, plan.time, axis=0) if plan.qd is None else plan.qd
        qdd = np.gradient(qd, plan.time, axis=0) if plan.qdd is None else plan.qdd
        unit = pendant_unit(move.kind)
        out.append(
            OptimizedMove(
                move=move,
                start=start,
                time=plan.time,
                q=plan.q,
                qd=qd,
                qdd=qdd,
                energy=energy.energy,
                speed=(step.new_speed or math.nan) * unit * scale,
                acceleration=(step.new_acceleration or math.nan) * unit * scale**2,
                typed_energy=run.energy,
                kept=step.kept,
            )
        )
    return tuple(out)


def _total(energies: Sequence[StretchEnergy]) -> float:
    return sum(part.energy for part in energies)
