# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The pendant sheet: values to type for every move and wait of a program.

All figures "as typed" (energy, duration, files, pages) come from `typed_stretches` of the
sheet: from the digits of the sheet, the trapezoids that the controller makes of the digits,
and the waits of the sheet alone.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ur_energy_model.optimization.cycle import (
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
    as_typed,
    pendant_unit,
)
from ur_energy_model.optimization.typed_values import Values

LATE = 0.01
"""Share of the cycle time by which typed moves together may be shorter before a wait is added."""
WORTH_COPYING = 0.2  # further saving from which copies of a subprogram are advised [%]
FASTER = 1.05
"""Factor on speed or acceleration above which a move is called faster than recorded."""


@dataclass(frozen=True)
class Step:
    """A move or wait of the program: as recorded, and what to type.

    Speeds are speeds of the leading joint [deg/s] or of the tool [mm/s], accelerations
    the same per s; None for a wait and for a "move", whose path is neither moveJ nor
    moveL.

    Attributes:
        do: instruction of the program.
        move: number of the move, or of the move before the wait, from 0.
        waypoint: joint positions where the move ends [n], degrees as on the pendant.
        lines: lines of the program that run the step, ascending; empty if unknown.
        speed: recorded speed.
        new_speed: speed to be typed.
        acceleration: recorded acceleration.
        new_acceleration: acceleration to be typed.
        wait: recorded wait [s]; None for a move.
        new_wait: wait to be typed [s]; None for a move.
        reason: why the step stays as recorded; empty where the step may change.
        energy: energy of the whole arm at the supply, as recorded [J]; for a move, with
            the energy of the time that the controller takes before the next step.
        new_energy: energy of the whole arm at the supply, as typed [J].
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
        """Whether the step stays as recorded."""
        return bool(self.reason)

    @property
    def line(self) -> str:
        """The lines of the program that run the step, as text; empty if unknown."""
        return line_numbers(self.lines)

    def as_json(self, number: int) -> dict[str, Any]:
        """The step in the JSON of `ur_energy optimize`; the columns of pendant.csv are its keys.

        Args:
            number: number of the step in the sheet, from 1.
        """
        return {
            "step": number,
            "do": self.do,
            "waypoint": self.waypoint,
            "line": self.lines[0] if self.lines else None,
            "speed": self.speed,
            "new_speed": self.new_speed,
            "acceleration": self.acceleration,
            "new_acceleration": self.new_acceleration,
            "wait": self.wait,
            "new_wait": self.new_wait,
            "kept": self.kept,
            "reason": self.reason or None,
            "lines": self.lines,
            "energy": self.energy,
            "new_energy": self.new_energy,
        }

    def text(self, what: Literal["speed", "acceleration", "wait", "energy"]) -> str:
        """Old and new value with unit, such as "60 → 31.5 °/s"; one value where it stays.

        Args:
            what: quantity of the step.
        """
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
            length = "°" if self.do == "moveJ" else "mm"
            unit = f"{length}/s" if what == "speed" else f"{length}/s²"
        if old == new:
            return f"{last} {unit}"
        return f"{first} → {last} {unit}"

    @property
    def speedup(self) -> float:
        """Factor on the recorded speed or acceleration, whichever is larger; 1 for a wait."""
        if not (self.speed and self.new_speed):
            return 1.0
        if not (self.acceleration and self.new_acceleration):
            return 1.0
        of_acceleration = self.new_acceleration / self.acceleration
        return max(self.new_speed / self.speed, of_acceleration)


def _digits(value: float) -> str:
    """A positive number with `TYPED_DIGITS` significant digits, zeros at its end included."""
    before_point = math.floor(math.log10(value)) + 1
    decimals = max(0, TYPED_DIGITS - before_point)
    return f"{value:.{decimals}f}"


def typed_units(cycle: WorkCycle, kind: str) -> Values:
    """Units of typed speeds and accelerations in SI, at the speed scaling of the recording.

    Args:
        cycle: recorded cycle.
        kind: kind of the move, moveJ or moveL.
    """
    unit = pendant_unit(kind)
    return Values(unit * cycle.scaling, unit * cycle.scaling**2)


def recorded_values(cycle: WorkCycle, moves: Sequence[int]) -> Values:
    """Speed and acceleration that a line was run with, SI, rounded to the digits of the pendant.

    A move that is too short to reach the speed of the line does not show this speed:
    the values come from the fastest move.

    Args:
        cycle: recorded cycle.
        moves: numbers of all moves that the line runs; at least one move is programmed.
    """
    runs = [cycle.moves[number].programmed for number in moves]
    programmed = [run for run in runs if run is not None]
    fastest = max(programmed, key=lambda run: run.speed)
    units = typed_units(cycle, fastest.kind)
    typed_speed = as_typed(fastest.speed, units.speed)
    typed_acceleration = as_typed(fastest.acceleration, units.acceleration)
    return Values(typed_speed * units.speed, typed_acceleration * units.acceleration)


def sheet_of(
    cycle: WorkCycle,
    values: Mapping[int, Values],
    waiting: Sequence[tuple[int, int]],
    left: float,
) -> tuple[Step, ...]:
    """The sheet of a cycle: values of its moves, and waits.

    Args:
        cycle: recorded cycle; moves and waits that are kept stay.
        values: SI, by number of the move; other moves stay as recorded.
        waiting: waits in which the time that is left is spent, each by the number of its
            move and its own number; without any, a wait is added at the end of the cycle.
        left: time that neither moves nor kept waits take [s].
    """
    per_wait = left / max(len(waiting), 1)
    hundredths = math.floor(100.0 * per_wait + 1e-6)
    spent = max(hundredths / 100.0, 0.0)
    steps = []
    for number, wait_number in cycle.program:
        if wait_number is None:
            steps.append(_move_step(cycle, number, values.get(number)))
            continue
        wait = cycle.rests[number].waits[wait_number]
        new_wait = wait.duration if wait.kept else 0.0
        if (number, wait_number) in waiting:
            new_wait = spent
        steps.append(
            Step(
                "wait",
                number,
                None,
                wait.lines,
                wait=wait.duration,
                new_wait=new_wait,
                reason=wait.reason,
            )
        )
    if not waiting and left > LATE * cycle.duration:
        steps.append(Step("wait", len(cycle.moves) - 1, wait=0.0, new_wait=spent))
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
    line = _moves_of_line(cycle, number)
    if new is None and not move.kept:
        reason = "no other values within the limits"
        for other in line:
            if cycle.moves[other].kept or cycle.moves[other].programmed is None:
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


def _moves_of_line(cycle: WorkCycle, number: int) -> tuple[int, ...]:
    """Numbers of all moves that the line of a move runs, the move itself included."""
    return next(moves for moves in cycle.shared_moves if number in moves)


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

    The controller takes this time to plan a line, and the arm to settle. It stays whatever
    is typed, so that a sheet without changes takes as long as the recorded cycle.
    """
    pauses = []
    for number, move in enumerate(cycle.moves):
        pause = move.rest.pause
        if move.programmed is not None:
            values = recorded_values(cycle, _moves_of_line(cycle, number))
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
            speed = step.new_speed * units.speed
            acceleration = step.new_acceleration * units.acceleration
            motion = move.programmed.motion(speed, acceleration)
            stretch = sampled_stretch(motion, move.payload)
        out += with_rest(stretch, waited[step.move], move.rest.payload)
    return out


