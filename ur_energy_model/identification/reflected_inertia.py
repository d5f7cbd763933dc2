# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reflected inertias of motors and reducers: priors, and what currents show of them.

The reflected inertia of a joint is the inertia of rotor and reducer seen from the joint
side: the motor-side inertia times the square of the gear ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.identification.friction_data import ACCELERATION, LOAD_COLUMN
from ur_energy_model.identification.least_squares import Prior, Solution
from ur_energy_model.identification.torque_constants import (
    MODEL_ERROR,
    InertiaFromCurrent,
    JointEstimate,
)
from ur_energy_model.model.drive_errors import LOAD_COEFFICIENT, LoadShare
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

_NOMINAL_SPREAD = 0.1
"""Relative standard deviation around the robot file's inertia: recorded target_moment of
a UR3e, two UR5e and a UR10e shows 0 to 2 %, but 14 % for one small wrist."""
_INERTIA_PER_TORQUE = 0.011
"""Reflected inertia over rated torque where a robot file has no inertia [kg m^2/(N m)]:
the robot files of UR3e, UR5e, UR10e and UR16e give 0.008 to 0.018."""
_PER_TORQUE_SPREAD = 0.5  # relative spread of an inertia from the rated torque
_UNRATED_INERTIA = (0.5, 0.5)
"""Reflected inertia and its spread without a rated torque [kg m^2]: the e-Series lies
between 0.07 (wrist of a UR3e) and 6 (shoulder of a UR10e)."""


@dataclass(frozen=True)
class InertiaEstimate:
    """Reflected inertia of motors and reducers, joint side.

    Attributes:
        value: reflected inertias [n], kg m^2.
        std: standard deviations of the inertias [n], kg m^2.
        source: source of each: "target_moment", "current" or "prior".
        actual: inertias of this arm by its currents, and their standard deviations [2, n],
            kg m^2, for joints whose `value` is the controller's, from target_moment; NaN
            for the others.
    """

    value: Array
    std: Array
    source: tuple[str, ...]
    actual: Array | None = None

    @property
    def unknown(self) -> Mask:
        """Joints [n] whose inertia is only a prior."""
        return np.array([source == "prior" for source in self.source])

    @property
    def spread(self) -> Array:
        """Standard deviation of the inertias of this arm about `value` [n], kg m^2.

        target_moment shows the inertias that the controller computes with, which are the
        same for all arms.
        """
        return np.where(
            self.unknown, self.std, np.hypot(self.std, _NOMINAL_SPREAD * self.value)
        )


def expected_inertia(robot: RobotDescription) -> InertiaEstimate:
    """Prior of the reflected inertias: the robot file's, else typical for the rated torque."""
    nominal = robot.reflected_inertia
    rated = robot.max_torque
    known = np.isfinite(nominal)
    sized = np.isfinite(rated)
    typical = np.where(
        sized, _INERTIA_PER_TORQUE * np.where(sized, rated, 0.0), _UNRATED_INERTIA[0]
    )
    spread = np.where(sized, _PER_TORQUE_SPREAD * typical, _UNRATED_INERTIA[1])
    return InertiaEstimate(
        value=np.where(known, nominal, typical),
        std=np.where(known, _NOMINAL_SPREAD * np.nan_to_num(nominal), spread),
        source=("prior",) * robot.dof,
    )


def split_inertia(reflected: Array, robot: RobotDescription) -> tuple[Array, Array]:
    """Inertias on the motor side, and the inertias of the rotors alone [n], [n], kg m^2.

    They are split as in Clochiatti et al. 2024, Table IV; the inertia of a rotor is NaN
    where the reducer's inertia is unknown.

    Args:
        reflected: inertia of motor and reducer, joint side [n], kg m^2.
        robot: the arm, with the catalogue's inertia of the reducers.
    """
    motor_side = reflected / robot.gear_ratio**2
    return motor_side, motor_side - robot.reducer_inertia


def inertia_with_currents(
    before: InertiaEstimate, joints: Sequence[JointEstimate]
) -> InertiaEstimate:
    """Reflected inertias; those that were unknown before are updated by the currents.

    An inertia counts as identified from currents if they halve its standard deviation.
    An inertia that is known from target_moment stays, and what currents show of it is in
    `actual`.

    Args:
        before: inertias from target_moment, or priors.
        joints: results of the current regression.
    """
    value = before.value.copy()
    std = before.std.copy()
    source = list(before.source)
    actual = np.full((2, len(value)), np.nan)
    for j, fit in enumerate(joints):
        found = fit.inertia
        if found is None:
            continue
        spread = float(before.spread[j])
        shown, error = _shown_by_currents(fit, found)
        if source[j] == "target_moment":
            actual[:, j] = shown, min(np.hypot(error, found.left_out), spread)
            continue
        prior = float(before.value[j])
        value[j], std[j] = _with_systematic(shown, error, found.left_out, prior, spread)
        source[j] = "current" if std[j] < 0.5 * spread else "prior"
    return InertiaEstimate(value, std, tuple(source), actual)


