# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power models of two papers, beside the physical one: EcBot's, and motors of a catalogue.

EcBot (Heredia et al., eq. 13-21) fits all 4n + 1 coefficients of the power freely, which
overfits short recordings. Clochiatti et al. 2024, eq. 23, take the constants of the motors
from a catalogue and fit nothing.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.least_squares import Prior
from ur_energy_model.identification.power_structures import (
    EXACT,
    STANDBY,
    PowerLayout,
    PowerModel,
    Structure,
)
from ur_energy_model.model.drives import CATALOGUE_MOTOR_CONSTANT, KT_OVER_KB
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

_RATED_TORQUE = {3: 150.0, 1: 28.0}
"""Rated torque of these joint sizes [N m]: the paper finds the catalogue motors by it."""


def catalogue_motor_constants(robot: RobotDescription) -> Array:
    """Motor constants k_m [n] that Clochiatti et al. take from the catalogue, N m/sqrt(W).

    Raises:
        InputError: a joint has none of the two sizes of a UR5e.
    """
    known = {
        _RATED_TORQUE[size]: value for size, value in CATALOGUE_MOTOR_CONSTANT.items()
    }
    rated = robot.max_torque.tolist()
    if any(torque not in known for torque in rated):
        raise InputError(
            "--power-model catalogue",
            f"the paper chose motors for joints of 150 and 28 N m only, not for a {robot.name}",
            "use physical or ecbot",
        )
    return np.array([known[torque] for torque in rated])


def _free(robot: RobotDescription, constant: Array) -> Structure:
    """EcBot's structure: free coefficients without a prior, and without delays."""
    n = robot.dof
    layout = PowerLayout(n)
    size = layout.without_delays.stop
    names = (
        "standby",
        *(f"{kind}_{j}" for kind in ("R", "k", "driver", "L") for j in range(n)),
    )
    return Structure(
        names,
        np.eye(layout.width, size),
        Prior(np.zeros(size), np.full(size, np.inf)),
        np.zeros((n, size)),
        np.zeros(n),
        np.zeros(n, dtype=bool),
        np.zeros(size, dtype=bool),
    )


def _catalogue(robot: RobotDescription, constant: Array) -> Structure:
    """The motors of Clochiatti et al. 2024, eq. 23, from the catalogue; standby power is free.

    Copper loss (torque / k_m)^2 and conversion k_b / k_t with k_t / k_b = 0.89; no driver
    losses. The paper has no standby power; without one its model could not be compared
    with the bus.
    """
    layout = PowerLayout(robot.dof)
    motors = layout.coefficients(
        layout.copper, (constant / catalogue_motor_constants(robot)) ** 2
    ) + layout.coefficients(layout.conversion, constant / KT_OVER_KB)
    return Structure(
        ("standby", "motors"),
        np.column_stack([layout.coefficients(layout.standby, 1.0), motors]),
        Prior(np.array([STANDBY[0], 1.0]), np.array([np.inf, EXACT])),
        np.zeros((robot.dof, 2)),
        constant,
        np.zeros(robot.dof, dtype=bool),
        np.zeros(2, dtype=bool),
    )


ECBOT = PowerModel(
    name="ecbot",
    reason="EcBot's 4n+1 free coefficients",
    structure=_free,
    fits_motors=True,
)
CATALOGUE = PowerModel(
    name="catalogue",
    reason="motors of a catalogue (Clochiatti et al. 2024, eq. 23), not fitted",
    structure=_catalogue,
    fits_motors=False,
)
