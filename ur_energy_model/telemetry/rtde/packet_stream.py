"""PacketStream: data packages as telemetry without duplicates, with stamps, gaps and causes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.clock import RESTART_ERROR, ClockMap
from ur_energy_model.telemetry.rtde.recipe import Recipe
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

MAX_TIMESTAMP = 1e9


class PacketStream:
    """The packages of one controller, over all its connections.

    Args:
        peer: address, for error messages.

    Attributes:
        clock: maps controller time to host time.
        duplicates: packages left out because the controller sent the same tick again.
        loss: why the connection was lost, until the next package arrives.
    """

    def __init__(self, peer: str) -> None:
        self.clock = ClockMap()
        self.duplicates = 0
        self.loss: str | None = None
        self._peer = peer
        self._last_time, self._last_arrival = math.nan, 0

    def telemetry(
        self, recipe: Recipe, records: NDArray[np.void], arrival: int, info: RecordingInfo
    ) -> Telemetry | None:
        """Telemetry of the next packages; None if all of them are duplicates.

        Args:
            recipe: of the packages.
            records: [n >= 1].
            arrival: host time at which they were read [ns since the epoch].
            info: provenance; its rate defines what a gap is.

        Raises:
            ProtocolError: impossible timestamps.
        """
        columns = recipe.columns(records)
        times = columns["timestamp"]
        gaps: tuple[Gap, ...] = ()
        period = 1.0 / (info.rate or 1.0)
        if not self._in_step(times, 1.5 * period):
            self.check_times(times)
            new = np.diff(times, prepend=self._last_time) != 0
            if not new.all():
                self.duplicates += int(np.sum(~new))
                columns = {name: values[new] for name, values in columns.items()}
                times = columns["timestamp"]
                if len(times) == 0:
                    return None
            gaps = self._gaps(times, arrival, period)
        self._last_time, self._last_arrival, self.loss = float(times[-1]), arrival, None
        return Telemetry(times, columns, info, gaps, self.clock.stamp(times, arrival))

    def check_times(self, times: Array) -> None:
        """Refuse impossible timestamps [packets], s.

        Raises:
            ProtocolError: not finite, negative, or decades after the controller's start.
        """
        if not ((times >= 0.0) & (times < MAX_TIMESTAMP)).all():
            raise ProtocolError(
                self._peer, "sent an impossible timestamp", "restart the controller"
            )

    def _in_step(self, times: Array, longest: float) -> bool:
        """Whether every package follows the previous one without gap: the usual, fast case."""
        if not 0.0 < float(times[0]) - self._last_time < longest:
            return False
        if len(times) > 1:
            steps = times[1:] - times[:-1]
            if not (steps.min() > 0.0 and steps.max() < longest):
                return False
        return float(times[-1]) < MAX_TIMESTAMP

    def _gaps(self, times: Array, arrival: int, period: float) -> tuple[Gap, ...]:
        """Gaps in front of and between packages."""
        if math.isnan(self._last_time):
            return find_gaps(times, period)
        found = find_gaps(np.concatenate([[self._last_time], times]), period)
        gaps = [replace(gap, index=gap.index - 1) for gap in found]
        if gaps and gaps[0].index == 0 and self.loss is not None:
            gaps[0] = self._explain(gaps[0], self.loss, arrival)
        return tuple(gaps)

    def _explain(self, gap: Gap, loss: str, arrival: int) -> Gap:
        """A gap after a lost connection, with its cause.

        The controller restarted if its clock went back, or if it is behind and has run for less
        time than the connection was lost. A clock that is behind for other reasons may catch up.
        """
        away = (arrival - self._last_arrival) * 1e-9
        behind = self.clock.lateness(gap.end, arrival) > RESTART_ERROR
        if gap.end > gap.start and not (behind and gap.end < away):
            return replace(gap, cause=f"connection lost: {loss}")
        self.clock.restart()
        return replace(gap, missing=0, cause=f"controller restarted: {loss}")
