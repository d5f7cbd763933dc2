"""Choice of the parts of a long recording that tell the most about its arm.

The number of samples that the fits need does not grow with the length of a recording; what matters
is which ones. One half of the parts is spread evenly over the recording, so that they represent it.
The other half adds the most information (D-optimality: the determinant of the information matrix,
Pukelsheim, Optimal Design of Experiments, 1993, sec. 6.2), which favours varied motion and a wide
range of temperatures.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array, Indices

_RIDGE = 1e-6
"""Information that is there before, relative to that of the whole recording."""


def chosen_parts(information: Array, seconds: Array, wanted: float) -> Indices:
    """Parts that cover about the time wanted, in order; always the first one.

    Args:
        information: Gram matrices of each part [parts, n, k, k].
        seconds: time that each part covers [parts], s.
        wanted: time to choose [s].

    Returns:
        Their indices; all parts where they do not cover more than the time wanted.
    """
    if seconds.sum() <= wanted:
        return np.arange(len(seconds))
    chosen = [0]
    known = _prior(information) + information[0]
    stretches = max(1, int(0.5 * wanted / np.median(seconds)))
    number = np.floor(np.cumsum(seconds) / seconds.sum() * stretches * (1 - 1e-9))
    groups = [np.flatnonzero(number == k) for k in range(1, stretches)]
    everything = np.arange(len(seconds))
    while True:
        open_ones = groups.pop(0) if groups else np.setdiff1d(everything, chosen)
        left = wanted - seconds[chosen].sum()
        open_ones = open_ones[seconds[open_ones] <= max(left, 0.0)]
        if len(open_ones):
            gain = np.linalg.slogdet(known + information[open_ones])[1].sum(axis=1)
            best = int(open_ones[np.argmax(gain)])
            chosen.append(best)
            known = known + information[best]
        elif not groups:
            return np.sort(chosen)


def _prior(information: Array) -> Array:
    """Weak information [n, k, k] about every coefficient, in the units of its column."""
    scale = np.diagonal(information.sum(axis=0), axis1=-2, axis2=-1)
    weak = _RIDGE * np.where(scale > 0, scale, 1.0)
    return np.asarray(weak[:, :, None] * np.eye(scale.shape[-1]))
