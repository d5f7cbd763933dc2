"""Gram matrices of target_moment, gathered from the stretches that share one setup."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.identification.dynamics.reference_blocks import ReferenceBlock
from ur_energy_model.identification.dynamics.stated_setup import StatedSetup
from ur_energy_model.identification.regression.gram_matrices import (
    BlockedGram,
    gram_matrices_by_joint,
)
from ur_energy_model.typing import Array, Mask

_STEADY = 0.01
"""Joints that travel less do not identify an inertia [rad]."""
_TORQUE, _ONE = -4, -1
"""Columns of the torque, before its two derivatives, and of the constant."""


@dataclass
class TorqueInformation:
    """Gram matrices of the stretches that share one setup, per block of time.

    The columns are those of a ReferenceBlock, their slopes, the torque with its slope and curve,
    and a constant.

    Attributes:
        source: bag or file.
        stated: mounting and payload as stated.
        kind: of the reference motion, "target" or "actual".
        nominal_delay: of target_moment, already compensated [s].
        samples: number of samples.
        grams: Gram matrices [n, k, k] per block.
    """

    source: str
    stated: StatedSetup
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    grams: BlockedGram = field(default_factory=BlockedGram)
    _low: Array | None = None
    _high: Array | None = None
    _total: Array | None = None

    def accumulate(self, block: ReferenceBlock) -> None:
        """Add a block of samples."""
        if not len(block.torque):
            return
        torque = np.stack([block.torque, block.torque_slope, block.torque_curve], axis=2)
        ones = np.ones((*block.torque.shape, 1))
        rows = np.concatenate([block.columns, block.column_slopes, torque, ones], axis=2)
        self.grams.accumulate(gram_matrices_by_joint(rows), block.duration)
        self.kind, self.nominal_delay = block.kind, block.nominal_delay
        self.samples += len(block.torque)
        low, high = block.position.min(axis=0), block.position.max(axis=0)
        self._low = low if self._low is None else np.minimum(self._low, low)
        self._high = high if self._high is None else np.maximum(self._high, high)
        self._total = None

    @property
    def gram(self) -> Array:
        """Sum over all blocks [n, k, k]."""
        if self._total is None:
            self._total = np.asarray(self.grams.blocks.sum(axis=0))
        return self._total

    @property
    def torque_spread(self) -> Array:
        """Sum of squared deviations of the torque from its mean [n], (N m)^2."""
        gram = self.gram
        total = gram[:, _TORQUE, _TORQUE] - gram[:, _TORQUE, _ONE] ** 2 / self.samples
        return np.asarray(np.maximum(total, 0.0))

    @property
    def moved(self) -> Mask:
        """Joints [n] that moved."""
        if self._low is None or self._high is None:
            raise ValueError("no samples yet")
        return np.asarray(self._high - self._low > _STEADY)


def residual_coefficients(coefficients: Array, delay: float) -> Array:
    """Coefficients [k] of the Gram matrix's columns whose product is the torque residual.

    Args:
        coefficients: of the torque columns [width].
        delay: of target_moment on top of the nominal one [s].
    """
    torque = -np.array([1.0, delay, 0.5 * delay**2])
    return np.concatenate([coefficients, delay * coefficients, torque, [0.0]])
