"""Symmetric matrices of unknowns common to all setups and of unknowns of one setup each.

Unknowns of different setups never occur in one residual, so that information matrix and scatter
of scores have the form of an arrow: time and memory grow in proportion to the number of setups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class ArrowMatrix:
    """A symmetric matrix of m common unknowns, followed by c unknowns of each of s setups.

    Attributes:
        common: [m, m].
        border: common with own unknowns [s, m, c].
        own: of each setup [s, c, c].
    """

    common: Array
    border: Array
    own: Array

    @classmethod
    def zeros(cls, common: int, setups: int, own: int) -> ArrowMatrix:
        """Matrix of zeros."""
        return cls(
            np.zeros((common, common)),
            np.zeros((setups, common, own)),
            np.zeros((setups, own, own)),
        )

    def add(self, index: int, matrix: Array) -> None:
        """Add a matrix [m + c, m + c] of the common unknowns and those of one setup."""
        m = len(self.common)
        self.common[...] += matrix[:m, :m]
        self.border[index] += matrix[:m, m:]
        self.own[index] += matrix[m:, m:]

    def add_diagonal(self, values: Array) -> None:
        """Add to the diagonal [m + s c]."""
        common, own = self._split(values)
        self.common[np.diag_indices_from(self.common)] += common
        places = np.arange(own.shape[1])
        self.own[:, places, places] += own

    @property
    def diagonal(self) -> Array:
        """[m + s c]."""
        own = np.diagonal(self.own, axis1=1, axis2=2)
        return np.concatenate([np.diag(self.common), own.ravel()])

    def copy(self) -> ArrowMatrix:
        """Independent matrix with the same values."""
        return ArrowMatrix(self.common.copy(), self.border.copy(), self.own.copy())

    @property
    def common_inverse(self) -> Array:
        """Common part [m, m] of the inverse."""
        return np.asarray(np.linalg.inv(self._complement(self._coupling())))

    def solve(self, right: Array) -> Array:
        """X [m + s c] with matrix @ x = right."""
        common, own = self._split(right)
        coupling = self._coupling()
        rest = common - np.einsum("smc,sc->m", np.swapaxes(coupling, 1, 2), own)
        first = np.linalg.solve(self._complement(coupling), rest)
        second = np.linalg.solve(self.own, own[:, :, None])[:, :, 0] - coupling @ first
        return np.concatenate([first, second.ravel()])

    def sandwich(self, middle: ArrowMatrix) -> Array:
        """Diagonal [m + s c] of inverse @ middle @ inverse."""
        coupling = self._coupling()
        inverse = np.linalg.inv(self._complement(coupling))
        mixed = middle.border - np.swapaxes(coupling, 1, 2) @ middle.own
        # scatter of the common scores once the setups' own unknowns are eliminated
        reduced = middle.common - (
            middle.border @ coupling + np.swapaxes(mixed @ coupling, 1, 2)
        ).sum(axis=0)
        outer = inverse @ reduced @ inverse
        own = np.linalg.inv(self.own)
        seen = -coupling @ inverse
        cross = seen @ mixed @ own
        variance = coupling @ outer @ np.swapaxes(coupling, 1, 2)
        variance = variance + cross + np.swapaxes(cross, 1, 2) + own @ middle.own @ own
        return np.concatenate([np.diag(outer), np.diagonal(variance, axis1=1, axis2=2).ravel()])

    def _coupling(self) -> Array:
        """Own unknowns that each common one brings with it, own^-1 border' [s, c, m]."""
        return np.asarray(np.linalg.solve(self.own, np.swapaxes(self.border, 1, 2)))

    def _complement(self, coupling: Array) -> Array:
        """Schur complement of the own parts [m, m]."""
        return np.asarray(self.common - (self.border @ coupling).sum(axis=0))

    def _split(self, values: Array) -> tuple[Array, Array]:
        m = len(self.common)
        return values[:m], values[m:].reshape(len(self.own), -1)
