# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of a program by line and node: the part of a recording that each of them took.

The power of a sample belongs to the line in execution at that sample. It counts for half
of the step before it and half of the step behind it: its weight in the trapezoidal
integral. So all parts sum to the energy by `estimate_energy`, whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.same_origin import another_program
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import Mark, Marks, detector_of_recording
from ur_energy_model.energy.meter import interval, trapezoid_weights
from ur_energy_model.energy.powers import (
    FIELDS,
    Channels,
    PowerOptions,
    PowerTable,
    TotalSource,
)
from ur_energy_model.energy.program import (
    LINE,
    NOWHERE,
    ProgramPosition,
    ProgramTracker,
    Script,
    lines_of,
)
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.energy.repetition import MOST_MARKS
from ur_energy_model.energy.telemetry_checks import model_of_recording
from ur_energy_model.errors import InputError, MissingFieldError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import (
    Telemetry,
    equal_runs,
    run_starts,
    slices_between,
)
from ur_energy_model.typing import Array, Indices, Mask, Progress


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
        return cls(place.node, 0 if place.node >= 0 else place.line)

    @property
    def key(self) -> int:
        """Key of the part in `ProgramTracker.executions`."""
        return self.line if self.node < 0 else -1 - self.node

    def name(self, script: Script | None) -> str:
        """Name of the node, or the line."""
        if script is None or self.node < 0:
            return f"line {self.line}" if self.line else "none"
        return script.names[self.node]


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
        """The sum with another position of the same part; both have the part's executions."""
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
        self._marks: deque[_AtMark] = deque(maxlen=MOST_MARKS)
        self._lost = 0.0  # time in gaps so far [s]
        self.here = NOWHERE
        self._line = -1
        self._total = channels.arm["total"]
        # powers of the last sample [1, channels], W, and the number of its position [1]
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
            table: the powers.
            marks: marks of cycles, by row.
            shifts: starts of shifts, by their first row.
        """
        marks = marks or {}
        shifts = shifts or {}
        for row in self.added(table, sorted({*marks, *shifts})):
            if (mark := marks.get(row)) is not None:
                self._mark(mark)
            if (begin := shifts.get(row)) is not None and begin not in self.shifts:
                self.shifts[begin] = self.spent()

    def added(self, table: PowerTable, edges: Iterable[int]) -> Iterator[int]:
        """Add the powers as `update` does, between edges.

        Yields each edge, and 0, before the powers of the samples from this row on are
        added.
        """
        lines = lines_of(table.samples)
        for rows in slices_between(edges, len(lines)):
            yield rows.start
            power = table.power[rows]
            own_places = self._places_of(lines[rows])
            places = np.append(self._last_place, own_places)
            powers = np.concatenate((self._last_power, power))
            # One row of weights per position: the weights of its samples in the integral,
            # else 0.
            known, place_rows = np.unique(places, return_inverse=True)
            weights = np.zeros((len(known), len(places)))
            steps = table.steps.bridged[rows]
            weights[place_rows, np.arange(len(places))] = trapezoid_weights(steps)
            self.net[known] += weights @ powers
            self.seconds[known] += weights.sum(axis=1)
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
            new = [channels.convert_values(row, names) for row in rows]
            return np.array(new, dtype=float).reshape(len(rows), len(channels))

        self.net = converted(self.net)
        self._last_power = converted(self._last_power)

    def spent(self) -> dict[ProgramPart, Spent]:
        """What each node, and each line outside of nodes, has taken so far."""
        arm = self.channels.arm
        found: dict[ProgramPart, Spent] = {}
        for place, k in self.places.items():
            part = ProgramPart.of(place)
            own = Spent(
                executions=self.tracker.executions.get(part.key, 0),
                seconds=float(self.seconds[k]),
                energy=float(self.net[k, arm["total"]]),
                model=float(self.net[k, arm["model"]]),
                measured=float(self.net[k, arm["measured"]]),
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


# The profile of a recording.

NANOSECONDS_PER_MINUTE = 60 * 10**9
UNATTRIBUTED = (
    "no line can be told: the program did not run, the line is of a thread or not in the "
    "script"
)
LONGEST_TEXT = 300  # number of letters after which a line of the script is cut
MOST_LISTED = 3000  # number of lines up to which a script is listed as a whole
AROUND = 3  # of a longer script: lines listed before and after each line that took time
_CYCLE_FIELDS = ("runtime_state", "actual_digital_output_bits", "actual_qd", "target_q")


PART_ENERGIES: dict[str, str] = {
    "driver_energy": "driver",
    "standby_energy": "standby",
    "regeneration_energy": "regeneration",
    "unexplained_energy": "unexplained",
    "model_energy": "model",
}
"""Energies of a row beside the energies of the joints, by their columns of the whole arm: the
first four and the joints sum to the energy, all but `unexplained_energy` to `model_energy`."""
Row = dict[str, Any]
"""What a line or node took, as in the JSON of `ur_energy profile`; and, for comparisons, `net`, the
integrals of the channels [channels], J, and `cycles` and `model_cycles`, the total and
the modelled energy in each complete cycle, J."""
_OF_COMPARISONS = ("net", "cycles", "model_cycles")
_OF_THE_REST = ("time", "energy", "joints", "total_source", "total_measured_share")
"""Keys of a row that the energy without a known line has in JSON, too."""


@dataclass(frozen=True)
class ProgramProfile:
    """Energies of a recording by line and by node of its program.

    Attributes:
        program: name of the program; None if unknown.
        script: script of the program; None without one.
        counted: energies by position in the program.
        warnings: warnings for the user, one line each.
        contradictions: contradictions of the script, with the recording.
    """

    program: str | None
    script: Script | None
    counted: ProgramEnergy
    warnings: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def energy(self) -> float:
        """Energy of the whole arm at the supply, as `estimate_energy` computes it [J]."""
        return float(self._total(self.counted.net.sum(axis=0)))

    @property
    def duration(self) -> float:
        """Time integrated over [s]."""
        return float(self.counted.seconds.sum())

    @property
    def total_source(self) -> TotalSource:
        """Source of the energy: measured, modelled, or both."""
        net = self.counted.net.sum(axis=0)
        return self.counted.channels.total_source(net, self.duration)

    @property
    def explained_share(self) -> float | None:
        """Modelled over measured energy; None where nothing is measured."""
        return self.counted.channels.explained_share(self.counted.net.sum(axis=0))

    def lines(self) -> list[Row]:
        """Every line that took time, in the order of the script."""
        lines = np.array([place.line for place in self.counted.places])
        reached = np.unique(lines[lines > 0]).tolist()
        return [self._row(ProgramPart(-1, line), lines == line) for line in reached]

    def nodes(self) -> list[Row]:
        """Every node that took time, and lines outside of nodes, in the order of the script."""
        nodes = np.array([place.node for place in self.counted.places])
        reached = np.unique(nodes[nodes >= 0]).tolist()
        rows = [self._row(ProgramPart(node, 0), nodes == node) for node in reached]
        outside = {place.line for place in self.counted.places if place.node < 0}
        rows += [row for row in self.lines() if row["lines"][0] in outside]
        return sorted(rows, key=lambda row: row["lines"])

    def unattributed(self) -> Row:
        """The energy without a known line; UNATTRIBUTED has the reasons."""
        without_line = np.array([not place.line for place in self.counted.places])
        return self._row(ProgramPart(-1, 0), without_line)

    def stacks(self) -> dict[tuple[str, ...], float]:
        """Energy by node, subprogram and line, from the outermost inwards [J]."""
        found: dict[tuple[str, ...], float] = {}
        for place, k in self.counted.places.items():
            names = []
            for depth, (function, node) in enumerate(place.path):
                if depth:
                    names.append(function)
                names += self._labels_around(node)
            names.append(self.line_text(place.line) if place.line else "unattributed")
            key = tuple(names)
            found[key] = found.get(key, 0.0) + self._total(self.counted.net[k])
        return found

    def _labels_around(self, node: int) -> list[str]:
        """Labels of a node and of the nodes around it, from the outermost inwards; none for -1."""
        labels: list[str] = []
        while self.script is not None and node >= 0:
            labels.insert(0, self.script.nodes[node].label)
            node = self.script.nodes[node].parent
        return labels

    def line_text(self, line: int) -> str:
        """A line with its number."""
        text = "" if self.script is None else f": {self.shown(line).strip()}"
        return f"line {line}{text}"

    def shown(self, line: int) -> str:
        """The text of a line of the script, cut where it is very long."""
        assert self.script is not None
        text = self.script.text[line]
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."

    def listed(self) -> list[int]:
        """Numbers of the lines of the script that a listing shows."""
        assert self.script is not None
        count = len(self.script.text)
        if count <= MOST_LISTED:
            return list(range(1, count))
        reached = {place.line for place in self.counted.places if place.line}
        near: set[int] = set()
        for line in reached:
            near.update(range(max(line - AROUND, 1), min(line + AROUND + 1, count)))
        return sorted(near)

    def as_json(self) -> dict[str, Any]:
        """The content of `ur_energy profile --json`."""
        rest = self.unattributed()
        cycles = [each.sum() for each in self.counted.cycles]
        nodes = [_without_comparisons(row) for row in self.nodes()]
        lines = [_without_comparisons(row) for row in self.lines()]
        parts: dict[str, float] = dict.fromkeys(PART_ENERGIES, 0)
        joints: dict[str, float] = dict.fromkeys(self.counted.channels.joints, 0)
        for row in (*lines, rest):
            for name in parts:
                parts[name] += row[name]
            for joint in joints:
                joints[joint] += row["joints"][joint]
        return {
            "program": self.program,
            "warnings": [*self.warnings, *(each.words() for each in self.contradictions)],
            "contradictions": [each.as_json() for each in self.contradictions],
            "energy": self.energy,
            "duration": self.duration,
            "total_source": self.total_source.name,
            "total_measured_share": self.total_source.share,
            "explained_share": self.explained_share,
            **parts,
            "joints": joints,
            "nodes": nodes,
            "lines": lines,
            "unattributed": {
                name: rest[name] for name in (*_OF_THE_REST, *PART_ENERGIES)
            },
            "cycles": {
                "count": len(cycles),
                "energy": np.mean(cycles) if cycles else None,
            },
            "shifts": self._shifts_json(),
        }

    def _shifts_json(self) -> list[dict[str, Any]]:
        """What each shift spent on every part of the program."""
        begins = list(self.counted.shifts)
        states = [*self.counted.shifts.values(), self.counted.spent()]
        shifts = []
        for begin, (before, after) in zip(begins, pairwise(states), strict=True):
            parts = []
            for part, until in after.items():
                spent = until.since(before.get(part))
                if spent.seconds:
                    parts.append({"name": part.name(self.script), **spent._asdict()})
            energy = sum(part["energy"] for part in parts)
            shifts.append({"begin": begin.isoformat(), "energy": energy, "parts": parts})
        return shifts

    def _row(self, part: ProgramPart, own: Mask) -> Row:
        """Energies of a part at the positions that belong to it alone [places], J."""
        counted = self.counted
        channels = counted.channels
        net = counted.net[own].sum(axis=0)
        node = None
        if self.script is not None and part.node >= 0:
            node = self.script.nodes[part.node]
        energy = self._total(net)
        time = float(counted.seconds[own].sum())
        cycles = _sums_of_cycles(counted.cycles, own)
        std = float(channels.deviations_of_total(net))
        source = TotalSource.of(float(net[channels.arm["measured"]]), time)
        joints = net[channels.per_joint["electrical_power"]]
        return {
            "node": None if node is None else node.number,
            "label": None if node is None else node.label,
            "lines": (part.line, part.line) if node is None else node.lines,
            "executions": counted.tracker.executions.get(part.key, 0),
            "time": time,
            "energy": energy,
            "energy_std": std,
            "interval": interval(energy, std),
            "mean_power": energy / time if time else None,
            "peak_power": float(counted.peak[own].max(initial=0.0)) if time else None,
            "share": energy / self.energy if self.energy else None,
            "energy_per_cycle": float(cycles.mean()) if len(cycles) else None,
            "joints": dict(zip(channels.joints, joints.tolist(), strict=True)),
            "total_source": source.name,
            "total_measured_share": source.share,
            **{
                key: float(net[channels.arm[name]]) for key, name in PART_ENERGIES.items()
            },
            "model_energy_std": float(channels.deviations_of_model(net)),
            "unexplained_energy_std": float(channels.deviations_of_unexplained(net)),
            "net": net,
            "cycles": cycles,
            "model_cycles": _sums_of_cycles(counted.model_cycles, own),
        }

    def _total(self, net: Array) -> float:
        """Energy of the whole arm [J] among integrals of the channels [channels], J."""
        return float(net[self.counted.channels.arm["total"]])


def _sums_of_cycles(energies: Sequence[Array], own: Mask) -> Array:
    """Energy of each cycle [cycles], J, at some of the positions.

    Args:
        energies: energies of each cycle by position, J; as many of the first positions as
            were known at the end of the cycle.
        own: which positions are summed [places].
    """
    return np.array([energy[own[: len(energy)]].sum() for energy in energies])


def _without_comparisons(row: Row) -> Row:
    """A row without the values that JSON output does not have."""
    return {name: row[name] for name in row if name not in _OF_COMPARISONS}


def profile_program(
    model: EnergyModel,
    bag: str | Path,
    script: Script | None = None,
    *,
    options: PowerOptions | None = None,
    shifts: Sequence[int] = (),
    zone: tzinfo = timezone.utc,
    same_arm: bool = False,
    progress: Progress | None = None,
) -> ProgramProfile:
    """Energies of a recording by line and by node of its program.

    Args:
        model: model of the arm.
        bag: recording.
        script: script of the program; without it every line number is a separate part.
        options: how powers are computed.
        shifts: starts of shifts in minutes since midnight, ascending, the first on the day
            before, as from `calendar.shift_starts`; empty for energies without shifts.
        zone: time zone of these starts.
        same_arm: whether the recording is of the arm of the model, whatever serial
            numbers and constants are (see `model_of_arm`).
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    info = read_info(bag)
    matched = model_of_recording(model, bag, same_arm=same_arm)
    calculator = EnergyCalculator(matched.model, load_robot(model.robot), options)
    counted = ProgramEnergy(calculator.channels, script)
    detector = detector_of_recording(bag)
    program = info.program
    for table in measured_powers(
        calculator, bag, fields=(*FIELDS, *_CYCLE_FIELDS, LINE), progress=progress
    ):
        if LINE not in table.samples:
            remedy = "record again with the default fields"
            raise MissingFieldError(
                bag, "is missing, which shows the line", remedy, field=LINE
            )
        begins = shift_begins(table.samples, shifts, zone)
        counted.update(table, detector.find(table.samples), begins)
        if counted.here.line:
            program = table.samples.info.program or program
    warnings = [] if matched.warning is None else [matched.warning]
    contradictions = [] if script is None else another_program(script.name, program)
    program = program if script is None else script.name
    return ProgramProfile(
        program, script, counted, tuple(warnings), tuple(contradictions)
    )


def shift_begins(
    samples: Telemetry, shifts: Sequence[int], zone: tzinfo
) -> dict[int, datetime]:
    """Starts of the shifts that samples are in, by the first row in each.

    Args:
        samples: samples with the time of day, ascending.
        shifts: starts in minutes since midnight, see `profile_program`; without any the
            result is empty.
        zone: time zone of these starts.

    Raises:
        InputError: the recording has no time of day.
    """
    if not shifts:
        return {}
    if samples.stamp is None:
        remedy = "leave out --shifts, or record with this package"
        raise InputError("--shifts", "the recording has no time of day", remedy)
    found: dict[int, datetime] = {}
    minutes = samples.stamp // NANOSECONDS_PER_MINUTE
    for row in run_starts(minutes).tolist():
        local = datetime.fromtimestamp(60 * int(minutes[row]), zone)
        midnight = local.replace(hour=0, minute=0)
        minute = 60 * local.hour + local.minute
        begun = max(start for start in shifts if start <= minute)
        found[row] = midnight + timedelta(minutes=begun)
    return found
