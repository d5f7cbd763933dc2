# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of a program by its places, counted batch by batch while samples arrive.

The power of a sample belongs to the line in execution at that sample. It counts for half
of the step before it and half of the step behind it: its weight in the trapezoidal
integral. So all parts sum to the energy by `estimate_energy`, whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.cycles import Mark, Marks
from ur_energy_model.energy.meter import trapezoid_weights
from ur_energy_model.energy.motion_marks import MOST_MARKS
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.energy.program import (
    NOWHERE,
    ProgramPosition,
    ProgramTracker,
    Script,
    lines_of,
)
from ur_energy_model.telemetry.samples import equal_runs, slices_between
from ur_energy_model.typing import Array, Indices


class ProgramPart(NamedTuple):
    """A node of a program, or a line outside of all nodes.

    Attributes:
        node: index of the node; -1 for a line.
        line: number of the line; 0 for a node, and where no line is known.
    """

    node: int
    line: int

    @classmethod
    def of(cls, place: ProgramPosition) -> ProgramPart:
        """The part to which a position in a program belongs."""
        if place.node >= 0:
            return cls(place.node, line=0)
        return cls(place.node, place.line)

    @property
    def key(self) -> int:
        """Key of the part in `ProgramTracker.executions`: a line, or below 0 for a node."""
        return self.line if self.node < 0 else -1 - self.node

    def name(self, script: Script | None) -> str:
        """Name of the node, else the number of the line in words, "none" without a line."""
        if script is not None and self.node >= 0:
            return script.names[self.node]
        return f"line {self.line}" if self.line else "none"


class Spent(NamedTuple):
    """Time and energy that a part of a program has taken.

    Attributes:
        executions: number of times that the part was begun.
        seconds: time spent in the part [s].
        energy: energy of the whole arm at the supply [J].
        model: modelled part of the energy [J].
        measured: time in which the energy is measured [s].
    """

    executions: int
    seconds: float
    energy: float
    model: float
    measured: float

    def since(self, before: Spent | None) -> Spent:
        """What was added to an earlier state of the same part; None for nothing before."""
        if before is None:
            return self
        return Spent(
            executions=self.executions - before.executions,
            seconds=self.seconds - before.seconds,
            energy=self.energy - before.energy,
            model=self.model - before.model,
            measured=self.measured - before.measured,
        )

    def joined(self, other: Spent) -> Spent:
        """The sum with another position of the same part.

        The executions are not summed: both positions have the executions of the part.

        Args:
            other: time and energy at the other position.
        """
        return Spent(
            executions=self.executions,
            seconds=self.seconds + other.seconds,
            energy=self.energy + other.energy,
            model=self.model + other.model,
            measured=self.measured + other.measured,
        )


class _AtMark(NamedTuple):
    """Energies from the first sample up to a mark of cycles.

    Attributes:
        energy: energy of the whole arm, by position [places], J.
        model: modelled part of the energy, by position [places], J.
        lost: time in gaps [s].
    """

    energy: Array
    model: Array
    lost: float


