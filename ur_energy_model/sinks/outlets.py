"""Outlets: all sinks of one estimator, fed at one rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.options import READINGS_PER_SECOND
from ur_energy_model.sinks.sink import Sink, SinkStatus
from ur_energy_model.telemetry.decimation import Decimator


class Outlets:
    """Sinks that get the same readings.

    Args:
        sinks: already made.
        rate: of readings [Hz].
    """

    def __init__(self, sinks: Iterable[Sink], rate: float = READINGS_PER_SECOND) -> None:
        self.sinks = tuple(sinks)
        self._decimator = Decimator(rate)

    def offer(self, time: float, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks if one is due.

        Args:
            time: controller time of the last sample [s].
            make: makes the reading, None before the first sample.
        """
        if self._decimator.due(time):
            self.offer_at_once(make)

    def offer_at_once(self, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks; `make` as in `offer`."""
        reading = make() if self.sinks else None
        if reading is not None:
            for sink in self.sinks:
                sink.offer(reading)

    @property
    def statuses(self) -> tuple[SinkStatus, ...]:
        """State of every sink."""
        return tuple(sink.status for sink in self.sinks)

    def close(self) -> None:
        """Close all sinks."""
        for sink in self.sinks:
            sink.close()
