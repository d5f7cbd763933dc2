# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Typical friction of an arm's joints: the factory calibration, scaled by rated torque."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.model.friction_terms import (
    LOAD,
    LOAD_ASYMMETRY,
    REFERENCE_TEMPERATURE,
    temperature_factor,
)
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import no_load_friction

if TYPE_CHECKING:
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.typing import Array

LEVEL = 1.1
"""Friction of recorded arms over that of the calibrated ones: two calibrations are near 1, ten
recordings of four arms near 1.25."""
LAW = LAWS["power_load_temperature"]
SPEEDS = (0.02, 3.2)
"""Range of the friction calibration that the law follows, joint side [rad/s]."""
WARMTH = (20.0, 50.0)
"""Range of joint temperatures in which friction follows the temperature [degC]."""


def typical_friction(robot: RobotDescription) -> tuple[Friction, ...]:
    """Typical friction of n joints, motor side: the calibration, scaled by rated torque.

    The speed-dependent part changes with temperature as the robot files say.
    """
    table = constants()
    calibrated = table["friction_calibration"]["temperature"]
    curves = no_load_friction(robot, robot.max_torque, np.full(robot.dof, LEVEL))
    speed = np.geomspace(*SPEEDS, 30)
    qd = np.tile(speed[:, None], robot.dof)
    torque = 0.5 * (curves.torque(qd) - curves.torque(-qd)) / robot.gear_ratio
    typical = np.array(table["friction"]["temperature_model"])
    low, high = WARMTH
    out = []
    for j in range(robot.dof):
        model = robot.friction_temperature_model[j]
        model = model if np.isfinite(model).all() else typical
        coulomb, power, exponent = power_law(speed, torque[:, j])
        power /= float(temperature_factor(model, calibrated, REFERENCE_TEMPERATURE))
        ends = [
            float(temperature_factor(model, t, REFERENCE_TEMPERATURE)) for t in WARMTH
        ]
        direct = table["friction"]["load_direct"]
        reverse = table["friction"]["load_reverse"]
        out.append(
            Friction(
                LAW,
                {
                    "coulomb": coulomb,
                    "power": power,
                    "power_temperature": power * (ends[1] - ends[0]) / (high - low),
                    LOAD: 0.5 * (direct + reverse),
                    LOAD_ASYMMETRY: 0.5 * (direct - reverse),
                },
                {**LAW.default_shape, "exponent": exponent},
                temperature_range=WARMTH,
            )
        )
    return tuple(out)


def power_law(speed: Array, torque: Array) -> tuple[float, float, float]:
    """Coulomb friction, power and exponent with the smallest relative error.

    Args:
        speed: [m], rad/s.
        torque: friction at these speeds [m], N m.
    """
    limits = LAW.shape["exponent"]
    best = np.inf
    found = (0.0, 0.0, 0.0)
    for exponent in np.arange(limits.low, limits.high, 0.01):
        columns = (
            np.stack([np.ones_like(speed), speed**exponent], axis=1) / torque[:, None]
        )
        values, residual, *_ = np.linalg.lstsq(columns, np.ones_like(speed), rcond=None)
        if residual[0] < best:
            best = float(residual[0])
            found = (float(values[0]), float(values[1]), float(exponent))
    return found
