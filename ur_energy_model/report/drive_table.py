"""Table of drive constants: robot file beside result."""

from __future__ import annotations

from typing import Any

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.motor_constant import (
    CATALOGUE_MOTOR_CONSTANT,
    KT_OVER_KB,
    motor_constant,
)
from ur_energy_model.model.robots import load_robot


def drive_table(model: EnergyModel) -> tuple[str, list[str], list[list[Any]]]:
    """Drive constants: robot file, result and S0's assumptions, as title, columns and rows.

    k_m = k_t / sqrt(R) is the torque per square root of copper loss.
    """
    robot = load_robot(model.robot)
    rows: list[list[Any]] = []
    for j, joint in enumerate(model.joints):
        resistance = joint.winding_resistance
        nominal = robot.winding_resistance[j]
        rows.append(
            [
                joint.name,
                robot.torque_constant[j],
                joint.torque_constant,
                nominal,
                resistance,
                motor_constant(robot.torque_constant[j], nominal),
                motor_constant(joint.torque_constant, resistance),
                joint.torque_constant / joint.back_emf_constant
                if joint.back_emf_constant
                else None,
            ]
        )
    assumed = ", ".join(f"{k:.3f} (size {size})" for size, k in CATALOGUE_MOTOR_CONSTANT.items())
    source = model.joints[0].source.get("winding_resistance")
    title = f"drives, R and k_b by {source}; S0: k_t/k_b {KT_OVER_KB}, k_m {assumed}"
    columns = ["joint", "k_t file", "k_t", "R file", "R", "k_m file", "k_m", "k_t/k_b"]
    return title, columns, rows
