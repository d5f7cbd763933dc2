# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Linear least squares with a prior, from Gram matrices of blocks of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.typing import Array, Indices, Mask

RCOND = 1e-12  # singular values below this share of the largest count as zero
_UPPER = 0.975  # probability below the upper end of a 95 % interval
_NORMAL_QUANTILE = 1.959964  # half a 95 % interval of a normal distribution
_MOST_WIDENING = 9.0  # largest factor on a variance by Student's distribution
_WEIGHTINGS = 5  # rounds of the prior's weight
_FOLDS = 8  # folds of a cross-validation
_MOST_INFLATION = 25.0  # samples that count as one where blocks are too few to show it
_FINEST = 1e-4
"""Least noise of a measurement, as a share of its RMS. Exact data would outweigh the
priors beyond floating point precision, and what only a prior determines would be lost."""


@dataclass(frozen=True)
class Prior:
    """Normal prior of the coefficients.

    Attributes:
        mean: means [p].
        std: standard deviations [p]; infinite without prior knowledge.
        covariance: covariance [p, p], whose diagonal has the squares of `std`; None if
            independent.
    """

    mean: Array
    std: Array
    covariance: Array | None = None

    @property
    def full_covariance(self) -> Array:
        """Covariance [p, p], diagonal if independent."""
        if self.covariance is None:
            return np.diag(np.square(self.std))
        return self.covariance

    @cached_property
    def precision(self) -> Array:
        """Inverse of the covariance [p, p]; zero without prior knowledge."""
        if self.covariance is None:
            return np.diag(1.0 / np.square(self.std))
        return pseudo_inverse(self.covariance)

    def extended(self, mean: float, std: float) -> Prior:
        """The prior with another, independent coefficient at the end.

        Args:
            mean: mean of this coefficient.
            std: standard deviation of this coefficient.
        """
        covariance = None
        if self.covariance is not None:
            p = len(self.mean)
            covariance = np.zeros((p + 1, p + 1))
            covariance[:p, :p] = self.covariance
            covariance[p, p] = std**2
        return Prior(np.append(self.mean, mean), np.append(self.std, std), covariance)


