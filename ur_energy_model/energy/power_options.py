"""Options of the calculator, and the telemetry that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ur_energy_model.energy.gaps import DEFAULT_GAP_LIMIT

Method = Literal["auto", "current", "motion"]

MEASURED_FIELDS: tuple[str, ...] = (
    "actual_qd",
    "actual_current",
    "joint_temperatures",
    "actual_robot_voltage",
    "actual_robot_current",
    "robot_mode",
    "safety_mode",
)
"""RTDE fields for powers from measured currents; the first two are required."""
FIELDS: tuple[str, ...] = (
    *MEASURED_FIELDS,
    "actual_q",
    "target_q",
    "target_qd",
    "target_qdd",
    "payload",
    "payload_cog",
    "payload_inertia",
    "speed_scaling",
    "target_speed_fraction",
)
"""All RTDE fields that the calculator reads, where the source has them."""


@dataclass(frozen=True)
class PowerOptions:
    """How powers are computed.

    Attributes:
        method: from measured "current", from "motion" by the model, or "auto".
        track_standby: update the standby power at standstill.
        standby_limit: largest deviation from the model's standby [W].
        idle_power: with brakes engaged, where neither bus nor model has it [W]; None: standby.
        gap_limit: longest step between samples that is bridged at any sample rate [s].
    """

    method: Method = "auto"
    track_standby: bool = True
    standby_limit: float = 15.0
    idle_power: float | None = None
    gap_limit: float = DEFAULT_GAP_LIMIT
