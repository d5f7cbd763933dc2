"""EcBot's errors of the dynamic and of the power model, eq. 22-23 and 25-26."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.evaluation.error_statistics import ErrorStatistics
from ur_energy_model.typing import Array


class EcbotErrors:
    """Errors of k channels, accumulated batch by batch.

    Args:
        channels: k, the joints of an arm, or one for its power.
    """

    def __init__(self, channels: int) -> None:
        self._errors = ErrorStatistics(channels)

    def accumulate(self, measured: Array, model: Array) -> None:
        """Add samples [samples, k]."""
        self._errors.accumulate(measured, model)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self._errors.count[0])

    @property
    def rmse(self) -> float:
        """Root of the mean over samples and channels of the squared error (eq. 22 and 25)."""
        return float(np.sqrt(np.mean(np.square(self._errors.rms))))

    @property
    def rmse_percent(self) -> float:
        """Mean over the channels of the RMSE over the range of the measurement (eq. 23, 26) [%]."""
        return float(np.mean(self._errors.rms_percent))

    @property
    def r2(self) -> float:
        """Coefficient of determination of a single channel, mean over several."""
        return float(np.mean(self._errors.r2))
