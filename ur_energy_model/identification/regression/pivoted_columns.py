"""Independent columns of a matrix with dependent columns, the same on every processor.

QR with column pivoting (Businger and Golub, Numer. Math. 7, 1965; Golub and Van Loan, Matrix
Computations, sec. 5.4.2) takes the column with the largest remainder at every step. Columns of a
regressor that differ in sign or not at all have equally large remainders, and rounding, which
differs between processors, would choose among them. Here remainders within one millionth of the
largest count as equal, and the first in column order is taken.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array, Indices

TIE = 1e-6
"""Remainders that differ by less than this part of the largest count as equal."""
_DEPENDENT = 1e-8


def pivoted_columns(matrix: Array, rank: int) -> Indices:
    """Independent columns, each with the largest remainder after projecting out those before.

    Args:
        matrix: [rows, columns]; larger columns are preferred.
        rank: number of columns to choose, at most the rank of the matrix.

    Returns:
        Column indices [rank] in the order of choice.
    """
    rest = np.array(matrix, dtype=float)
    chosen = np.empty(rank, dtype=np.intp)
    for step in range(rank):
        remainder = np.linalg.norm(rest, axis=0)
        chosen[step] = np.flatnonzero(remainder >= (1 - TIE) * remainder.max())[0]
        _project_out(rest, chosen[step])
    return chosen


def first_independent_columns(matrix: Array) -> Indices:
    """Indices of the columns that do not depend on those before them, ascending.

    Args:
        matrix: [rows, columns], scaled to columns of length 1 before they are compared.
    """
    length = np.linalg.norm(matrix, axis=0)
    rest = matrix / np.where(length > 0, length, 1.0)
    kept: list[int] = []
    for column in range(matrix.shape[1]):
        if np.linalg.norm(rest[:, column]) > _DEPENDENT:
            kept.append(column)
            _project_out(rest, column)
    return np.array(kept, dtype=np.intp)


def _project_out(rest: Array, column: int) -> None:
    """Project one column out of all columns, in place (modified Gram-Schmidt)."""
    direction = rest[:, column] / np.linalg.norm(rest[:, column])
    rest -= np.outer(direction, direction @ rest)
    rest[:, column] = 0.0