def _shown_by_currents(
    fit: JointEstimate, found: InertiaFromCurrent
) -> tuple[float, float]:
    """Inertia of a joint by its currents and its statistical standard deviation [kg m^2].

    Inertia and torque constant share the errors of one regression, so that a torque
    constant known better since (from bus power) corrects the inertia as well. Wrong masses
    or mounting scale the load alone: their part of the change of the constant is left out.

    Args:
        fit: result of the current regression, with the torque constant known now.
        found: inertia in that regression.
    """
    inverse = 1.0 / fit.regressed_constant
    regressed = (fit.regressed_std * inverse**2) ** 2
    regressed += (fit.unexplained_over_load * inverse) ** 2
    scaled = (fit.load_scale_error * inverse) ** 2
    # Change of 1/k_t since the regression; the share by errors of the regression counts.
    change = (1.0 / fit.load_per_ampere - inverse) * regressed / (regressed + scaled)
    changed = inverse + change
    excess = found.excess + found.slope * change
    shown = max(found.nominal + excess / changed, 0.0)
    # Derivative of excess / (1/k_t) by 1/k_t.
    slope = (found.slope - excess / changed) / changed
    variance = float(fit.covariance[LOAD_COEFFICIENT, LOAD_COEFFICIENT])
    error = float(np.sqrt(found.rest / changed**2 + slope**2 * variance))
    return shown, error


def _with_systematic(
    shown: float, error: float, left_out: float, prior: float, spread: float
) -> tuple[float, float]:
    """Posterior of an inertia and its standard deviation, with the systematic error [kg m^2].

    The regression includes the prior, and only the data have a systematic error: the prior
    is taken out, and added again after the error of the data was enlarged.

    Args:
        shown: mean of the regression [kg m^2].
        error: statistical standard deviation of the regression [kg m^2].
        left_out: systematic standard deviation of the data [kg m^2].
        prior: mean of the prior [kg m^2].
        spread: standard deviation of the prior [kg m^2].
    """
    data = max(1.0 / max(error, 1e-9) ** 2 - 1.0 / spread**2, 0.0)
    if not data > 0.0:
        return shown, error
    alone = (shown / error**2 - prior / spread**2) / data
    weight = 1.0 / (1.0 / data + left_out**2 + (MODEL_ERROR * shown) ** 2)
    precision = weight + 1.0 / spread**2
    mean = max((alone * weight + prior / spread**2) / precision, 0.0)
    return mean, float(np.sqrt(1.0 / precision))


# The inertia of a joint as the last coefficient of the regression of its current.

_INERTIA = -1  # place of the coefficient of the acceleration, (inertia - nominal) / k_t


class JointInertiaPrior(NamedTuple):
    """Prior of the reflected inertia of one joint, joint side.

    Attributes:
        value: mean of the prior [kg m^2].
        std: standard deviation of the prior [kg m^2].
        nominal: inertia that the loads were computed with [kg m^2].
    """

    value: float
    std: float
    nominal: float


def with_inertia(
    prior: Prior, inverse: float, inertia: JointInertiaPrior | None
) -> Prior:
    """The prior of all coefficients of a joint.

    Args:
        prior: prior of the coefficients without the coefficient of the inertia.
        inverse: 1/k_t [A/(N m)], the scale of the inertia's coefficient.
        inertia: prior of the inertia; None where it is not fitted.
    """
    if inertia is None:
        return prior
    excess = inertia.value - inertia.nominal
    return prior.extended(excess * inverse, inertia.std * inverse)


def current_of_load(solution: Solution, gram: Array) -> float:
    """RMS of the current for the load of a joint [A].

    Args:
        solution: solution of the joint's currents.
        gram: sum of the joint's Gram matrices [p + 1, p + 1], see `CurrentColumns.of_law`.
    """
    scale = solution.coefficients[LOAD_COEFFICIENT] / np.sqrt(solution.samples)
    return float(scale * np.sqrt(gram[LOAD_COLUMN, LOAD_COLUMN]))


def current_of_own_load(solution: Solution, gram: Array) -> float:
    """RMS of the current for that part of the load that acceleration does not explain [A].

    Args:
        solution: solution of the joint's currents.
        gram: sum of the joint's Gram matrices [p + 1, p + 1], see `CurrentColumns.of_law`.
    """
    scale = solution.coefficients[LOAD_COEFFICIENT] / np.sqrt(solution.samples)
    acceleration = max(gram[ACCELERATION, ACCELERATION], 1e-30)
    shared = gram[LOAD_COLUMN, ACCELERATION] ** 2 / acceleration
    own = max(gram[LOAD_COLUMN, LOAD_COLUMN] - shared, 0.0)
    return float(scale * np.sqrt(own))


def inertia_from(
    solution: Solution, gram: Array, nominal: float, systematic: float
) -> InertiaFromCurrent:
    """Inertia of a joint from a solution whose last coefficient belongs to the acceleration.

    The coefficient is (inertia - nominal) / k_t. Load and acceleration are correlated, so
    that the coefficient depends on 1/k_t: its variance is divided into the part by 1/k_t
    (`slope`), which is small where k_t is known, and the rest.

    Args:
        solution: solution of the joint's currents.
        gram: sum of the joint's Gram matrices [p + 1, p + 1].
        nominal: inertia that the loads were computed with [kg m^2].
        systematic: RMS of the systematic part of the residual [A].
    """
    load = LoadShare.of(solution.covariance)
    scale = solution.coefficients[LOAD_COEFFICIENT] / np.sqrt(solution.samples)
    acceleration = float(scale * np.sqrt(gram[ACCELERATION, ACCELERATION]))
    return InertiaFromCurrent(
        nominal=nominal,
        excess=float(solution.coefficients[_INERTIA]),
        slope=float(load.gain[_INERTIA]),
        rest=max(float(load.rest[_INERTIA, _INERTIA]), 0.0),
        left_out=systematic / max(acceleration, 1e-9),
    )
