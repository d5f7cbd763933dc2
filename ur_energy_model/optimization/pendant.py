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
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import Move, WorkCycle
from ur_energy_model.optimization.cycle_energy import (
    SHORTEST_REST,
    Stretch,
    dwelling,
    recorded_stretches,
    sampled_stretch,
)
from ur_energy_model.optimization.options import OptimizationOptions
from ur_energy_model.optimization.programmed_path import programmed_path
from ur_energy_model.optimization.trapezoid_fit import (
    TYPED_DIGITS,
    best_trapezoid,
    fit_trapezoid,
    pendant_unit,
)
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array

SLOW, SLOW_TOOL = 0.6, 0.25
"""Share of the typical speed of its kind, and of the typical speed of the tool, below which a move
counts as deliberately slow."""
TRIANGLE = 0.95
"""Share of the distance that a triangular profile needs at least for its ramps."""
LATE = 0.01
"""Share of the cycle time that typed moves may be shorter in all before a wait is added."""
FASTER = 1.05
"""Factor on speed or acceleration from which a move is called faster than recorded."""

SlotCost = Callable[[int, Motion, float], float]
"""Energy of a motion in the slot [s] of the move of this number, rest included [J]; infinite if the
motion exceeds a limit."""


@dataclass(frozen=True)
class Step:
    """A move or wait of the program: as recorded, and what to type.

    Attributes:
        do: what the node of the program is; "move" for a path that is neither moveJ nor moveL.
        move: number of the move, or of the move before the wait, from 0.
        waypoint: where the move ends [n], degrees as the pendant shows them; None for a wait.
        line: of the program, where it was recorded.
        speed, new_speed: deg/s of the leading joint, mm/s of the tool; None for a wait and "move".
        acceleration, new_acceleration: the same, per s.
        wait, new_wait: s; None for a move.
        kept: whether it stays as recorded.
    """

    do: Literal["moveJ", "moveL", "move", "wait"]
    move: int
    waypoint: tuple[float, ...] | None = None
    line: int | None = None
    speed: float | None = None
    new_speed: float | None = None
    acceleration: float | None = None
    new_acceleration: float | None = None
    wait: float | None = None
    new_wait: float | None = None
    kept: bool = False

    def as_json(self, number: int) -> dict[str, Any]:
        """Contract of `ur_energy optimize --json`; the columns of pendant.csv too."""
        names = (
            "do", "waypoint", "line", "speed", "new_speed", "acceleration", "new_acceleration",
            "wait", "new_wait", "kept",
        )  # fmt: skip
        return {"step": number, **{name: getattr(self, name) for name in names}}

    def text(self, what: Literal["speed", "acceleration", "wait"]) -> str:
        """Old and new value with unit, such as "60 → 31.5 °/s"; one value where it stays."""
        old, new = getattr(self, what), getattr(self, f"new_{what}")
        if old is None or new is None:
            return "–"
        per = {"speed": "/s", "acceleration": "/s²", "wait": "s"}[what]
        unit = per if what == "wait" else ("°" if self.do == "moveJ" else "mm") + per
        digits = _seconds if what == "wait" else _digits
        return f"{digits(new)} {unit}" if old == new else f"{digits(old)} → {digits(new)} {unit}"

    @property
    def faster(self) -> float:
        """Largest factor on speed or acceleration; 1 for a wait."""
        pairs = ((self.speed, self.new_speed), (self.acceleration, self.new_acceleration))
        return max((new / old for old, new in pairs if old and new), default=1.0)


def with_recorded_values(move: Move, robot: RobotDescription, tool: Array | None = None) -> Move:
    """A recorded move with its kind, and the speed and acceleration that it was run with."""
    path = programmed_path(move.q, robot, tool)
    if path is None:
        return replace(move, kind="other", speed=math.nan, acceleration=math.nan)
    trapezoid = fit_trapezoid(move.time, path.progress)
    return replace(
        move,
        kind=path.kind,
        speed=float(trapezoid.peak),
        acceleration=float(trapezoid.acceleration),
    )


