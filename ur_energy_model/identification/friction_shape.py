# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shape constants of friction laws, fitted beside the parameters by Gauss-Newton steps.

The grid of `friction_data.candidates` finds the neighbourhood. There a law is linearised: it
gets a further term for each fitted shape constant, the derivative of the friction torque by
the constant's logarithm, so that the linear regression returns the step to the best constants
and their covariance with the parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.identification.friction_data import GRID, FrictionCandidate
from ur_energy_model.identification.torque_constants import (
    JointEstimate,
    friction_from_coefficients,
)
from ur_energy_model.model.friction import Friction, FrictionLaw
from ur_energy_model.model.friction_terms import (
    OperatingPoint,
    Shape,
    ShapeConstant,
    Term,
)
from ur_energy_model.typing import Array

MOST_ROUNDS = 7
"""Most regressions after the grid."""
_SMALL_STEP = 0.1  # steps of the logarithms that end the rounds, in standard deviations
_SMALL_CHANGE = 0.01  # steps that end the rounds, too
SHAPE_ERROR = 0.04
"""Relative error of shape constants beyond the noise: reversals of the motion within the period of
a thinned motion (from made-up arms at 500 Hz)."""
_STEP = 1e-3  # relative change of a constant for the derivative
_MARK = "_by_"
"""Beginning of the names of derivative terms, which parameters of laws do not have."""


class ShapedCandidate(NamedTuple):
    """A law of one joint at fitted shape constants.

    Attributes:
        candidate: the law with its shape constants.
        linearised: the same with a derivative term for each fitted constant, the last terms.
    """

    candidate: FrictionCandidate
    linearised: FrictionCandidate


def fitted_constants(law: FrictionLaw) -> dict[str, ShapeConstant]:
    """The shape constants of a law that are fitted, by name."""
    return {name: each for name, each in law.shape.items() if not each.is_fixed}


def linearised(friction: Friction) -> ShapedCandidate:
    """A friction's law about its shape constants.

    Args:
        friction: friction with the values of its parameters, as fitted at these constants.
    """
    shape = friction.all_shape
    terms = dict(friction.law.terms)
    for name, constant in fitted_constants(friction.law).items():
        terms[_MARK + name] = _derivative(friction, name, constant)
    law = replace(friction.law, terms=terms)
    return ShapedCandidate(
        FrictionCandidate(friction.law, shape), FrictionCandidate(law, shape)
    )


def _derivative(friction: Friction, name: str, constant: ShapeConstant) -> Term:
    """Derivative of the friction torque by the logarithm of a shape constant.

    Its parameter is the change of the logarithm; it starts from the constant's default,
    with half the logarithm of its range as standard deviation.

    Args:
        friction: friction with values and shape constants.
        name: name of the constant.
        constant: its limits and default.
    """
    values = friction.values
    now = friction.all_shape[name]

    def torque(point: OperatingPoint, shape: Shape) -> Array:
        """Central difference."""
        higher = friction.law.regressor(point, {**shape, name: now * np.exp(_STEP)})
        lower = friction.law.regressor(point, {**shape, name: now * np.exp(-_STEP)})
        return np.asarray((higher - lower) @ values / (2.0 * _STEP))

    start = float(np.log(constant.default / now))
    spread = 0.5 * float(np.log(constant.high / constant.low))
    return Term("1", torque, tuple(friction.law.shape), (start, spread), kind="load")


class ShapeChanges(NamedTuple):
    """Steps of the logarithms of a joint's fitted shape constants to the best ones.

    Attributes:
        values: steps [s].
        std: standard deviations of the logarithms [s].
        of_parameters: standard deviations that they add to the parameters [p], motor side.
    """

    values: Array
    std: Array
    of_parameters: Array

    @classmethod
    def of(cls, law: FrictionLaw, coefficients: Array, covariance: Array) -> ShapeChanges:
        """The steps from the regression of the linearised law.

        Args:
            law: the law, with p parameters and s fitted constants.
            coefficients: coefficients of load, parameters and steps [1 + p + s].
            covariance: their covariance [1 + p + s, 1 + p + s].
        """
        values, std = friction_from_coefficients(coefficients, covariance)
        p = len(law.parameters)
        # Covariance of the others, given the shape constants.
        shared = covariance[: 1 + p, 1 + p :]
        of_steps = covariance[1 + p :, 1 + p :]
        given = covariance[: 1 + p, : 1 + p] - shared @ np.linalg.solve(
            of_steps, shared.T
        )
        _, alone = friction_from_coefficients(coefficients[: 1 + p], given)
        added = np.sqrt(np.maximum(std[:p] ** 2 - alone**2, 0.0))
        return cls(values[p:], std[p:], added)

    @property
    def are_small(self) -> bool:
        """Whether the steps do not matter."""
        size = np.maximum(_SMALL_STEP * self.std, _SMALL_CHANGE)
        return bool((np.abs(self.values) <= size).all())

    def in_deviations(self, estimate: JointEstimate) -> JointEstimate:
        """The estimate with the deviations of its shape constants, and what they add to others."""
        law = estimate.friction.law
        shape = estimate.friction.all_shape
        relative = np.hypot(self.std, SHAPE_ERROR).tolist()
        of_shape = zip(fitted_constants(law), relative, strict=True)
        added = zip(law.parameters, self.of_parameters.tolist(), strict=True)
        return replace(
            estimate,
            shape_std={name: shape[name] * std for name, std in of_shape},
            friction_std_of_shape=dict(added),
        ).with_friction_std(estimate.friction_std)


def next_shape(friction: Friction, changes: Array) -> dict[str, float]:
    """Shape constants after a step.

    Args:
        friction: friction with the constants before the step.
        changes: changes of the logarithms of the fitted constants.

    Returns:
        All shape constants, within their limits and no further than a step of the grid.
    """
    shape = friction.all_shape
    fitted = fitted_constants(friction.law)
    for (name, constant), change in zip(fitted.items(), changes.tolist(), strict=True):
        longest = float(np.log(constant.high / constant.low)) / (GRID - 1)
        step = float(np.clip(change, -longest, longest))
        value = shape[name] * float(np.exp(step))
        shape[name] = min(max(value, constant.low), constant.high)
    return shape
