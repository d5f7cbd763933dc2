"""The figures of one comparison: currents in A and in percent of their range, and energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array, Mask

LONGEST_STEP = 0.25
"""Longest step between samples that energy is counted over [s]."""
LEAST_STILL = 1.0
"""Standstill from which its mean power is told [s]."""
LEAST_MOTION = 0.05
"""Share of the energy at the supply from which motion energy is compared."""
_FEW_SAMPLES = 10


@dataclass(frozen=True)
class CurrentError:
    """RMS errors over all joints (EcBot, eq. 25-26): in A, and as the mean percentage of ranges.

    Attributes:
        rms: of all samples.
        percent: the same for joints that move at some time; NaN without any.
        moving_rms, moving_percent: of these joints while they move.
    """

    rms: float
    percent: float
    moving_rms: float
    moving_percent: float

    @classmethod
    def of(cls, rms: Array, moving_rms: Array, span: Array) -> CurrentError:
        """From the joints' RMS errors and the range of their measured currents [n], A."""
        moves = np.isfinite(moving_rms)
        if not moves.any():
            return cls(_over_joints(rms), np.nan, np.nan, np.nan)
        percent, moving_percent = (
            float(100 * (each[moves] / span[moves]).mean()) for each in (rms, moving_rms)
        )
        return cls(_over_joints(rms), percent, _over_joints(moving_rms[moves]), moving_percent)


def _over_joints(rms: Array) -> float:
    return float(np.sqrt(np.square(rms).mean()))


def joint_rms(error: Array, mask: Mask | None = None) -> Array:
    """RMS per joint [n] of errors [samples, n], of masked samples only; NaN with few of them."""
    use = np.ones(error.shape, dtype=bool) if mask is None else mask
    count = use.sum(axis=0)
    squares = np.where(use, np.square(error), 0.0).sum(axis=0)
    return np.asarray(np.sqrt(squares / np.where(count >= _FEW_SAMPLES, count, np.nan)))


@dataclass(frozen=True)
class EnergyError:
    """Of the energy at the supply and of the motion's share, percent of what was measured.

    Attributes:
        supply: whole energy.
        motion: energy above standstill; NaN with little standstill to tell it from, or where it
            is little itself.
    """

    supply: float
    motion: float

    @classmethod
    def of(cls, time: Array, modelled: Array, measured: Array, still: Mask) -> EnergyError:
        """From powers [samples], W.

        Energy above standstill is that above the mean power of the samples at rest, the model's
        own and the measured one: what standby is wrong by is not in it.

        Args:
            time: [samples], s.
            modelled, measured: powers at the supply [samples], W.
            still: samples at which no joint moves [samples].
        """
        energies = np.array([energy(time, power) for power in (modelled, measured)])
        at_rest = np.full(2, np.nan)
        if energy(time, still.astype(float)) >= LEAST_STILL:
            at_rest = np.array([power[still].mean() for power in (modelled, measured)])
        above = energies - at_rest * energy(time, np.ones(len(time)))
        motion = above[0] / above[1] - 1 if above[1] > LEAST_MOTION * energies[1] else np.nan
        return cls(float(100 * (energies[0] / energies[1] - 1)), float(100 * motion))


def energy(time: Array, power: Array) -> float:
    """Trapezoidal integral [J] of a power [samples], W; long steps are left out."""
    steps = np.diff(time)
    steps = np.where((steps > 0) & (steps <= LONGEST_STEP), steps, 0.0)
    return float((0.5 * (power[1:] + power[:-1]) * steps).sum())


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns stand under each other."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)


def median_and_worst(values: Sequence[float], digits: int = 1) -> str:
    """ "median (worst)" of absolute values; empty where none is known."""
    known = np.abs([value for value in values if np.isfinite(value)])
    if not known.size:
        return ""
    return f"{np.median(known):.{digits}f} ({known.max():.{digits}f})"


def number(value: float, form: str) -> str:
    """A figure as text; "-" where it is not known."""
    return format(value, form) if np.isfinite(value) else "-"
