# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The figures of one comparison: errors of currents and energies, and coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.typing import Array, Mask

LONGEST_STEP = 0.25  # longest step between samples that energy is counted over [s]
LEAST_STILL = 1.0  # standstill from which its mean power is used [s]
# share of the energy at the supply from which motion energy is compared
LEAST_MOTION = 0.05
# half width of a 95 % interval in standard deviations
HALF_WIDTH = NormalDist().inv_cdf(0.975)
_FEW_SAMPLES = 10


class CurrentError(NamedTuple):
    """RMS errors over all joints (EcBot, eq. 25-26): in A, and as the mean percentage of ranges.

    `rms` is of all samples, `percent` the same for joints that move at some time (NaN
    without any), `moving_rms` and `moving_percent` of these joints while they move.
    """

    rms: float
    percent: float
    moving_rms: float
    moving_percent: float

    @classmethod
    def of(cls, rms: Array, moving_rms: Array, span: Array) -> CurrentError:
        """From the joints' RMS errors and the range of their measured currents [n], A."""
        whole = float(np.sqrt(np.square(rms).mean()))
        moves = np.isfinite(moving_rms)
        if not moves.any():
            return cls(whole, np.nan, np.nan, np.nan)
        percent, moving_percent = (
            float(100 * (each[moves] / span[moves]).mean()) for each in (rms, moving_rms)
        )
        moving = float(np.sqrt(np.square(moving_rms[moves]).mean()))
        return cls(whole, percent, moving, moving_percent)


def joint_rms(error: Array, mask: Mask | None = None) -> Array:
    """RMS per joint [n] of errors [samples, n], of masked samples only; NaN with few of them."""
    use = np.ones(error.shape, dtype=bool) if mask is None else mask
    count = use.sum(axis=0)
    squares = np.where(use, np.square(error), 0.0).sum(axis=0)
    return np.asarray(np.sqrt(squares / np.where(count >= _FEW_SAMPLES, count, np.nan)))


class EnergyError(NamedTuple):
    """Of the energy at the supply and of the motion's share, percent of what was measured.

    The motion's is NaN without enough standstill, or where it is little itself. `std` is
    the stated standard deviation of `supply`, NaN of methods that state none.
    """

    supply: float
    motion: float
    std: float = float("nan")

    @classmethod
    def of(
        cls, time: Array, modelled: Array, measured: Array, still: Mask
    ) -> EnergyError:
        """From powers at the supply [samples], W, at times [s]; at `still` samples no joint moves.

        Energy above standstill is that above the mean power of the samples at rest, the
        model's own and the measured one: an error of standby is not in it.
        """
        energies = np.array([energy(time, power) for power in (modelled, measured)])
        at_rest = np.full(2, np.nan)
        if energy(time, still.astype(float)) >= LEAST_STILL:
            at_rest = np.array([power[still].mean() for power in (modelled, measured)])
        above = energies - at_rest * energy(time, np.ones(len(time)))
        motion = (
            above[0] / above[1] - 1 if above[1] > LEAST_MOTION * energies[1] else np.nan
        )
        return cls(float(100 * (energies[0] / energies[1] - 1)), float(100 * motion))


def energy(time: Array, power: Array) -> float:
    """Trapezoidal integral [J] of a power [samples], W; long steps are left out."""
    steps = np.diff(time)
    steps = np.where((steps > 0) & (steps <= LONGEST_STEP), steps, 0.0)
    return float((0.5 * (power[1:] + power[:-1]) * steps).sum())


@dataclass
class Coverage:
    """Number of 95 % intervals that hold the truth, of all, and squared errors over variances."""

    inside: float = 0.0
    count: float = 0.0
    squares: float = 0.0

    def add(self, error: ArrayLike, std: ArrayLike, *, as_one: bool = False) -> None:
        """Count intervals of errors (stated minus true) and stated standard deviations.

        Those that are not finite do not count. All of a signal's samples are `as_one`
        interval.
        """
        off, spread = np.broadcast_arrays(
            np.asarray(error, float), np.asarray(std, float)
        )
        known = np.isfinite(off) & np.isfinite(spread)
        off = off[known]
        spread = spread[known]
        if not off.size:
            return
        weight = 1.0 / off.size if as_one else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations = np.where(off == 0.0, 0.0, off / spread)
        self.inside += weight * float((np.abs(off) <= HALF_WIDTH * spread).sum())
        self.count += weight * off.size
        self.squares += weight * float(np.square(deviations).sum())

    @property
    def share(self) -> float:
        """Share of the intervals that hold the truth, 0.95 where right; NaN without any."""
        return self.inside / self.count if self.count else float("nan")

    @property
    def rms(self) -> float:
        """RMS of errors over standard deviations, 1 where they are right; NaN without any."""
        return float(np.sqrt(self.squares / self.count)) if self.count else float("nan")


def median_and_worst(values: Sequence[float], digits: int = 1) -> str:
    """ "median (worst)" of absolute values; empty where none is known."""
    known = np.abs([value for value in values if np.isfinite(value)])
    if not known.size:
        return ""
    return f"{np.median(known):.{digits}f} ({known.max():.{digits}f})"


def number(value: float, form: str) -> str:
    """A figure as text; "-" where it is not known."""
    return format(value, form) if np.isfinite(value) else "-"
