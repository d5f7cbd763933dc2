"""Samples that energy can be computed from: values that are finite and possible for the arm."""

from __future__ import annotations

import numpy as np

from ur_energy_model.telemetry.plausibility import PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

ALWAYS: tuple[str, ...] = ("actual_qd", "joint_temperatures")
"""Fields whose values must be finite, where the source has them."""
MOTION: tuple[str, ...] = ("actual_q", "target_q", "target_qd", "target_qdd")
"""Fields whose values must be finite too where powers are computed from the motion."""
OPTIONAL: tuple[str, ...] = (
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
    "payload",
    "payload_cog",
    "payload_inertia",
    "speed_scaling",
    "target_speed_fraction",
)
"""Fields that a sample may lack: NaN stands for not measured."""


def usable_rows(
    batch: Telemetry, current: Array | None, limits: PlausibleRanges, most_power: float
) -> Mask:
    """Samples whose values are finite and possible [samples].

    Args:
        batch: any samples.
        current: motor currents [samples, n], A; None where powers are computed from the motion.
        limits: of the arm.
        most_power: that the bus can show [W].
    """
    columns: dict[str, Array] = {"timestamp": batch.time}
    names, optional = ALWAYS, OPTIONAL
    if current is None:
        names += MOTION
    else:
        columns["actual_current"] = current
        optional += MOTION[:1]
    columns |= {name: batch.columns[name] for name in names if name in batch.columns}
    for name in optional:
        values = batch.columns.get(name)
        if values is not None:
            missing = np.isnan(values)
            columns[name] = np.where(missing, 0.0, values) if missing.any() else values
    bad = impossible_rows(columns, limits)[0]
    if batch.has_bus_power and not bad.all():
        volts, amperes = (columns[name] for name in OPTIONAL[:2])
        with np.errstate(over="ignore", invalid="ignore"):
            bad |= ~(np.abs(volts * amperes) <= most_power)
    return ~bad
