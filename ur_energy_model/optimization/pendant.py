# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The pendant sheet: what to type for every move and wait of a program, and what that takes.

All figures "as typed" (energy, duration, files, pages) come from `typed_stretches` of the
sheet: its digits, the controller's trapezoids, its waits, and nothing else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.optimization.cycle import (
    Dwell,
    OptimizationOptions,
    Reason,
    Stretch,
    StretchEnergy,
    WorkCycle,
    recorded_stretches,
    sampled_stretch,
    with_rest,
)
from ur_energy_model.optimization.programmed import (
    TYPED_DIGITS,
    ProgrammedMove,
    as_typed,
    pendant_unit,
)
from ur_energy_model.optimization.typed_values import Values
from ur_energy_model.typing import Array

SLOW = 0.6
SLOW_TOOL = 0.25
"""Share of the typical speed of its kind, and of the typical speed of the tool, below which a move
counts as deliberately slow."""
# share of the distance that a triangular profile needs at least for its ramps
TRIANGLE = 0.95
LATE = 0.01
"""Share of the cycle time that typed moves may be shorter in all before a wait is added."""
WORTH_COPYING = 0.2  # further saving from which copies of a subprogram are advised [%]
# factor on speed or acceleration from which a move is called faster than recorded
FASTER = 1.05


@dataclass(frozen=True)
class Step:
    """A move or wait of the program: as recorded, and what to type.

    Speeds are those of the leading joint [deg/s] or the tool [mm/s], accelerations the
    same per s; None for a wait and for a "move", whose path is neither moveJ nor moveL.

    Attributes:
        do: instruction of the program.
        move: number of the move, or of the move before the wait, from 0.
        waypoint: where the move ends [n], degrees as on the pendant.
        lines: of the program that run it, ascending; empty if unknown.
        speed: as recorded.
        new_speed: to be typed.
        acceleration: as recorded.
        new_acceleration: to be typed.
        wait: as recorded [s]; None for a move.
        new_wait: to be typed [s]; None for a move.
        reason: why it stays as recorded; empty where it may change.
        energy: of the whole arm at the supply, as recorded [J]; that of a move includes what
            the controller takes before the next step.
        new_energy: the same as typed [J].
    """

    do: Literal["moveJ", "moveL", "move", "wait"]
    move: int
    waypoint: tuple[float, ...] | None = None
    lines: tuple[int, ...] = ()
    speed: float | None = None
    new_speed: float | None = None
    acceleration: float | None = None
    new_acceleration: float | None = None
    wait: float | None = None
    new_wait: float | None = None
    reason: Reason = ""
    energy: float = math.nan
    new_energy: float = math.nan

    @property
    def kept(self) -> bool:
        """Whether it stays as recorded."""
        return bool(self.reason)

    @property
    def line(self) -> str:
        """The lines of the program that run it, as text; empty if unknown."""
        return line_numbers(self.lines)

    def as_json(self, number: int) -> dict[str, Any]:
        """Contract of `ur_energy optimize --json`; the columns of pendant.csv too."""
        named = {name: value for name, value in vars(self).items() if name not in _OTHERS}
        line = self.lines[0] if self.lines else None
        return {
            "step": number,
            "do": self.do,
            "waypoint": self.waypoint,
            "line": line,
            **named,
            "kept": self.kept,
            "reason": self.reason or None,
            "lines": self.lines,
            "energy": self.energy,
            "new_energy": self.new_energy,
        }

    def text(self, what: Literal["speed", "acceleration", "wait", "energy"]) -> str:
        """Old and new value with unit, such as "60 → 31.5 °/s"; one value where it stays."""
        old = getattr(self, what)
        new = getattr(self, f"new_{what}")
        if old is None or new is None:
            return "–"
        if what == "energy":
            return f"{old:.1f} → {new:.1f}"
        if what == "wait":
            first = f"{old:.2f}"
            last = f"{new:.2f}"
            unit = "s"
        else:
            first = _digits(old)
            last = _digits(new)
            per = "/s" if what == "speed" else "/s²"
            unit = ("°" if self.do == "moveJ" else "mm") + per
        return f"{last} {unit}" if old == new else f"{first} → {last} {unit}"

    @property
    def faster(self) -> float:
        """Largest factor on speed or acceleration; 1 for a wait."""
        pairs = ((self.speed, self.new_speed), (self.acceleration, self.new_acceleration))
        return max((new / old for old, new in pairs if old and new), default=1.0)


