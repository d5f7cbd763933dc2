# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of the wall: from a power meter's readings to control box and supply.

The readings of any number of recordings are compared with the power at the supply
(energy/wall.py). Box and supply are then linear least squares with the generic wall as
prior, so that a state the recordings do not show, or a square they do not, keeps what is
known of any cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from ur_energy_model.consistency.meter_readings import (
    FINE,
    READING,
    SHIFT,
    Compared,
    best_pair,
    rounding,
)
from ur_energy_model.consistency.wall_meter import WallMeterCheck
from ur_energy_model.energy.meter import StepRule
from ur_energy_model.energy.wall import meter_samples
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    Prior,
    fold_blocks,
    solve,
)
from ur_energy_model.model.wall import (
    MEASURED,
    SQUARE,
    SUPPLY,
    TERMS,
    WallModel,
    generic_wall,
    wall_from_vector,
)
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

FEWEST = 30
"""Least number of readings of a fit: a few blocks of time, from whose scatter intervals
follow."""


class WallFit:
    """A meter's readings of a recording, and of others that are merged; fits the wall to them."""

    def __init__(self) -> None:
        self._gram = BlockedGram()
        self._counts = BlockedGram()
        self._resolution = np.inf
        self._check = WallMeterCheck()
        self._gaps = StepRule()

    def accumulate(self, batch: Telemetry) -> None:
        """Add samples that follow those before; without meter or bus power they are ignored."""
        samples = meter_samples(batch, self._gaps)
        if samples is not None:
            self._add(self._check.add(*samples))

    def finish(self) -> None:
        """End the recording."""
        self._add(self._check.finish())
        self._resolution = min(self._resolution, self._check.resolution)

    def usable(self, generation: str) -> bool:
        """Whether the meter of the recording can be right, for a controller of this generation."""
        return self._check.verdict(generic_wall(generation), "").usable

    def _add(self, found: list[Compared]) -> None:
        """Add compared readings."""
        for each in found:
            self._gram.accumulate(each.gram, each.seconds)
            self._counts.accumulate(np.asarray(float(each.readings)), each.seconds)

    def merge(self, other: WallFit) -> None:
        """Include the readings of another recording."""
        self._gram.merge(other._gram)
        self._counts.merge(other._counts)
        self._resolution = min(self._resolution, other._resolution)

    def fit(self, generation: str) -> WallModel | None:
        """The wall of a controller of this generation; None with too few readings.

        Args:
            generation: "e-series", "cb3" or "other".
        """
        counts = self._counts.blocks
        if counts.sum() < FEWEST:
            return None
        pair, _ = best_pair(self._gram.blocks.sum(axis=0))
        blocks = self._gram.blocks[:, pair]
        known = generic_wall(generation)
        of_terms = Prior(known.coefficients, known.std, known.covariance)
        prior = of_terms.extended(0.0, FINE.step)  # prior of the shift of the delay [s]
        naive = solve(blocks, prior, counts)
        found = solve(_without_jitter(blocks, naive.coefficients), prior, counts)
        own = found.coefficients[:TERMS]
        covariance = found.covariance[:TERMS, :TERMS]
        # The scatter may also come from the wall itself; the correction is then wrong.
        change = own - naive.coefficients[:TERMS]
        covariance = covariance + np.outer(change, change)
        # Readings of equal loads are rounded alike, which no scatter shows.
        covariance[:SUPPLY, :SUPPLY] += rounding(self._resolution) ** 2
        return wall_from_vector(
            own,
            covariance,
            MEASURED,
            held_out_error_percent=_held_out_error(blocks, prior, counts),
            delay=float(FINE.delay[pair] + found.coefficients[SHIFT] / own[SUPPLY]),
            averaging=float(FINE.averaging[pair]),
            resolution=self._resolution if np.isfinite(self._resolution) else 0.0,
        )


def fit_wall(recordings: Sequence[WallFit], generation: str) -> WallModel | None:
    """The wall of one cell from several recordings, see `WallFit.fit`.

    Recordings whose meter cannot be right are left out.

    Args:
        recordings: readings of a meter beside bus power.
        generation: generation of the controller: "e-series", "cb3" or "other".
    """
    total = WallFit()
    for each in recordings:
        if each.usable(generation):
            total.merge(each)
    return total.fit(generation)


def _without_jitter(blocks: Array, coefficients: Array) -> Array:
    """Blocks without the variance that irregular delays of the readings add to the power's means.

    With this variance slopes come out too small (errors in variables; Fuller, Measurement
    Error Models, 1987, section 1.3). Residuals grow with the changes of the power by the
    variance of the delay; noise of the readings does not depend on these changes.

    Args:
        blocks: Gram matrices of the readings per block of time.
        coefficients: coefficients of a first fit to them.
    """
    change = blocks[:, SHIFT, SHIFT]  # squared change of the means per second of delay
    left = np.append(coefficients, -1.0)
    slope = coefficients[SUPPLY]
    time = blocks[:, :SUPPLY, :SUPPLY].sum(axis=(1, 2))
    squares = np.einsum("i,bij,j->b", left, blocks, left)
    kinds = np.column_stack([time, slope**2 * change]) / time[:, None]
    (_, delay), _ = nnls(kinds, np.maximum(squares, 0.0) / time)  # variances, W^2 and s^2
    noise = delay * change
    out = np.array(blocks)
    mean = blocks[:, :SUPPLY, SUPPLY].sum(axis=1) / np.maximum(time, 1e-30)
    out[:, SUPPLY, SUPPLY] -= noise
    out[:, SUPPLY, SQUARE] -= 2.0 * mean * noise
    out[:, SQUARE, SUPPLY] -= 2.0 * mean * noise
    out[:, SQUARE, SQUARE] -= 4.0 * mean**2 * noise
    return out


def _held_out_error(blocks: Array, prior: Prior, counts: Array) -> float:
    """RMS relative error of the energy of consecutive blocks that a fit to all others gives [%]."""
    errors = []
    for fold in fold_blocks(len(blocks)):
        others = np.ones(len(blocks), dtype=bool)
        others[fold] = False
        found = solve(blocks[others], prior, counts[others])
        # The states cover all of the time: their rows sum to the integrals over time.
        sums = blocks[fold][:, :SUPPLY].sum(axis=(0, 1))
        modelled = sums[:READING] @ found.coefficients
        errors.append(modelled / sums[READING] - 1.0)
    return 100.0 * float(np.sqrt(np.square(errors).mean()))
