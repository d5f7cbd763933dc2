"""Zero-phase low-pass filter and even time grid for sampled signals."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from ur_energy_model.typing import Array

_ORDER = 2
_HIGHEST = 0.9
"""Highest cut-off, as a share of half the sample rate."""
_PADDING = 1.5
"""Length of the extension at each end, in periods of the cut-off."""
_JITTER = 0.02
"""Largest distance of a sample from the grid, in grid steps, that needs no interpolation."""


def low_pass(
    values: Array,
    cutoff: float,
    period: float,
    *,
    extension: Literal["odd", "even"] = "odd",
    padding: int | None = None,
) -> Array:
    """Second-order Butterworth low-pass, run forward and backward along the first axis.

    Args:
        values: evenly sampled [samples, ...], any unit.
        cutoff: of one pass (-3 dB), Hz; at most 0.9 of half the sample rate is used.
        period: of the samples [s].
        extension: how the signal continues beyond its ends: "even" for one that rests there.
        padding: samples of that extension; None for 1.5 periods of the cut-off.

    Returns:
        Filtered values [samples, ...] without delay; both passes together are -6 dB at the cut-off.
    """
    from scipy.signal import sosfiltfilt  # slow to import

    wanted = int(_PADDING / (cutoff * period)) if padding is None else padding
    return np.asarray(
        sosfiltfilt(
            _sections(min(2 * cutoff * period, _HIGHEST)),
            values,
            axis=0,
            padtype=extension,
            padlen=min(len(values) - 1, wanted),
        )
    )


def at_grid(grid: Array, time: Array, values: Array, *, cubic: bool = False) -> Array:
    """Samples on an even grid; returned as they are where their times already agree with it.

    Args:
        grid: even times [m], s.
        time: of the samples, increasing [k], s.
        values: of the samples [k, n].
        cubic: interpolate with a cubic spline, which loses less of a signal with few samples per
            period; linear otherwise.

    Returns:
        Values on the grid [m, n].
    """
    if len(grid) == len(time) and (
        len(grid) < 2 or np.allclose(grid, time, rtol=0, atol=_JITTER * (grid[1] - grid[0]))
    ):
        return values
    if cubic:
        from scipy.interpolate import CubicSpline  # slow to import

        return np.asarray(CubicSpline(time, values)(grid))
    return np.stack([np.interp(grid, time, column) for column in values.T], axis=1)


@lru_cache(maxsize=32)
def _sections(fraction: float) -> Array:
    """Second-order sections of the filter for a cut-off as a share of half the sample rate."""
    from scipy.signal import butter  # slow to import

    return np.asarray(butter(_ORDER, fraction, output="sos"))