_OTHERS = ("do", "move", "waypoint", "lines", "reason", "energy", "new_energy")


def _digits(value: float) -> str:
    """A typed number, with all its digits."""
    return f"{value:.{max(0, TYPED_DIGITS - 1 - math.floor(math.log10(value)))}f}"


def typed_units(cycle: WorkCycle, kind: str) -> Values:
    """Units of typed speeds and accelerations in SI, at the speed scaling of the recording."""
    unit = pendant_unit(kind)
    return Values(unit * cycle.scaling, unit * cycle.scaling**2)


def recorded_values(cycle: WorkCycle, moves: Sequence[int]) -> Values:
    """Values that a line was run with, SI, with the digits of the pendant, from all of its moves.

    A move that is too short to reach its speed does not show it: the fastest one counts.
    """
    runs = [run for k in moves if (run := cycle.moves[k].programmed) is not None]
    fastest = max(runs, key=lambda run: run.speed)
    units = typed_units(cycle, fastest.kind)
    shown = (fastest.speed, fastest.acceleration)
    return Values(
        *(as_typed(x, unit) * unit for x, unit in zip(shown, units, strict=True))
    )


def sheet_of(
    cycle: WorkCycle,
    values: Mapping[int, Values],
    waiting: Sequence[tuple[int, int]],
    left: float,
) -> tuple[Step, ...]:
    """The sheet of a cycle: values of its moves, and waits.

    Args:
        cycle: as recorded; what it keeps stays.
        values: SI, by number of the move; others stay as recorded.
        waiting: waits in which time that is left is spent, by numbers of their moves and
            their own; one at the end of the cycle where there are none.
        left: that time [s].
    """
    moves = [_move_step(cycle, k, values.get(k)) for k in range(len(cycle.moves))]
    each = max(math.floor(100.0 * left / max(len(waiting), 1) + 1e-6) / 100.0, 0.0)
    steps = []
    for k, j in cycle.program:
        if j is None:
            steps.append(moves[k])
            continue
        wait = cycle.rests[k].waits[j]
        new_wait = wait.duration if wait.kept else 0.0
        if (k, j) in waiting:
            new_wait = each
        steps.append(
            Step(
                "wait",
                k,
                None,
                wait.lines,
                wait=wait.duration,
                new_wait=new_wait,
                reason=wait.reason,
            )
        )
    if not waiting and left > LATE * cycle.duration:
        steps.append(Step("wait", len(moves) - 1, wait=0.0, new_wait=each))
    return tuple(steps)


def _move_step(cycle: WorkCycle, number: int, new: Values | None) -> Step:
    """The step of a move, with new values or as recorded."""
    move = cycle.moves[number]
    waypoint = tuple(round(math.degrees(q), 2) + 0.0 for q in move.q[-1])
    reason: Reason = move.reason
    if move.programmed is None:
        if reason != "asked with --keep":
            reason = "neither moveJ nor moveL"
        return Step("move", number, waypoint, move.lines, reason=reason)
    line = next(moves for moves in cycle.shared_moves if number in moves)
    if new is None and not move.kept:
        others = [cycle.moves[k] for k in line]
        reason = "no other values within the limits"
        if any(each.kept or each.programmed is None for each in others):
            reason = "same line as another kept step"
    old = recorded_values(cycle, line)
    units = typed_units(cycle, move.kind)
    chosen = old if new is None else new
    return Step(
        move.programmed.kind,
        number,
        waypoint,
        move.lines,
        speed=as_typed(old.speed, units.speed),
        new_speed=as_typed(chosen.speed, units.speed),
        acceleration=as_typed(old.acceleration, units.acceleration),
        new_acceleration=as_typed(chosen.acceleration, units.acceleration),
        reason=reason,
    )


