"""Made-up regression data and its Gram matrices."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from ur_energy_model.identification.least_squares import BlockedGram, Prior

FLAT = Prior(np.zeros(2), np.full(2, np.inf))
TRUTH = np.array([3.0, -2.0])


def data(seed: int, samples: int = 3000, correlation: float = 0.0) -> np.ndarray:
    """Slow regressors, correlated noise: [regressors, measurement]."""
    random = np.random.default_rng(seed)
    time = np.arange(samples) * 0.01
    phase = random.uniform(0, 2 * np.pi, 2)
    columns = np.column_stack([np.sin(1.7 * time + phase[0]), np.sin(2.9 * time + phase[1])])
    noise = lfilter([1.0], [1.0, -correlation], random.standard_normal(samples))
    return np.column_stack([columns, columns @ TRUTH + noise])


def accumulated(rows: np.ndarray, step: int = 50) -> tuple[BlockedGram, BlockedGram]:
    gram, counts = BlockedGram(), BlockedGram()
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        gram.accumulate(piece.T @ piece, len(piece) * 0.01)
        counts.accumulate(np.asarray(float(len(piece))), len(piece) * 0.01)
    return gram, counts
