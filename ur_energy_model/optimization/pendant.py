"""The pendant sheet: what to type for every move and wait of a program, and what that takes.

All figures "as typed" (energy, duration, files, pages) come from `typed_stretches` of the sheet:
its digits, the controller's trapezoids, its waits, and nothing else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.optimization.cycle import (
    OptimizationOptions,
    Stretch,
    WorkCycle,
    recorded_stretches,
    sampled_stretch,
    with_rest,
)
from ur_energy_model.optimization.programmed import (
    TYPED_DIGITS,
    ProgrammedMove,
    as_typed,
    best_trapezoid,
    pendant_unit,
)
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array

SLOW, SLOW_TOOL = 0.6, 0.25
"""Share of the typical speed of its kind, and of the typical speed of the tool, below which a move
counts as deliberately slow."""
TRIANGLE = 0.95  # share of the distance that a triangular profile needs at least for its ramps
LATE = 0.01
"""Share of the cycle time that typed moves may be shorter in all before a wait is added."""
FASTER = 1.05  # factor on speed or acceleration from which a move is called faster than recorded


@dataclass(frozen=True)
class Step:
    """A move or wait of the program: as recorded, and what to type.

    Speeds are those of the leading joint [deg/s] or the tool [mm/s], accelerations the same per s;
    None for a wait and for a "move", whose path is neither moveJ nor moveL.
    """

    do: Literal["moveJ", "moveL", "move", "wait"]
    move: int  # number of the move, or of the move before the wait, from 0
    waypoint: tuple[float, ...] | None = None  # where the move ends [n], degrees as on the pendant
    line: int | None = None  # of the program, where it was recorded
    speed: float | None = None
    new_speed: float | None = None
    acceleration: float | None = None
    new_acceleration: float | None = None
    wait: float | None = None  # s; None for a move
    new_wait: float | None = None
    kept: bool = False  # whether it stays as recorded

    def as_json(self, number: int) -> dict[str, Any]:
        """Contract of `ur_energy optimize --json`; the columns of pendant.csv too."""
        named = {name: value for name, value in vars(self).items() if name != "move"}
        return {"step": number, **named}

    def text(self, what: Literal["speed", "acceleration", "wait"]) -> str:
        """Old and new value with unit, such as "60 → 31.5 °/s"; one value where it stays."""
        old, new = getattr(self, what), getattr(self, f"new_{what}")
        if old is None or new is None:
            return "–"
        per = {"speed": "/s", "acceleration": "/s²", "wait": "s"}[what]
        unit = per if what == "wait" else ("°" if self.do == "moveJ" else "mm") + per
        first, last = (f"{x:.2f}" if what == "wait" else _digits(x) for x in (old, new))
        return f"{last} {unit}" if old == new else f"{first} → {last} {unit}"

    @property
    def faster(self) -> float:
        """Largest factor on speed or acceleration; 1 for a wait."""
        pairs = ((self.speed, self.new_speed), (self.acceleration, self.new_acceleration))
        return max((new / old for old, new in pairs if old and new), default=1.0)


def _digits(value: float) -> str:
    """A typed number, with all its digits."""
    return f"{value:.{max(0, TYPED_DIGITS - 1 - math.floor(math.log10(value)))}f}"


def sheet_of(
    cycle: WorkCycle,
    slots: Sequence[float],
    duration: float,
    cost: Callable[[int, float, Motion], float],
    *,
    waiting_after: int,
    max_speedup: float = math.inf,
) -> tuple[Step, ...]:
    """What to type so that each move takes its slot at most with the least energy.

    A move that can only be streamed, and one for which no trapezoid fits, stay as recorded. Time
    that is left is waited.

    Args:
        cycle: as recorded; what it keeps stays.
        slots: time for each move [moves], s.
        duration: of the new cycle [s].
        cost: energy [J] of a motion in the move of this number and its slot [s], rest included;
            infinite if the motion exceeds a limit.
        waiting_after: number of the move after which time is waited that is left.
        max_speedup: largest factor on speeds and accelerations.
    """
    moves, left = [], duration - sum(rest.kept for rest in cycle.rests)
    for k, (move, slot) in enumerate(zip(cycle.moves, slots, strict=True)):
        waypoint = tuple(round(math.degrees(q), 2) + 0.0 for q in move.q[-1])
        step, taken = Step("move", k, waypoint, move.line, kept=move.kept), move.duration
        programmed = move.programmed
        if programmed is not None:
            unit = pendant_unit(programmed.kind)
            units = unit * cycle.scaling, unit * cycle.scaling**2
            best = None
            if not move.kept:
                best = best_trapezoid(programmed, slot, partial(cost, k, slot), units, max_speedup)
            old, new = (
                (as_typed(each.speed, units[0]), as_typed(each.acceleration, units[1]))
                for each in (programmed, best or programmed)
            )
            values = (old[0], new[0], old[1], new[1])
            step = Step(programmed.kind, k, waypoint, move.line, *values, kept=move.kept)
            taken = programmed.motion(new[0] * units[0], new[1] * units[1]).duration
        left -= taken
        moves.append(step)
    slack = [
        (wait.duration, j)
        for j, wait in enumerate(cycle.rests[waiting_after].waits)
        if not wait.kept
    ]
    longest = max(slack, key=lambda each: each[0], default=None)
    steps = []
    for k, j in cycle.program:
        if j is None:
            steps.append(moves[k])
            continue
        wait = cycle.rests[k].waits[j]
        new_wait = wait.duration if wait.kept else 0.0
        if longest is not None and (k, j) == (waiting_after, longest[1]):
            new_wait = max(round(left, 2), 0.0)
        steps.append(
            Step("wait", k, line=wait.line, wait=wait.duration, new_wait=new_wait, kept=wait.kept)
        )
    if longest is None and left > LATE * duration:
        steps.append(Step("wait", len(moves) - 1, wait=0.0, new_wait=round(left, 2)))
    return tuple(steps)


def as_recorded(sheet: Sequence[Step]) -> tuple[Step, ...]:
    """The sheet that changes nothing."""
    return tuple(
        replace(step, new_speed=step.speed, new_acceleration=step.acceleration, new_wait=step.wait)
        for step in sheet
    )


def typed_stretches(cycle: WorkCycle, sheet: Sequence[Step]) -> list[Stretch]:
    """A recorded cycle as the controller runs it when exactly the sheet is typed.

    The controller's own pauses stay.
    """
    waited = [rest.pause for rest in cycle.rests]
    for step in sheet:
        waited[step.move] += step.new_wait or 0.0
    recorded = [stretch for stretch in recorded_stretches(cycle) if stretch.moving]
    out, scale = [], cycle.scaling
    for step in sheet:
        if step.do == "wait":
            continue
        move, stretch = cycle.moves[step.move], recorded[step.move]
        if move.programmed and step.new_speed is not None and step.new_acceleration is not None:
            unit = pendant_unit(step.do)
            speed, acceleration = step.new_speed * unit, step.new_acceleration * unit
            motion = move.programmed.motion(speed * scale, acceleration * scale**2)
            stretch = sampled_stretch(motion, move.payload)
        out += with_rest(stretch, waited[step.move], move.rest.payload)
    return out


def sheet_notes(sheet: Sequence[Step], slow: Collection[int]) -> list[str]:
    """Sentences on moves that stay because they are slow, and on moves that become faster."""
    kept, faster = [], []
    for number, step in enumerate(sheet, 1):
        if step.do != "wait" and step.move in slow:
            kept.append(str(number) if step.speed is None else f"{number} ({step.text('speed')})")
        if step.faster > FASTER:
            faster.append(f"{number} ({step.text('speed')}, {step.text('acceleration')})")
    notes = []
    if kept:
        notes.append(
            f"Kept because they are slow beside the others, as near a part: step {', '.join(kept)}."
            " --no-keep-slow lets them change too."
        )
    if faster:
        notes.append(
            f"Faster than recorded: step {', '.join(faster)}. Check tool, part and surroundings; "
            "--max-speedup limits it, --keep keeps a step as it is."
        )
    return notes


def sheet_csv(sheet: Sequence[Step]) -> str:
    """The sheet as CSV: the columns of the JSON, empty where it has null."""
    rows = [step.as_json(number) for number, step in enumerate(sheet, 1)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        if row["waypoint"] is not None:  # a minus begins a formula
            row["waypoint"] = f"[{', '.join(f'{q:.2f}' for q in row['waypoint'])}]"
        writer.writerow({**row, "kept": str(row["kept"]).lower()})
    return text.getvalue()


# What stays as recorded: steps by number, and moves that are deliberately slow.


def with_locks(
    cycle: WorkCycle, options: OptimizationOptions, dynamics: ArmDynamics
) -> tuple[WorkCycle, set[int]]:
    """A cycle with the moves and waits that stay as recorded; the moves that do as they are slow.

    The dynamics are for the speed of the flange.

    Raises:
        InputError: the sheet has no such step.
    """
    program = cycle.program
    wrong = [str(number) for number in options.keep if not 1 <= number <= len(program)]
    if wrong:
        problem = f"there is no step {', '.join(wrong)} in the sheet"
        raise InputError("--keep", problem, f"give numbers from 1 to {len(program)}")
    locked = {program[number - 1] for number in options.keep}
    slow = _slow_moves(cycle, dynamics) if options.keep_slow else set()
    moves = []
    for k, move in enumerate(cycle.moves):
        waits = tuple(
            replace(wait, kept=wait.kept or (k, j) in locked)
            for j, wait in enumerate(move.rest.waits)
        )
        rest = replace(move.rest, waits=waits)
        moves.append(replace(move, rest=rest, kept=k in slow or (k, None) in locked))
    return replace(cycle, moves=tuple(moves)), {k for k in slow if (k, None) not in locked}


def _slow_moves(cycle: WorkCycle, dynamics: ArmDynamics) -> set[int]:
    """Moves that are deliberately slow.

    Their speed is below a share of the speed at which half of the travel of their kind runs or, but
    for moveJ, below a share of that of the tool. Moves that are too short to reach their speed are
    slow only if their acceleration is as low as that.
    """
    flange = [np.linalg.norm(dynamics.flange_speed(m.q, m.qd), axis=1) for m in cycle.moves]
    tool = np.array([speed.max() for speed in flange])
    way = [np.trapezoid(speed, m.time) for speed, m in zip(flange, cycle.moves, strict=True)]
    slow_tool = tool < SLOW_TOOL * _typical(tool, np.array(way))
    out = {k for k, move in enumerate(cycle.moves) if move.kind == "other" and slow_tool[k]}
    for kind in ("moveJ", "moveL"):
        same: list[tuple[int, ProgrammedMove, float]] = []
        for k, move in enumerate(cycle.moves):
            if move.programmed is not None and move.kind == kind:
                one = move.programmed
                ramp = one.speed / one.acceleration  # the travel is that of the trapezoid
                same.append((k, one, one.speed * max(move.duration - ramp, ramp)))
        if not same:
            continue
        travel = np.array([each[2] for each in same])
        typical, gentle = (
            _typical(np.array([getattr(each[1], name) for each in same]), travel)
            for name in ("speed", "acceleration")
        )
        for k, one, distance in same:
            short = one.speed**2 / one.acceleration > TRIANGLE * distance
            slow = one.speed < SLOW * typical or (kind == "moveL" and slow_tool[k])
            if slow and (not short or one.acceleration < SLOW * gentle):
                out.add(k)
    return out


def _typical(values: Array, weights: Array) -> float:
    """The highest value that half of the weight reaches."""
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) >= 0.5 * weights.sum() - 1e-9
    return float(values[order][int(np.argmax(reached))])
