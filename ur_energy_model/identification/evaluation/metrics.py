"""METRICS: how well a model describes one recording."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

Statistics: TypeAlias = dict[str, float | None]
"""Statistics of one channel by name; None where they cannot be computed."""


@dataclass(frozen=True)
class Metrics:
    """METRICS of one recording; the JSON keys are the names of the attributes.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint [N m]; None where columns are missing.
        current: the same in A, over samples at which the joint moves: at standstill friction, and
            with it the current, takes any value up to its limit.
        current_all: the same over all samples.
        power: at the supply from measured currents, see `PowerStatistics.entry`; or None.
        power_from_motion: the same from the motion alone, without measured currents.
        motion_energy_error_percent: relative error of the energy of motion, of power_from_motion or
            else of power.
        cutoff: of the filter [Hz].
        duration: of the recording [s].
        current_interval: {"std", "coverage"} per joint: share of the currents within their stated
            95 % intervals, over samples at which the joint moves.
        current_interval_all: the same over all samples.
        session: see `session_json`.
    """

    bag: str
    samples: int
    torque: list[Statistics] | None
    current: list[Statistics] | None
    current_all: list[Statistics] | None
    power: Statistics | None
    power_from_motion: Statistics | None
    motion_energy_error_percent: float | None
    cutoff: float
    duration: float
    current_interval: list[Statistics] | None
    current_interval_all: list[Statistics] | None
    session: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """METRICS as the command line prints them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
