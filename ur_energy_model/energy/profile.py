# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of a program by line and node: which part of a recording each of them took.

The power of a sample belongs to the line in execution at that sample, with half of the
step before it and half of the step behind it: its weight in the trapezoidal integral. So
all parts sum to what `estimate_energy` gives, whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from operator import add, sub
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
    Place,
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


class Part(NamedTuple):
    """A node, by its index, with line 0; or, with node -1, a line outside of nodes, 0 for none."""

    node: int
    line: int

    @classmethod
    def of(cls, place: Place) -> Part:
        """Where a place belongs."""
        return cls(place.node, 0 if place.node >= 0 else place.line)

    @property
    def key(self) -> int:
        """In `ProgramTracker.executions`."""
        return self.line if self.node < 0 else -1 - self.node

    def name(self, script: Script | None) -> str:
        """Name of the node, or the line."""
        if script is None or self.node < 0:
            return f"line {self.line}" if self.line else "none"
        return script.names[self.node]


class Spent(NamedTuple):
    """How often a part of a program was begun, its time [s] and energy at the supply [J].

    `model` is the modelled part of the energy [J], `measured` the time in which it is
    measured [s].
    """

    executions: int
    seconds: float
    energy: float
    model: float
    measured: float

    def since(self, before: Spent | None) -> Spent:
        """What was added to an earlier state."""
        return self if before is None else Spent(*map(sub, self, before))

    def joined(self, other: Spent) -> Spent:
        """With the time and energy of another place of the same part."""
        return Spent(self.executions, *map(add, self[1:], other[1:]))


class _AtMark(NamedTuple):
    """What was spent until a mark of cycles."""

    energy: Array  # total and modelled, by place [places, 2], J
    lost: float  # time in gaps [s]


class ProgramEnergy:
    """Energy of every place in a program, batch by batch.

    Args:
        channels: of the powers.
        script: of the program; without it every line number is a place.
        before: energies of the program before, with whose last power the first step
            begins.

    Attributes:
        tracker: where the program is, and how often lines and nodes were begun.
        places: in the order in which they were first reached.
        here: the place at the last sample.
        net: integrals of the channels by place [places, channels], J.
        seconds, peak: time [s] and largest total power [W] by place.
        cycles: total energy of each complete cycle without a gap by place [J].
        model_cycles: modelled energy of the same cycles by place [J].
        shifts: what was spent before each shift, by its begin.
    """

    def __init__(
        self,
        channels: Channels,
        script: Script | None = None,
        before: ProgramEnergy | None = None,
    ) -> None:
        self.channels = channels
        self.tracker = ProgramTracker(script)
        self.places: dict[Place, int] = {}
        self.net, self.seconds, self.peak = (
            np.zeros((0, len(channels))),
            *np.zeros((2, 0)),
        )
        self.cycles: list[Array] = []
        self.model_cycles: list[Array] = []
        self.shifts: dict[datetime, dict[Part, Spent]] = {}
        self._marks: deque[_AtMark] = deque(maxlen=MOST_MARKS)
        self._lost = 0.0  # time in gaps so far [s]
        self.here = NOWHERE
        self._line = -1
        self._total = channels.arm["total"]
        self._power: Array = (
            np.zeros((1, len(channels))) if before is None else before._power
        )
        self._of = np.zeros(1, dtype=np.intp)
        """Powers of the last sample, and its place."""

    def update(
        self,
        table: PowerTable,
        marks: Marks | None = None,
        shifts: Mapping[int, datetime] | None = None,
    ) -> None:
        """Add the powers of samples that follow those before.

        Cycles end at rows with marks; shifts, given by their begins, start at rows.
        """
        marks = marks or {}
        shifts = shifts or {}
        for row in self.added(table, sorted({*marks, *shifts})):
            if (mark := marks.get(row)) is not None:
                self._mark(mark)
            if (begin := shifts.get(row)) is not None and begin not in self.shifts:
                self.shifts[begin] = self.spent()

    def added(self, table: PowerTable, edges: Iterable[int]) -> Iterator[int]:
        """Add the powers as `update` does; yields each row where a part begins, before its part."""
        lines = lines_of(table.samples)
        for rows in slices_between(edges, len(lines)):
            yield rows.start
            power = table.power[rows]
            of = self._places_of(lines[rows])
            places = np.append(self._of, of)
            known, inverse = np.unique(places, return_inverse=True)
            weights = np.zeros((len(known), len(places)))
            steps = table.steps.bridged[rows]
            self._lost += float(table.steps.lost[rows].sum())
            weights[inverse, np.arange(len(places))] = trapezoid_weights(steps)
            self.net[known] += weights @ np.concatenate((self._power, power))
            self.seconds[known] += weights.sum(axis=1)
            np.maximum.at(self.peak, of, power[:, self._total])
            self._power = power[-1:]
            self._of = of[-1:]

    def use_channels(self, channels: Channels) -> None:
        """Continue with powers of other channels."""
        names = self.channels.names
        self.channels = channels
        self._total = channels.arm["total"]

        def converted(rows: Array) -> Array:
            new = [channels.convert_values(row, names) for row in rows]
            return np.array(new, dtype=float).reshape(len(rows), len(channels))

        self.net = converted(self.net)
        self._power = converted(self._power)

    def spent(self) -> dict[Part, Spent]:
        """What each node, and each line outside of nodes, has taken so far."""
        found: dict[Part, Spent] = {}
        for place, k in self.places.items():
            part = Part.of(place)
            times = self.tracker.executions.get(part.key, 0)
            arm = self.channels.arm
            sums = self.net[k, [arm["total"], arm["model"], arm["measured"]]].tolist()
            own = Spent(times, float(self.seconds[k]), *sums)
            others = found.get(part)
            found[part] = own if others is None else own.joined(others)
        return found

    def _places_of(self, lines: Indices) -> Indices:
        """The place of each sample [samples]."""
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
            self.seconds, self.peak = (
                np.pad(old, (0, more)) for old in (self.seconds, self.peak)
            )
        return out

    def _mark(self, mark: Mark) -> None:
        """Take a mark of cycles; energies until then of those that are complete with it."""
        columns = [self._total, self.channels.arm["model"]]
        self._marks.append(_AtMark(self.net[:, columns], self._lost))
        known = len(self._marks) - 1
        for begin, end in pairwise((*(back for back in mark.ends if back <= known), 0)):
            first = self._marks[-1 - begin]
            last = self._marks[-1 - end]
            if last.lost > first.lost:  # the energy in the gap is not known
                continue
            more = len(last.energy) - len(first.energy)
            energy = last.energy - np.pad(first.energy, ((0, more), (0, 0)))
            self.cycles.append(energy[:, 0])
            self.model_cycles.append(energy[:, 1])


