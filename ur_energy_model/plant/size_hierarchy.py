# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hierarchical normal model of one constant of one joint size over the arms of a fleet.

The constant of joint j of arm a, relative to the nominal one, is

    mean + position_j + arm_a + own_aj

`position` is common to the fleet (errors of the links in the robot file, for instance),
`arm` to the joints of one arm, `own` belongs to one joint. Their standard deviations are
unknown: the marginal likelihood on a grid gives each combination of them a weight, and
predictions are means over the grid (empirical Bayes without the overconfidence of a
single estimate; Gelman, Bayesian Data Analysis, chapter 5). Zero is on the grid: arms
that are alike share one constant; arms that differ hardly inform each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ur_energy_model.typing import Array, Mask

_ARM = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.18, 0.24)
_OWN = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12)
_POSITION = (0.0, 0.01, 0.02, 0.04)
"""Relative standard deviations on the grid; factory calibrations of arms differ by over
10 %."""
_GRID = np.array(list(product(_ARM, _OWN, _POSITION)))
_ARM_STD, _OWN_STD, _POSITION_STD = _GRID.T
"""Standard deviations of the parts at each point of the grid [grid]."""
_UNKNOWN = 1e3  # standard deviation of a constant that was not measured
_LEAST = 1e-4  # least relative standard deviation of a prediction or a measurement


@dataclass(frozen=True)
class Prediction:
    """Constants of the k joints of a size in another arm, relative to the nominal one.

    Attributes:
        mean: expected constants [k].
        covariance: covariance of the constants [k, k].
        independent: part of each joint's variance that no other joint shares.
        spread: likeliest standard deviation between arms.
        spread_limit: value that the spread exceeds with a probability of 5 %.
        arms: number of arms whose measurements the prediction follows.
    """

    mean: Array
    covariance: Array
    independent: float
    spread: float
    spread_limit: float
    arms: int


class SizeHierarchy:
    """One constant of the k joints of a size, measured in some arms.

    Args:
        value: constants over the nominal constant [arms, k]; NaN where not measured.
        std: standard deviations of the measurements [arms, k].
        nominal_std: standard deviation of the fleet's mean around the nominal constant.
    """

    def __init__(self, value: Array, std: Array, nominal_std: float) -> None:
        joints = value.shape[1]
        known = np.isfinite(value) & np.isfinite(std)
        self._known = known
        self._measured: Mask = np.asarray(known.any(axis=1))
        rest = np.where(known, value, 1.0) - 1.0
        noise = np.where(known, np.maximum(std, _LEAST), _UNKNOWN) ** 2
        self._precision = np.where(known, 1.0 / noise, 0.0)
        own = np.eye(joints)
        self._own = own
        arm_variance = _ARM_STD[:, None, None] ** 2
        own_variance = _OWN_STD[:, None, None] ** 2
        position_variance = _POSITION_STD[:, None, None] ** 2
        self._between = arm_variance + own_variance * own
        """Covariance of the joints of an arm around the fleet's [grid, k, k]."""
        self._prior = nominal_std**2 + position_variance * own + _LEAST**2 * own
        """Covariance of the fleet's joints before any measurement [grid, k, k]."""
        # Information of each arm on the fleet's joints, for every point of the grid.
        covariance = self._between[:, None] + noise[:, :, None] * own
        self._information = np.linalg.inv(covariance)
        self._product = np.einsum("gaij,aj->gai", self._information, rest)
        self._square = np.einsum("gai,ai->ga", self._product, rest)
        self._logdet = np.linalg.slogdet(covariance)[1]

    def predict(self, without: int | None = None) -> Prediction:
        """Constants of a new arm, or of one arm as the other arms show them.

        How much arms differ is learnt from all of them, the one left out included: an arm
        that differs from arms that are alike must not be taken for one of them. Errors of
        measurements come from the model (friction, gears, masses) and are the same in all
        arms, so that the mean of many arms has at least the uncertainty of a single arm.

        Args:
            without: number of the arm that is left out; None for a new arm.
        """
        used = self._measured.copy()
        if without is not None:
            used[without] = False
        posterior, mean, _ = self._conditional(used)
        _, _, evidence = self._conditional(self._measured)
        weight = np.exp(evidence - evidence.max())
        weight /= weight.sum()
        # Errors of measurements enter as far as the prediction follows the measurements.
        count = self._known[used].sum(axis=0)
        precision = self._precision[used].sum(axis=0)
        systematic = np.where(count > 0, count / np.where(count > 0, precision, 1), 0)
        gain = posterior @ self._information[:, used].sum(axis=1)
        covariance = posterior + self._between + _LEAST**2 * self._own
        covariance += gain * systematic @ gain.swapaxes(1, 2)
        expected = weight @ mean
        apart = mean - expected
        within = np.einsum("g,gij->ij", weight, covariance)
        between = np.einsum("g,gi,gj->ij", weight, apart, apart)
        spread, limit = _spread(weight)
        return Prediction(
            mean=1.0 + expected,
            covariance=within + between,
            independent=float(weight @ (_OWN_STD**2 + _LEAST**2)),
            spread=spread,
            spread_limit=limit,
            arms=int(used.sum()),
        )

    def _conditional(self, used: Mask) -> tuple[Array, Array, Array]:
        """The fleet's joints from some arms, at each point of the grid.

        Args:
            used: mask of the arms that are used [arms].

        Returns:
            Covariance [grid, k, k], mean less 1 [grid, k], and logarithm of the
            likelihood of the measurements [grid].
        """
        precision = np.linalg.inv(self._prior) + self._information[:, used].sum(axis=1)
        product = self._product[:, used].sum(axis=1)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("gij,gj->gi", covariance, product)
        evidence = -0.5 * (
            np.linalg.slogdet(self._prior)[1]
            + np.linalg.slogdet(precision)[1]
            + self._logdet[:, used].sum(axis=1)
            + self._square[:, used].sum(axis=1)
            - np.einsum("gi,gi->g", mean, product)
        )
        return covariance, mean, evidence


def _spread(weight: Array) -> tuple[float, float]:
    """The likeliest standard deviation between arms, and its 95 % quantile.

    Args:
        weight: weights of the points of the grid [grid].
    """
    spread = np.hypot(_ARM_STD, _OWN_STD)
    # Whatever the deviation of the position, which varies fastest on the grid.
    positions = len(_POSITION)
    likeliest = int(np.argmax(weight.reshape(-1, positions).sum(axis=1))) * positions
    order = np.argsort(spread)
    limit = np.searchsorted(np.cumsum(weight[order]), 0.95 - 1e-12)
    return float(spread[likeliest]), float(spread[order][limit])
