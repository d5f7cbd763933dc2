"""What the current stage finds out about one joint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.identification.friction.inertia_from_current import InertiaFromCurrent
from ur_energy_model.model.friction.law import Friction
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class JointEstimate:
    """Result for one joint.

    Attributes:
        torque_constant: [N m/A].
        torque_constant_std: [N m/A].
        friction: motor side.
        friction_std: by parameter name.
        covariance: of (1/k_t, friction parameters / k_t).
        source: "current" or "prior", by quantity.
        residual: RMS while moving [A], NaN where the joint did not move.
        reason: why this law, for people.
        comparison: held-out RMS [A] by law name.
        effective_samples: independent samples the data amounts to.
        unexplained_over_load: RMS of the residual's systematic part over that of the current that
            the load takes; infinite where the joint did not move.
        regressed_constant, regressed_std: torque constant as the current alone tells it [N m/A].
        session_scales: friction of each session in which the joint moved over the mean of them.
        inertia: reflected inertia beside the torque constant; None where it was known beforehand
            or the joint did not move.
    """

    torque_constant: float
    torque_constant_std: float
    friction: Friction
    friction_std: dict[str, float]
    covariance: Array
    source: dict[str, str]
    residual: float
    reason: str
    comparison: dict[str, float]
    effective_samples: float
    unexplained_over_load: float = float("inf")
    regressed_constant: float = float("nan")
    regressed_std: float = float("nan")
    session_scales: Array = field(default_factory=lambda: np.ones(0))
    inertia: InertiaFromCurrent | None = None


def friction_from_coefficients(coefficients: Array, covariance: Array) -> tuple[Array, Array]:
    """Friction parameters and standard deviations from (1/k_t, parameters / k_t)."""
    inverse = coefficients[0]
    values = coefficients[1:] / inverse
    # d(parameter) = d(coefficient)/inverse - parameter/inverse d(inverse)
    slopes = np.column_stack([-values / inverse, np.eye(len(values)) / inverse])
    return values, np.asarray(np.sqrt(np.diag(slopes @ covariance @ slopes.T)))