# The profile of a recording.

UNATTRIBUTED = (
    "no line can be told: the program did not run, the line is of a thread or not in the "
    "script"
)
LONGEST_TEXT = 300  # letters of a line of the script that are shown
MOST_LISTED = 3000
AROUND = 3
"""Lines of a script that are listed as a whole; of a longer one those that took time, with so many
around each."""
_CYCLE_FIELDS = ("runtime_state", "actual_digital_output_bits", "actual_qd", "target_q")


PART_ENERGIES: dict[str, str] = {
    "driver_energy": "driver",
    "standby_energy": "standby",
    "regeneration_energy": "regeneration",
    "unexplained_energy": "unexplained",
    "model_energy": "model",
}
"""Energies of a row beside those of the joints, by their columns of the whole arm: the first four
and the joints sum to the energy, all but `unexplained_energy` to `model_energy`."""
Row = dict[str, Any]
"""What a line or node took, as in the JSON of `ur_energy profile`; and, for comparisons, `net`, the
integrals of the channels [channels], J, and `cycles` and `model_cycles`, the total and
the modelled energy in each complete cycle, J."""
_OF_COMPARISONS = ("net", "cycles", "model_cycles")
_OF_THE_REST = ("time", "energy", "joints", "total_source", "total_measured_share")
"""Keys of a row that also the energy has which no line can be told of."""


