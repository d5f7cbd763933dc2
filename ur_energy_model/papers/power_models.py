# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power models of three papers, beside the physical one.

EcBot (Heredia et al., eq. 13-21) fits all 4n + 1 coefficients of the power freely, which
overfits short recordings. Clochiatti et al. 2024, eq. 23, take the constants of the motors
from a catalogue and fit nothing. Petrichenko et al. 2024, arXiv 2411.03194, eq. 7, fit one
parameter beside the standby power, for all joints together, and need no currents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from ur_energy_model.errors import IdentificationError, InputError
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
"""Rated torque by joint size [N m]; Clochiatti et al. 2024 choose the motors by it."""


def catalogue_motor_constants(robot: RobotDescription) -> Array:
    """Motor constants k_m [n] that Clochiatti et al. take from the catalogue, N m/sqrt(W).

    Args:
        robot: type of the arm, n joints.

    Raises:
        InputError: a joint has none of the two sizes of a UR5e.
    """
    by_torque = {
        _RATED_TORQUE[size]: constant
        for size, constant in CATALOGUE_MOTOR_CONSTANT.items()
    }
    rated = robot.max_torque.tolist()
    if any(torque not in by_torque for torque in rated):
        raise InputError(
            "--power-model catalogue",
            f"the paper chose motors for joints of 150 and 28 N m only, not for a {robot.name}",
            "use physical or ecbot",
        )
    return np.array([by_torque[torque] for torque in rated])


def _free(robot: RobotDescription, constant: Array) -> Structure:
    """EcBot's structure (eq. 13-21): free coefficients without a prior, and without delays.

    Args:
        robot: type of the arm, n joints.
        constant: torque constants, which the structure does not use.
    """
    joints = robot.dof
    layout = PowerLayout(joints)
    size = layout.without_delays.stop
    return Structure(
        names=layout.columns[layout.without_delays],
        basis=np.eye(layout.width, size),
        prior=Prior(np.zeros(size), np.full(size, np.inf)),
        torque=np.zeros((joints, size)),
        base=np.zeros(joints),
        own=np.zeros(joints, dtype=bool),
        single=np.zeros(size, dtype=bool),
    )


def _catalogue(robot: RobotDescription, constant: Array) -> Structure:
    """The motors of Clochiatti et al. 2024, eq. 23, from the catalogue; standby power is free.

    Copper loss (torque / k_m)^2 and conversion k_b / k_t with k_t / k_b = 0.89; no driver
    losses. The paper has no standby power; without standby power its model could not be
    compared with the bus.

    Args:
        robot: type of the arm, n joints.
        constant: torque constants, motor side [n], N m/A.

    Raises:
        InputError: a joint has none of the two sizes of a UR5e.
    """
    layout = PowerLayout(robot.dof)
    resistance = (constant / catalogue_motor_constants(robot)) ** 2
    back_emf = constant / KT_OVER_KB
    standby = layout.coefficients(layout.standby, 1.0)
    motors = layout.coefficients(layout.copper, resistance)
    motors += layout.coefficients(layout.conversion, back_emf)
    return Structure(
        names=("standby", "motors"),
        basis=np.column_stack([standby, motors]),
        prior=Prior(np.array([STANDBY[0], 1.0]), np.array([np.inf, EXACT])),
        torque=np.zeros((robot.dof, 2)),
        base=constant,
        own=np.zeros(robot.dof, dtype=bool),
        single=np.zeros(2, dtype=bool),
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


class SingleParameter(NamedTuple):
    """The one-parameter electrical model of Petrichenko et al. 2024, arXiv 2411.03194, eq. 7.

    The power at the supply is

        torque . speed + loss * torque . torque + overhead,

    with the torque of links and payload by inverse dynamics, without friction and rotors
    (eq. 1), the torque of a motor proportional to its current (eq. 2), and the copper loss
    R i^2 (eq. 5). The paper assumes that R / k_t^2 is the same for all joints and that the
    back-EMF constants are the torque constants.

    Attributes:
        loss: R / k_t^2 of all joints, joint side [W/(N m)^2].
        overhead: constant power [W].
    """

    loss: float
    overhead: float

    @classmethod
    def fitted(cls, torque: Array, qd: Array, power: Array) -> SingleParameter:
        """Loss and overhead by least squares; samples that are not finite are left out.

        Neither is negative, as the paper's resistance and constants are not: friction,
        which the model lacks, makes ordinary least squares negative on moving arms.

        Args:
            torque: torques of links and payload [samples, n], N m.
            qd: joint speeds [samples, n], rad/s.
            power: measured power at the supply [samples], W.

        Raises:
            IdentificationError: no sample is finite.
        """
        mechanical = (torque * qd).sum(axis=1)
        squares = np.square(torque).sum(axis=1)
        rest = power - mechanical
        good = np.isfinite(rest) & np.isfinite(squares)
        if not good.any():
            raise IdentificationError(
                "no sample has finite torques, speeds and power; record the bus power"
            )
        columns = np.column_stack([squares[good], np.ones(np.count_nonzero(good))])
        loss, overhead = nnls(columns, rest[good])[0].tolist()
        return cls(loss, overhead)

    def power(self, torque: Array, qd: Array) -> Array:
        """Power at the supply [samples], W, for torques, N m, and speeds, rad/s, [samples, n]."""
        mechanical = (torque * qd).sum(axis=1)
        squares = np.square(torque).sum(axis=1)
        return np.asarray(mechanical + self.loss * squares + self.overhead)
