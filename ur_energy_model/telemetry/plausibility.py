"""Impossible values: far beyond the range of joints, motors and supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

PlausibleRanges = Mapping[str, tuple[Array, Array]]
"""Lowest and highest possible value of a field, one for all elements or one each."""

IMPOSSIBLE_SHARE = 0.01
"""Share of impossible samples above which a recording is refused; below, they are left out."""


def _between(low: float, high: float) -> tuple[Array, Array]:
    return np.array([low]), np.array([high])


POSITION, SPEED, ACCELERATION = 8 * np.pi, 4 * np.pi, 1000.0
CURRENT, TORQUE = 1.0e4, 5000.0
"""Limits for an unknown arm; currents may be given per turn of the joint."""
_COUNTS = _between(-1.0e20, 1.0e20)
_NUMBERS = _between(-1.0e12, 1.0e12)

ANY_ARM: PlausibleRanges = {
    name: _NUMBERS if each.kind in {"DOUBLE", "VECTOR3D", "VECTOR6D"} else _COUNTS
    for name, each in FIELDS.items()
} | {
    "timestamp": _between(-1.0, 1.0e10),
    **{f"{kind}_q": _between(-POSITION, POSITION) for kind in ("actual", "target")},
    **{f"{kind}_qd": _between(-SPEED, SPEED) for kind in ("actual", "target")},
    "target_qdd": _between(-ACCELERATION, ACCELERATION),
    **{
        name: _between(-CURRENT, CURRENT)
        for name in ("actual_current", "target_current", "joint_control_output")
    },
    "target_moment": _between(-TORQUE, TORQUE),
    "actual_current_as_torque": _between(-TORQUE, TORQUE),
    "joint_temperatures": _between(-40.0, 150.0),
    "actual_joint_voltage": _between(-1.0, 80.0),
    "actual_main_voltage": _between(-1.0, 80.0),
    "actual_robot_voltage": _between(-1.0, 80.0),
    "actual_robot_current": _between(-100.0, 100.0),
    "payload": _between(-1.0e-3, 500.0),
    "payload_cog": _between(-10.0, 10.0),
    "payload_inertia": _between(-1.0e4, 1.0e4),
    "speed_scaling": _between(-1.0, 200.0),
    "target_speed_fraction": _between(-1.0, 200.0),
    **{name: _between(-1.0e6, 1.0e6) for name in ("robot_mode", "safety_mode", "runtime_state")},
}
"""Limits of every arm; `energy.rated_limits` narrows them to one arm."""


@dataclass(frozen=True)
class Impossible:
    """The first impossible value of a column store: row, RTDE field, element of it, and value."""

    row: int
    field: str
    index: int
    value: float


def impossible_rows(
    columns: Mapping[str, Array], limits: PlausibleRanges = ANY_ARM
) -> tuple[Mask, Impossible | None]:
    """Rows with a value that is not finite or outside its field's limits, and the first such value.

    Args:
        columns: values by RTDE field name, [rows] or [rows, width]; at least one.
        limits: by field name; fields without limits must only be finite.
    """
    rows = len(next(iter(columns.values())))
    bad = np.zeros(rows, dtype=bool)
    if not rows:
        return bad, None
    first: Impossible | None = None
    for name, values in columns.items():
        wide = values.reshape(rows, -1)
        low, high = limits.get(name, _COUNTS)
        if (wide.min(axis=0) >= low).all() and (wide.max(axis=0) <= high).all():
            continue
        wrong = ~((wide >= low) & (wide <= high))
        here = wrong.any(axis=1)
        row = int(np.argmax(here))
        if first is None or row < first.row:
            index = int(np.argmax(wrong[row]))
            first = Impossible(row, name, index, float(wide[row, index]))
        bad |= here
    return bad, first


def possible(
    telemetry: Telemetry, limits: PlausibleRanges = ANY_ARM
) -> tuple[Telemetry, Mask, Impossible | None]:
    """A recording without its impossible samples, a mask of these [n], and the first such value.

    Values that are not finite are kept: recordings mark what was not measured with them.
    """
    if not len(telemetry):
        return telemetry, np.zeros(0, dtype=bool), None
    known = {
        name: values if (finite := np.isfinite(values)).all() else np.where(finite, values, 0.0)
        for name, values in telemetry.columns.items()
    }
    bad, first = impossible_rows(known, limits)
    return (telemetry.select(~bad) if bad.any() else telemetry), bad, first