def as_recorded(sheet: Sequence[Step]) -> tuple[Step, ...]:
    """The sheet that changes nothing."""
    return tuple(
        replace(
            step,
            new_speed=step.speed,
            new_acceleration=step.acceleration,
            new_wait=step.wait,
        )
        for step in sheet
    )


def own_pauses(cycle: WorkCycle) -> list[float]:
    """Time at and after each move [moves], s, that is neither its trapezoid nor a wait.

    The controller takes it to plan a line, and the arm to settle; it stays whatever is
    typed, and a sheet without changes takes the time that was recorded.
    """
    pauses = []
    for k, move in enumerate(cycle.moves):
        pause = move.rest.pause
        if move.programmed is not None:
            line = next(moves for moves in cycle.shared_moves if k in moves)
            values = recorded_values(cycle, line)
            pause += move.duration - move.programmed.motion(*values).duration
        pauses.append(pause)
    return pauses


def typed_stretches(cycle: WorkCycle, sheet: Sequence[Step]) -> list[Stretch]:
    """A recorded cycle as the controller runs it when exactly the sheet is typed."""
    waited = own_pauses(cycle)
    for step in sheet:
        waited[step.move] += step.new_wait or 0.0
    recorded = [stretch for stretch in recorded_stretches(cycle) if stretch.moving]
    out = []
    for step in sheet:
        if step.do == "wait":
            continue
        move = cycle.moves[step.move]
        stretch = recorded[step.move]
        if (
            move.programmed
            and step.new_speed is not None
            and step.new_acceleration is not None
        ):
            units = typed_units(cycle, move.kind)
            speed = step.new_speed * units[0]
            acceleration = step.new_acceleration * units[1]
            stretch = sampled_stretch(
                move.programmed.motion(speed, acceleration), move.payload
            )
        out += with_rest(stretch, waited[step.move], move.rest.payload)
    return out


def with_energies(
    cycle: WorkCycle,
    sheet: Sequence[Step],
    before: Sequence[StretchEnergy],
    after: Sequence[StretchEnergy],
) -> tuple[Step, ...]:
    """The sheet with the energy of each step.

    They sum to the energies of both cycles. A standstill is divided by time over the
    waits in it and the controller's own pause, which belongs to the move before it.

    Args:
        cycle: as recorded.
        sheet: without energies.
        before: energies of the stretches as recorded.
        after: the same as typed.
    """
    sides = []
    for parts, waited in ((before, "wait"), (after, "new_wait")):
        moving = [part.energy for part in parts if part.stretch.moving]
        resting = _resting(parts)
        energies = []
        for step in sheet:
            energy, duration = resting[step.move]
            power = energy / duration if duration > 0.0 else 0.0
            own = [
                getattr(each, waited) or 0.0 for each in sheet if each.move == step.move
            ]
            if step.do == "wait":
                energies.append(power * (getattr(step, waited) or 0.0))
            else:
                energies.append(moving[step.move] + energy - power * sum(own))
        sides.append(energies)
    return tuple(
        replace(step, energy=old, new_energy=new)
        for step, old, new in zip(sheet, *sides, strict=True)
    )


def _resting(parts: Sequence[StretchEnergy]) -> list[tuple[float, float]]:
    """Energy [J] and duration [s] of the standstill after each move."""
    found: list[tuple[float, float]] = []
    for part in parts:
        if part.stretch.moving:
            found.append((0.0, 0.0))
        else:
            found[-1] = (part.energy, part.stretch.plan.duration)
    return found


_REASONS: dict[Reason, str] = {
    "short wait": "short waits, as of a gripper or sensor; --keep-dwell 0 frees them",
    "slow beside the others": "slow beside the others, as near a part; --no-keep-slow frees them",
    "asked with --keep": "asked with --keep",
    "neither moveJ nor moveL": "a blend or spline: there is nothing to type",
    "same line as another kept step": "on the same line as another kept step",
    "no other values within the limits": "no other values keep the limits in their time",
}


