# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work cycles: where they start, found by a signal or by repetition."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.motion_marks import DEPARTURE, PROGRAM
from ur_energy_model.energy.repetition import Repetition
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.robot_modes import PLAYING
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

Trigger = Literal["auto", "none", "program", "digital_output", "int_register"]

ShownBy = Literal["program", "digital_output", "repetition"]

TRIGGER_FIELD: dict[str, str] = {
    "program": "runtime_state",
    "digital_output": "actual_digital_output_bits",
    "int_register": "output_int_register_0",
}
LOWEST_SIGNAL = -(2.0**31)  # lowest value of a trigger: of a register with 32 bits
BITS = 2.0**64  # first value beyond all values of a trigger: of outputs with 64 bits
OUTPUTS = 18
"""Number of digital outputs that can show a cycle: eight standard, eight configurable, two of the
tool."""
NOT_STARTED = (3.0, 4.0, 5.0)
"""Values of runtime_state (pausing, paused, resuming) from which a program continues."""


MOTION_FIELDS = ("target_q", "target_qd", "actual_q", "actual_qd")
"""Fields that show repetition."""


class Mark(NamedTuple):
    """A sample at which a cycle may begin, and the cycles that are complete with it.

    Attributes:
        ends: begins of consecutive cycles, the last of which ends here, counted in marks
            before this one: (5, 2) stands for a cycle of three marks, from the fifth mark
            before this one to the second, and a cycle of two marks, from there to this
            one. Empty without a complete cycle.
        program: name of the loaded program; None if unknown.
        number: number of the last cycle that is complete; None where cycles were not
            counted yet.
    """

    ends: tuple[int, ...] = ()
    program: str | None = None
    number: int | None = None

    def cycles(self, remembered: int) -> list[tuple[int, int]]:
        """Begin and end of each complete cycle, counted in marks before this one.

        Cycles whose begin is not among the remembered marks, this one included, are left
        out.
        """
        begins = [back for back in self.ends if back < remembered]
        return list(pairwise((*begins, 0)))


Marks = Mapping[int, Mark]  # marks by index of their sample, ascending