def with_energies(
    sheet: Sequence[Step],
    before: Sequence[StretchEnergy],
    after: Sequence[StretchEnergy],
) -> tuple[Step, ...]:
    """The sheet with the energy of each step.

    The energies of the steps sum to the energies of both cycles. The energy of a
    standstill is divided by time over the waits in it and the controller's own pause,
    which belongs to the move before it.

    Args:
        sheet: steps to be typed, without energies.
        before: energies of the stretches as recorded.
        after: energies of the stretches as typed.
    """
    waits = [step.wait or 0.0 for step in sheet]
    new_waits = [step.new_wait or 0.0 for step in sheet]
    energies = _step_energies(sheet, before, waits)
    new_energies = _step_energies(sheet, after, new_waits)
    return tuple(
        replace(step, energy=old, new_energy=new)
        for step, old, new in zip(sheet, energies, new_energies, strict=True)
    )


def _step_energies(
    sheet: Sequence[Step], parts: Sequence[StretchEnergy], waits: Sequence[float]
) -> list[float]:
    """Energy of each step [J], from the stretches of the cycle and the wait of each step [s]."""
    moving = [part.energy for part in parts if part.stretch.moving]
    resting = _resting(parts)
    waited = [0.0] * len(resting)  # programmed wait after each move [s]
    for step, wait in zip(sheet, waits, strict=True):
        waited[step.move] += wait
    energies = []
    for step, wait in zip(sheet, waits, strict=True):
        energy, duration = resting[step.move]
        power = energy / duration if duration > 0.0 else 0.0
        if step.do == "wait":
            energies.append(power * wait)
        else:
            energies.append(moving[step.move] + energy - power * waited[step.move])
    return energies


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
    faster: dict[str, list[int]] = {}  # numbers of steps by the change of their values
    for number, step in enumerate(sheet, 1):
        if step.speedup > FASTER:
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
    """Steps of the sheet in words, such as "steps 3, 5"."""
    word = "steps" if len(numbers) > 1 else "step"
    return f"{word} {', '.join(map(str, numbers))}"


