# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The sheet with the least energy: values for every line of a program, and the cycle run with them.

Candidates come from `typed_values`; energies and limits of the result are those of the
cycle as the controller runs it when exactly the sheet is typed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from ur_energy_model.optimization.cycle import StretchEnergy, total_energy
from ur_energy_model.optimization.cycle_problem import CycleProblem, switched_off
from ur_energy_model.optimization.pendant import (
    Step,
    as_recorded,
    own_pauses,
    recorded_values,
    sheet_of,
    typed_stretches,
    typed_units,
)
from ur_energy_model.optimization.typed_values import (
    TOLERANCE,
    TypedLine,
    Values,
    best_values,
)

TRIALS = 3  # of values that keep all limits, before a line stays as recorded


class TypedCycle(NamedTuple):
    """A sheet, and the cycle that is run when it is typed.

    Attributes:
        sheet: the steps of the program.
        parts: energies of the stretches of the cycle, in order.
        price: shadow price of time [W].
    """

    sheet: tuple[Step, ...]
    parts: list[StretchEnergy]
    price: float

    @property
    def energy(self) -> float:
        """Of the cycle [J]."""
        return total_energy(self.parts)

    @property
    def duration(self) -> float:
        """Of the cycle [s]."""
        return sum(part.stretch.plan.duration for part in self.parts)


class SheetProblem:
    """Finds the sheet of least energy for one recorded cycle.

    Args:
        problem: the cycle, its limits and its arm.
        shared: whether the steps that one line of the program runs have the same values;
            otherwise each step has its own, as after copying the subprogram.
        known: the problem of the same cycle whose lines are used again where they are the
            same.
        step: called after each line that was calculated.
    """

    def __init__(
        self,
        problem: CycleProblem,
        *,
        shared: bool = True,
        known: SheetProblem | None = None,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self._cycle = problem.cycle
        self._pauses = own_pauses(problem.cycle)
        self._problem = problem
        groups = problem.cycle.shared_moves
        waits = problem.cycle.shared_waits
        if not shared:
            groups = tuple((number,) for number in chain.from_iterable(groups))
            waits = tuple((place,) for place in chain.from_iterable(waits))
        # Lines that may change, by the numbers of the moves that they run.
        self._lines: dict[tuple[int, ...], TypedLine] = {}
        for moves in groups:
            if not self._may_change(moves):
                continue
            line = None if known is None else known._lines.get(moves)
            if line is None:
                line = self._line(moves)
            if line.possible:
                self._lines[moves] = line
            step()
        self._wait, self._holding = self._place_of_waiting(waits)

    def _may_change(self, moves: tuple[int, ...]) -> bool:
        """Whether the moves of a line may have other values: none is kept, all are of one kind."""
        kinds = {self._cycle.moves[number].kind for number in moves}
        kept = any(self._cycle.moves[number].kept for number in moves)
        return not kept and len(kinds) == 1 and "other" not in kinds

    def _line(self, moves: tuple[int, ...]) -> TypedLine:
        problem = self._problem
        cycle = self._cycle
        first = cycle.moves[moves[0]].programmed
        assert first is not None
        units = typed_units(cycle, first.kind)
        recorded = recorded_values(cycle, moves)
        faster = problem.options.max_speedup or math.inf
        most = Values(faster * recorded.speed, faster * recorded.acceleration)
        return TypedLine([problem.trapezoids(k) for k in moves], recorded, most, units)

    def _place_of_waiting(
        self, waits: tuple[tuple[tuple[int, int], ...], ...]
    ) -> tuple[tuple[tuple[int, int], ...], float]:
        """Waits in which time is spent that is left over, and the power there [W].

        Where it costs least among those that need not stay, as the part comes there;
        none, and the end of the cycle, if all must stay.
        """
        cycle = self._cycle
        holding = self._problem.holding
        found: tuple[tuple[int, int], ...] = ()
        least = (math.inf, 0.0)
        for places in waits:
            slack = [cycle.moves[k].rest.waits[j] for k, j in places]
            if any(wait.kept for wait in slack):
                continue
            power = sum(holding[k] for k, _ in places) / len(places)
            if (power, -slack[0].duration) < least:
                found = places
                least = (power, -slack[0].duration)
        return found, least[0] if found else holding[-1]

    def cheapest(self, duration: float) -> TypedCycle:
        """The sheet of least energy for a cycle time [s].

        Where trapezoids cannot be as fast as that, the cycle is as short as they allow;
        where the recorded values take less energy in the same time, they stay.
        """
        problem = self._problem
        cycle = self._cycle
        tried = [self._found(duration, self._holding)]
        if problem.options.power_off_after is not None and cycle.switching is not None:
            tried.append(self._found(duration, cycle.switching.power))
        if duration == cycle.duration:
            tried.append(self._run(as_recorded(tried[0].sheet), tried[0].price))
        return min(tried, key=lambda each: each.energy)

    def _found(self, duration: float, holding: float) -> TypedCycle:
        """The sheet for a power of waiting [W]; lines keep all limits as they are run."""
        cycle = self._cycle
        lines = dict(self._lines)
        trials: Counter[tuple[int, ...]] = Counter()
        while True:
            moving = {k for moves in lines for k in moves}
            kept = sum(
                self._kept_time(k, moving=k in moving) for k in range(len(cycle.moves))
            )
            choice = best_values([*lines.values()], duration - kept, holding)
            values = {
                k: found
                for moves, found in zip(lines, choice.values, strict=True)
                for k in moves
            }
            left = duration - kept - choice.time
            found = self._run(sheet_of(cycle, values, self._wait, left), choice.price)
            beyond = self._beyond(found, lines)
            if not beyond:
                return found
            trials.update(beyond)
            for moves in beyond:
                lines[moves].forbid(values[moves[0]])
                if trials[moves] > TRIALS or not lines[moves].possible:
                    del lines[moves]

    def _beyond(
        self, found: TypedCycle, lines: dict[tuple[int, ...], TypedLine]
    ) -> list[tuple[int, ...]]:
        """Lines that exceed a limit as they are run."""
        problem = self._problem
        moving = [part for part in found.parts if part.stretch.moving]
        return [
            moves
            for moves in lines
            if not all(
                problem.reached(moving[k]).within(problem.limits_of(k), TOLERANCE)
                for k in moves
            )
        ]

    def _kept_time(self, number: int, *, moving: bool) -> float:
        """What a move and the rest after it take, whatever is typed [s].

        That is all but its slack and, if it is `moving`, its trapezoid.
        """
        move = self._cycle.moves[number]
        waited = sum(wait.duration for wait in move.rest.waits if wait.kept)
        if moving:
            return self._pauses[number] + waited
        return move.duration + move.rest.pause + waited

    def _run(self, sheet: tuple[Step, ...], price: float) -> TypedCycle:
        problem = self._problem
        parts = problem.energies.of(typed_stretches(self._cycle, sheet))
        return TypedCycle(sheet, switched_off(problem, parts)[0], price)
