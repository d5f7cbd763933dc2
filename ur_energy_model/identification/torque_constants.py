"""Torque constant and friction of joints, what limits them and what joints share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ur_energy_model.model.friction import Friction
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class InertiaFromCurrent:
    """Reflected inertia of one joint."""

    nominal: float  # inertia that the load was computed with, joint side [kg m^2]
    excess: float  # (inertia - nominal) / k_t [kg m^2 A/(N m)]
    slope: float  # change of `excess` with 1/k_t along the regression [kg m^2]
    rest: float  # variance of `excess` at a given 1/k_t
    # Standard deviation of the inertia at a given 1/k_t beyond the statistical one [kg m^2]:
    # the systematic part of the residual that acceleration could explain
    left_out: float


@dataclass(frozen=True)
class JointEstimate:
    """Result of the current regression for one joint."""

    torque_constant: float  # [N m/A]
    torque_constant_std: float  # [N m/A]
    friction: Friction  # motor side
    friction_std: dict[str, float]  # by parameter name
    covariance: Array  # of (1/k_t, friction parameters / k_t)
    source: dict[str, str]  # "current" or "prior", by quantity
    residual: float  # RMS while moving [A], NaN if the joint did not move
    effective_samples: float  # number of independent samples with the same information
    reason: str = ""  # for the choice of the law, in words
    comparison: dict[str, float] = field(default_factory=dict)  # held-out RMS [A] by law name
    # RMS of the residual's systematic part over that of the current for the load; infinite if
    # the joint did not move
    unexplained_over_load: float = float("inf")
    load_error: float = 0.0  # relative uncertainty of the load from mounting and payload
    # Torque constant from currents alone [N m/A]
    regressed_constant: float = float("nan")
    regressed_std: float = float("nan")
    # Friction of each session in which the joint moved, over their mean
    session_scales: Array = field(default_factory=lambda: np.ones(0))
    sessions: tuple[int, ...] = ()  # numbers of these sessions
    # Reflected inertia fitted too; None if it was known or the joint did not move
    inertia: InertiaFromCurrent | None = None

    def in_order(self, places: Sequence[int]) -> JointEstimate:
        """The estimate with its sessions in another order.

        `places`: new number of each session.
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


MODEL_ERROR = 0.01  # relative error of a torque constant due to nominal masses and link tensors
LINK_WEIGHT_ERROR = 0.03
"""Common relative error of the links' weight: cables, covers and screws are in no published link.
Torque constants from links and from known payloads differed by 1 to 3 % on three arms (UR3e, UR5e,
UR10e). It adds to the differences between torque constants of one arm."""
ARM_SPREAD = 0.12
"""Spread of torque constants between arms of one type (factory calibrations: over 10 %)."""
JOINT_SPREAD = 0.04  # spread between motors of one size in one arm

FLEET, FLEET_POWER = "other arms of the fleet", "bus_power of other arms of the fleet"
"""Source of a torque constant that the arm's own recordings hardly show."""
_FROM_LINKS = ("current", "joints of the same size", FLEET)


@dataclass(frozen=True)
class TorqueConstantPrior:
    """Prior of the torque constants of n joints, relative to those of the robot file."""

    mean: Array  # [n]
    covariance: Array  # of the joints [n, n]
    independent: Array  # part of each joint's variance that no other joint shares [n]
    source: tuple[str, ...]  # of the constants that come from the prior [n]

    @classmethod
    def of_type(cls, robot: RobotDescription) -> TorqueConstantPrior:
        """Of any arm of a type: ARM_SPREAD in common, JOINT_SPREAD of each joint."""
        same = robot.torque_constant[:, None] == robot.torque_constant[None, :]
        independent = np.full(robot.dof, JOINT_SPREAD**2)
        covariance = ARM_SPREAD**2 * same + np.diag(independent)
        return cls(np.ones(robot.dof), covariance, independent, ("prior",) * robot.dof)


def model_error(fit: JointEstimate) -> float:
    """Relative model error of the torque constant."""
    return float(np.hypot(_load_scale_error(fit), fit.unexplained_over_load))


def stated_deviation(fit: JointEstimate) -> float:
    """Standard deviation of the torque constant to report [N m/A].

    It includes the error of the links' weight where the constant comes from their torque.
    """
    if not is_from_links(fit.source["torque_constant"]):
        return fit.torque_constant_std
    return float(np.hypot(fit.torque_constant_std, LINK_WEIGHT_ERROR * fit.torque_constant))


def is_from_links(source: str) -> bool:
    """Whether a torque constant of this source has the error of the links' weight."""
    return source in _FROM_LINKS