class ProgramEnergy:
    """Energy of every place in a program, batch by batch.

    Args:
        channels: channels of the powers.
        script: script of the program; without it every line number is a place.
        before: energies of the program before, with whose last power the first step
            begins.

    Attributes:
        tracker: position in the program, and how often lines and nodes were begun.
        places: positions in the program, in the order in which they were first reached,
            and their numbers.
        here: the position at the last sample.
        net: integrals of the channels by position [places, channels], J.
        seconds: time by position [places], s.
        peak: largest total power by position [places], W.
        cycles: total energy by position of each complete cycle without a gap [places], J;
            the positions are those that were known at the end of the cycle.
        model_cycles: modelled energy of the same cycles [places], J.
        shifts: what was spent before each shift, by the start of the shift.
    """

    def __init__(
        self,
        channels: Channels,
        script: Script | None = None,
        before: ProgramEnergy | None = None,
    ) -> None:
        self.channels = channels
        self.tracker = ProgramTracker(script)
        self.places: dict[ProgramPosition, int] = {}
        self.net = np.zeros((0, len(channels)))
        self.seconds = np.zeros(0)
        self.peak = np.zeros(0)
        self.cycles: list[Array] = []
        self.model_cycles: list[Array] = []
        self.shifts: dict[datetime, dict[ProgramPart, Spent]] = {}
        self.here = NOWHERE
        self._marks: deque[_AtMark] = deque(maxlen=MOST_MARKS)
        self._lost = 0.0  # time in gaps so far [s]
        self._line = (
            -1
        )  # line of the last sample; -1, which no line has, before the first
        self._total = channels.arm["total"]
        # Powers of the last sample [1, channels], W, and the number of its position [1].
        self._last_power: Array = np.zeros((1, len(channels)))
        if before is not None:
            self._last_power = before._last_power
        self._last_place = np.zeros(1, dtype=np.intp)

    def update(
        self,
        table: PowerTable,
        marks: Marks | None = None,
        shifts: Mapping[int, datetime] | None = None,
    ) -> None:
        """Add the powers of samples that follow those before.

        Args:
            table: powers of the samples.
            marks: marks of cycles, by row.
            shifts: starts of shifts, by their first row.
        """
        marks = marks or {}
        shifts = shifts or {}
        for row in self.added(table, sorted({*marks, *shifts})):
            if row in marks:
                self._mark(marks[row])
            begin = shifts.get(row)
            if begin is not None and begin not in self.shifts:
                self.shifts[begin] = self.spent()

    def added(self, table: PowerTable, edges: Iterable[int]) -> Iterator[int]:
        """Add the powers as `update` does, between edges.

        Args:
            table: powers of the samples.
            edges: rows of the table, ascending.

        Yields:
            0 and each edge, before the powers of the samples from this row on are added.
        """
        lines = lines_of(table.samples)
        for rows in slices_between(edges, len(lines)):
            yield rows.start
            power = table.power[rows]
            own_places = self._places_of(lines[rows])
            # The first step begins with the last sample of the powers before.
            places = np.append(self._last_place, own_places)
            powers = np.concatenate((self._last_power, power))
            # A row for each position that occurs: the weights of the samples at this
            # position in the integral, 0 for the other samples.
            present, place_rows = np.unique(places, return_inverse=True)
            weights = np.zeros((len(present), len(places)))
            steps = table.steps.bridged[rows]
            weights[place_rows, np.arange(len(places))] = trapezoid_weights(steps)
            self.net[present] += weights @ powers
            self.seconds[present] += weights.sum(axis=1)
            np.maximum.at(self.peak, own_places, power[:, self._total])
            self._lost += float(table.steps.lost[rows].sum())
            self._last_power = power[-1:]
            self._last_place = own_places[-1:]

    def use_channels(self, channels: Channels) -> None:
        """Continue with powers of other channels; energies of new channels begin at zero."""
        names = self.channels.names
        self.channels = channels
        self._total = channels.arm["total"]

        def converted(rows: Array) -> Array:
            """Rows of values [rows, channels] in the order of the new channels."""
            new = [channels.convert_values(row, names) for row in rows]
            return np.array(new, dtype=float).reshape(len(rows), len(channels))

        self.net = converted(self.net)
        self._last_power = converted(self._last_power)

    def spent(self) -> dict[ProgramPart, Spent]:
        """What each node, and each line outside of nodes, has taken so far."""
        arm = self.channels.arm
        found: dict[ProgramPart, Spent] = {}
        for place, number in self.places.items():
            part = ProgramPart.of(place)
            net = self.net[number]
            own = Spent(
                executions=self.tracker.executions.get(part.key, 0),
                seconds=float(self.seconds[number]),
                energy=float(net[arm["total"]]),
                model=float(net[arm["model"]]),
                measured=float(net[arm["measured"]]),
            )
            others = found.get(part)
            found[part] = own if others is None else own.joined(others)
        return found

    def _places_of(self, lines: Indices) -> Indices:
        """Number of the position of each sample [samples], from its line [samples].

        Positions that are reached for the first time get the next numbers, and rows of
        zeros in `net`, `seconds` and `peak`.
        """
        out = np.empty(len(lines), dtype=np.intp)
        for run in equal_runs(lines):
            if lines[run.start] != self._line:
                self._line = int(lines[run.start])
                self.here = self.tracker.move(self._line)
                self.places.setdefault(self.here, len(self.places))
            out[run] = self.places[self.here]
        more = len(self.places) - len(self.net)
        if more:
            self.net = np.pad(self.net, ((0, more), (0, 0)))
            self.seconds = np.pad(self.seconds, (0, more))
            self.peak = np.pad(self.peak, (0, more))
        return out

    def _mark(self, mark: Mark) -> None:
        """Add the energies of the cycles that are complete with a mark."""
        energy = self.net[:, self._total].copy()
        model = self.net[:, self.channels.arm["model"]].copy()
        self._marks.append(_AtMark(energy, model, self._lost))
        for begin, end in mark.cycles(len(self._marks)):
            first = self._marks[-1 - begin]
            last = self._marks[-1 - end]
            if last.lost > first.lost:  # the energy in the gap is not known
                continue
            # Positions that were reached during the cycle had no energy before it.
            more = len(last.energy) - len(first.energy)
            self.cycles.append(last.energy - np.pad(first.energy, (0, more)))
            self.model_cycles.append(last.model - np.pad(first.model, (0, more)))
