"""Reflected inertia estimated together with the torque constant, from currents.

Where target_moment does not determine the inertia J, the current needed for acceleration,
J / k_t * qdd / N, has a coefficient of its own with a prior on J.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.friction.current_columns import ACCELERATION
from ur_energy_model.identification.regression.least_squares import Prior, Solution, solve
from ur_energy_model.typing import Array

_SCALING_ROUNDS = 8
_INVERSE, _EXCESS = 0, -1
"""Coefficients: 1/k_t is the first, (inertia - nominal) / k_t the last."""


@dataclass(frozen=True)
class InertiaPrior:
    """Reflected inertia of one joint before the currents are fitted, joint side.

    Attributes:
        value, std: [kg m^2].
        nominal: inertia that the load was computed with [kg m^2].
    """

    value: float
    std: float
    nominal: float

    def with_coefficient(self, prior: Prior, blocks: Array, counts: Array) -> Prior:
        """The prior of the other coefficients with that of (inertia - nominal) / k_t at the end.

        If the robot file has no k_t, the k_t that agrees with the inertia's prior sets the scale.

        Args:
            prior: of p coefficients, 1/k_t the first.
            blocks: Gram matrices of regressor and measurement [blocks, p + 2, p + 2].
            counts: number of samples per block [blocks].
        """

        def extended(inverse: float) -> Prior:
            return prior.extended((self.value - self.nominal) * inverse, self.std * inverse)

        if prior.mean[_INVERSE] > 0:
            return extended(float(prior.mean[_INVERSE]))
        others = [*range(len(prior.mean)), -1]
        whole = extended(_positive(solve(blocks[:, others][:, :, others], prior, counts)))
        for _ in range(_SCALING_ROUNDS):
            whole = extended(_positive(solve(blocks, whole, counts)))
        return whole


@dataclass(frozen=True)
class InertiaFromCurrent:
    """Reflected inertia of one joint.

    Attributes:
        nominal: inertia that the load was computed with, joint side [kg m^2].
        excess: (inertia - nominal) / k_t [kg m^2 A/(N m)].
        slope: change of `excess` with 1/k_t along the regression [kg m^2].
        rest: variance of `excess` at a given 1/k_t.
        left_out: standard deviation of the inertia at a given 1/k_t beyond the statistical one
            [kg m^2]: the systematic part of the residual that acceleration could explain.
    """

    nominal: float
    excess: float
    slope: float
    rest: float
    left_out: float

    def inertia_at(self, inverse: float, change: float, variance: float) -> tuple[float, float]:
        """Inertia and its standard deviation [kg m^2], joint side.

        Args:
            inverse: 1/k_t as regressed [A/(N m)].
            change: of 1/k_t since the regression.
            variance: of 1/k_t.
        """
        changed, excess = inverse + change, self.excess + self.slope * change
        slope = (self.slope - excess / changed) / changed
        spread = np.sqrt(self.rest / changed**2 + slope**2 * variance)
        return max(self.nominal + excess / changed, 0.0), float(spread)


def separate_inertia(
    solution: Solution, gram: Array, nominal: float, systematic: float
) -> tuple[Solution, InertiaFromCurrent]:
    """The solution split into torque constant and friction, and the inertia.

    Args:
        solution: with the inertia's coefficient at the end.
        gram: of all samples [p + 2, p + 2].
        nominal: that the load was computed with [kg m^2].
        systematic: RMS of the residual's systematic part [A].
    """
    covariance = solution.covariance
    variance = float(covariance[_INVERSE, _INVERSE])
    slope = float(covariance[_INVERSE, _EXCESS]) / variance
    rest = max(float(covariance[_EXCESS, _EXCESS]) - slope**2 * variance, 0.0)
    others = replace(
        solution, coefficients=solution.coefficients[:-1], covariance=covariance[:-1, :-1]
    )
    # What the load shares with acceleration is in `slope`, and certain where k_t is.
    accelerated = np.sqrt(gram[ACCELERATION, ACCELERATION] / solution.samples)
    current = float(solution.coefficients[_INVERSE] * accelerated)
    return others, InertiaFromCurrent(
        nominal=nominal,
        excess=float(solution.coefficients[_EXCESS]),
        slope=slope,
        rest=rest,
        left_out=systematic / max(current, 1e-9),
    )


def _positive(solution: Solution) -> float:
    """1/k_t of a solution, kept positive."""
    return max(float(solution.coefficients[_INVERSE]), 1e-9)
