"""Quantities as short text of bounded width."""

from __future__ import annotations

import math

from ur_energy_model.terminal_text import unsigned_zeros

UNKNOWN = "-"
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def watts(value: float) -> str:
    """A power, such as "123.4 W"."""
    return unsigned_zeros(f"{value:.1f} W") if math.isfinite(value) else UNKNOWN


def joules(value: float) -> str:
    """An energy with four digits or more, such as "1,234 J" or "123.4 kJ"."""
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1e4:
        return unsigned_zeros(f"{value:,.0f} J")
    factor, prefix = next(each for each in _PREFIXES if abs(value) >= each[0])
    digits = 2 if abs(value) < 1e2 * factor else 1
    return f"{value / factor:.{digits}f} {prefix}J"


def percent(share: float) -> str:
    """A share, such as "71 %"."""
    return unsigned_zeros(f"{100.0 * share:.0f} %") if math.isfinite(share) else UNKNOWN


def degrees(value: float | None) -> str:
    """A temperature, such as "35 °C"."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.0f} °C"