@dataclass(frozen=True)
class Solution:
    """Coefficients of one fit.

    Attributes:
        coefficients: coefficients of the solution [p].
        covariance: covariance [p, p], correlated residuals allowed for.
        residual: RMS of the residual.
        samples: number of samples.
        effective_samples: number of independent samples that carry the same information.
    """

    coefficients: Array
    covariance: Array
    residual: float
    samples: float
    effective_samples: float

    @property
    def std(self) -> Array:
        """Standard deviations [p]."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def prior_alone(prior: Prior) -> Solution:
    """What is known without data."""
    return Solution(prior.mean, prior.full_covariance, float("nan"), 0.0, 0.0)


def solve(blocks: Array, prior: Prior, counts: Array) -> Solution:
    """Least squares with a prior, and a covariance from the scatter between blocks.

    The covariance is the cluster-robust ("sandwich") one with the small-sample factor b /
    (b - 1) and the Student quantile for b blocks less the number of coefficients that the
    data (not the prior) determine, so that 1.96 standard deviations bound a 95 %
    interval.

    Args:
        blocks: Gram matrices of [regressor, measurement] per block [blocks, p + 1, p +
            1].
        prior: prior of the p coefficients.
        counts: number of samples per block [blocks].
    """
    used = counts > 0
    blocks = blocks[used]
    counts = counts[used]
    if not len(blocks):
        return prior_alone(prior)
    fit = _weighted(blocks, prior, counts)
    total = blocks.sum(axis=0)
    samples = float(counts.sum())
    information = total[:-1, :-1] * fit.weight
    bread = pseudo_inverse(information + prior.precision)
    # Too few blocks to estimate scatter: the inflated noise instead.
    enough = len(blocks) > fit.freedom + 1
    meat = score_scatter(fit.scores) * fit.weight**2 if enough else information
    quantile = float(stdtrit(max(len(blocks) - fit.freedom, 1.0), _UPPER))
    widening = min((quantile / _NORMAL_QUANTILE) ** 2, _MOST_WIDENING)
    middle = meat * widening + prior.precision
    return Solution(
        coefficients=fit.coefficients,
        covariance=_at_most(bread @ middle @ bread, prior),
        residual=float(np.sqrt(_squares(total, fit.coefficients) / samples)),
        samples=samples,
        effective_samples=samples / fit.inflation,
    )


class _WeightedFit(NamedTuple):
    """Least squares beside a prior, with the weight that the residuals give the data.

    Attributes:
        coefficients: coefficients of the solution [p].
        weight: weight of the normal equations beside the prior.
        inflation: number of samples that count as one.
        freedom: number of coefficients that the data, not the prior, determine.
        scores: gradients of the blocks [blocks, p].
    """

    coefficients: Array
    weight: float
    inflation: float
    freedom: float
    scores: Array


def _weighted(blocks: Array, prior: Prior, counts: Array) -> _WeightedFit:
    """Least squares with the prior's weight found from the residuals, in turn.

    Args:
        blocks: blocks as in `solve`, with samples in each.
        prior: prior of the p coefficients.
        counts: number of samples per block [blocks].
    """
    p = blocks.shape[-1] - 1
    total = blocks.sum(axis=0)
    samples = float(counts.sum())
    information = total[:p, :p]
    least = max(_FINEST**2 * float(total[p, p]) / samples, 1e-18)
    coefficients = prior.mean
    scores = np.zeros((len(blocks), p))
    noise = 1.0
    inflation = 1.0
    freedom = 0.0
    for _ in range(_WEIGHTINGS):
        weight = 1.0 / (noise * inflation)
        coefficients, bread = _coefficients(total, prior, weight)
        determined = float(np.sum(bread * information))
        freedom = determined * weight
        mean_square = float(_squares(total, coefficients)) / max(samples - freedom, 1.0)
        noise = max(mean_square, least)
        scores = blocks[:, :p, p] - blocks[:, :p, :p] @ coefficients
        # Variance of the block scores over their variance with white residuals; directions
        # are weighted by how far the data, not the prior, determine them.
        inflation = _MOST_INFLATION
        if len(scores) > freedom + 1:
            white = max(noise * determined, 1e-30)
            inflation = float(max(np.sum(bread * score_scatter(scores)) / white, 1.0))
    return _WeightedFit(
        coefficients, 1.0 / (noise * inflation), inflation, freedom, scores
    )


def cross_validate(blocks: Array, prior: Prior, counts: Array) -> Array:
    """Held-out mean squared residual per fold of consecutive blocks [folds].

    Each fold is predicted from a fit to all others; blocks without samples are ignored.
    For the arguments see `solve`.
    """
    used = counts > 0
    blocks = blocks[used]
    counts = counts[used]
    fit = _weighted(blocks, prior, counts)
    total = blocks.sum(axis=0)
    residual = float(_squares(total, fit.coefficients)) / counts.sum()
    weight = 1.0 / (fit.inflation * max(residual, 1e-30))
    folds = fold_blocks(len(blocks))
    held_out = np.array([blocks[fold].sum(axis=0) for fold in folds])
    found, _ = _coefficients(total - held_out, prior, weight)
    samples = np.array([counts[fold].sum() for fold in folds])
    return np.asarray(_squares(held_out, found) / samples)


def fold_blocks(count: int) -> list[Indices]:
    """Indices of the blocks of each fold, of consecutive blocks."""
    return np.array_split(np.arange(count), min(_FOLDS, count))


def _at_most(covariance: Array, prior: Prior) -> Array:
    """The covariance [p, p], in no direction wider than the prior's: data do not remove knowledge.

    Scatter between few blocks may suggest otherwise.
    """
    if not np.isfinite(prior.std).all():
        return covariance
    own = prior.full_covariance
    scale = np.where(prior.std > 0, prior.std, 1.0)
    values, vectors = np.linalg.eigh(own / np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 1e-12))
    back = np.linalg.pinv(root)
    shares, axes = np.linalg.eigh(back @ (covariance / np.outer(scale, scale)) @ back.T)
    if shares.max(initial=0.0) <= 1.0:
        return covariance
    bounded = root @ axes
    return np.asarray(
        (bounded * np.minimum(shares, 1.0)) @ bounded.T * np.outer(scale, scale)
    )


def _coefficients(gram: Array, prior: Prior, weight: float) -> tuple[Array, Array]:
    """Coefficients [..., p] of normal equations with a prior, and their inverse [..., p, p].

    Args:
        gram: Gram matrices of [regressor, measurement] [..., p + 1, p + 1].
        prior: prior of the coefficients.
        weight: weight of the normal equations beside the prior.
    """
    inverse = pseudo_inverse(gram[..., :-1, :-1] * weight + prior.precision)
    right = gram[..., :-1, -1] * weight + prior.precision @ prior.mean
    return (inverse @ right[..., None])[..., 0], inverse


def _squares(gram: Array, coefficients: Array) -> Array:
    """Sums of squared residuals [...].

    Args:
        gram: Gram matrices of [regressor, measurement] [..., p + 1, p + 1].
        coefficients: coefficients [..., p].
    """
    one = np.ones((*coefficients.shape[:-1], 1))
    full = np.concatenate([-coefficients, one], axis=-1)
    squares = np.einsum("...i,...ij,...j->...", full, gram, full)
    return np.asarray(np.maximum(squares, 0.0))


def solve_normal_equations(matrix: Array, right: Array, rcond: float = RCOND) -> Array:
    """Solutions [..., p] of matrix [..., p, p] @ x = right [..., p], see `pseudo_inverse`."""
    return np.asarray((pseudo_inverse(matrix, rcond) @ right[..., None])[..., 0])


def pseudo_inverse(matrix: Array, rcond: float = RCOND) -> Array:
    """Pseudo-inverse [..., p, p] of symmetric matrices, taken in units that make the diagonal 1.

    Args:
        matrix: matrix [..., p, p].
        rcond: directions with less than this part of the largest eigenvalue count as
            undetermined.
    """
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    units = unit[..., :, None] * unit[..., None, :]
    values, vectors = np.linalg.eigh(matrix / units)
    size = np.abs(values)
    seen = size > rcond * size.max(axis=-1, initial=0.0, keepdims=True)
    shares = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    inverse = (vectors * shares[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.asarray(inverse / units)


def score_scatter(scores: Array) -> Array:
    """Covariance [p, p] of the sum of the scores of independent blocks [blocks, p].

    The middle of a cluster-robust ("sandwich") covariance.
    """
    count = len(scores)
    centred = scores - scores.mean(axis=0)
    return np.asarray(centred.T @ centred * (count / max(count - 1, 1)))


# Gram matrices accumulated in a bounded number of blocks of time. A Gram matrix of
# [regressor, measurement] holds all that linear least squares needs of any number of
# samples. Kept per block of time, the matrices also give blocked cross-validation and
# standard deviations that allow for correlated residuals (blocks count as independent,
# not samples). When there are too many blocks, neighbours are merged, so memory stays
# constant.

MAX_BLOCKS = 64  # blocks above which neighbours are merged
SMALLEST_BLOCK = 1.0  # shortest block [s]

_BLOCK = 2.0  # duration of a block [s]
_CLOSED = 1e300
"""Time in a block to which nothing is added any more [s]; finite, for files."""


@dataclass
class BlockedGram:
    """Gram matrices [..., c, c] per block of time; the last column is the measurement.

    Attributes:
        most: number of blocks above which neighbours are merged.
        length: length of a block [s].
        open: time in the last block so far [s].
        blocks: Gram matrices [blocks, ..., c, c].
    """

    most: int = MAX_BLOCKS
    length: float = SMALLEST_BLOCK
    open: float = _CLOSED
    blocks: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self._room = np.empty(0)  # array of which `blocks` is the beginning

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_room": np.empty(0)}

    def accumulate(self, gram: Array, duration: float) -> None:
        """Add the Gram matrix of `duration` seconds that follow those added before."""
        if len(self) and self.open < self.length:
            self.blocks[-1] += gram
            self.open += duration
            return
        count = len(self)
        if self.blocks.base is not self._room:
            room = np.empty((self.most + 1, *gram.shape))
            room[:count] = self.blocks if count else 0.0
            self._room = room
        self._room[count] = gram
        self.blocks = self._room[: count + 1]
        self.open = duration
        self._merge_neighbours()

    def merge(self, other: BlockedGram) -> None:
        """Append the blocks of another accumulator, such as one of another recording."""
        if not len(self):
            self.blocks = other.blocks.copy()
        elif len(other):
            self.blocks = np.concatenate([self.blocks, other.blocks])
        self.length = max(self.length, other.length)
        self.open = _CLOSED
        self._merge_neighbours()

    def transformed(self, matrix: Array) -> BlockedGram:
        """Blocks of other columns: these columns times a matrix [..., c, d]."""
        if not len(self):
            return replace(self)
        return replace(self, blocks=np.swapaxes(matrix, -1, -2) @ self.blocks @ matrix)

    def __len__(self) -> int:
        return len(self.blocks)

    def _merge_neighbours(self) -> None:
        """Merge pairs of blocks while there are too many."""
        while len(self) > self.most:
            pairs = self.blocks[:-1:2] + self.blocks[1::2]
            odd = self.blocks[2 * len(pairs) :]
            self.blocks = np.concatenate([pairs, odd])
            self.length = 2 * self.length


def gram_matrices_by_joint(rows: Array) -> Array:
    """Gram matrices [n, k, k] of the rows of each joint [samples, n, k]."""
    by_joint = np.ascontiguousarray(np.swapaxes(rows, 0, 1))
    return np.asarray(np.swapaxes(by_joint, 1, 2) @ by_joint)


def joint_gram_matrices(
    motion: FilteredMotion,
    rows: Array,
    narrow: ParallelFilter | None,
    *,
    moving_only: bool,
) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, k + 1, k + 1] of [rows, 1] and their durations [s], block by block.

    The arguments are those of `filtered_rows`.
    """
    time, rows, used = filtered_rows(motion, rows, narrow, moving_only=moving_only)
    if len(time):
        ones = np.ones((*rows.shape[:2], 1))
        yield from masked_gram_matrices(time, np.concatenate([rows, ones], axis=2), used)


