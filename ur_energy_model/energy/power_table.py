"""What the calculator answers: powers of consecutive samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.gaps import Steps
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PowerTable:
    """Powers of consecutive samples.

    Attributes:
        samples: those that count: each once, with finite values.
        refused: number of samples left out for values that are not finite.
        steps: time to each sample.
        states: what the arm does, ArmState [samples].
        power: of every channel [samples, channels], W.
        bus_measured: whether the bus power is a measurement throughout.
        credit: energy that the session's anchoring adds to or takes from what was counted
            before it, by channel [channels], J; None mostly.
    """

    samples: Telemetry
    refused: int
    steps: Steps
    states: NDArray[np.intp]
    power: Array
    bus_measured: bool
    credit: Array | None = None

    @property
    def seconds(self) -> float:
        """Time that is accounted for [s]."""
        return float(self.steps.bridged.sum())
