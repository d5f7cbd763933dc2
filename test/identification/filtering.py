"""Filtered motions of recordings in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ur_energy_model.identification.filtered_motion import FilteredMotion, MotionStream
from ur_energy_model.telemetry.samples import Telemetry


def filtered_motions(
    batches: Iterable[Telemetry], dof: int, cutoff: float, period: float
) -> Iterator[FilteredMotion]:
    """Motions of one recording that comes in batches."""
    stream = MotionStream(dof, cutoff, period)
    for batch in batches:
        if len(batch):
            yield from stream.process(batch)
    yield from stream.finish()
