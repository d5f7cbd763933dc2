"""Torque constant and friction of one joint, and how far systematic residuals limit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.friction.current_columns import ACCELERATION, CURRENT, LOAD
from ur_energy_model.identification.friction.inertia_from_current import InertiaFromCurrent
from ur_energy_model.identification.friction.law_selection import FrictionCandidate
from ur_energy_model.identification.regression.least_squares import Prior, Solution
from ur_energy_model.model.friction.law import Friction
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

FRICTION_ERROR = 0.015
"""Model error of a joint's friction, relative: form of the law, and a delay of a millisecond or two
between currents and speeds (from simulated arms with such delays)."""

_NO_CURRENT = 1e-6
"""A moving motor has more current than this (RMS) [A]."""
_CLEAR = 3.0
"""Standard deviations beyond which a wrong sign is not chance."""


@dataclass(frozen=True)
class JointEstimate:
    """Result of the current regression for one joint.

    Attributes:
        torque_constant: [N m/A].
        torque_constant_std: [N m/A].
        friction: motor side.
        friction_std: by parameter name.
        covariance: of (1/k_t, friction parameters / k_t).
        source: "current" or "prior", by quantity.
        residual: RMS while moving [A], NaN if the joint did not move.
        effective_samples: number of independent samples with the same information.
        reason: for the choice of the law, in words.
        comparison: held-out RMS [A] by law name.
        unexplained_over_load: RMS of the residual's systematic part over that of the current for
            the load; infinite if the joint did not move.
        load_error: relative uncertainty of the load from mounting and payload.
        regressed_constant, regressed_std: torque constant from currents alone [N m/A].
        session_scales: friction of each session in which the joint moved, over their mean.
        sessions: numbers of these sessions.
        inertia: reflected inertia fitted too; None if it was known or the joint did not move.
    """

    torque_constant: float
    torque_constant_std: float
    friction: Friction
    friction_std: dict[str, float]
    covariance: Array
    source: dict[str, str]
    residual: float
    effective_samples: float
    reason: str = ""
    comparison: dict[str, float] = field(default_factory=dict)
    unexplained_over_load: float = float("inf")
    load_error: float = 0.0
    regressed_constant: float = float("nan")
    regressed_std: float = float("nan")
    session_scales: Array = field(default_factory=lambda: np.ones(0))
    sessions: tuple[int, ...] = ()
    inertia: InertiaFromCurrent | None = None

    def in_order(self, places: Sequence[int]) -> JointEstimate:
        """The estimate with its sessions in another order.

        Args:
            places: new number of each session.
        """
        numbers = [places[number] for number in self.sessions]
        order = np.argsort(numbers)
        scales = self.session_scales[order] if len(numbers) else self.session_scales
        return replace(self, session_scales=scales, sessions=tuple(sorted(numbers)))


def friction_from_coefficients(coefficients: Array, covariance: Array) -> tuple[Array, Array]:
    """Friction parameters and standard deviations from (1/k_t, parameters / k_t)."""
    inverse = coefficients[0]
    values = coefficients[1:] / inverse
    # d(parameter) = d(coefficient)/inverse - parameter/inverse d(inverse)
    slopes = np.column_stack([-values / inverse, np.eye(len(values)) / inverse])
    return values, np.asarray(np.sqrt(np.diag(slopes @ covariance @ slopes.T)))


def estimate_joint(
    robot: RobotDescription,
    j: int,
    candidate: FrictionCandidate,
    prior: Prior,
    solution: Solution,
    temperature: Array,
) -> JointEstimate:
    """Torque constant and friction of a joint from the solution of its regression.

    Args:
        robot: the arm, n joints.
        j: index of the joint.
        candidate: friction law and shape.
        prior: of (1/k_t, friction parameters / k_t).
        solution: of the same coefficients.
        temperature: lowest and highest in the recordings [2], degC; NaN where not recorded.
    """
    law = candidate.law
    form = FRICTION_ERROR * np.append(0.0, solution.coefficients[1:])
    solution = replace(solution, covariance=solution.covariance + np.outer(form, form))
    constant = 1.0 / solution.coefficients[0]
    deviation = float(solution.std[0] * constant**2)
    parameters, parameter_std = friction_from_coefficients(
        solution.coefficients, solution.covariance
    )
    determined = solution.std < 0.5 * prior.std
    names = ("torque_constant", *law.parameters)
    low, high = temperature.tolist()
    model = robot.friction_temperature_model[j]
    uses_model = law.name == "temperature_exponential" and bool(np.isfinite(model).all())
    return JointEstimate(
        torque_constant=float(constant),
        torque_constant_std=deviation,
        friction=Friction(
            law,
            dict(zip(law.parameters, parameters.tolist(), strict=True)),
            dict(candidate.shape),
            (model[0], model[1], model[2], model[3]) if uses_model else None,
            (low, high) if np.isfinite(temperature).all() else None,
        ),
        friction_std=dict(zip(law.parameters, parameter_std.tolist(), strict=True)),
        covariance=solution.covariance,
        source={
            name: "current" if known else "prior"
            for name, known in zip(names, determined, strict=True)
        },
        residual=solution.residual,
        effective_samples=solution.effective_samples,
        regressed_constant=float(constant),
        regressed_std=deviation,
    )


def refuse_impossible(name: str, solution: Solution, gram: Array) -> None:
    """Refuse currents that no motor has.

    Args:
        name: of the joint.
        solution: of its regression.
        gram: Gram matrix of all samples.

    Raises:
        IdentificationError: no current in motion, or one that does not rise with torque.
    """
    if gram[CURRENT, CURRENT] <= _NO_CURRENT**2 * solution.samples:
        raise IdentificationError(
            f"{name}: actual_current stays zero while the joint moves; check the recorder and "
            "record again"
        )
    if -_CLEAR * solution.std[0] < solution.coefficients[0] <= 0:
        raise IdentificationError(
            f"{name}: its currents do not show a torque constant; check that actual_current is "
            "this robot's, and record longer with faster starts and stops of this joint, or add "
            "drive.torque_constant to the robot file if it has none"
        )
    if not solution.coefficients[0] > 0:
        raise IdentificationError(
            f"{name}: current falls as torque rises; check that the recording is of this "
            "robot, mounted and loaded as stated (--gravity, --payload)"
        )


def systematic_rms(solution: Solution, memory: float) -> float:
    """RMS of the residual's systematic part [A].

    Residuals correlated for longer than filtered white noise would be count as systematic.

    Args:
        solution: of the fit.
        memory: samples over which the filter correlates white noise.
    """
    share = 1.0 - memory * solution.effective_samples / solution.samples
    return float(solution.residual * np.sqrt(max(share, 0.0)))


def load_share_unexplained(
    solution: Solution, gram: Array, systematic: float, inertia_spread: float | None
) -> float:
    """Systematic residual (RMS) over the current that determines the scale of the load (RMS).

    Args:
        solution: of the fit.
        gram: Gram matrix of all samples.
        systematic: RMS of the residual's systematic part [A].
        inertia_spread: relative prior deviation of the inertia where it is fitted too, else None.
            If it is fitted, the scale follows from the load that acceleration does not explain,
            or from the prior of the inertia, whichever is more exact.
    """
    scale = solution.coefficients[0] / np.sqrt(solution.samples)
    ratio = float(systematic / max(scale * np.sqrt(gram[LOAD, LOAD]), 1e-9))
    if inertia_spread is None:
        return ratio
    shared = gram[LOAD, ACCELERATION] ** 2 / max(gram[ACCELERATION, ACCELERATION], 1e-30)
    own = scale * np.sqrt(max(gram[LOAD, LOAD] - shared, 0.0))
    return min(float(systematic / max(own, 1e-9)), float(np.hypot(ratio, inertia_spread)))
