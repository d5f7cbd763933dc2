"""Normal equations of least squares, scaled so that columns of any unit weigh alike."""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array

RCOND = 1e-12
"""Singular values below this share of the largest count as zero."""


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
