# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The sheet with the least energy: values for every line of a program, and the cycle run with them.

Candidates come from `typed_values`; energies of the result are computed, and its limits
checked, for the cycle as the controller runs it when exactly the sheet is typed.
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

TRIALS = 3  # most trials of values that keep all limits, before a line stays as recorded


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
        """The line that runs these moves, all of one kind, with its candidates of values."""
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
        """Waits in which left-over time is spent, and the power of waiting there [W].

        The program waits there already, for instance until a part arrives, and need not.
        Among such waits it is the one of least power, of these the longest. Without any,
        the time is spent at the end of the cycle.

        Args:
            waits: waits of the cycle, grouped by the line that runs them; each by the
                number of its move and its own number.
        """
        cycle = self._cycle
        holding = self._problem.holding
        found: tuple[tuple[int, int], ...] = ()
        least_power = math.inf
        longest = 0.0
        for places in waits:
            group = [cycle.rests[move].waits[number] for move, number in places]
            if any(wait.kept for wait in group):
                continue
            power = sum(holding[move] for move, _ in places) / len(places)
            duration = group[0].duration
            if power < least_power or (power == least_power and duration > longest):
                found = places
                least_power = power
                longest = duration
        if not found:
            return (), holding[-1]
        return found, least_power

    def cheapest(self, duration: float) -> TypedCycle:
        """The sheet of least energy for a cycle time [s].

        Where trapezoids cannot be as fast as that, the cycle is as short as they allow;
        where the recorded values take less energy in the same time, they stay.
        """
        problem = self._problem
        cycle = self._cycle
        tried = [self._with_waiting_at(self._holding, duration)]
        if problem.options.power_off_after is not None and cycle.switching is not None:
            tried.append(self._with_waiting_at(cycle.switching.power, duration))
        if duration == cycle.duration:
            tried.append(self._run(as_recorded(tried[0].sheet), tried[0].price))
        return min(tried, key=lambda each: each.energy)

    def _with_waiting_at(self, power: float, duration: float) -> TypedCycle:
        """The cheapest sheet for a power of waiting [W] and a cycle time [s].

        The prediction by which values are chosen is less exact than the run of the whole
        cycle. A line that exceeds a limit there is chosen again with lower values, and
        stays as recorded after `TRIALS`.
        """
        cycle = self._cycle
        lines = dict(self._lines)
        trials: Counter[tuple[int, ...]] = Counter()
        while True:
            changing = set(chain.from_iterable(lines))
            kept = 0.0
            for number in range(len(cycle.moves)):
                kept += self._kept_time(number, changes=number in changing)
            choice = best_values([*lines.values()], duration - kept, power)
            values: dict[int, Values] = {}
            for moves, chosen in zip(lines, choice.values, strict=True):
                values.update(dict.fromkeys(moves, chosen))
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
        """Lines with a move that exceeds a limit as it is run."""
        problem = self._problem
        moving = [part for part in found.parts if part.stretch.moving]
        beyond = []
        for moves in lines:
            for number in moves:
                reached = problem.reached(moving[number])
                if not reached.within(problem.limits_of(number), TOLERANCE):
                    beyond.append(moves)
                    break
        return beyond

    def _kept_time(self, number: int, *, changes: bool) -> float:
        """Time of a move and the rest after it that no typed value changes [s].

        Args:
            number: number of the move.
            changes: whether other values of the move are typed.
        """
        move = self._cycle.moves[number]
        waited = sum(wait.duration for wait in move.rest.waits if wait.kept)
        if changes:
            return self._pauses[number] + waited
        return move.duration + move.rest.pause + waited

    def _run(self, sheet: tuple[Step, ...], price: float) -> TypedCycle:
        """The cycle when a sheet is typed, which was found at a shadow price of time [W]."""
        problem = self._problem
        parts = problem.energies.of(typed_stretches(self._cycle, sheet))
        return TypedCycle(sheet, switched_off(problem, parts)[0], price)