@dataclass(frozen=True)
class ProgramProfile:
    """Energies of a recording by line and by node."""

    program: str | None  # name of the program, None if unknown
    script: Script | None  # None without one
    counted: ProgramEnergy  # energies by place
    warnings: tuple[str, ...] = ()  # for the user, one line each
    contradictions: tuple[Contradiction, ...] = ()  # of the script, with the recording

    @property
    def energy(self) -> float:
        """At the supply, as of `estimate_energy` [J]."""
        return float(self._total(self.counted.net.sum(axis=0)))

    @property
    def duration(self) -> float:
        """Time integrated over [s]."""
        return float(self.counted.seconds.sum())

    @property
    def total_source(self) -> TotalSource:
        """Where the energy comes from."""
        net = self.counted.net.sum(axis=0)
        return self.counted.channels.total_source(net, self.duration)

    @property
    def explained_share(self) -> float | None:
        """Modelled over measured energy; None where nothing is measured."""
        return self.counted.channels.explained_share(self.counted.net.sum(axis=0))

    def lines(self) -> list[Row]:
        """Every line that took time, in the order of the script."""
        line = np.array([place.line for place in self.counted.places])
        return [
            self._row(Part(-1, k), line == k) for k in np.unique(line[line > 0]).tolist()
        ]

    def nodes(self) -> list[Row]:
        """Every node that took time, and lines outside of nodes, in the order of the script."""
        node = np.array([place.node for place in self.counted.places])
        rows = [
            self._row(Part(k, 0), node == k) for k in np.unique(node[node >= 0]).tolist()
        ]
        outside = {place.line for place in self.counted.places if place.node < 0}
        rows += [row for row in self.lines() if row["lines"][0] in outside]
        return sorted(rows, key=lambda row: row["lines"])

    def unattributed(self) -> Row:
        """The rest; see UNATTRIBUTED."""
        return self._row(Part(-1, 0), np.array([not k.line for k in self.counted.places]))

    def stacks(self) -> dict[tuple[str, ...], float]:
        """Energy by node, subprogram and line, from the outermost inwards [J]."""
        found: dict[tuple[str, ...], float] = {}
        for place, k in self.counted.places.items():
            names = []
            for depth, (function, node) in enumerate(place.path):
                names += [function] if depth else []
                chain = []
                while self.script is not None and node >= 0:
                    chain.append(self.script.nodes[node].label)
                    node = self.script.nodes[node].parent
                names += reversed(chain)
            names.append(self.line_text(place.line) if place.line else "unattributed")
            key = tuple(names)
            found[key] = found.get(key, 0.0) + self._total(self.counted.net[k])
        return found

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
        near = {line + by for line in reached for by in range(-AROUND, AROUND + 1)}
        return sorted(line for line in near if 0 < line < count)

    def as_json(self) -> dict[str, Any]:
        """The content of `ur_energy profile --json`."""
        rest = self.unattributed()
        cycles = [each.sum() for each in self.counted.cycles]
        nodes, lines = (
            [
                {name: row[name] for name in row if name not in _OF_COMPARISONS}
                for row in rows
            ]
            for rows in (self.nodes(), self.lines())
        )
        return {
            "program": self.program,
            "warnings": [*self.warnings, *(each.words() for each in self.contradictions)],
            "contradictions": [each.as_json() for each in self.contradictions],
            "energy": self.energy,
            "duration": self.duration,
            "total_source": self.total_source.name,
            "total_measured_share": self.total_source.share,
            "explained_share": self.explained_share,
            **{name: sum(row[name] for row in (*lines, rest)) for name in PART_ENERGIES},
            "joints": {
                joint: sum(row["joints"][joint] for row in (*lines, rest))
                for joint in self.counted.channels.joints
            },
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
        states = self.counted.shifts
        shifts = []
        for (begin, before), after in zip(
            states.items(),
            [*list(states.values())[1:], self.counted.spent()],
            strict=bool(states),
        ):
            parts = [
                {"name": part.name(self.script), **now.since(before.get(part))._asdict()}
                for part, now in after.items()
            ]
            parts = [part for part in parts if part["seconds"]]
            energy = sum(part["energy"] for part in parts)
            shifts.append({"begin": begin.isoformat(), "energy": energy, "parts": parts})
        return shifts

    def _row(self, part: Part, own: Mask) -> Row:
        counted = self.counted
        channels = counted.channels
        net = counted.net[own].sum(axis=0)
        of = (
            None if self.script is None or part.node < 0 else self.script.nodes[part.node]
        )
        energy = self._total(net)
        time = float(counted.seconds[own].sum())
        cycles, model_cycles = (
            np.array([each[own[: len(each)]].sum() for each in energies])
            for energies in (counted.cycles, counted.model_cycles)
        )
        std = float(channels.deviations_of_total(net))
        source = TotalSource.of(float(net[channels.arm["measured"]]), time)
        joints = net[channels.per_joint["electrical_power"]]
        return {
            "node": None if of is None else of.number,
            "label": None if of is None else of.label,
            "lines": (part.line, part.line) if of is None else of.lines,
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
            **{name: float(net[channels.arm[of]]) for name, of in PART_ENERGIES.items()},
            "model_energy_std": float(channels.deviations_of_model(net)),
            "unexplained_energy_std": float(channels.deviations_of_unexplained(net)),
            "net": net,
            "cycles": cycles,
            "model_cycles": model_cycles,
        }

    def _total(self, net: Array) -> float:
        return float(net[self.counted.channels.arm["total"]])


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
    """Energies of a recording by line and by node of its program; arguments of `estimate_energy`.

    Shifts begin at minutes since midnight of a time zone, ascending, the first on the day
    before; without any, none are told apart.

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
    """Begin of the shift of the first sample, and of others, by the first row in each.

    Raises:
        InputError: the recording has no time of day.
    """
    if not shifts:
        return {}
    if samples.stamp is None:
        remedy = "leave out --shifts, or record with this package"
        raise InputError("--shifts", "the recording has no time of day", remedy)
    found: dict[int, datetime] = {}
    minutes = samples.stamp // 60_000_000_000
    for row in run_starts(minutes).tolist():
        local = datetime.fromtimestamp(60 * int(minutes[row]), zone)
        midnight = local.replace(hour=0, minute=0)
        minute = 60 * local.hour + local.minute
        found[row] = midnight + timedelta(
            minutes=max(each for each in shifts if each <= minute)
        )
    return found