def with_shared_sizes(
    fits: Sequence[JointEstimate],
    robot: RobotDescription,
    prior: TorqueConstantPrior | None = None,
) -> tuple[JointEstimate, ...]:
    """Torque constants with the information of joints of the same motor size.

    A hierarchical normal model: the joints of a size have the prior's mean and covariance (of a
    fleet, or of the type), the regressions lie around the joints with their statistical and model
    errors. Joints without a constant in the robot file are left alone.
    """
    out = list(fits)
    for j, fit in enumerate(fits):
        if np.isfinite(model_error(fit)):
            std = own_deviation(fit) * fit.regressed_constant
            source = fit.source["torque_constant"]
            out[j] = with_torque_constant(fit, fit.regressed_constant, std, source)
    known = TorqueConstantPrior.of_type(robot) if prior is None else prior
    for nominal in np.unique(robot.torque_constant[np.isfinite(robot.torque_constant)]):
        group = np.flatnonzero(robot.torque_constant == nominal).tolist()
        own = np.array([own_deviation(fits[j]) for j in group])
        shown = np.array([fits[j].regressed_constant / nominal for j in group])
        covariance = known.covariance[np.ix_(group, group)]
        # Means of each joint from everything but its own regression, then with it.
        precision = np.linalg.inv(covariance)
        information = 1.0 / own**2
        posterior = np.linalg.inv(precision + np.diag(information))
        expected = known.mean[group]
        value = expected + posterior @ (information * np.nan_to_num(shown - expected))
        for i, j in enumerate(group):
            variance = float(posterior[i, i])
            spread = 1.0 / max(1.0 / variance - information[i], 1e-12)
            alone = own[i] ** 2 < spread
            free = float(known.independent[j])
            helped = spread - free < 0.5 * (covariance[i, i] - free)
            source = (
                "current" if alone else "joints of the same size" if helped else known.source[j]
            )
            out[j] = with_torque_constant(
                fits[j], float(value[i] * nominal), float(np.sqrt(variance) * nominal), source
            )
    return tuple(out)


def with_load_error(fits: Sequence[JointEstimate], error: Array) -> tuple[JointEstimate, ...]:
    """Fits with a relative uncertainty of their loads [n] added to the model error."""
    return tuple(
        replace(fit, load_error=float(np.hypot(fit.load_error, share)))
        for fit, share in zip(fits, error, strict=True)
    )


def with_torque_constant(
    fit: JointEstimate, constant: float, std: float, source: str
) -> JointEstimate:
    """The fit with another torque constant [N m/A], friction adjusted by its covariance with it."""
    coefficients = np.append(1.0, fit.friction.values) / fit.torque_constant
    variance = fit.covariance[0, 0]
    gain = fit.covariance[:, 0] / variance
    coefficients = coefficients + gain * (1.0 / constant - coefficients[0])
    rest = fit.covariance - np.outer(gain, gain) * variance
    covariance = rest + np.outer(gain, gain) * (std / constant**2) ** 2
    values, deviations = friction_from_coefficients(coefficients, covariance)
    names = fit.friction.law.parameters
    return replace(
        fit,
        torque_constant=constant,
        torque_constant_std=std,
        friction=replace(fit.friction, parameters=dict(zip(names, values.tolist(), strict=True))),
        friction_std=dict(zip(names, deviations.tolist(), strict=True)),
        covariance=covariance,
        source={**fit.source, "torque_constant": source},
    )


def reflected_inertia(
    fit: JointEstimate, prior: float, spread: float
) -> tuple[float, float] | None:
    """Reflected inertia and its standard deviation, updated by the currents, joint side [kg m^2].

    None where it was not fitted. Inertia and torque constant share the errors of one regression, so
    that a torque constant known better since (from bus power) corrects the inertia as well. Wrong
    masses or mounting scale the load alone: that part of the change is left out.
    """
    if fit.inertia is None:
        return None
    inverse = 1.0 / fit.regressed_constant
    regressed = (fit.regressed_std * inverse**2) ** 2
    regressed += (fit.unexplained_over_load * inverse) ** 2
    scaled = (_load_scale_error(fit) * inverse) ** 2
    change = (1.0 / fit.torque_constant - inverse) * regressed / (regressed + scaled)
    found, changed = fit.inertia, inverse + change
    excess = found.excess + found.slope * change
    value = max(found.nominal + excess / changed, 0.0)
    slope = (found.slope - excess / changed) / changed
    std = float(np.sqrt(found.rest / changed**2 + slope**2 * float(fit.covariance[0, 0])))
    data = max(1.0 / max(std, 1e-9) ** 2 - 1.0 / spread**2, 0.0)
    if data == 0.0:
        return value, std
    shown = (value / std**2 - prior / spread**2) / data
    weight = 1.0 / (1.0 / data + fit.inertia.left_out**2 + (MODEL_ERROR * value) ** 2)
    precision = weight + 1.0 / spread**2
    value = (shown * weight + prior / spread**2) / precision
    return max(value, 0.0), float(np.sqrt(1.0 / precision))


def _load_scale_error(fit: JointEstimate) -> float:
    """Relative error of the load's scale: masses, mounting and payload."""
    return float(np.hypot(MODEL_ERROR, fit.load_error))


def own_deviation(fit: JointEstimate) -> float:
    """Relative deviation of the regression's torque constant, model error included."""
    return float(np.hypot(fit.regressed_std / fit.regressed_constant, model_error(fit)))
