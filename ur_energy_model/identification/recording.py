"""A recording after its bag was read: figures in memory, samples for further passes on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.quality.recording_quality import Quality
from ur_energy_model.identification.recording_buffers import (
    MotionBuffer,
    SupplyBuffer,
    TorqueBuffer,
    TorqueReference,
)
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array


@dataclass(frozen=True, eq=False)
class Recording:
    """What identification keeps of one bag.

    Attributes:
        path: as given by the user.
        info: what made the recording.
        quality: verdict.
        cutoff: of the narrow filter [Hz].
        rate: samples per second found [Hz].
        power: accumulated bus power.
        samples: number of samples read.
        duration: without gaps [s].
        delay: of actual_q behind target_q [s], NaN if unknown.
        warmth: lowest and highest joint temperatures [n, 2], degC; NaN where not recorded.
    """

    path: Path
    info: RecordingInfo
    quality: Quality
    cutoff: float
    rate: float
    power: PowerFit
    samples: int
    duration: float
    delay: float
    warmth: Array
    _motion: MotionBuffer = field(repr=False)
    _torque: TorqueBuffer = field(repr=False)
    _supply: SupplyBuffer = field(repr=False)

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self._motion.dof

    @property
    def torque_reference(self) -> TorqueReference:
        """Whether target_moment belongs to recorded targets or measured motion, or is missing."""
        return self._torque.reference

    @property
    def told_payload(self) -> Array:
        """First payload told to the controller, mass and centre [4], kg and m; NaN if unknown."""
        first = next(iter(self._motion), None)
        return np.full(4, np.nan) if first is None else first.payload[0]

    def motions(self) -> Iterable[FilteredMotion]:
        """Filtered motion, in order, read anew in each iteration."""
        return self._motion

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        return self._torque.telemetry(self.info, self.rate)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Time [samples], speed and current [samples, n] and bus power [samples], as recorded."""
        return iter(self._supply)

    def close(self) -> None:
        """Release temporary files."""
        for buffer in (self._motion, self._torque, self._supply):
            buffer.close()