def sheet_notes(sheet: Sequence[Step]) -> list[str]:
    """Sentences on steps that stay and why, and on moves that become faster."""
    notes = []
    for reason, words in _REASONS.items():
        steps = [number for number, step in enumerate(sheet, 1) if step.reason == reason]
        if steps:
            notes.append(f"Kept as recorded: {_named_steps(steps)} ({words}).")
    faster: dict[str, list[int]] = {}  # numbers of steps by what becomes of their values
    for number, step in enumerate(sheet, 1):
        if step.faster > FASTER:
            change = f"{step.text('speed')}, {step.text('acceleration')}"
            faster.setdefault(change, []).append(number)
    if faster:
        named = [f"{_named_steps(steps)} ({change})" for change, steps in faster.items()]
        notes.append(
            f"Faster than recorded: {', '.join(named)}. Check tool, part and surroundings; "
            "--max-speedup limits it, --keep keeps a step as it is."
        )
    return notes


def _named_steps(numbers: Sequence[int]) -> str:
    """Steps of the sheet in words."""
    return f"step{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def shared_notes(cycle: WorkCycle, sheet: Sequence[Step]) -> list[str]:
    """A sentence on lines that run several steps, or that may, where lines are unknown."""
    shared = {k for moves in cycle.shared_moves if len(moves) > 1 for k in moves}
    waits = {
        place for places in cycle.shared_waits if len(places) > 1 for place in places
    }
    if not shared and not waits:
        ends = [step.waypoint for step in sheet if step.waypoint is not None]
        if any(step.lines for step in sheet) or len(ends) == len(set(ends)):
            return []
        return [
            "The recording does not show which line of the program runs each step: where one line "
            "runs several, as in a subprogram, copy it first, or record script_control_line."
        ]
    numbers: dict[tuple[int, ...], list[str]] = {}
    for number, (step, place) in enumerate(zip(sheet, cycle.program, strict=False), 1):
        if (place in waits) if step.do == "wait" else (step.move in shared):
            numbers.setdefault(step.lines, []).append(str(number))
    text = "; ".join(
        f"{_named_lines(lines)}: steps {', '.join(steps)}"
        for lines, steps in sorted(numbers.items())
    )
    return [
        f"A line of the program has one value for all the steps that it runs ({text})."
    ]


def other_work_notes(
    cycle: WorkCycle, sheet: Sequence[Step], durations: Sequence[float]
) -> list[str]:
    """A sentence on other work of the recording, and what it becomes by values of shared lines.

    Args:
        cycle: as recorded.
        sheet: what to type.
        durations: of the moves of the cycle as typed [s].
    """
    others = cycle.others
    if not others.times:
        return []
    times = "once" if others.times == 1 else f"{others.times} times"
    text = (
        f"Between its cycles, the recording has other work ({times}), as another branch of the "
        "program: it is neither in the sheet nor in the saving."
    )
    longer = 0.0
    shared: set[int] = set()
    for step in sheet:
        if step.do == "wait" or step.kept:
            continue
        by = durations[step.move] - cycle.moves[step.move].duration
        for line in set(others.lines).intersection(step.lines) - shared:
            longer += by * others.lines[line]
            shared.add(line)
    if shared:
        change = "longer" if longer > 0.0 else "shorter"
        text += (
            f" It shares {_named_lines(shared)}: with the new values its moves take "
            f"{abs(longer):.1f} s {change} in all."
        )
    return [text]


def _named_lines(lines: Iterable[int]) -> str:
    """Lines of a program in words."""
    numbers = line_numbers(sorted(lines))
    return f"line {numbers}" if numbers.isdigit() else f"lines {numbers}"


def line_numbers(lines: Sequence[int]) -> str:
    """Ascending line numbers as text; three or more that follow each other as "5-8"."""
    parts: list[str] = []
    for _, group in groupby(enumerate(lines), lambda item: item[1] - item[0]):
        numbers = [line for _, line in group]
        if len(numbers) > 2:
            parts.append(f"{numbers[0]}-{numbers[-1]}")
        else:
            parts += map(str, numbers)
    return ", ".join(parts)


