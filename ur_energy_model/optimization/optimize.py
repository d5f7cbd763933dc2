# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""From a recorded cycle to a cheaper one: the same work, the same paths, less energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError, InputError, RecordingError
from ur_energy_model.identification.evaluation import identify_session
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload
from ur_energy_model.optimization.cycle import (
    OptimizationOptions,
    StretchEnergy,
    WorkCycle,
    total_energy,
)
from ur_energy_model.optimization.cycle_problem import (
    SLOWEST,
    Allocation,
    CycleProblem,
    switched_off,
)
from ur_energy_model.optimization.kept_steps import with_locks
from ur_energy_model.optimization.optimized_cycle import (
    ArmLoad,
    Ceiling,
    OptimizedCycle,
    OptimizedMove,
)
from ur_energy_model.optimization.path import TOOL_SPEED, TOOL_SPEED_SHARE
from ur_energy_model.optimization.pendant import (
    Step,
    other_work_notes,
    shared_notes,
    sheet_notes,
    with_energies,
)
from ur_energy_model.optimization.power_front import power_front
from ur_energy_model.optimization.recorded_cycle import find_cycle
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.optimization.typed_cycle import SheetProblem, TypedCycle
from ur_energy_model.typing import Array, Progress

PRICES = 10
SHADOW_PRICES = np.geomspace(SLOWEST, 300.0, PRICES)
"""Shadow prices of time at the points of the curve of energy over cycle time [W]."""
CURVE_PERIOD = 0.008
"""Period of the samples from which energies of the curve are computed [s]: four times the
period for other energies. The results differ by less than 0.1 %."""
NEXT = 1.003  # least ratio of consecutive cycle times of the curve
LONGEST = 2.0  # longest cycle time of the curve over the recorded cycle time
SHORTEST_STEP = 1e-3
"""Least share of the cycle time by which a cycle must be able to become shorter; else no energy for
each second is stated."""
FAR = 0.05  # relative difference of modelled and measured energy that is reported
MOTION_ERROR = 0.14
"""Relative error of the predicted energy of motion (RMS over held-out recordings of real arms)."""
CORRELATION = 0.95
"""Correlation of `MOTION_ERROR` between two time laws of the same paths. The part of the
error that is not common to both is then 4 % of the energy of motion; on simulated arms it
was 2 %."""


class Stages:
    """Progress of a calculation in stages, each with an expected number of steps.

    Args:
        report: called with the finished fraction and the text of the stage; None for no
            report.
    """

    def __init__(self, report: Progress | None) -> None:
        self._report = report or (lambda fraction, text: None)
        self._text = ""
        self._from = 0.0
        self._until = 0.0
        self._done = 0
        self._expected = 1

    def begin(self, text: str, start: float, until: float, expected: int = 1) -> None:
        """Begin a stage.

        Args:
            text: work of the stage, in words.
            start: fraction of the whole calculation at the begin of the stage.
            until: fraction of the whole calculation at the end of the stage.
            expected: approximate number of steps of the stage.
        """
        self._text = text
        self._from = start
        self._until = until
        self._done = 0
        self._expected = max(expected, 1)
        self._report(start, text)

    def step(self) -> None:
        """Count a step of the stage.

        The fraction approaches the end of the stage exponentially and never exceeds it,
        however many steps the stage takes.
        """
        self._done += 1
        share = 1.0 - math.exp(-2.0 * self._done / self._expected)
        self._report(self._from + share * (self._until - self._from), self._text)


