"""StoredReading: what a reading needs to be published later, in few bytes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.sinks.arm_reading import ArmReading

NANOSECONDS = 1_000_000
"""In one millisecond."""


@dataclass(frozen=True, slots=True)
class StoredCycle:
    """A completed cycle: its number, energy [J], duration [s], largest total power [W], program."""

    number: int
    energy: float
    duration: float
    peak_power: float
    program: str | None = None


@dataclass(frozen=True, slots=True)
class StoredReading:
    """One reading of one arm.

    Attributes:
        arm: its name.
        stamp: host time of the sample [ms since 1970, UTC].
        names: of the values, as the ROS topics'; one tuple is shared by all readings.
        values: W and J.
        state: of the arm, in lower case.
        lost: number of samples lost so far.
        cycle: that ended last, None before the first.
    """

    arm: str
    stamp: int
    names: tuple[str, ...]
    values: array[float]
    state: str
    lost: int
    cycle: StoredCycle | None = None


class ReadingCompressor:
    """Makes StoredReadings that share the tuple of their names, and the last cycle of their arm."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._cycles: dict[str, StoredCycle] = {}
        self._states = {state: state.name.lower() for state in ArmState}

    def __call__(self, reading: ArmReading) -> StoredReading:
        """The part of a reading that is published."""
        numbers = reading.numbers()
        names = tuple(numbers)
        if names != self._names:
            self._names = names
        total = reading.snapshot.channels.arm["total"]
        for cycle in reading.cycles[-1:]:
            self._cycles[reading.arm] = StoredCycle(
                cycle.number,
                float(cycle.reading.net[total]),
                cycle.duration,
                cycle.peak_power,
                cycle.program,
            )
        return StoredReading(
            reading.arm,
            reading.stamp // NANOSECONDS,
            self._names,
            array("d", numbers.values()),
            self._states[reading.snapshot.state],
            reading.link.lost,
            self._cycles.get(reading.arm),
        )
