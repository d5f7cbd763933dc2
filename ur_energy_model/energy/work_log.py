# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What an arm did while it worked: its cycles, the places at which it rested, and its long pauses.

A log takes the powers that the calculator computes, batch by batch, in bounded memory. It
is the same for a recording and for a live arm. Energies refer to the total, which is
measured where the source has bus power.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.cycle_energies import Cycle, CycleCounter
from ur_energy_model.energy.cycles import CycleDetector, Marks
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.motion_marks import SAME_POINT
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable, TotalSource
from ur_energy_model.energy.program import LINE, Script
from ur_energy_model.energy.program_energy import ProgramEnergy
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Indices

LOG_FIELDS: tuple[str, ...] = (
    "runtime_state",
    "actual_digital_output_bits",
    LINE,
)
"""RTDE fields that a log uses beside the fields of the calculator, where the source has them."""

SETTLING = 0.15
"""Begin of a rest that is left out of the power of holding, as the arm still swings [s]."""
SHORTEST_REST = 0.5  # shortest rest that shows the power of holding [s]
LONGEST_STOP = 60.0
"""Rest from which on it is a pause, in which an arm could be switched off [s]."""
MOST_PLACES = 256
"""Number of places that are remembered; a program with more of them has no typical place."""
MOST_CYCLES = 10_000  # number of cycles that are remembered, the newest


class LoggedCycle(NamedTuple):
    """One complete cycle without gaps; energies of the whole arm at the supply.

    Attributes:
        duration: duration [s].
        energy: energy [J].
        motion_time: time while the arm moved [s].
        motion_energy: energy while the arm moved [J].
        temperature: mean temperature of the joints at the end of the cycle [degC]; NaN
            where not recorded.
    """

    duration: float
    energy: float
    motion_time: float
    motion_energy: float
    temperature: float


@dataclass
class RestPlace:
    """A place at which the arm rested, brakes released, shorter than a pause.

    Attributes:
        q: joint positions [n], rad.
        count: number of rests that were long enough.
        seconds: time of these rests, without settling [s].
        power: mean power of the whole arm over these rests [W].
        scatter: sum of squared differences of single rests from the mean [W^2].
    """

    q: Array
    count: int = 0
    seconds: float = 0.0
    power: float = 0.0
    scatter: float = 0.0

    def include(self, seconds: float, power: float) -> None:
        """Include another rest [s], with the mean power in it [W]."""
        self.count += 1
        self.seconds += seconds
        before = self.power
        self.power += (power - before) / self.count
        self.scatter += (power - before) * (power - self.power)

    @property
    def power_std(self) -> float:
        """Standard deviation of the mean power by the scatter of the rests [W]; NaN of one rest."""
        if self.count < 2:
            return float("nan")
        return float(np.sqrt(self.scatter / (self.count - 1) / self.count))


@dataclass
class Pauses:
    """All pauses of an arm: rests so long that it could have been switched off.

    Attributes:
        number: number of pauses.
        seconds: time of the pauses [s].
        energy: energy at the supply, in this time [J].
        braked_seconds: part of `seconds` with the brakes engaged [s].
    """

    number: int = 0
    seconds: float = 0.0
    energy: float = 0.0
    braked_seconds: float = 0.0


@dataclass
class _Rest:
    """The rest that lasts at present.

    Attributes:
        q: joint positions [n], rad; empty where unknown.
        seconds: time since it began [s].
        energy: energy at the supply, in this time [J].
        settled_seconds: time without the settling at its begin [s].
        settled_energy: energy at the supply in the settled time [J].
        braked_seconds: time with the brakes engaged [s].
    """

    q: Array
    seconds: float = 0.0
    energy: float = 0.0
    settled_seconds: float = 0.0
    settled_energy: float = 0.0
    braked_seconds: float = 0.0


