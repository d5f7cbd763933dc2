"""Candidate friction laws with values for their shape constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.friction.law import LAWS, FrictionLaw

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
