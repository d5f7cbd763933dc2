"""Powers of consecutive samples, the result of the calculator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ur_energy_model.energy.gaps import Steps
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices


@dataclass(frozen=True)
class EnergyCorrection:
    """Correction of the energy counted before the session's standby power was known.

    Attributes:
        index: first sample after it.
        deducted_from: channels of non-negative power whose later gains a decrease is deducted from.
        energy: change by channel [channels], J; zero for the sensitivities.
        deviation: change of the integrated sensitivities [channels], J; zero for the others.
    """

    index: int
    deducted_from: tuple[int, ...]
    energy: Array
    deviation: Array


@dataclass(frozen=True)
class PowerTable:
    """Powers of consecutive samples.

    Attributes:
        samples: usable ones, without repeated timestamps.
        steps: time to each sample.
        states: ArmState [samples].
        power: of every channel [samples, channels], W.
        bus_measured: whether the bus power was measured at all samples.
        correction: with the samples at which the session's standby becomes known; else None.
    """

    samples: Telemetry
    steps: Steps
    states: Indices
    power: Array
    bus_measured: bool
    correction: EnergyCorrection | None = None

    def parts(self, edges: Iterable[int] = ()) -> Iterator[tuple[slice, EnergyCorrection | None]]:
        """Consecutive rows between edges, and the correction that precedes each of them."""
        due = None if self.correction is None else self.correction.index
        marks = {0, len(self.samples), *edges, *(() if due is None else (due,))}
        for start, stop in pairwise(sorted(marks)):
            yield slice(start, stop), self.correction if start == due else None

    @property
    def seconds(self) -> float:
        """Time that the samples account for [s]."""
        return float(self.steps.bridged.sum())
