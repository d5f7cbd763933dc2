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
    """Law by held-out error, the one with fewer parameters where the difference is no more than
    its own scatter over folds or than GAIN_PER_PARAMETER; and the reason in words.
    """  # noqa: D205
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
        second: Sequence[str] = sorted((n for n in rms if n != best), key=rms.__getitem__)[:1]
        against = f" against {rms[second[0]]:.4g} A of {second[0]}" if second else ""
        return chosen, f"least held-out RMS, {rms[best]:.4g} A{against}"
    return chosen, (
        f"held-out RMS {rms[chosen]:.4g} A; {best} with more parameters gets {rms[best]:.4g} A, "
        "which is within the scatter over folds or not worth them"
    )


@dataclass(frozen=True)
class ScoredLaw:
    """A candidate of one joint: blocks under its session scales [sessions], errors per fold."""

    candidate: FrictionCandidate
    sessions: list[SessionBlocks]
    blocks: Array
    prior: Prior
    errors: Array
    scales: Array

    def with_final_scales(self) -> ScoredLaw:
        """The chosen law: scales enter its fit unless it has temperature for what they say."""
        applied = not self.candidate.law.uses_temperature
        which = scaled_coefficients(self.candidate, len(self.prior.mean))
        scales, blocks = session_scales(self.sessions, self.prior, which, applied=applied)
        return replace(self, blocks=blocks, scales=scales)


def scaled_coefficients(candidate: FrictionCandidate, width: int) -> Mask:
    """Which coefficients (1/k_t, friction parameters / k_t, ...) a session scales [width]."""
    out = np.zeros(width, dtype=bool)
    out[1 : 1 + len(candidate.law.parameters)] = scaled_parameters(candidate.law.parameters)
    return out
