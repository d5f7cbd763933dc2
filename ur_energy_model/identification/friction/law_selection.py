"""Candidate friction laws of a joint, scored on held-out data, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.friction.law_candidates import FrictionCandidate
from ur_energy_model.identification.friction.session_scales import SessionBlocks, session_scales
from ur_energy_model.identification.regression.least_squares import Prior
from ur_energy_model.model.friction.law import LAWS
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array, Mask

GAIN_PER_PARAMETER = 0.02
"""Held-out RMS a further parameter must save to be worth having."""


def choose(errors: dict[str, Array]) -> tuple[str, str]:
    """The law with the least held-out error, and the reason for the choice.

    A law with fewer parameters is preferred if its additional error is within the scatter over
    folds or below GAIN_PER_PARAMETER for each parameter saved.

    Args:
        errors: held-out mean squared residual [folds], A^2, by law name.
    """
    order = sorted(errors, key=lambda name: LAWS[name].freedom)
    best = min(errors, key=lambda name: float(errors[name].mean()))
    chosen = best
    for name in order:
        extra = LAWS[best].freedom - LAWS[name].freedom
        if extra < 0 or name == best:
            continue
        loss = errors[name] - errors[best]
        scatter = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0.0
        allowance = (1 + GAIN_PER_PARAMETER) ** (2 * extra) - 1
        if loss.mean() <= max(scatter, allowance * errors[best].mean()):
            chosen = name
            break
    rms = {name: float(np.sqrt(values.mean())) for name, values in errors.items()}
    if chosen == best:
        second = min((name for name in rms if name != best), key=rms.__getitem__, default=None)
        against = "" if second is None else f" against {rms[second]:.4g} A of {second}"
        return chosen, f"least held-out RMS, {rms[best]:.4g} A{against}"
    return chosen, (
        f"held-out RMS {rms[chosen]:.4g} A; {best} with more parameters gets {rms[best]:.4g} A, "
        "which is within the scatter over folds or too small a gain"
    )


@dataclass(frozen=True)
class ScoredLaw:
    """A candidate law of one joint with its held-out errors.

    Attributes:
        candidate: law and shape.
        sessions: Gram matrices of the sessions, unscaled.
        blocks: Gram matrices of all sessions under their friction scales.
        prior: of the coefficients.
        errors: held-out mean squared residual [folds], A^2.
        scales: friction scales [sessions].
    """

    candidate: FrictionCandidate
    sessions: list[SessionBlocks]
    blocks: Array
    prior: Prior
    errors: Array
    scales: Array

    def with_final_scales(self) -> ScoredLaw:
        """The same law, ready for the final fit.

        Session scales enter unless the law explains differences by temperature.
        """
        applied = not self.candidate.law.uses_temperature
        which = scaled_coefficients(self.candidate, len(self.prior.mean))
        scales, blocks = session_scales(self.sessions, self.prior, which, applied=applied)
        return replace(self, blocks=blocks, scales=scales)


def scaled_coefficients(candidate: FrictionCandidate, width: int) -> Mask:
    """Coefficients [width] of (1/k_t, friction parameters / k_t, ...) that a session scales."""
    out = np.zeros(width, dtype=bool)
    out[1 : 1 + len(candidate.law.parameters)] = scaled_parameters(candidate.law.parameters)
    return out


def best_shapes(scored: Sequence[ScoredLaw]) -> dict[str, ScoredLaw]:
    """The candidate with the least error of each law, by law name."""
    best: dict[str, ScoredLaw] = {}
    for entry in scored:
        name = entry.candidate.law.name
        if name not in best or entry.errors.mean() < best[name].errors.mean():
            best[name] = entry
    return best