def optimize_cycle(
    model: EnergyModel,
    bag: str | Path,
    options: OptimizationOptions | None = None,
    *,
    payload: Payload | None = None,
    progress: Progress | None = None,
) -> OptimizedCycle:
    """The cycle of a recording with the least energy for its work.

    The cycle is found in the recording, and each move keeps its path exactly; only its
    time law and the waiting between moves change. All energies are computed as by
    `predict`, for the whole arm at the supply, with the temperatures of the recording,
    and its payload unless another is given.

    Args:
        model: model of the recorded arm.
        bag: recording of the running program.
        options: the defaults if None.
        payload: actual payload of the arm, where another payload was set in the
            controller (`wrong_payload`).
        progress: called with fraction and text.

    Raises:
        UrEnergyError: no cycle, freedrive, another arm, or a cycle time below the
            time-optimal.
    """
    options = OptimizationOptions() if options is None else options
    stages = Stages(progress)
    model, cycle = _recorded(model, bag, options, payload, stages)
    robot = model.description()
    duration = cycle.duration if options.cycle_time is None else options.cycle_time

    stages.begin("finding the fastest cycle", 0.25, 0.35, len(cycle.moves))
    problem = _problem(model, cycle, options, duration, stages)

    stages.begin("choosing what to type", 0.35, 0.5, 2 * len(cycle.moves))
    sheets = SheetProblem(problem, step=stages.step)
    typed = sheets.cheapest(duration)
    copied = _saving_with_copies(problem, sheets, typed, stages)

    stages.begin("distributing time over the moves", 0.5, 0.65, 4 * len(cycle.moves))
    before = problem.recorded
    allocation = problem.allocate(duration, typed.price)
    scaled = problem.scaled(duration)
    after, remark = _cheapest(problem, allocation, scaled, duration)

    curve = None
    if options.pareto:
        steps = PRICES * len(cycle.moves)
        stages.begin("drawing energy over cycle time", 0.65, 0.75, steps)
        curve = pareto_curve(problem)
    front = None
    if options.front_points:
        steps = 3 * options.front_points * len(cycle.moves)
        stages.begin("trading energy against peak power", 0.75, 0.9, steps)
        front = power_front(problem, after, duration, options.front_points)
        remark = [*remark, *front.notes()]
    stages.begin("finding what can be saved at all", 0.9, 1.0, 3 * len(cycle.moves))
    sheet = with_energies(typed.sheet, before, typed.parts)
    energy = total_energy(before)
    new_energy = total_energy(after)
    ceiling = _ceiling(problem, sheets, typed, min(new_energy, typed.energy))
    as_fast = problem.run(problem.fastest_laws, std=False)
    return OptimizedCycle(
        cycle=cycle,
        stretches=[part.stretch for part in after],
        duration=duration,
        moves=_optimized_moves(cycle, sheet, _moving(after), _moving(typed.parts)),
        energy=energy,
        new_energy=new_energy,
        saving_interval=saving_interval(before, after),
        time_optimal_duration=problem.shortest,
        time_optimal_energy=total_energy(as_fast),
        scaled_energy=total_energy(scaled),
        bound_gap=allocation.gap,
        pareto=curve,
        notes=[*_notes(problem, sheet, typed), *remark],
        sheet=sheet,
        typed_energy=typed.energy,
        typed_duration=typed.duration,
        typed_interval=saving_interval(before, typed.parts),
        copied_saving_percent=copied,
        ceiling=ceiling,
        loads=(_load(robot, before), _load(robot, typed.parts), _load(robot, as_fast)),
        power_front=front,
    )


def _problem(
    model: EnergyModel,
    cycle: WorkCycle,
    options: OptimizationOptions,
    duration: float,
    stages: Stages,
) -> CycleProblem:
    """The problem of a cycle that can be run in a duration [s].

    The recorded tool speed is a limit only where the duration needs it.

    Raises:
        InputError: the duration is below the time-optimal one.
    """
    robot = model.description()
    problem = CycleProblem(model, cycle, options, robot, step=stages.step)
    beyond = problem.tool_speed > problem.limits.tool_speed
    if duration < problem.shortest and options.tool_speed is None and beyond:
        needed = 1.001 * problem.tool_speed / TOOL_SPEED_SHARE
        options = replace(options, tool_speed=needed)
        problem = CycleProblem(model, cycle, options, robot, problem.arms, stages.step)
    if duration < problem.shortest:
        raise InputError(
            cycle.source,
            f"a cycle time of {duration:.2f} s is below the time-optimal one of "
            f"{problem.shortest:.2f} s within the limits",
            f"give at least {np.ceil(100 * problem.shortest) / 100:.2f} s",
            field="--cycle-time",
        )
    return problem