class WorkLog:
    """The log of one arm.

    Args:
        script: script of the program, whose nodes are named; None without one.
        detector: detector of the cycles; None for one that finds them on the way. A
            recording has one that has seen it as a whole (`detector_of_recording`).

    Attributes:
        cycles: complete ones, in order.
        places: places at which the arm rested, in the order in which they were first
            reached.
        pauses: all long pauses together.
        seconds: time integrated over [s].
        moving_seconds: part of the time in motion [s].
        program: energy by line of the program; None before the first sample.
    """

    def __init__(
        self, script: Script | None = None, detector: CycleDetector | None = None
    ) -> None:
        self.cycles: deque[LoggedCycle] = deque(maxlen=MOST_CYCLES)
        self.places: list[RestPlace] = []
        self.pauses = Pauses()
        self.seconds = 0.0
        self.moving_seconds = 0.0
        self.program: ProgramEnergy | None = None
        self._script = script
        self._channels: Channels | None = None
        self._meter = EnergyMeter(0)
        self._counter = CycleCounter()
        self._detector = CycleDetector() if detector is None else detector
        self._measured = 0.0  # time in which the total is measured [s]
        self._off_seconds = 0.0  # time while the arm was switched off [s]
        self._off_energy = 0.0  # energy in that time [J]
        self._rest: _Rest | None = None

    @property
    def total_source(self) -> TotalSource:
        """Where the energies come from, and with them the powers at rest."""
        return TotalSource.of(self._measured, self.seconds)

    @property
    def off_power(self) -> float | None:
        """Mean power at the supply while the arm was switched off [W]; None if it never was."""
        return self._off_energy / self._off_seconds if self._off_seconds > 0.0 else None

    def add(
        self, channels: Channels, table: PowerTable, marks: Marks | None = None
    ) -> None:
        """Add powers of samples that follow those before.

        Args:
            channels: layout of the powers.
            table: powers of the samples.
            marks: marks of cycles; None to find them here.
        """
        if channels is not self._channels:
            self._use_channels(channels)
        assert self.program is not None
        marks = self._detector.find(table.samples) if marks is None else marks
        self.program.update(table)
        self._add_cycles(channels, table, marks)
        self._add_rests(channels, table)
        steps = table.steps.bridged
        self.seconds += float(steps.sum())
        self.moving_seconds += float(steps[table.states == ArmState.MOVING].sum())
        self._measured += float(steps @ table.power[:, channels.arm["measured"]])

    def finish(self) -> None:
        """Include the rest in which a recording ends."""
        self._end_rest()

    def place_at(self, q: Array) -> RestPlace | None:
        """The place at joint positions [n], rad; None if the arm never rested there."""
        for place in self.places:
            if np.abs(place.q - q).max() < SAME_POINT:
                return place
        return None

    def _use_channels(self, channels: Channels) -> None:
        """Go on with powers in another layout, as after a change of the model.

        The cycle under way is lost.
        """
        self._channels = channels
        self._meter = EnergyMeter(len(channels))
        self._counter = CycleCounter()
        if self.program is None:
            self.program = ProgramEnergy(channels, self._script)
        else:
            self.program.use_channels(channels)

    def _add_cycles(self, channels: Channels, table: PowerTable, marks: Marks) -> None:
        temperatures = table.samples.columns.get("joint_temperatures")
        for rows in table.parts(marks):
            if (mark := marks.get(rows.start)) is not None:
                now = float("nan")
                if temperatures is not None:
                    now = float(np.mean(temperatures[rows.start]))
                for cycle in self._counter.mark(0, self._meter.reading, mark):
                    if cycle.is_whole:
                        self.cycles.append(_logged(cycle, channels, now))
            self._meter.integrate_steps(table.steps.cut(rows), table.power[rows])

    def _add_rests(self, channels: Channels, table: PowerTable) -> None:
        states = table.states
        steps = table.steps.bridged
        power = table.power[:, channels.arm["total"]]
        off = states == ArmState.OFF
        self._off_seconds += float(steps[off].sum())
        self._off_energy += float(steps[off] @ power[off])
        resting = (states == ArmState.STANDSTILL) | (states == ArmState.BRAKED)
        for rows in equal_runs(resting):
            if not resting[rows.start]:
                self._end_rest()
                continue
            if self._rest is None:
                self._rest = _Rest(_position(table, rows.start))
            _extend(self._rest, states[rows], steps[rows], power[rows])

    def _end_rest(self) -> None:
        """Include the present rest, if there is one: as a pause, or at its place."""
        rest = self._rest
        self._rest = None
        if rest is None:
            return
        if rest.seconds >= LONGEST_STOP:
            self.pauses.number += 1
            self.pauses.seconds += rest.seconds
            self.pauses.energy += rest.energy
            self.pauses.braked_seconds += rest.braked_seconds
            return
        if rest.seconds < SHORTEST_REST or rest.braked_seconds > 0.0 or not len(rest.q):
            return
        place = self.place_at(rest.q)
        if place is None and len(self.places) < MOST_PLACES:
            place = RestPlace(rest.q)
            self.places.append(place)
        if place is not None:
            mean_power = rest.settled_energy / rest.settled_seconds
            place.include(rest.settled_seconds, mean_power)


def _logged(cycle: Cycle, channels: Channels, temperature: float) -> LoggedCycle:
    """What a log keeps of a cycle at whose end the joints have a mean temperature [degC]."""
    values = cycle.summary(channels)
    return LoggedCycle(
        duration=values["duration_s"],
        energy=values["total_energy_J"],
        motion_time=values["motion_time_s"],
        motion_energy=values["motion_energy_J"],
        temperature=temperature,
    )


def _extend(rest: _Rest, states: Indices, steps: Array, power: Array) -> None:
    """Extend a rest by samples, whose steps lead to them."""
    passed = rest.seconds + np.cumsum(steps)
    settled = np.where(passed > SETTLING, steps, 0.0)
    rest.seconds = float(passed[-1])
    rest.energy += float(steps @ power)
    rest.settled_seconds += float(settled.sum())
    rest.settled_energy += float(settled @ power)
    rest.braked_seconds += float(steps[states == ArmState.BRAKED].sum())


def _position(table: PowerTable, row: int) -> Array:
    """Joint positions of a sample [n], rad: targets, else measured; empty where unknown."""
    columns = table.samples.columns
    for name in ("target_q", "actual_q"):
        if name in columns and np.isfinite(columns[name][row]).all():
            return np.array(columns[name][row])
    return np.zeros(0)
