"""A candidate friction law of one joint, scored over sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.friction.choice import FrictionCandidate
from ur_energy_model.identification.friction.session_scales import SessionBlocks, session_scales
from ur_energy_model.identification.regression.blocked_gram import Prior
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array, Mask


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