class CycleDetector:
    """Finds the samples at which a cycle starts, and which cycles are complete.

    Args:
        trigger: start of a cycle. "program": a program starts; "digital_output": rising
            edge of a digital output; "int_register": output_int_register_0 changes;
            "none": never; "auto": program starts, a digital output or repeated motion,
            whichever shows cycles first.
        output: number of the digital output.
    """

    def __init__(self, trigger: Trigger = "auto", output: int = 0) -> None:
        self.trigger: Trigger = trigger
        self.output = output
        self._last: dict[str, float] = {}
        self._open = False  # whether a cycle has begun
        self._requested = False
        self._repetition = Repetition()

    def afterwards(self) -> CycleDetector:
        """The detector for a second pass over a recording, after a first pass with this one.

        It has the cycle of the whole recording from the first sample on. This cycle may be
        longer than the cycle that was found during the first pass, whose repetitions are a
        part of it, as with a subprogram that is called several times in a row.
        """
        detector = CycleDetector(self.trigger, self.output)
        detector._repetition = self._repetition.afterwards()
        return detector

    def request(self) -> None:
        """Start a cycle with the next sample; from then on "auto" finds no cycles by itself."""
        self._requested = True

    @property
    def shown_by(self) -> ShownBy:
        """What showed the last cycle that "auto" found."""
        if self._repetition.kind == PROGRAM:
            return "program"
        return "repetition" if self._repetition.kind == DEPARTURE else "digital_output"

    def find(self, batch: Telemetry) -> Marks:
        """Marks of this batch, which follows the previous one, by the numbers of their samples.

        Raises:
            MissingFieldError: the source lacks the field of the trigger.
        """
        starts = set[int]()
        program = batch.info.program
        if self._requested and len(batch):
            if self.trigger == "auto":
                self.trigger = "none"
                self._open = False
            starts = {0}
            self._requested = False
        if self.trigger == "auto":
            signals = self._signals(batch, "program", NOT_STARTED)
            signals += self._signals(batch, "digital_output")
            q, qd = _motion(batch)
            ends = self._repetition.update(batch.time, q, qd, signals, batch.info.rate)
            return {index: Mark(back, program) for index, back in ends.items()}
        if self.trigger != "none":
            if (name := TRIGGER_FIELD[self.trigger]) not in batch.columns:
                problem = f"is missing, which cycle_trigger {self.trigger} needs"
                remedy = "set cycle_trigger to none"
                raise MissingFieldError(batch.info.source, problem, remedy, field=name)
            found = self._signals(batch, self.trigger)
            starts.update(k for k, kind in found if kind in (PROGRAM, self.output))
        marks = {}
        for index in sorted(starts):
            marks[index] = Mark((1,) if self._open else (), program)
            self._open = True
        return marks

    def _signals(
        self, batch: Telemetry, trigger: Trigger, paused: tuple[float, ...] = ()
    ) -> list[tuple[int, int]]:
        """Samples at which a signal marks the begin of a cycle, each with the kind of its mark.

        Impossible values count as the value before.

        Args:
            batch: samples that follow those before.
            trigger: signal that begins the cycles.
            paused: values from which a program continues and does not start.
        """
        signal = batch.columns.get(TRIGGER_FIELD[trigger])
        last = self._last.get(trigger)
        if signal is None:
            return []
        if signal.tolist().count(last) == len(signal):  # no change, the usual case
            return []
        possible = (signal >= LOWEST_SIGNAL) & (signal < BITS)
        if not possible.all():
            rows = np.maximum.accumulate(np.where(possible, np.arange(len(signal)), -1))
            signal = np.where(rows < 0, 0.0 if last is None else last, signal[rows])
        before = np.concatenate(([signal[0] if last is None else last], signal[:-1]))
        self._last[trigger] = float(signal[-1])
        if trigger == "digital_output":
            rising = _bits(signal) & ~_bits(before)
            found = []
            for k in np.flatnonzero(rising).tolist():
                edges = int(rising[k])
                found += [(k, output) for output in range(OUTPUTS) if edges >> output & 1]
            return found
        starts = signal != before
        if trigger == "program":
            starts &= (signal == PLAYING) & ~np.isin(before, paused)
        return [(k, PROGRAM) for k in np.flatnonzero(starts).tolist()]


def _bits(values: Array) -> NDArray[np.uint64]:
    """Digital outputs [samples] as bits; negative values are none."""
    return np.maximum(values, 0.0).astype(np.uint64)


def _motion(batch: Telemetry) -> tuple[Array, Array]:
    """Positions and velocities of the joints [samples, n], rad, rad/s.

    They are the targets, else the measured ones; n is 0 without both.
    """
    columns = batch.columns
    for kind in ("target", "actual"):
        if f"{kind}_q" in columns and f"{kind}_qd" in columns:
            return columns[f"{kind}_q"], columns[f"{kind}_qd"]
    unknown = np.zeros((len(batch), 0))
    return unknown, unknown


def detector_of_recording(
    bag: str | Path, trigger: Trigger = "auto", output: int = 0
) -> CycleDetector:
    """The detector of a recording, from a first pass over it.

    Args:
        bag: recording.
        trigger: trigger of the cycles, see `CycleDetector`; only "auto" needs the first
            pass.
        output: number of the digital output.

    Raises:
        UrEnergyError: the recording cannot be read.
    """
    detector = CycleDetector(trigger, output)
    if trigger != "auto":
        return detector
    signals = (TRIGGER_FIELD["program"], TRIGGER_FIELD["digital_output"])
    for batch in iterate_bag(bag, (*MOTION_FIELDS, *signals)):
        detector.find(batch)
    return detector.afterwards()
