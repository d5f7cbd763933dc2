"""Motion thinned to means over short blocks of time, cheap enough for every sample of a year."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.telemetry.runs import run_starts, slices_between
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

BLOCK = 0.04
"""Length of a block [s]: all that minutes of friction use (learning/minute.py)."""
_PERIODS = 2.0
"""Length of a block in sample periods, at least."""
_ROUNDING = 1e-4
"""Share of a block by which a sample may miss its begin: clocks count in binary fractions."""
TARGETS = ("target_q", "target_qd", "target_qdd")
ACTUALS = ("actual_q", "actual_qd")


def thinned_motions(samples: Telemetry) -> Iterator[FilteredMotion]:
    """Stretches of consecutive block means, two blocks or more each.

    Positions, speeds and accelerations are the controller's targets where it reports them, as
    these have no noise; else measured ones, with accelerations from differences of the means.

    Args:
        samples: usable ones, ascending in time, of one setup; without currents and motion there
            are no stretches.
    """
    names = TARGETS if all(name in samples for name in TARGETS) else ACTUALS
    if "actual_current" not in samples or any(name not in samples for name in names):
        return
    if len(samples) < 2:
        return
    block = max(BLOCK, _PERIODS * float(np.median(np.diff(samples.time))))
    number = np.floor(samples.time / block + _ROUNDING)
    starts = run_starts(number)
    counts = np.diff(starts, append=len(samples))

    def means(values: Array) -> Array:
        return np.asarray(np.add.reduceat(values, starts, axis=0) / counts[:, None])

    motion = [means(samples.columns[name]) for name in names]
    current = means(samples.columns["actual_current"])
    kept = number[starts]
    time = (kept + 0.5) * block
    unknown = np.full_like(current, np.nan)
    temperature = samples.columns.get("joint_temperatures")
    warmth = unknown if temperature is None else temperature[starts]
    payload = np.full((len(kept), 4), np.nan)
    # The first and the last block may be cut off.
    whole = counts >= 0.5 * np.median(counts)
    cuts = np.flatnonzero((np.diff(kept) != 1.0) | ~whole[1:] | ~whole[:-1]) + 1
    for part in slices_between(cuts.tolist(), len(kept)):
        if part.stop - part.start < 2:
            continue
        q, qd = motion[0][part], motion[1][part]
        qdd = motion[2][part] if len(motion) > 2 else np.gradient(qd, block, axis=0)
        yield FilteredMotion(
            time=time[part],
            q=q,
            qd=qd,
            qdd=qdd,
            current=current[part],
            moment=unknown[part],
            temperature=warmth[part],
            payload=payload[part],
        )
