"""A recording after its bag was read: figures in memory, samples for further passes on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.identification.long_recordings.part_pool import KeptTime
from ur_energy_model.identification.power.power_columns import power_rows
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.quality.recording_quality import Quality
from ur_energy_model.identification.recording_buffers import (
    MotionBuffer,
    SampleBuffer,
    TorqueBuffer,
    TorqueReference,
)
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.telemetry.bag.bag_hash import bag_hash
from ur_energy_model.telemetry.modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array


@dataclass(frozen=True, eq=False)
class Recording:
    """What identification keeps of one bag.

    It can be pickled, so that bags are read where they are and fitted elsewhere.

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
        told_payload: first payload told to the controller, mass and centre [4], kg and m; NaN if
            unknown.
        kept: time that motions and samples cover, where the recording is longer; None where
            motions cover all of it and samples are not kept.
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
    told_payload: Array
    kept: KeptTime | None
    _motion: MotionBuffer = field(repr=False)
    _torque: TorqueBuffer = field(repr=False)
    _samples: SampleBuffer = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sha256": self.sha256}

    @cached_property
    def sha256(self) -> str:
        """Hash of the bag; a pickled recording carries it, as the bag may be out of reach."""
        return bag_hash(self.path)

    def renamed(self, path: Path) -> Recording:
        """The recording under another path to the same bag."""
        source = str(path)
        info, quality = replace(self.info, source=source), replace(self.quality, source=source)
        return self._same_bag(replace(self, path=path, info=info, quality=quality))

    def motion_only(self) -> Recording:
        """The recording without target_moment and samples."""
        return self._same_bag(replace(self, _torque=TorqueBuffer(), _samples=SampleBuffer()))

    def _same_bag(self, other: Recording) -> Recording:
        other.__dict__["sha256"] = self.sha256
        return other

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self._motion.dof

    @property
    def torque_reference(self) -> TorqueReference:
        """Whether target_moment belongs to recorded targets or measured motion, or is missing."""
        return self._torque.reference

    def motions(self) -> Iterable[FilteredMotion]:
        """Filtered motion, in order, read anew in each iteration."""
        return self._motion

    def kept_samples(self) -> Iterable[Telemetry] | None:
        """Samples as recorded, in parts, read anew in each iteration; None if they are not kept."""
        return None if self.kept is None else self._samples

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        if self._torque.complete:
            return self._torque.telemetry(self.info, self.rate)
        return (replace(part, info=self.info) for part in self._samples)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Time [samples], speed and current [samples, n] and bus power [samples].

        Of the samples that are kept, while the brakes are released.
        """
        for part in self._samples:
            rows = power_rows(part)
            if rows is not None:
                use = np.isin(rows.mode, BRAKES_RELEASED)
                yield rows.time[use], rows.qd[use], rows.current[use], rows.power[use]

    def close(self) -> None:
        """Release temporary files."""
        for buffer in (self._motion, self._torque, self._samples):
            buffer.close()
