"""RTDE fields that identification and learning use."""

from __future__ import annotations

from ur_energy_model.energy.power_options import FIELDS as ENERGY_FIELDS

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment", "target_current",
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "joint_mode",
    "actual_robot_voltage", "actual_robot_current", "actual_main_voltage",
    "payload", "payload_cog", "payload_inertia",
    "robot_mode", "safety_mode", "speed_scaling", "target_speed_fraction",
)  # fmt: skip
"""Fields that identification can use; the rest of a bag is not read."""
SAMPLE_FIELDS: tuple[str, ...] = (*ENERGY_FIELDS, "target_moment")
"""Fields of the samples that are kept as recorded."""