def with_locks(
    cycle: WorkCycle, options: OptimizationOptions, dynamics: ArmDynamics
) -> tuple[WorkCycle, tuple[bool, ...], set[int]]:
    """Locks of a cycle: waits that stay, which moves stay as recorded, and which as they are slow.

    Args:
        cycle: as recorded.
        options: which steps to keep.
        dynamics: for the speed of the flange.

    Raises:
        InputError: the sheet has no such step.
    """
    program = cycle.program
    wrong = [str(number) for number in options.keep if not 1 <= number <= len(program)]
    if wrong:
        raise InputError(
            "--keep",
            f"there is no step {', '.join(wrong)} in the sheet",
            f"give numbers from 1 to {len(program)}",
        )
    locked = {move for move, wait in (program[n - 1] for n in options.keep) if wait is None}
    waits = {program[n - 1] for n in options.keep} - {(move, None) for move in locked}
    rests = {
        round(rest.start, 6): replace(
            rest,
            waits=tuple(
                replace(wait, kept=wait.kept or (k, j) in waits)
                for j, wait in enumerate(rest.waits)
            ),
        )
        for k, rest in enumerate(cycle.rests)
    }
    cycle = replace(cycle, dwells=tuple(rests[round(dwell.start, 6)] for dwell in cycle.dwells))
    slow = _slow_moves(cycle, dynamics) if options.keep_slow else set()
    every = range(len(cycle.moves))
    return cycle, tuple(k in locked or k in slow for k in every), slow - locked


def sheet_of(
    cycle: WorkCycle,
    slots: Sequence[float],
    duration: float,
    robot: RobotDescription,
    cost: SlotCost,
    *,
    waiting_after: int,
    locked: Sequence[bool] = (),
    max_speedup: float | None = None,
) -> tuple[Step, ...]:
    """What to type so that each move takes its slot at most with the least energy.

    A move that can only be streamed, and one for which no trapezoid fits, stay as recorded. Time
    that is left is waited.

    Args:
        cycle: as recorded.
        slots: time for each move [moves], s.
        duration: of the new cycle [s].
        robot: the arm; its nominal kinematics distinguish moveL from other paths.
        cost: of a motion in a slot.
        waiting_after: number of the move after which time is waited that is left.
        locked: which moves stay as recorded; () for none.
        max_speedup: largest factor on speeds and accelerations; None for no limit.
    """
    scale = cycle.scaling
    locked = locked or (False,) * len(cycle.moves)
    moves, left = [], duration - sum(rest.kept for rest in cycle.rests)
    for k, (move, slot) in enumerate(zip(cycle.moves, slots, strict=True)):
        waypoint = tuple(round(math.degrees(q), 2) + 0.0 for q in move.q[-1])
        path = programmed_path(move.q, robot, cycle.tool)
        if path is None:
            moves.append(Step("move", k, waypoint, move.line, kept=locked[k]))
            left -= move.duration
            continue
        units = pendant_unit(move.kind) * scale, pendant_unit(move.kind) * scale**2
        old = (_rounded(move.speed / units[0]), _rounded(move.acceleration / units[1]))
        new = old
        if not locked[k]:
            factor = math.inf if max_speedup is None else max_speedup
            most = (factor * old[0] * units[0], factor * old[1] * units[1])
            best = best_trapezoid(
                path, slot, partial(_slot_cost, cost, k, slot), units, most, move.acceleration
            )
            if best is not None:
                new = (_rounded(best.speed / units[0]), _rounded(best.acceleration / units[1]))
        left -= path.motion(new[0] * units[0], new[1] * units[1]).duration
        moves.append(
            Step(
                "moveJ" if path.kind == "moveJ" else "moveL",
                k,
                waypoint,
                move.line,
                old[0],
                new[0],
                old[1],
                new[1],
                kept=locked[k],
            )
        )
    slack = [(k, j) for k, j in cycle.program if j is not None and not cycle.rests[k].waits[j].kept]
    here = [(k, j) for k, j in slack if k == waiting_after]
    chosen = max(here, key=lambda at: cycle.rests[at[0]].waits[at[1]].duration, default=None)
    steps = []
    for k, j in cycle.program:
        if j is None:
            steps.append(moves[k])
            continue
        wait = cycle.rests[k].waits[j]
        new_wait = wait.duration if wait.kept else 0.0
        if (k, j) == chosen:
            new_wait = max(round(left, 2), 0.0)
        steps.append(
            Step("wait", k, line=wait.line, wait=wait.duration, new_wait=new_wait, kept=wait.kept)
        )
    if chosen is None and left > LATE * duration:
        steps.append(Step("wait", len(moves) - 1, wait=0.0, new_wait=round(left, 2)))
    return tuple(steps)


def as_recorded(sheet: Sequence[Step]) -> tuple[Step, ...]:
    """The sheet that changes nothing."""
    return tuple(
        replace(step, new_speed=step.speed, new_acceleration=step.acceleration, new_wait=step.wait)
        for step in sheet
    )