def copy_advice(saving: float, copied: float | None) -> str:
    """What a copy of a subprogram for each of its calls would save.

    Args:
        saving: of the sheet [%].
        copied: saving if each step had values of its own [%]; None where nothing is called
            several times.

    Returns:
        A sentence; empty where copies save hardly more.
    """
    if copied is None or copied - saving < WORTH_COPYING:
        return ""
    return (
        "Copy the subprogram first, a copy for each of its calls, to save "
        f"{copied:.1f} % instead of {saving:.1f} %: record the changed program, and optimize again."
    )


def sheet_csv(sheet: Sequence[Step]) -> str:
    """The sheet as CSV: the columns of the JSON, empty where it has null."""
    rows = [step.as_json(number) for number, step in enumerate(sheet, 1)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        if row["waypoint"] is not None:  # a minus begins a formula
            row["waypoint"] = f"[{', '.join(f'{q:.2f}' for q in row['waypoint'])}]"
        row["lines"] = " ".join(map(str, row["lines"]))
        writer.writerow({**row, "kept": str(row["kept"]).lower()})
    return text.getvalue()


# What stays as recorded: steps by number, and moves that are deliberately slow.


def with_locks(
    cycle: WorkCycle, options: OptimizationOptions, dynamics: ArmDynamics
) -> WorkCycle:
    """A cycle with the moves and waits that stay as recorded.

    Args:
        cycle: as recorded.
        options: what the cycle may become.
        dynamics: the arm, for the speed of the flange.

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
        kept_waits = {j for j in range(len(move.rest.waits)) if (k, j) in locked}
        rest = _with_waits_kept(move.rest, kept_waits, "asked with --keep")
        reason: Reason = ""
        if (k, None) in locked:
            reason = "asked with --keep"
        elif k in slow:
            reason = "slow beside the others"
        moves.append(replace(move, rest=rest, reason=reason))
    return _with_lines_kept(replace(cycle, moves=tuple(moves)))


def _with_lines_kept(cycle: WorkCycle) -> WorkCycle:
    """A cycle in which all waits of a line stay where one of them does."""
    stays = {
        place
        for places in cycle.shared_waits
        if any(cycle.moves[k].rest.waits[j].kept for k, j in places)
        for place in places
    }
    moves = []
    for k, move in enumerate(cycle.moves):
        kept_waits = {j for j in range(len(move.rest.waits)) if (k, j) in stays}
        rest = _with_waits_kept(move.rest, kept_waits, "same line as another kept step")
        moves.append(replace(move, rest=rest))
    return replace(cycle, moves=tuple(moves))


def _with_waits_kept(rest: Dwell, numbers: set[int], reason: Reason) -> Dwell:
    """A rest in which these waits stay, for this reason unless they have one already."""
    waits = tuple(
        replace(wait, reason=reason) if number in numbers and not wait.kept else wait
        for number, wait in enumerate(rest.waits)
    )
    return replace(rest, waits=waits)


def _slow_moves(cycle: WorkCycle, dynamics: ArmDynamics) -> set[int]:
    """Moves that are deliberately slow.

    Their speed is below a share of the speed at which half of the travel of their kind
    runs or, but for moveJ, below a share of that of the tool. Moves that are too short to
    reach their speed are slow only if their acceleration is as low as that.
    """
    flange = [
        np.linalg.norm(dynamics.flange_speed(m.q, m.qd), axis=1) for m in cycle.moves
    ]
    tool = np.array([speed.max() for speed in flange])
    way = [
        np.trapezoid(speed, m.time) for speed, m in zip(flange, cycle.moves, strict=True)
    ]
    slow_tool = tool < SLOW_TOOL * _typical(tool, np.array(way))
    out = {
        k for k, move in enumerate(cycle.moves) if move.kind == "other" and slow_tool[k]
    }
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
