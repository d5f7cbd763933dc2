"""How well a model fits: error statistics that accumulate over batches.

Mean, maximum and RMS error and R2 per joint (Clochiatti et al., Robotica 2024, Tables V and VII);
RMSE, RMSE in percent of the range, R2 and energy error of power (Heredia et al., EcBot, eq.
22-26). The JSON spelling of all of them is METRICS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Metrics:
    """METRICS of one recording.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint, None where columns lack.
        current: the same, over the samples at which the joint moves: at standstill friction, and
            with it the current, takes any value up to its limit.
        current_all: the same over all samples, standstill included.
        power: of the supply from measured currents, as `PowerStatistics.entry` has it, or None.
        power_from_motion: the same from the motion alone, without measured currents.
        motion_energy_error_percent: of the energy above standstill, as power_from_motion has it
            (power where that is None), over the measured one.
        remarks: further facts about the comparison: cut-off, duration, session, and how many
            currents lie within their stated intervals.
    """

    bag: str
    samples: int
    torque: list[dict[str, float | None]] | None
    current: list[dict[str, float | None]] | None
    current_all: list[dict[str, float | None]] | None
    power: dict[str, float | None] | None
    remarks: dict[str, Any] = field(default_factory=dict)
    power_from_motion: dict[str, float | None] | None = None
    motion_energy_error_percent: float | None = None

    def as_json(self) -> dict[str, Any]:
        """METRICS as the command line prints them."""
        return {
            "bag": self.bag,
            "samples": self.samples,
            "torque": self.torque,
            "current": self.current,
            "current_all": self.current_all,
            "power": self.power,
            "power_from_motion": self.power_from_motion,
            "motion_energy_error_percent": self.motion_energy_error_percent,
            **self.remarks,
        }