def _cheapest(
    problem: CycleProblem,
    allocation: Allocation,
    scaled: list[StretchEnergy],
    duration: float,
) -> tuple[list[StretchEnergy], list[str]]:
    """The cheapest cycle as set points.

    The recorded cycle, as it is and as scaled, is a candidate where jerk is not limited:
    the search rounds the lowest power of the supply, so that its laws may take more.

    Args:
        problem: optimization problem of the cycle.
        allocation: laws of the new cycle.
        scaled: energies of the recorded cycle at the new cycle time.
        duration: new cycle time [s].

    Returns:
        Energies of the stretches of the cheapest cycle, and a note on switching off, if
        there is one.
    """
    cycle = problem.cycle
    candidates = [problem.run(allocation.laws, allocation.waiting)]
    if np.isinf(problem.limits.jerk):
        if problem.permits(scaled):
            candidates.append(scaled)
        if duration == cycle.duration:
            candidates.append(problem.recorded)
    if problem.options.power_off_after is not None and cycle.switching is not None:
        # Laws for waits that are spent switched off: moves may be faster then.
        allocator = problem.allocator_with(cycle.switching.power)
        off = allocator.allocate(duration - problem.kept)
        candidates.append(problem.run(off.laws, off.waiting))
    found = [switched_off(problem, candidate) for candidate in candidates]
    energies = [total_energy(parts) for parts, _ in found]
    return found[int(np.argmin(energies))]


def _notes(problem: CycleProblem, sheet: Sequence[Step], typed: TypedCycle) -> list[str]:
    """Sentences on what the result rests on and what it leaves out."""
    cycle = problem.cycle
    durations = [part.stretch.plan.duration for part in _moving(typed.parts)]
    return [
        *_far_off(cycle, total_energy(problem.recorded)),
        *shared_notes(cycle, sheet),
        *sheet_notes(sheet),
        *other_work_notes(cycle, sheet, durations),
        *cycle.notes,
        *problem.notes(),
    ]


def _moving(parts: Sequence[StretchEnergy]) -> list[StretchEnergy]:
    """The moves among the stretches of a cycle."""
    return [part for part in parts if part.stretch.moving]


def _optimized_moves(
    cycle: WorkCycle,
    sheet: Sequence[Step],
    exact: Sequence[StretchEnergy],
    typed: Sequence[StretchEnergy],
) -> list[OptimizedMove]:
    """The moves of a cycle with their steps of the sheet, as set points and as typed."""
    steps = [step for step in sheet if step.do != "wait"]
    moves = []
    for move, step, new, run in zip(cycle.moves, steps, exact, typed, strict=True):
        new_duration = new.stretch.plan.duration
        moves.append(OptimizedMove(move, step, new_duration, new.energy, run.energy))
    return moves


def _recorded(
    model: EnergyModel,
    bag: str | Path,
    options: OptimizationOptions,
    payload: Payload | None,
    stages: Stages,
) -> tuple[EnergyModel, WorkCycle]:
    """The model in the session of a recording, and the cycle in it with what must stay."""
    stages.begin("reading the recording", 0.0, 0.15)
    if options.session:
        model = in_session_of(model, bag, payload=payload)
    stages.begin("finding the cycle", 0.15, 0.25)
    cycle = find_cycle(model, bag, model.description(), options.keep_dwell)
    if payload is not None:
        cycle = cycle.with_payload(payload)
    return model, with_locks(cycle, options, model.dynamics())


def _saving_with_copies(
    problem: CycleProblem, sheets: SheetProblem, typed: TypedCycle, stages: Stages
) -> float | None:
    """Saving if each step had values of its own [%]; None where no line runs several steps."""
    cycle = problem.cycle
    groups = (*cycle.shared_moves, *cycle.shared_waits)
    if all(len(group) == 1 for group in groups):
        return None
    of_copies = SheetProblem(problem, shared=False, known=sheets, step=stages.step)
    options = problem.options
    duration = cycle.duration if options.cycle_time is None else options.cycle_time
    copied = of_copies.cheapest(duration)
    # Shared values are possible with copies, too.
    least = min(copied.energy, typed.energy)
    return 100.0 * (1.0 - least / total_energy(problem.recorded))


def _far_off(cycle: WorkCycle, energy: float) -> list[str]:
    """A sentence where the predicted energy of the recorded cycle [J] is far from measured."""
    if cycle.measured_energy is None:
        return []
    off_by = energy / cycle.measured_energy - 1.0
    if abs(off_by) <= FAR:
        return []
    side = "above" if off_by > 0.0 else "below"
    return [
        f"The predicted energy of the recorded cycle is {100.0 * abs(off_by):.0f} % {side} the "
        "measured one: check payload and model; the saving may be off by as much."
    ]


