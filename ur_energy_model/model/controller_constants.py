# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The torque constants that the controller itself states of its arm.

At rest the controller computes the current that holds a joint from the torque that loads
it,

    target_current = target_moment / (N k_t),

with the torque constant k_t of this very arm from its factory calibration. Torque
constants of one type differ by more than 10 % between arms, so that these constants also
identify an arm: they are its fingerprint. `consistency.controller_constants` finds them
in telemetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array, Mask

CONTROLLER = "controller"
"""Source of a torque constant that the controller states."""
CALIBRATION_ERROR = 0.006
"""Relative deviation of a motor's own torque constant from the stated one: agreement with
constants from known loads on a UR10e."""
SAME_ARM_SPREAD = 0.002
"""Relative scatter of stated constants between recordings of one arm: 0.001 in nine
recordings of a UR5e, 0.001 to 0.005 over five months of a UR10e."""
ANOTHER_ARM_CHANCE = 1e-4
"""Probability of the differences between two recordings of one arm below which they are
of two."""


@dataclass(frozen=True)
class ControllerConstants:
    """Torque constants of n joints as the controller states them, joint side.

    The value of a joint that no recording has loaded is NaN, and its deviation infinite.

    Attributes:
        torque_per_ampere: N k_t, joint torque over motor current [n], N m/A.
        std: standard deviation of what the controller states [n], N m/A; the motor's own
            constant differs from it by CALIBRATION_ERROR besides.
    """

    torque_per_ampere: Array
    std: Array

    @property
    def known(self) -> Mask:
        """Joints [n] whose constant was stated."""
        return np.isfinite(self.torque_per_ampere) & np.isfinite(self.std)

    @property
    def relative_deviation(self) -> Array:
        """Relative standard deviation of the motors' own constants from these [n]."""
        with np.errstate(invalid="ignore"):
            stated = self.std / self.torque_per_ampere
        return np.where(self.known, np.hypot(stated, CALIBRATION_ERROR), np.inf)

    @classmethod
    def unknown(cls, n: int) -> ControllerConstants:
        """The constants of n joints where no recording shows any."""
        return cls(np.full(n, np.nan), np.full(n, np.inf))

    @classmethod
    def joined(cls, each: Sequence[ControllerConstants], n: int) -> ControllerConstants:
        """The constants of an arm with n joints from several recordings.

        They are means weighted by the inverse of their variances.
        """
        if not each:
            return cls.unknown(n)
        values = np.array([one.torque_per_ampere for one in each])
        known = np.array([one.known for one in each])
        variances = np.array([np.square(one.std) for one in each])
        variances = variances + np.square(SAME_ARM_SPREAD * values)
        variances = np.where(known, variances, np.inf)
        weights = (1.0 / variances).sum(axis=0)
        any_known = weights > 0.0
        total = np.where(any_known, weights, 1.0)
        mean = (np.where(known, values, 0.0) / variances).sum(axis=0) / total
        return cls(
            torque_per_ampere=np.where(any_known, mean, np.nan),
            std=np.where(any_known, total**-0.5, np.inf),
        )

    def difference(self, other: ControllerConstants) -> tuple[Array, Array]:
        """Relative difference of these constants from others, and its standard deviation [n].

        NaN and infinite where one of the two does not have a joint's constant.
        """
        both = self.known & other.known
        own = np.where(both, self.torque_per_ampere, 1.0)
        reference = np.where(both, other.torque_per_ampere, 1.0)
        relative = np.where(both, own / reference - 1.0, np.nan)
        own_error = np.where(both, self.std, np.inf) / own
        reference_error = np.where(both, other.std, np.inf) / reference
        stated = np.hypot(own_error, reference_error)
        return relative, np.hypot(stated, np.sqrt(2.0) * SAME_ARM_SPREAD)

    def same_arm(self, other: ControllerConstants) -> bool | None:
        """Whether both are of one arm; None where no joint has both constants.

        A chi-squared test on the differences of the joints that both have.
        """
        relative, deviation = self.difference(other)
        comparable = np.isfinite(relative)
        if not comparable.any():
            return None
        from scipy.special import chdtrc  # slow to import

        squares = np.square(relative[comparable] / deviation[comparable]).sum()
        chance = chdtrc(np.count_nonzero(comparable), squares)
        return bool(chance >= ANOTHER_ARM_CHANCE)
