"""PowerHistory: total and bus power of the last minutes, one value a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from ur_energy_model.sinks.live_state import LiveState

SECONDS = 300
"""Length of the history; no terminal shows more."""


class PowerHistory:
    """Mean powers of each second, and the largest power of a joint.

    Attributes:
        largest: magnitude of a joint's power [W].
    """

    def __init__(self) -> None:
        self._total: deque[float] = deque(maxlen=SECONDS)
        self._bus: deque[float] = deque(maxlen=SECONDS)
        self.largest = 0.0

    @property
    def total(self) -> Sequence[float]:
        """Total power of each second [W], oldest first."""
        return tuple(self._total)

    @property
    def bus(self) -> Sequence[float]:
        """Bus power of each second [W], NaN where it is not measured."""
        return tuple(self._bus)

    def add(self, state: LiveState) -> None:
        """Add a state whose powers are means over a second; nothing while no samples arrive."""
        reading = state.reading
        if reading is None or state.silence is not None:
            return
        snapshot = reading.snapshot
        arm = snapshot.channels.arm
        self._total.append(float(snapshot.power[arm["total"]]))
        self._bus.append(float(snapshot.power[arm["bus"]]) if snapshot.bus_measured else np.nan)

    def observe(self, power: float) -> None:
        """Include the magnitude of a joint's power [W] in `largest`."""
        self.largest = max(self.largest, abs(power))