@dataclass(frozen=True)
class PredictedSaving:
    """Predicted saving of `ur_energy optimize` in a cycle; energies of the whole arm at the supply.

    Attributes:
        energy: energy of the recorded cycle, from the model [J].
        saving: saving per cycle if exactly the sheet is typed [J].
        interval: 95 % interval of the saving (low, high), J.
    """

    energy: float
    saving: float
    interval: tuple[float, float]


def predicted_saving(
    model: EnergyModel, cycle: WorkCycle, options: OptimizationOptions | None = None
) -> PredictedSaving:
    """Quick prediction of the saving by new speeds, accelerations and waits.

    Only the sheet of values to type is computed: neither set points, nor the curve over
    the cycle time, nor what could be saved at all. The cycle time stays as recorded,
    unless the options give another.

    Args:
        model: model of the recorded arm, in the session of the recording
            (`in_session_of`).
        cycle: recorded cycle (`find_cycle`).
        options: the defaults if None.

    Raises:
        UrEnergyError: a step that does not exist, or a cycle time below the time-optimal.
    """
    options = OptimizationOptions() if options is None else options
    cycle = with_locks(cycle, options, model.dynamics())
    duration = cycle.duration if options.cycle_time is None else options.cycle_time
    problem = CycleProblem(model, cycle, options, model.description())
    typed = SheetProblem(problem).cheapest(duration)
    before = problem.recorded
    energy = total_energy(before)
    low, high = saving_interval(before, typed.parts)
    interval = (0.01 * low * energy, 0.01 * high * energy)
    return PredictedSaving(energy, energy - typed.energy, interval)


def in_session_of(
    model: EnergyModel,
    bag: str | Path,
    *,
    payload: Payload | None = None,
    enough: float = np.inf,
) -> EnergyModel:
    """The model with standby power and friction of the session of a recording.

    Args:
        model: model of the arm.
        bag: recording of the session.
        payload: the actual one, where another is set in the controller.
        enough: time in motion that is used for friction [s].

    Returns:
        The model itself where the recording does not suffice to identify its session.
    """
    try:
        session = identify_session(model, bag, payload=payload, enough=enough)
    except (RecordingError, IdentificationError):
        return model
    return model.in_session(session)


def saving_interval(
    before: Sequence[StretchEnergy], after: Sequence[StretchEnergy]
) -> tuple[float, float]:
    """95 % interval (low, high) of the saving, percent of the energy before.

    Parameter errors are the same before and after. The model's error in the energy of
    motion is a relative one, with a common part and a part of each time law.

    Args:
        before: energies of the stretches as recorded, with sensitivities.
        after: energies of the stretches of the new cycle, with sensitivities.
    """
    energy = total_energy(before)
    ratio = total_energy(after) / energy
    sensitivity = sum(part.sensitivity for part in before)
    new_sensitivity = sum(part.sensitivity for part in after)
    by_parameters = float(np.sum((new_sensitivity - ratio * sensitivity) ** 2))
    error = MOTION_ERROR * ratio * abs(sum(part.motion for part in before))
    new_error = MOTION_ERROR * abs(sum(part.motion for part in after))
    by_motion = new_error**2 + error**2 - 2 * CORRELATION * new_error * error
    deviation = 100.0 * math.sqrt(by_parameters + by_motion) / energy
    saving = 100.0 * (1.0 - ratio)
    return saving - CONFIDENCE * deviation, saving + CONFIDENCE * deviation


def pareto_curve(problem: CycleProblem) -> Array:
    """Least energy over cycle time, from the time-optimal cycle to twice the recorded time.

    Every point is an optimal cycle: one price of time for all moves. Beyond the time at
    which moves have become as slow as is worthwhile, the rest of the time is waited.

    Returns:
        Cycle times [s] and energies [J], ascending in time [k, 2].
    """
    longest = LONGEST * problem.cycle.duration

    def energy(laws: Sequence[TimeLaw], waiting: float = 0.0) -> float:
        return total_energy(problem.run(laws, waiting, std=False, period=CURVE_PERIOD))

    points = [(problem.shortest, energy(problem.fastest_laws))]
    for price in SHADOW_PRICES[::-1].tolist():
        laws = problem.allocator.at(price)
        duration = sum(law.duration for law in laws) + problem.kept
        if NEXT * points[-1][0] < duration < longest:
            points.append((duration, energy(laws)))
    last = problem.allocate(longest, SLOWEST)
    points.append((longest, energy(last.laws, last.waiting)))
    return np.array(points)


