# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Production: cycles of ordinary production and their energies, on one side of a change.

The energy of a cycle is its measured total: voltage times current of the robot bus,
integrated over the cycle. Where nothing is measured, the energy is the model's.
Productions come from recordings (`recorded_production`) or from days of a history store
(`stored_production`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.powers import Channels, TotalSource
from ur_energy_model.typing import Array, Mask

USUAL = 1.3
"""Largest ratio of the duration of a usual cycle and the median duration, either way."""
MEASURED = TotalSource("measured", 1.0)
"""Source of energies that are measured as a whole."""


class CyclePart(NamedTuple):
    """A move of the cycle, or the settled part of a rest; k cycles, n joints.

    Attributes:
        start: joint positions at the begin of the part [n], rad.
        end: joint positions at the end of the part [n], rad.
        duration: mean over the cycles [s].
        power: mean measured power of the part in each cycle [k], W.
        moves: whether the part is a move.
        tick: time by which sampling alone may change the duration [s].
    """

    start: Array
    end: Array
    duration: float
    power: Array
    moves: bool
    tick: float = 0.0


class ModelledCycles(NamedTuple):
    """Energies of cycles by a model.

    Attributes:
        channels: layout of the integrals.
        net: integral of each channel over each cycle [k, channels], J.
    """

    channels: Channels
    net: Array


@dataclass(frozen=True)
class Production:
    """Cycles of a recording, or of a day of a history store; what is unknown is None.

    Attributes:
        source: path of the recording, or day (YYYY-MM-DD).
        energy: energies of the cycles [k], J: measured totals, or the model's.
        duration: durations of the cycles [k], s.
        total_source: source of the energies, a measurement or the model.
        modelled: integrals by the model, of a recording whose energies are the model's.
        model_std: standard deviation of the mean energy of a cycle, if energies are the
            model's [J].
        serial: serial number or name of the arm.
        program: name of the program.
        begin: begin of the first cycle [s since 1970].
        end: end of the last cycle [s since 1970].
        points: joint positions at which the moves of a cycle start [moves, n], rad.
        parts: moves and settled rests of a cycle, in order.
        idle: mean measured power at rest [W].
        payload: smallest and largest mass of the payload [kg].
        temperature: mean temperature of the joints [degC].
        scaling: mean of the speed slider times the limiter.
        left_out: number of cycles that are not among these.
    """

    source: str
    energy: Array
    duration: Array
    total_source: TotalSource = MEASURED
    modelled: ModelledCycles | None = None
    model_std: float = 0.0
    serial: str | None = None
    program: str | None = None
    begin: float | None = None
    end: float | None = None
    points: Array | None = None
    parts: Sequence[CyclePart] = ()
    idle: float | None = None
    payload: tuple[float, float] | None = None
    temperature: float | None = None
    scaling: float | None = None
    left_out: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether all energies are measured."""
        return self.total_source.name == "measured"

    def as_json(self) -> dict[str, Any]:
        """A recording or day in the JSON of `ProductionSaving`."""
        return {
            "source": self.source,
            "cycles": len(self.energy),
            "cycles_left_out": self.left_out,
            "total_source": self.total_source.name,
            "total_measured_share": self.total_source.share,
            "energies": self.energy.tolist(),
            "durations": self.duration.tolist(),
            "serial": self.serial,
            "program": self.program,
            "moves": None if self.points is None else len(self.points),
            "idle_power": self.idle,
            "payload": None if self.payload is None else list(self.payload),
            "temperature": self.temperature,
            "speed_scaling": self.scaling,
        }


def usual_cycles(duration: Array) -> Mask:
    """Which cycles took about as long as most, and so were neither interrupted nor merged.

    Args:
        duration: durations of the cycles [k], s, at least one.

    Returns:
        Whether each cycle is a usual one [k].
    """
    ratio = duration / np.median(duration)
    return np.asarray((ratio <= USUAL) & (ratio >= 1.0 / USUAL))
