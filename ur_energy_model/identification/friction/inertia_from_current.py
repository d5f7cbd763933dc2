"""Reflected inertia beside the torque constant, from currents.

Where target_moment does not tell the inertia J, the current that acceleration takes,
J / k_t * qdd / N, has a coefficient of its own, and what is believed of J is its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.regression.least_squares import Prior, Solution, solve
from ur_energy_model.typing import Array

_SCALING_ROUNDS = 8


@dataclass(frozen=True)
class InertiaFromCurrent:
    """Reflected inertia of one joint.

    Attributes:
        nominal: inertia that the load was computed with, joint side [kg m^2].
        excess: (inertia - nominal) / k_t [kg m^2 A/(N m)].
        slope: change of `excess` with 1/k_t along the regression [kg m^2].
        rest: variance of `excess` at a given 1/k_t.
        left_out: deviation of the inertia beyond the statistical one [kg m^2]: what the residual
            shows to be systematic, as far as acceleration might take it up.
    """

    nominal: float
    excess: float
    slope: float
    rest: float
    left_out: float

    def at(self, inverse: float, change: float, variance: float) -> tuple[float, float]:
        """Inertia and its standard deviation [kg m^2], joint side.

        Args:
            inverse: 1/k_t as regressed [A/(N m)].
            change: of it since, as far as the regression leaves it open.
            variance: of it.
        """
        there, excess = inverse + change, self.excess + self.slope * change
        tilt = (self.slope - excess / there) / there
        spread = np.sqrt(self.rest / there**2 + tilt**2 * variance)
        return max(self.nominal + excess / there, 0.0), float(spread)


def prior_with_inertia(
    prior: Prior, blocks: Array, counts: Array, believed: tuple[float, float], nominal: float
) -> Prior:
    """The prior of the other coefficients with that of (inertia - nominal) / k_t at the end.

    Where nothing is known of k_t, the one that fits the inertia believed sets the scale.

    Args:
        prior: of p coefficients, 1/k_t the first.
        blocks: Gram matrices of regressor and measurement [blocks, p + 2, p + 2].
        counts: number of samples per block [blocks].
        believed: inertia and its standard deviation before the currents are seen [kg m^2].
        nominal: that the load was computed with [kg m^2].
    """
    value, std = believed
    known = bool(prior.mean[0] > 0)
    inverse = float(prior.mean[0])
    if not known:
        rest = [*range(len(prior.mean)), -1]
        inverse = _positive(solve(blocks[:, rest][:, :, rest], prior, counts))
    whole = _joined(prior, (value - nominal) * inverse, std * inverse)
    for _ in range(0 if known else _SCALING_ROUNDS):
        inverse = _positive(solve(blocks, whole, counts))
        whole = _joined(prior, (value - nominal) * inverse, std * inverse)
    return whole


def separate_inertia(
    solution: Solution, gram: Array, nominal: float, systematic: float
) -> tuple[Solution, InertiaFromCurrent]:
    """Torque constant and friction without the inertia, and the inertia beside them.

    Args:
        solution: with the inertia's coefficient at the end.
        gram: of all samples [p + 2, p + 2].
        nominal: that the load was computed with [kg m^2].
        systematic: RMS of the residual's systematic part [A].
    """
    covariance = solution.covariance
    variance = float(covariance[0, 0])
    slope = float(covariance[0, -1]) / variance
    rest = max(float(covariance[-1, -1]) - slope**2 * variance, 0.0)
    others = replace(
        solution, coefficients=solution.coefficients[:-1], covariance=covariance[:-1, :-1]
    )
    own = gram[-2, -2] - gram[0, -2] ** 2 / max(gram[0, 0], 1e-30)
    size = float(solution.coefficients[0] * np.sqrt(max(own, 0.0) / solution.samples))
    return others, InertiaFromCurrent(
        nominal, float(solution.coefficients[-1]), slope, rest, systematic / max(size, 1e-9)
    )


def _joined(prior: Prior, mean: float, std: float) -> Prior:
    return Prior(np.append(prior.mean, mean), np.append(prior.std, std))


def _positive(solution: Solution) -> float:
    return max(float(solution.coefficients[0]), 1e-9)
