"""Rows of the history's table `health`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from ur_energy_model.plant.health.health_meter import HealthRow
from ur_energy_model.typing import Array


def health_rows(
    rows: Sequence[HealthRow], reference: Array, joints: Sequence[str]
) -> dict[str, list[Any]]:
    """Values by column of the table `health`, without the columns that name the source.

    Args:
        rows: of one arm.
        reference: friction of the model at 0.5 rad/s [n], N m (`HealthMeter.reference`).
        joints: names.
    """
    known = reference.tolist()
    return {
        "minute": [datetime.fromtimestamp(row.minute, timezone.utc) for row in rows],
        "joints": [list(joints) for _ in rows],
        "joint_moving": [row.moving.tolist() for row in rows],
        "joint_temperature": [row.temperature.tolist() for row in rows],
        "joint_friction": [row.friction.tolist() for row in rows],
        "joint_friction_std": [row.friction_std.tolist() for row in rows],
        "joint_friction_reference": [known for _ in rows],
        "joint_torque_constant": [row.torque_constant.tolist() for row in rows],
        "joint_torque_constant_std": [row.torque_constant_std.tolist() for row in rows],
        "standby": [row.standby for row in rows],
        "standby_std": [row.standby_std for row in rows],
    }
