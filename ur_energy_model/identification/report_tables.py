"""Tables that put priors, data and results side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot

KT_OVER_KB = 0.89
"""k_t/k_b that S0 (Clochiatti et al., Robotica 2024) takes from the catalogue."""
CATALOGUE_MOTOR_CONSTANT = {3: 0.27426, 1: 0.06632}
"""Motor constants k_m that S0 takes from the catalogue, by joint size [N m/sqrt(W)]."""


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
                joint.name.removesuffix("_joint"),
                robot.torque_constant[j],
                joint.torque_constant,
                nominal,
                resistance,
                robot.torque_constant[j] / np.sqrt(nominal) if nominal > 0 else None,
                joint.torque_constant / np.sqrt(resistance) if resistance > 0 else None,
                joint.torque_constant / joint.back_emf_constant
                if joint.back_emf_constant
                else None,
            ]
        )
    title = (
        f"drives: robot file | result ({model.joints[0].source.get('winding_resistance')}); "
        f"S0 assumes k_t/k_b = {KT_OVER_KB}"
    )
    columns = ["joint", "k_t file", "k_t", "R file", "R", "k_m file", "k_m", "k_t/k_b"]
    return title, columns, rows
