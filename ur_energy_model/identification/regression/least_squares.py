"""Linear least squares with a prior, from Gram matrices of blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ur_energy_model.typing import Array

RCOND = 1e-12
"""Singular values below this share of the largest count as zero."""
_NORMAL_QUANTILE = 1.959964
_WEIGHTINGS = 5
_FOLDS = 8
_FINEST = 1e-4
"""Least noise of a measurement, as a share of its RMS. Exact data would outweigh the priors beyond
floating point precision, and what only a prior determines would be lost."""


@dataclass(frozen=True)
class Prior:
    """Normal prior of the coefficients.

    Attributes:
        mean: [p].
        std: [p]; infinite without prior knowledge.
        covariance: [p, p] with the squares of `std` on its diagonal; None if independent.
    """

    mean: Array
    std: Array
    covariance: Array | None = None

    @property
    def full_covariance(self) -> Array:
        """Covariance [p, p], diagonal if independent."""
        return np.diag(np.square(self.std)) if self.covariance is None else self.covariance

    @cached_property
    def precision(self) -> Array:
        """Inverse of the covariance [p, p]; zero without prior knowledge."""
        if self.covariance is None:
            return np.diag(1.0 / np.square(self.std))
        return pseudo_inverse(self.covariance)

    def extended(self, mean: float, std: float) -> Prior:
        """With another, independent coefficient at the end."""
        covariance = self.covariance
        if covariance is not None:
            p = len(self.mean)
            covariance = np.block(
                [[covariance, np.zeros((p, 1))], [np.zeros((1, p)), np.array([[std**2]])]]
            )
        return Prior(np.append(self.mean, mean), np.append(self.std, std), covariance)


@dataclass(frozen=True)
class Solution:
    """Coefficients of one fit.

    Attributes:
        coefficients: [p].
        covariance: [p, p], correlated residuals allowed for.
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

    Args:
        blocks: Gram matrices of [regressor, measurement] per block [blocks, p + 1, p + 1].
        prior: of the p coefficients.
        counts: number of samples per block [blocks].

    The covariance is the cluster-robust ("sandwich") one with the small-sample factor
    b / (b - 1) and the Student quantile for b blocks less the number of coefficients that the data
    (not the prior) determine, so that 1.96 standard deviations bound a 95 % interval.
    """
    used = counts > 0
    blocks, counts = blocks[used], counts[used]
    if not len(blocks):
        return prior_alone(prior)
    fit = _weighted(blocks, prior, counts)
    total = blocks.sum(axis=0)
    information = total[:-1, :-1]
    weight = fit.weight
    bread = pseudo_inverse(information * weight + prior.precision)
    meat = score_scatter(fit.scores) * weight**2
    if len(blocks) <= fit.freedom + 1:  # too few blocks to estimate scatter: use inflated noise
        meat = information * weight
    quantile = float(stdtrit(max(len(blocks) - fit.freedom, 1.0), 0.975))
    factor = (quantile / _NORMAL_QUANTILE) ** 2
    middle = meat * min(factor, 9.0) + prior.precision
    samples = float(counts.sum())
    return Solution(
        coefficients=fit.coefficients,
        covariance=_at_most(bread @ middle @ bread, prior),
        residual=float(np.sqrt(_squares(total, fit.coefficients) / samples)),
        samples=samples,
        effective_samples=samples / fit.inflation,
    )


class _Weighted(NamedTuple):
    """Least squares with the prior's weight found from the residuals.

    Attributes:
        coefficients: [p].
        scores: of the blocks [blocks, p].
        noise: variance of the residual.
        inflation: samples that count as one.
        freedom: coefficients that the data determine.
    """

    coefficients: Array
    scores: Array
    noise: float
    inflation: float
    freedom: float

    @property
    def weight(self) -> float:
        """Of the normal equations beside the prior."""
        return 1.0 / (self.noise * self.inflation)


def _weighted(blocks: Array, prior: Prior, counts: Array) -> _Weighted:
    """Coefficients, noise and inflation in turn."""
    p = blocks.shape[-1] - 1
    total = blocks.sum(axis=0)
    information = total[:p, :p]
    samples = float(counts.sum())
    least = max(_FINEST**2 * float(total[p, p]) / samples, 1e-18)
    fit = _Weighted(prior.mean, np.zeros((len(blocks), p)), 1.0, 1.0, 0.0)
    for _ in range(_WEIGHTINGS):
        weight = fit.weight
        coefficients = _coefficients(total, prior, weight)
        bread = pseudo_inverse(information * weight + prior.precision)
        freedom = float(np.sum(bread * information)) * weight
        noise = max(_squares(total, coefficients) / max(samples - freedom, 1.0), least)
        scores = blocks[:, :p, p] - blocks[:, :p, :p] @ coefficients
        inflation = _inflation(information, bread, scores, noise, freedom)
        fit = _Weighted(coefficients, scores, noise, inflation, freedom)
    return fit


def cross_validate(blocks: Array, prior: Prior, counts: Array) -> Array:
    """Held-out mean squared residual per fold of consecutive blocks [folds].

    Each fold is predicted from a fit to all others; blocks without samples are ignored.
    """
    used = counts > 0
    blocks, counts = blocks[used], counts[used]
    parts = np.array_split(np.arange(len(blocks)), min(_FOLDS, len(blocks)))
    total = blocks.sum(axis=0)
    fit = _weighted(blocks, prior, counts)
    residual = _squares(total, fit.coefficients) / counts.sum()
    weight = 1.0 / (fit.inflation * max(residual, 1e-30))
    out = []
    for part in parts:
        held_out = blocks[part].sum(axis=0)
        coefficients = _coefficients(total - held_out, prior, weight)
        out.append(_squares(held_out, coefficients) / counts[part].sum())
    return np.array(out)


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
    return np.asarray((bounded * np.minimum(shares, 1.0)) @ bounded.T * np.outer(scale, scale))


def _coefficients(gram: Array, prior: Prior, weight: float) -> Array:
    """Coefficients [p] of the normal equations with a prior."""
    p = gram.shape[-1] - 1
    left = gram[:p, :p] * weight + prior.precision
    right = gram[:p, p] * weight + prior.precision @ prior.mean
    return solve_normal_equations(left, right)


def _squares(gram: Array, coefficients: Array) -> float:
    """Sum of squared residuals."""
    full = np.append(-coefficients, 1.0)
    return max(float(full @ gram @ full), 0.0)


def _inflation(
    information: Array, bread: Array, scores: Array, noise: float, freedom: float
) -> float:
    """Samples that count as one: variance of block scores over that with white residuals.

    Directions are weighted by how far the data, not the prior, determine them.
    """
    if len(scores) <= freedom + 1:
        return 25.0
    white = noise * float(np.sum(bread * information))
    return float(max(np.sum(bread * score_scatter(scores)) / max(white, 1e-30), 1.0))


def solve_normal_equations(matrix: Array, right: Array, rcond: float = RCOND) -> Array:
    """Solution [p] of smallest norm of matrix [p, p] @ x = right [p], in scaled unknowns."""
    scale, scaled = _scaled(matrix)
    return np.asarray(np.linalg.lstsq(scaled, right / scale, rcond=rcond)[0] / scale)


def pseudo_inverse(matrix: Array, rcond: float = RCOND) -> Array:
    """Pseudo-inverse [p, p] of a symmetric matrix, taken in scaled unknowns."""
    scale, scaled = _scaled(matrix)
    inverse = np.linalg.pinv(scaled, rcond=rcond, hermitian=True)
    return np.asarray(inverse / np.outer(scale, scale))


def score_scatter(scores: Array) -> Array:
    """Covariance [p, p] of the sum of the scores of independent blocks [blocks, p].

    The middle of a cluster-robust ("sandwich") covariance.
    """
    count = len(scores)
    centred = scores - scores.mean(axis=0)
    return np.asarray(centred.T @ centred * (count / max(count - 1, 1)))


def _scaled(matrix: Array) -> tuple[Array, Array]:
    """Roots of the diagonal [p], and the matrix with ones on its diagonal."""
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return scale, matrix / np.outer(scale, scale)
