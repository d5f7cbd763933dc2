"""Error of predicted torques as Raviola et al., RAAD 2021, sec. 3.1, define it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class NormalisedError:
    """Error of predicted torques as Raviola et al. 2021, sec. 3.1, define it.

    Attributes:
        value: (1/N) sqrt(e'e) with the errors e of all joints at N points [N m].
        points: N, points of the motion as recorded; each has one row per joint.
        rate: of the points [Hz].
    """

    value: float
    points: int
    rate: float


class PointErrors:
    """Accumulates the errors of predicted torques point by point."""

    def __init__(self) -> None:
        self._squares, self._points, self._seconds, self._steps = 0.0, 0, 0.0, 0

    def accumulate(self, time: Array, error: Array) -> None:
        """Add errors [points, n], N m, at consecutive times [points], s."""
        self._squares += float(np.square(error).sum())
        self._points += len(time)
        if len(time) > 1:
            self._seconds += float(time[-1] - time[0])
            self._steps += len(time) - 1

    @property
    def result(self) -> NormalisedError | None:
        """The error; None without points."""
        if not self._points:
            return None
        rate = self._steps / self._seconds if self._seconds > 0 else float("nan")
        return NormalisedError(float(np.sqrt(self._squares)) / self._points, self._points, rate)
