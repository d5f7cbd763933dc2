"""What a reader keeps of the parts of a recording: filtered motions, and samples as recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.fields import SAMPLE_FIELDS
from ur_energy_model.identification.long_recordings.part import LENGTH, Part
from ur_energy_model.identification.long_recordings.part_pool import KeptTime, PartPool
from ur_energy_model.identification.recording_buffers import MotionBuffer, SampleBuffer
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.telemetry.samples import Telemetry, concatenate


class KeptParts:
    """Gathers batches and the motions filtered from them into parts.

    Args:
        dof: number of joints.
        limit: time to keep; None for all motions and no samples.

    Attributes:
        motions, samples: what is kept, complete after `finish`.
        told_payload: first payload told to the controller, mass and centre [4]; NaN if unknown.
    """

    def __init__(self, dof: int, limit: KeptTime | None) -> None:
        self.motions, self.samples = MotionBuffer(dof), SampleBuffer()
        self.told_payload = np.full(4, np.nan)
        self._dof, self._begun = dof, False
        self._pools = None if limit is None else (PartPool(limit.motions), PartPool(limit.samples))
        self._waiting: list[Telemetry] = []
        self._filtered: list[FilteredMotion] = []

    def add(self, batch: Telemetry | None, motions: Sequence[FilteredMotion]) -> None:
        """Add a batch, None at the end, and the motions that it completed."""
        if motions and not self._begun:
            self.told_payload, self._begun = motions[0].payload[0], True
        if self._pools is None:
            for motion in motions:
                self.motions.append(motion)
            return
        self._filtered += motions
        if batch is not None:
            columns = {name: batch[name] for name in SAMPLE_FIELDS if name in batch}
            self._waiting.append(
                Telemetry(batch.time, columns, batch.info, batch.gaps, batch.stamp)
            )
        if sum(part.duration for part in self._waiting) > LENGTH:
            self._complete()

    def finish(self) -> None:
        """Choose among the parts and write those kept into the buffers."""
        if self._pools is None:
            return
        self._complete()
        filtered, recorded = self._pools
        for part in filtered.finished():
            for motion in part.motions:
                self.motions.append(motion)
        for part in recorded.finished():
            if part.samples is not None:
                self.samples.append(part.samples)

    @property
    def covered(self) -> KeptTime | None:
        """Time kept of motions and samples; None without a limit."""
        if self._pools is None:
            return None
        filtered, recorded = self._pools
        return KeptTime(filtered.kept, recorded.kept)

    def _complete(self) -> None:
        """Put what is waiting into the pools as one part."""
        assert self._pools is not None
        filtered, recorded = self._pools
        motions = tuple(self._filtered)
        if motions:
            filtered.add(Part(self._dof, motions, None))
        if self._waiting:
            recorded.add(Part(self._dof, motions, concatenate(self._waiting)))
        self._waiting, self._filtered = [], []
