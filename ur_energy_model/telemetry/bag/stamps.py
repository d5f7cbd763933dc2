"""StampRule: the stamps of a bag, from the host's clock or else from the controller's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.samples import Telemetry


class StampRule:
    """Stamps of consecutive batches of one recording.

    Attributes:
        host_clock: whether the recording has host stamps; None before the first batch.
    """

    def __init__(self) -> None:
        self.host_clock: bool | None = None
        self._shift = 0
        self._last: int | None = None

    def stamps(self, batch: Telemetry) -> NDArray[np.int64]:
        """Host stamps [n] of a batch (ns), or its controller times where it has none.

        Where the controller's clock starts again, its times continue one second later: log times
        must not go back.
        """
        if self.host_clock is None:
            self.host_clock = batch.stamp is not None
        if batch.stamp is not None:
            return batch.stamp
        stamp: NDArray[np.int64] = np.rint(batch.time * 1e9).astype(np.int64)
        first = int(stamp[0]) if self._last is None else self._last
        steps = np.diff(stamp, prepend=first - self._shift)
        steps[steps < 0] = 1_000_000_000
        out: NDArray[np.int64] = first + np.cumsum(steps)
        self._last = int(out[-1])
        self._shift = self._last - int(stamp[-1])
        return out
