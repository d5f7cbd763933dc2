"""Time laws whose jerk stays below a limit: averaged over as short a window as suffices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.optimization.time_law import TimeLaw

PERIOD = 0.002
"""Period over which accelerations change [s]: that of an e-Series controller."""
MARGIN = 0.97
"""Usable part of the limit; the rest is for laws that are shortened a little afterwards."""
LONGEST = 1.0
"""Longest window, relative to the duration of the law."""
_TRIALS = 10


def with_jerk_limit(law: TimeLaw, limit: float) -> TimeLaw:
    """The law averaged over a window, and as much longer, so that it keeps a jerk limit.

    On paths with sharp bends averaging does not suffice; there the law is slowed down too.

    Args:
        law: without a window.
        limit: rad/s^3; infinite for none.
    """
    if np.isinf(limit):
        return law
    goal, low, high = MARGIN * limit, 0.0, LONGEST * law.duration
    longest = replace(law, window=high)
    excess = longest.jerk(PERIOD) / goal
    if excess > 1.0:
        return longest.stretched(longest.duration * excess ** (1 / 3), high * excess ** (1 / 3))
    for _ in range(_TRIALS):
        middle = 0.5 * (low + high)
        enough = replace(law, window=middle).jerk(PERIOD) <= goal
        low, high = (low, middle) if enough else (middle, high)
    return replace(law, window=high)