def shared_notes(cycle: WorkCycle, sheet: Sequence[Step]) -> list[str]:
    """A sentence on lines that run several steps, or that may, where lines are unknown.

    Args:
        cycle: recorded cycle.
        sheet: steps of the cycle to be typed; a wait that was added at its end is left
            out.
    """
    shared_moves: set[int] = set()
    for moves in cycle.shared_moves:
        if len(moves) > 1:
            shared_moves.update(moves)
    shared_waits: set[tuple[int, int | None]] = set()
    for places in cycle.shared_waits:
        if len(places) > 1:
            shared_waits.update(places)
    if not shared_moves and not shared_waits:
        ends = [step.waypoint for step in sheet if step.waypoint is not None]
        if any(step.lines for step in sheet) or len(ends) == len(set(ends)):
            return []
        return [
            "The recording does not show which line of the program runs each step: where one line "
            "runs several, as in a subprogram, copy it first, or record script_control_line."
        ]
    steps_of_lines: dict[tuple[int, ...], list[int]] = {}
    for number, (step, place) in enumerate(zip(sheet, cycle.program, strict=False), 1):
        shared = step.move in shared_moves
        if step.do == "wait":
            shared = place in shared_waits
        if shared:
            steps_of_lines.setdefault(step.lines, []).append(number)
    named = [
        f"{_named_lines(lines)}: {_named_steps(steps)}"
        for lines, steps in sorted(steps_of_lines.items())
    ]
    return [
        "A line of the program has one value for all the steps that it runs "
        f"({'; '.join(named)})."
    ]


def other_work_notes(
    cycle: WorkCycle, sheet: Sequence[Step], durations: Sequence[float]
) -> list[str]:
    """A sentence on work between the cycles of the recording, and its change by the sheet.

    Values of a line that is shared with the other work change the duration of its moves
    there, too.

    Args:
        cycle: recorded cycle.
        sheet: what to type.
        durations: durations of the moves of the cycle as typed [s].
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
        change_of_move = durations[step.move] - cycle.moves[step.move].duration
        for line in set(others.lines).intersection(step.lines) - shared:
            longer += change_of_move * others.lines[line]
            shared.add(line)
    if shared:
        change = "longer" if longer > 0.0 else "shorter"
        text += (
            f" It shares {_named_lines(shared)}: with the new values its moves take "
            f"{abs(longer):.1f} s {change} in all."
        )
    return [text]


def _named_lines(lines: Iterable[int]) -> str:
    """Lines of a program in words, such as "line 4" or "lines 4, 7-9"."""
    numbers = line_numbers(sorted(lines))
    word = "line" if numbers.isdigit() else "lines"
    return f"{word} {numbers}"


def line_numbers(lines: Sequence[int]) -> str:
    """Ascending line numbers as text; three or more that follow each other as "5-8"."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    parts: list[str] = []
    for run in runs:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts += map(str, run)
    return ", ".join(parts)


def copy_advice(saving: float, copied: float | None) -> str:
    """The advice to copy a subprogram for each of its calls, where that saves more.

    Args:
        saving: saving of the sheet [%].
        copied: saving if each step had values of its own [%]; None where no line runs
            several steps.

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
        if row["waypoint"] is not None:
            angles = ", ".join(f"{angle:.2f}" for angle in row["waypoint"])
            # Brackets: a spreadsheet takes text that begins with a minus for a formula.
            row["waypoint"] = f"[{angles}]"
        row["lines"] = " ".join(map(str, row["lines"]))
        row["kept"] = str(row["kept"]).lower()
        writer.writerow(row)
    return text.getvalue()
