"""Friction scales of several sessions.

Recordings of different days share an arm's torque constants and the form of its friction, but not
its level. A fit to several sessions therefore gives each a friction scale per joint, alternating
between parameters for given scales and scales for given parameters. Scales are relative to the mean
of the sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.regression.least_squares import Prior, Solution, solve
from ur_energy_model.typing import Array, Mask

_ROUNDS = 4
_WIDEST = 0.3
"""Prior standard deviation of the scales."""
_BOUNDS = (0.2, 5.0)


@dataclass(frozen=True)
class SessionBlocks:
    """Gram matrices of one joint in one session.

    Attributes:
        blocks: of [regressor, measurement] per block of time [blocks, p + 1, p + 1].
        counts: number of samples per block [blocks].
    """

    blocks: Array
    counts: Array

    def scaled(self, scale: float, which: Mask) -> Array:
        """Blocks whose regressors [p] are multiplied with the scale where `which` is True."""
        factors = np.append(np.where(which, scale, 1.0), 1.0)
        return np.asarray(self.blocks * np.outer(factors, factors))

    def scale(self, solution: Solution, which: Mask) -> float:
        """Scale of the regressors `which` that fits the session best, the rest as fitted."""
        gram = self.blocks.sum(axis=0)
        p = len(which)
        part = np.where(which, solution.coefficients, 0.0)
        rest = solution.coefficients - part
        square = float(part @ gram[:p, :p] @ part)
        product = float(part @ (gram[:p, p] - gram[:p, :p] @ rest))
        if square <= 0:
            return 1.0
        independent = solution.effective_samples / max(solution.samples, 1.0)
        weight = square * independent / max(solution.residual**2, 1e-30)
        return float(1.0 + (product / square - 1.0) * weight / (weight + 1.0 / _WIDEST**2))


def session_scales(
    sessions: Sequence[SessionBlocks],
    prior: Prior,
    which: Mask,
    *,
    applied: bool = True,
) -> tuple[Array, Array]:
    """Scales of one joint [sessions] with mean 1, and the blocks of all sessions to fit.

    Args:
        sessions: in which the joint moved.
        prior: of the p coefficients.
        which: coefficients that the scale multiplies [p].
        applied: return the blocks under the scales. False where the law may explain differences
            of the sessions by temperature; scales are then the remainder.
    """
    scales = np.ones(len(sessions))
    if len(sessions) < 2 or not which.any():
        return scales, _joined(sessions, scales, which)
    counts = np.concatenate([session.counts for session in sessions])
    for _ in range(_ROUNDS if applied else 1):
        solution = solve(_joined(sessions, scales, which), prior, counts)
        told = np.array([session.scale(solution, which) for session in sessions])
        scales = np.clip(told, *_BOUNDS)
        scales /= scales.mean()
    return scales, _joined(sessions, scales if applied else np.ones(len(sessions)), which)


def _joined(sessions: Sequence[SessionBlocks], scales: Array, which: Mask) -> Array:
    pairs = zip(sessions, scales.tolist(), strict=True)
    return np.concatenate([session.scaled(scale, which) for session, scale in pairs])