def typed_stretches(
    cycle: WorkCycle, sheet: Sequence[Step], robot: RobotDescription
) -> list[Stretch]:
    """One cycle as the controller runs it when exactly the sheet is typed.

    Args:
        cycle: as recorded: paths, payloads, and the controller's own pauses.
        sheet: what is typed.
        robot: the arm.
    """
    waited = [rest.pause for rest in cycle.rests]
    for step in sheet:
        waited[step.move] += step.new_wait or 0.0
    recorded = [stretch for stretch in recorded_stretches(cycle) if stretch.moving]
    out = []
    for step in sheet:
        if step.do == "wait":
            continue
        move, rest = cycle.moves[step.move], cycle.rests[step.move]
        motion = typed_motion(cycle, step, robot)
        stretch = recorded[step.move] if motion is None else sampled_stretch(motion, move.payload)
        out.append(stretch)
        if waited[step.move] > SHORTEST_REST:
            out.append(dwelling(rest.q, waited[step.move], rest.payload))
    return out


def typed_motion(cycle: WorkCycle, step: Step, robot: RobotDescription) -> Motion | None:
    """A move as the controller runs it with what is typed; None where nothing can be typed."""
    path = programmed_path(cycle.moves[step.move].q, robot, cycle.tool)
    if path is None or step.new_speed is None or step.new_acceleration is None:
        return None
    unit = pendant_unit(step.do)
    return path.motion(
        step.new_speed * unit * cycle.scaling, step.new_acceleration * unit * cycle.scaling**2
    )


def sheet_notes(sheet: Sequence[Step], slow: Collection[int]) -> list[str]:
    """Sentences on moves that stay because they are slow, and on moves that become faster.

    Args:
        sheet: what to type.
        slow: numbers of moves that are deliberately slow.
    """
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
        waypoint = row["waypoint"]
        angles = None if waypoint is None else ", ".join(f"{q:.2f}" for q in waypoint)
        row["waypoint"] = None if angles is None else f"[{angles}]"  # a minus begins a formula
        row["kept"] = str(row["kept"]).lower()
        writer.writerow(row)
    return text.getvalue()


def _slot_cost(cost: SlotCost, index: int, slot: float, motion: Motion) -> float:
    return cost(index, motion, slot)


def _slow_moves(cycle: WorkCycle, dynamics: ArmDynamics) -> set[int]:
    """Moves that are deliberately slow.

    Their speed is below a share of the speed at which half of the travel of their kind runs or, but
    for moveJ, below a share of that of the tool. Moves that are too short to reach their speed are
    slow only if their acceleration is as low as that.
    """
    flange = [dynamics.flange_speed(move.q, move.qd) for move in cycle.moves]
    tool = np.array([float(np.linalg.norm(speed, axis=1).max()) for speed in flange])
    way = np.array(
        [
            float(np.trapezoid(np.linalg.norm(speed, axis=1), move.time))
            for speed, move in zip(flange, cycle.moves, strict=True)
        ]
    )
    out, typical_tool = set(), _typical(tool, way)
    for kind in ("moveJ", "moveL"):
        same = [k for k, move in enumerate(cycle.moves) if move.kind == kind]
        if not same:
            continue
        moves = [cycle.moves[k] for k in same]
        travel = np.array([_travel(move) for move in moves])
        typical = _typical(np.array([move.speed for move in moves]), travel)
        gentle = _typical(np.array([move.acceleration for move in moves]), travel)
        for k, move, distance in zip(same, moves, travel, strict=True):
            short = move.speed**2 / move.acceleration > TRIANGLE * distance
            slow = move.speed < SLOW * typical or (
                kind == "moveL" and tool[k] < SLOW_TOOL * typical_tool
            )
            if slow and (not short or move.acceleration < SLOW * gentle):
                out.add(k)
    for k, move in enumerate(cycle.moves):
        if move.kind == "other" and tool[k] < SLOW_TOOL * typical_tool:
            out.add(k)
    return out


def _travel(move: Move) -> float:
    """Distance of a trapezoid [rad or m], from its speed, acceleration and duration."""
    ramp = move.speed / move.acceleration
    return move.speed * max(move.duration - ramp, ramp)


def _typical(values: Array, weights: Array) -> float:
    """The highest value that half of the weight reaches."""
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) >= 0.5 * weights.sum() - 1e-9
    return float(values[order][int(np.argmax(reached))])


def _rounded(value: float) -> float:
    """A number with the digits that a person types."""
    return float(f"{value:.{TYPED_DIGITS}g}")


def _digits(value: float) -> str:
    """A typed number, with all its digits."""
    decimals = max(0, TYPED_DIGITS - 1 - math.floor(math.log10(value)))
    return f"{value:.{decimals}f}"


def _seconds(value: float) -> str:
    return f"{value:.2f}"
