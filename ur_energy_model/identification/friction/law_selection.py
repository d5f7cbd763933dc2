"""Candidate friction laws of a joint, and the choice among them by held-out errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.friction.session_scales import SessionBlocks, session_scales
from ur_energy_model.identification.regression.least_squares import Prior
from ur_energy_model.model.friction.law import LAWS, FrictionLaw
from ur_energy_model.model.sessions import scaled_parameters
from ur_energy_model.typing import Array, Mask

AUTO = "auto"
WARMTH = 2.0
"""Temperature span from which temperature-dependent friction is tried [K]."""
AUTOMATIC = (
    "coulomb_viscous",
    "power_flow",
    "power",
    "load_dependent",
    "power_load",
    "temperature_linear",
    "power_temperature",
    "power_load_temperature",
)
"""Laws that "auto" chooses among. Terms with a power of the speed and with load lower the error on
recordings of other days of real arms. Power flow hardly lowers it, but without it torque constants
are wrong on arms that have it. Stribeck, polynomial and the manufacturer's double exponential do
not lower it and are fitted on request only."""
_GRID = 8

GAIN_PER_PARAMETER = 0.02
"""Held-out RMS a further parameter must save to be worth having."""


@dataclass(frozen=True)
class FrictionCandidate:
    """A law with values for its shape constants."""

    law: FrictionLaw
    shape: tuple[tuple[str, float], ...]


def candidates(friction: str, *, warm: bool) -> tuple[FrictionCandidate, ...]:
    """Laws to fit, with a logarithmic grid over the shape constants that are not fixed.

    Args:
        friction: name of a law, or "auto" for those of AUTOMATIC.
        warm: whether recorded temperatures change enough for laws that use them.

    Raises:
        InputError: unknown law.
    """
    if friction != AUTO and friction not in LAWS:
        raise InputError(
            "--friction", f"unknown law '{friction}'", f"use auto or one of {', '.join(LAWS)}"
        )
    laws = [
        law
        for name, law in LAWS.items()
        if name == friction
        or (friction == AUTO and name in AUTOMATIC and (warm or not law.uses_temperature))
    ]
    out: list[FrictionCandidate] = []
    for law in laws:
        shapes: list[dict[str, float]] = [{}]
        for name, (low, default, high) in law.shape.items():
            values = [default] if low == high else list(np.geomspace(low, high, _GRID))
            shapes = [{**shape, name: float(value)} for shape in shapes for value in values]
        out.extend(FrictionCandidate(law, tuple(shape.items())) for shape in shapes)
    return tuple(out)


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


def clearly_better(errors: Array, than: Array) -> bool:
    """Whether held-out errors [folds], A^2, are smaller by more than scatter and allowance."""
    gain = than - errors
    scatter = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    allowance = (1 + GAIN_PER_PARAMETER) ** 2 - 1
    return bool(gain.mean() > max(2.0 * scatter, allowance * than.mean()))


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
