"""What the calculator answers: powers of consecutive samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ur_energy_model.energy.gaps import Steps
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices


@dataclass(frozen=True)
class EnergyCorrection:
    """What anchoring the session changes of all that was counted before it.

    Attributes:
        index: of the first sample after it.
        deducted_from: channels of never negative power whose gains pay for what is to be taken off.
        energy: by channel [channels], J; zero for the deviations.
        deviation: of the integrated sensitivities [channels], J; zero for the energies.
    """

    index: int
    deducted_from: tuple[int, ...]
    energy: Array
    deviation: Array


@dataclass(frozen=True)
class PowerTable:
    """Powers of consecutive samples.

    Attributes:
        samples: those that count: each once, with values that an arm can have.
        steps: time to each sample.
        states: what the arm does, ArmState [samples].
        power: of every channel [samples, channels], W.
        bus_measured: whether the bus power is a measurement throughout.
        credit: with the samples at which the session is anchored; else None.
    """

    samples: Telemetry
    steps: Steps
    states: Indices
    power: Array
    bus_measured: bool
    correction: EnergyCorrection | None = None

    def parts(self, edges: Iterable[int] = ()) -> Iterator[tuple[slice, EnergyCorrection | None]]:
        """Consecutive rows between edges, and the credit that is due before each of them."""
        due = None if self.correction is None else self.correction.index
        marks = {0, len(self.samples), *edges, *(() if due is None else (due,))}
        for start, stop in pairwise(sorted(marks)):
            yield slice(start, stop), self.correction if start == due else None

    @property
    def seconds(self) -> float:
        """Time that is accounted for [s]."""
        return float(self.steps.bridged.sum())
