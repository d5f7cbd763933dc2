# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Errors of the drives: where each quantity stands in the arrays of their errors.

The current of a joint is linear in the torques, motor side, that its motor has to overcome,

    current = c_load * load + sum over friction terms (c_term * term),

with the coefficients c_load = load factor / k_t and c_term = friction parameter / k_t.
`JointModel.current_covariance` is the covariance of these coefficients, `BusModel.errors`
are independent errors of the power model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ur_energy_model.typing import Array

LOAD_COEFFICIENT = 0
"""Place of the coefficient of the load among the coefficients of a current."""
FRICTION_COEFFICIENTS = slice(1, None)
"""Places of the coefficients of friction, in the order of the parameters of the law."""


class LoadShare(NamedTuple):
    """Covariance of the p + 1 coefficients of a current, split by the error of the load's one.

    covariance = variance * gain gain' + rest: the regression of all coefficients on the
    coefficient of the load.

    Attributes:
        variance: variance of the coefficient of the load [(A/(N m))^2].
        gain: change of each coefficient per change of the coefficient of the load [1 + p];
            1 for this coefficient itself.
        rest: covariance of the coefficients where the coefficient of the load is known
            [1 + p, 1 + p].
    """

    variance: float
    gain: Array
    rest: Array

    @classmethod
    def of(cls, covariance: Array) -> LoadShare:
        """The two parts of a covariance [1 + p, 1 + p] whose load has a variance above zero."""
        variance = float(covariance[LOAD_COEFFICIENT, LOAD_COEFFICIENT])
        gain = covariance[:, LOAD_COEFFICIENT] / variance
        return cls(variance, gain, covariance - np.outer(gain, gain) * variance)

    def with_deviation(self, deviation: float) -> Array:
        """The covariance [1 + p, 1 + p] with another deviation of the load's coefficient.

        Args:
            deviation: standard deviation of the coefficient of the load [A/(N m)].
        """
        return self.rest + np.outer(self.gain, self.gain) * deviation**2


class BusErrorLayout:
    """Columns of `BusModel.errors` for an arm of n joints.

    Args:
        joints: number of joints n.

    Attributes:
        size: number of columns, 3 n + 2.
        standby: standby power [W].
        resistance: winding resistances [n], ohm.
        back_emf: back-EMF constants, motor side [n], V s/rad.
        driver: driver losses [n], W/A.
        drag: drag [N m].
    """

    standby = 0

    def __init__(self, joints: int) -> None:
        self.resistance = slice(1, 1 + joints)
        self.back_emf = slice(1 + joints, 1 + 2 * joints)
        self.driver = slice(1 + 2 * joints, 1 + 3 * joints)
        self.drag = 1 + 3 * joints
        self.size = 2 + 3 * joints
