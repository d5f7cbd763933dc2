# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Zero-phase Butterworth low-pass filter."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from ur_energy_model.typing import Array

HIGHEST_CUTOFF = 0.9  # highest cut-off over half the sample rate


def low_pass(
    values: Array,
    period: float,
    cutoff: float,
    *,
    padding: float | None = None,
    padtype: Literal["odd", "even"] = "odd",
) -> Array:
    """Second-order Butterworth low pass, run forward and backward along the first axis.

    Args:
        values: evenly sampled [samples, ...].
        period: period of the samples [s].
        cutoff: cut-off frequency [Hz]; limited to HIGHEST_CUTOFF of half the sample rate.
        padding: extension at either end, in periods of the cut-off; None takes scipy's
            default.
        padtype: how the ends are extended, see scipy.signal.sosfiltfilt.

    Returns:
        Filtered values [samples, ...], without delay.
    """
    from scipy.signal import sosfiltfilt  # slow to import

    sections = _design(min(2 * cutoff * period, HIGHEST_CUTOFF))
    samples = None
    if padding is not None:
        samples = min(len(values) - 1, int(padding / (period * cutoff)))
    filtered = sosfiltfilt(sections, values, axis=0, padtype=padtype, padlen=samples)
    return np.asarray(filtered)


@lru_cache(maxsize=64)
def _design(fraction: float) -> Array:
    """Sections [1, 6] of the filter; the cut-off as a fraction of half the sample rate."""
    from scipy.signal import butter  # slow to import

    return np.asarray(butter(2, fraction, output="sos"))