def _ceiling(
    problem: CycleProblem, sheets: SheetProblem, typed: TypedCycle, found: float
) -> Ceiling:
    """The largest possible saving, with every move and every wait free.

    Args:
        problem: optimization problem of the cycle.
        sheets: problem of its sheet.
        typed: the cheapest sheet.
        found: least energy of a cycle of the same duration that was found so far [J].
    """
    cycle = problem.cycle
    options = problem.options
    wall = problem.model.wall_of(problem.robot)
    duration = cycle.duration if options.cycle_time is None else options.cycle_time
    before = total_energy(problem.recorded)
    wall_before = wall.of_cycle(before, cycle.duration)
    free = _freed(problem)
    if duration >= sum(law.duration for law in free.fastest_laws):
        best = free.allocator.allocate(duration, typed.price)
        ideal = free.run(best.laws, best.waiting, kept=False, std=False)
        found = min(found, total_energy(ideal))
    off = 0.0 if cycle.switching is None else cycle.switching.power
    standby = problem.model.bus.standby * cycle.duration
    held_power = wall.of_cycle(min(problem.holding), 1.0)
    return Ceiling(
        wall=wall,
        standby_share=standby / before,
        wall_standby_share=wall.of_cycle(standby, cycle.duration) / wall_before,
        most_saving_percent=100.0 * (1.0 - found / before),
        wall_most_saving_percent=100.0
        * (1.0 - wall.of_cycle(found, duration) / wall_before),
        joules_per_second=_joules_per_second(problem, sheets, typed, duration),
        break_power=held_power - wall.of_cycle(off, 1.0, "off"),
    )


def _freed(problem: CycleProblem) -> CycleProblem:
    """The problem without the limits of the options, and with every move free."""
    cycle = problem.cycle
    options = problem.options
    unlimited = options.jerk is None and options.max_speedup is None
    kept = any(move.kept for move in cycle.moves)
    if unlimited and not options.recorded_limits and not kept:
        return problem
    tool_speed = max(problem.limits.tool_speed / TOOL_SPEED_SHARE, TOOL_SPEED)
    wide = OptimizationOptions(tool_speed=tool_speed)
    moves = tuple(replace(move, reason="") for move in cycle.moves)
    all_free = replace(cycle, moves=moves)
    return CycleProblem(problem.model, all_free, wide, problem.robot, problem.arms)


def _joules_per_second(
    problem: CycleProblem, sheets: SheetProblem, typed: TypedCycle, duration: float
) -> float | None:
    """Energy at the wall that a shorter cycle saves for each second [J/s]; None if impossible.

    Args:
        problem: optimization problem of the cycle.
        sheets: problem of its sheet.
        typed: the cheapest sheet for the duration.
        duration: duration of the cycle [s], which is shortened by up to a second.
    """
    step = min(1.0, 0.5 * (duration - problem.shortest))
    if step < SHORTEST_STEP * duration:
        return None
    shorter = sheets.cheapest(duration - step)
    gained = typed.duration - shorter.duration
    if gained <= 0.5 * step:  # trapezoids cannot be that fast
        return None
    wall = problem.model.wall_of(problem.robot)
    energy = wall.of_cycle(typed.energy, typed.duration)
    return (energy - wall.of_cycle(shorter.energy, shorter.duration)) / gained


def _load(robot: RobotDescription, parts: Sequence[StretchEnergy]) -> ArmLoad:
    """The largest and the effective torque and the peak power of a cycle."""
    torque = np.concatenate([part.torque for part in parts]) / robot.max_torque
    time = np.concatenate([np.gradient(part.time) for part in parts])
    most = np.abs(torque).max(axis=0)
    joint = int(np.argmax(most))
    square = np.average((torque**2).mean(axis=1), weights=time)
    peak = max(part.peak_power for part in parts)
    return ArmLoad(robot.joint_names[joint], float(most[joint]), math.sqrt(square), peak)
