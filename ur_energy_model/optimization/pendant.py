"""Speeds and accelerations in the words and units of the teach pendant."""

from __future__ import annotations

import math

from ur_energy_model.optimization.optimized_cycle import OptimizedMove
from ur_energy_model.optimization.trapezoid_fit import TYPED_DIGITS, pendant_unit

UNITS = {"moveJ": "°", "moveL": "mm"}
"""Unit of distance by the kind of the move."""


def typed_text(move: OptimizedMove) -> tuple[str, str]:
    """Speed and acceleration of a move, as recorded and to type, such as "60 → 31.5 °/s".

    "–" for a move that is neither moveJ nor moveL, or whose value in the pendant is to stay.
    """
    before = move.move
    if before.kind == "other":
        return "–", "–"
    unit = UNITS[before.kind]
    return (
        f"{_number(before.speed, before.kind)} → {_number(move.speed, before.kind)} {unit}/s",
        f"{_number(before.acceleration, before.kind)} → "
        f"{_number(move.acceleration, before.kind)} {unit}/s²",
    )


def _number(value: float, kind: str) -> str:
    """A value in the pendant's unit with the digits that are typed."""
    if not math.isfinite(value):
        return "–"
    there = float(f"{value / pendant_unit(kind):.{TYPED_DIGITS}g}")
    decimals = max(0, TYPED_DIGITS - 1 - math.floor(math.log10(there)))
    return f"{there:.{decimals}f}"
