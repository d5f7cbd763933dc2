# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy profile of a recording: the part that each line and node of its program took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.same_origin import another_program
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import detector_of_recording
from ur_energy_model.energy.matched_model import model_of_recording
from ur_energy_model.energy.meter import interval
from ur_energy_model.energy.powers import (
    FIELDS,
    PowerOptions,
    TotalSource,
)
from ur_energy_model.energy.program import (
    LINE,
    Script,
)
from ur_energy_model.energy.program_energy import ProgramEnergy, ProgramPart
from ur_energy_model.energy.recording_energy import measured_powers
from ur_energy_model.errors import InputError, MissingFieldError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import Telemetry, run_starts
from ur_energy_model.typing import Array, Mask, Progress

NANOSECONDS_PER_MINUTE = 60 * 10**9
UNATTRIBUTED = (
    "no line can be told: the program did not run, the line is of a thread or not in the "
    "script"
)
"""Reasons of energy without a line, for users."""
LONGEST_TEXT = 300  # number of letters after which a line of the script is cut
MOST_LISTED = 3000  # number of lines up to which a script is listed as a whole
AROUND = 3  # listed lines of a longer script before and after a line that took time
_CYCLE_FIELDS = ("runtime_state", "actual_digital_output_bits", "actual_qd", "target_q")
"""Fields that show the cycles, beside the fields of the powers."""
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
"""Energies and times of a line or node, as in the JSON of `ur_energy profile`; and, for
comparisons, `net`, the integrals of the channels [channels], J, and `cycles` and
`model_cycles`, the total and the modelled energy in each complete cycle, J."""
_OF_COMPARISONS = ("net", "cycles", "model_cycles")
"""Keys of a row that are for comparisons of two profiles, and not in JSON."""
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
        contradictions: contradictions between the script and the recording.
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
        """Time that the energy covers, gaps left out [s]."""
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
            labels.append(self.script.nodes[node].label)
            node = self.script.nodes[node].parent
        labels.reverse()
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
        """Numbers of the lines of the script that a listing shows, see MOST_LISTED and AROUND."""
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
        # Every sample belongs to one line or to the rest; nodes contain lines.
        whole = (*lines, rest)
        parts = {name: sum(row[name] for row in whole) for name in PART_ENERGIES}
        joints = {
            joint: sum(row["joints"][joint] for row in whole)
            for joint in self.counted.channels.joints
        }
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
            "unattributed": {key: rest[key] for key in (*_OF_THE_REST, *PART_ENERGIES)},
            "cycles": {
                "count": len(cycles),
                "energy": np.mean(cycles) if cycles else None,
            },
            "shifts": self._shifts_json(),
        }

    def _shifts_json(self) -> list[dict[str, Any]]:
        """What each shift spent on every part of the program."""
        begins = list(self.counted.shifts)
        # What was spent before each shift, and in the end: a shift is from one to the next.
        states = [*self.counted.shifts.values(), self.counted.spent()]
        shifts = []
        for begin, (before, after) in zip(begins, pairwise(states), strict=True):
            entries = []
            for part, until in after.items():
                spent = until.since(before.get(part))
                if spent.seconds:
                    entries.append({"name": part.name(self.script), **spent._asdict()})
            energy = sum(entry["energy"] for entry in entries)
            shifts.append(
                {"begin": begin.isoformat(), "energy": energy, "parts": entries}
            )
        return shifts

    def _row(self, part: ProgramPart, own: Mask) -> Row:
        """The row of a part of the program.

        Args:
            part: node or line; its key gives the number of executions.
            own: mask of the positions in the program that belong to the part [places].
        """
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
        parts = {
            key: float(net[channels.arm[name]]) for key, name in PART_ENERGIES.items()
        }
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
            **parts,
            "model_energy_std": float(channels.deviations_of_model(net)),
            "unexplained_energy_std": float(channels.deviations_of_unexplained(net)),
            "net": net,
            "cycles": cycles,
            "model_cycles": _sums_of_cycles(counted.model_cycles, own),
        }

    def _total(self, net: Array) -> float:
        """Energy of the whole arm [J] among the integrals of all channels [channels], J."""
        return float(net[self.counted.channels.arm["total"]])


def _sums_of_cycles(energies: Sequence[Array], own: Mask) -> Array:
    """Energy of each cycle [cycles], J, at some of the positions.

    Args:
        energies: energies of each cycle by position, J; as many of the first positions as
            were known at the end of the cycle.
        own: mask of the positions that are summed [places].
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
    fields = (*FIELDS, *_CYCLE_FIELDS, LINE)
    for table in measured_powers(calculator, bag, fields=fields, progress=progress):
        if LINE not in table.samples:
            remedy = "record again with the default fields"
            raise MissingFieldError(
                bag, "is missing, which shows the line", remedy, field=LINE
            )
        begins = shift_begins(table.samples, shifts, zone)
        counted.update(table, detector.find(table.samples), begins)
        if counted.here.line:
            program = table.samples.info.program or program
    contradictions: Sequence[Contradiction] = ()
    if script is not None:
        contradictions = another_program(script.name, program)
        program = script.name
    warnings = () if matched.warning is None else (matched.warning,)
    return ProgramProfile(program, script, counted, warnings, tuple(contradictions))


def shift_begins(
    samples: Telemetry, shifts: Sequence[int], zone: tzinfo
) -> dict[int, datetime]:
    """Starts of the shifts that samples are in, by the first sample of each minute.

    Args:
        samples: samples with the time of day, ascending.
        shifts: starts in minutes since midnight, see `profile_program`; without any the
            result is empty.
        zone: time zone of these starts.

    Returns:
        Start of the shift to which each minute belongs, by the number of the minute's
        first sample.

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
        minute_of_day = 60 * local.hour + local.minute
        begun = max(start for start in shifts if start <= minute_of_day)
        found[row] = midnight + timedelta(minutes=begun)
    return found