def filtered_rows(
    motion: FilteredMotion,
    rows: Array,
    narrow: ParallelFilter | None,
    *,
    moving_only: bool,
) -> tuple[Array, Array, Mask]:
    """Rows of a linear model as they enter a fit.

    Args:
        motion: motion without gaps.
        rows: rows of the motion's samples: columns of a linear model and its measurement
            [samples, n, k].
        narrow: filter for the rows; None for none.
        moving_only: whether samples below MOVING_SPEED, where friction takes any value,
            are left out.

    Returns:
        Times of the samples that are out of reach of the ends of the filter [m], s, their
        rows [m, n, k], and which of them the fit uses [m, n].
    """
    used = np.abs(motion.qd) > MOVING_SPEED
    time = motion.time
    if narrow is not None:
        inside = narrow.inside(motion)
        used = narrow.moving(motion, MOVING_SPEED)
        rows = narrow(motion, rows)[inside]
        used = used[inside]
        time = time[inside]
    if not moving_only:
        used = np.ones_like(used)
    return time, rows, used


def masked_gram_matrices(
    time: Array, rows: Array, used: Mask
) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, k, k] of rows and their durations [s], block by block.

    Args:
        time: times [samples], s.
        rows: rows [samples, n, k].
        used: samples of each joint that count [samples, n].
    """
    whole = rows * used[:, :, None]
    for block in time_blocks(time, _BLOCK, time[0]):
        if used[block].any():
            duration = float(time[block][-1] - time[block][0])
            yield gram_matrices_by_joint(whole[block]), duration


# Independent columns of a matrix with dependent columns, the same on every processor. QR
# with column pivoting (Businger and Golub, Numer. Math. 7, 1965; Golub and Van Loan,
# Matrix Computations, sec. 5.4.2) takes the column with the largest remainder at every
# step. Columns of a regressor that differ in sign or not at all have equally large
# remainders, and rounding, which differs between processors, would choose among them.
# Here remainders within one millionth of the largest count as equal, and the first in
# column order is taken.

TIE = 1e-6  # remainders that differ by less than this part of the largest count as equal
_DEPENDENT = 1e-8  # longest remainder of a dependent column of length 1
_ROUNDING = 1e-12  # length of a column of rounding errors over the length of the longest


def pivoted_columns(matrix: Array, rank: int) -> Indices:
    """Indices [rank] of independent columns of a matrix, in the order of choice.

    Each has the largest remainder after projecting out those before; larger columns are
    preferred.

    Args:
        matrix: matrix [rows, columns].
        rank: number of independent columns.
    """
    rest = np.array(matrix, dtype=float)
    chosen = np.empty(rank, dtype=np.intp)
    for step in range(rank):
        remainder = np.linalg.norm(rest, axis=0)
        chosen[step] = np.flatnonzero(remainder >= (1 - TIE) * remainder.max())[0]
        _project_out(rest, chosen[step])
    return chosen


def first_independent_columns(matrix: Array, dependent: float = _DEPENDENT) -> Indices:
    """Indices of the columns that do not depend on those before them, ascending.

    Args:
        matrix: matrix [rows, columns], scaled to columns of length 1 before they are compared.
        dependent: the longest remainder of such a column that counts as none.
    """
    length = np.linalg.norm(matrix, axis=0)
    # A column of rounding errors, such as that of a turned tensor, is zero.
    is_zero = length <= _ROUNDING * length.max(initial=0.0)
    rest = np.where(is_zero, 0.0, matrix) / np.where(is_zero, 1.0, length)
    kept: list[int] = []
    for column in range(matrix.shape[1]):
        if np.linalg.norm(rest[:, column]) > dependent:
            kept.append(column)
            _project_out(rest, column)
    return np.array(kept, dtype=np.intp)


def _project_out(rest: Array, column: int) -> None:
    """Project one column out of all columns, in place (modified Gram-Schmidt)."""
    direction = rest[:, column] / np.linalg.norm(rest[:, column])
    rest -= np.outer(direction, direction @ rest)
    rest[:, column] = 0.0
