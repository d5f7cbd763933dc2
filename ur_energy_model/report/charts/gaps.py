"""Holes in curves where samples are missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array


def break_at(time: Array, values: Array, places: NDArray[np.int_]) -> tuple[Array, Array]:
    """Time and values [samples] with a hole before each index in `places` [gaps].

    So no line is drawn across a gap.
    """
    if len(places) == 0:
        return time, values
    return np.insert(time, places, time[places]), np.insert(values, places, np.nan)
