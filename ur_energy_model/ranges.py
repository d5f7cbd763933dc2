# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ranges of the physical quantities of robot arms, from desktop to heavy industrial arms.

The limits are far beyond any arm: a value outside has a wrong sign or unit (degrees,
millimetres, grams). With a gear ratio of 1, motor-side values are joint-side values, so
the ranges of drives include both.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import Quantity, YamlTree, array

RATE = Quantity("Hz", 0, 20_000, positive=True)
LENGTH = Quantity("m", -10, 10)
ANGLE = Quantity("rad", -2 * np.pi - 1e-3, 2 * np.pi + 1e-3)
MASS = Quantity("kg", 0, 5_000)
INERTIA_ENTRY = Quantity("kg m^2", -1e4, 1e4)
GRAVITY = Quantity("m/s^2", 8.5, 11.5)
"""Magnitude; an estimate from a small motion may be wrong by some percent."""
GRAVITY_ENTRY = Quantity("m/s^2", -11.5, 11.5)
PAYLOAD_MASS = Quantity("kg", 0, 3_000)
POSITION_LIMIT = Quantity("rad", 0, 100, positive=True)
POSITION_END = Quantity("rad", -100, 100)  # one end of the range of a joint
SPEED = Quantity("rad/s", 0, 100, positive=True)
ACCELERATION = Quantity("rad/s^2", 0, 1e4, positive=True)
TORQUE = Quantity("N m", 0, 1e5, positive=True)
GEAR_RATIO = Quantity("1", 1e-2, 1e4, positive=True)
DRIVE_INERTIA = Quantity("kg m^2", 0, 1e3)
REFLECTED_INERTIA = Quantity("kg m^2", 0, 1e4)
RESISTANCE = Quantity("ohm", 0, 1e4)
TORQUE_CONSTANT = Quantity("N m/A", 1e-4, 1e3, positive=True)
BACK_EMF = Quantity("V s/rad", 0, 1e3)
TORQUE_PER_AMPERE = Quantity("N m/A", 1e-3, 1e6, positive=True)
"""Torque of a joint over the current of its motor."""
VOLTAGE = Quantity("V", 0, 2_000, positive=True)
POWER = Quantity("W", 0, 1e5)
MODE_POWER = Quantity("W", -10, 1e5)
"""Mean of a measurement; the sensor's offset may make it slightly negative."""
DRIVER_LOSS = Quantity("W/A", 0, 1e3)
INDUCTANCE = Quantity("H", -10, 10)
DRAG = Quantity("N m", -10, 10)
CAPACITOR_ENERGY = Quantity("J", 0, 1e5)
CURRENT = Quantity("A", 0, 1e4)
DELAY = Quantity("s", -0.1, 0.1)
TEMPERATURE = Quantity("degC", -60, 150)
TRAVEL = Quantity("rad", 0, 0.5)
LOAD_FACTOR = Quantity("1", 0.2, 5)
FACTOR = Quantity("1", -1e6, 1e6)
# of a parameter that may be unidentifiable, in its own unit
ERROR = Quantity("1", -1e12, 1e12)
VARIANCE = Quantity("1", -1e12, 1e12)
GYRATION_RADIUS = 5.0  # largest distance of a link's mass from its centre of mass [m]
_NO_MOMENT = -1e-9  # principal moments above this are zero but for rounding [kg m^2]
_TESTED_TEMPERATURES = (5.0, 25.0, 50.0)
"""Joint temperatures at which friction must be positive [degC]."""


def check_tensor(tree: YamlTree, tensor: Array, mass: float | None = None) -> None:
    """Refuse an impossible inertia tensor about the centre of mass.

    Args:
        tree: node of the tensor in the file.
        tensor: symmetric [3, 3], kg m^2.
        mass: mass of the body [kg]; None if it is unknown.
    """
    if np.linalg.eigvalsh(tensor)[0] < _NO_MOMENT:
        raise tree.refuse("has a negative principal moment, which is impossible")
    if mass and np.trace(tensor) > 2 * mass * GYRATION_RADIUS**2:
        raise tree.refuse(
            f"would need a body of {mass:g} kg that is metres across; the unit is kg m^2 about "
            "the centre of mass"
        )


def temperature_model(tree: YamlTree) -> Array:
    """a, b, c, d [4] of friction in proportion to a exp(b T) + c exp(d T), T in degC."""
    values = array(FACTOR, 4)(tree)
    a, b, c, d = values
    if max(abs(b), abs(d)) > 1:
        raise tree.refuse("friction cannot change by a factor of e within one kelvin")
    for t in _TESTED_TEMPERATURES:
        if not a * np.exp(b * t) + c * np.exp(d * t) > 0:
            raise tree.refuse(f"gives friction that is not positive at {t:g} degC")
    return values
