"""Colour and size that show the power of a joint in 3D, the same in every viewer."""

from __future__ import annotations

FULL_SCALE = 100.0
"""Power at which a joint is red [W]."""
SMALLEST_DIAMETER, DIAMETER_RANGE = 0.10, 0.08
"""Diameter of a sphere at zero power, and the increase at full scale [m]."""


def level_of(power: float, full_scale: float = FULL_SCALE) -> float:
    """Power relative to full scale, -1 to 1."""
    return min(max(power / full_scale, -1.0), 1.0)


def diameter(level: float) -> float:
    """Diameter of a joint's sphere [m]."""
    return SMALLEST_DIAMETER + DIAMETER_RANGE * abs(level)


def color(level: float) -> tuple[float, float, float, float]:
    """RGBA of a level: -1 (regeneration) blue, 0 green, 0.5 yellow, 1 (full consumption) red."""
    if level < 0:
        return 0.0, 1.0 + level, -level, 0.9
    return min(1.0, 2 * level), min(1.0, 2 - 2 * level), 0.0, 0.9
