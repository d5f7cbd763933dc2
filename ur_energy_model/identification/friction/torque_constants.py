"""How exactly torque constants are known, and what other joints and the bus add to it.

Regression of current on torque gives a torque constant with a statistical deviation. Beyond it
stands what the model leaves out: nominal link masses and tensors, and whatever the residual shows
to be systematic (the shape of friction, its lag), which leaks into the torque constant the more,
the smaller the load is beside it. Motors of one size in one arm are alike (factory calibrations
state one torque constant per size), so joints that carry load tell about those that hardly do; and
bus power, which weighs motor speed times current, tells about all that move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.identification.friction.joint_estimate import (
    JointEstimate,
    friction_from_coefficients,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

MODEL_ERROR = 0.01
"""Share of a torque constant that nominal masses and link tensors leave open."""
LINK_WEIGHT_ERROR = 0.03
"""Error that the weight of all links has in common: cables, covers and screws belong to no
published link. Torque constants from links and from known payloads differed by 1 to 3 % on three
arms (UR3e, UR5e, UR10e). It stands beside what the torque constants of one arm differ by."""
ARM_SPREAD = 0.12
"""Spread of torque constants between arms of one type (factory calibrations: over 10 %)."""
JOINT_SPREAD = 0.04
"""Spread between motors of one size in one arm."""

_FROM_LINKS = ("current", "joints of the same size")


def model_error(fit: JointEstimate) -> float:
    """Relative deviation of the torque constant beyond its statistical one."""
    return float(np.hypot(MODEL_ERROR, fit.unexplained_over_load))


def stated_deviation(fit: JointEstimate) -> float:
    """Standard deviation of the torque constant for people [N m/A].

    A regression on the links' torque shares the error of their weight; bus power and the robot
    file know nothing of it.
    """
    if fit.source["torque_constant"] not in _FROM_LINKS:
        return fit.torque_constant_std
    return float(np.hypot(fit.torque_constant_std, LINK_WEIGHT_ERROR * fit.torque_constant))


def with_shared_sizes(
    fits: Sequence[JointEstimate], robot: RobotDescription
) -> tuple[JointEstimate, ...]:
    """Torque constants of joints of one motor size, made to inform each other.

    A hierarchical normal model: the size's mean around the robot file's constant with ARM_SPREAD,
    the joints around that mean with JOINT_SPREAD, the regressions around the joints with their
    statistical and model errors. Joints without a constant in the robot file stand alone.
    """
    out = [_alone(fit) if np.isfinite(model_error(fit)) else fit for fit in fits]
    for nominal in np.unique(robot.torque_constant[np.isfinite(robot.torque_constant)]):
        group = np.flatnonzero(robot.torque_constant == nominal).tolist()
        told = np.array([fits[j].regressed_constant / nominal for j in group])
        own = np.array([_own_deviation(fits[j]) for j in group])
        precision = 1.0 / (own**2 + JOINT_SPREAD**2)
        for i, j in enumerate(group):
            others = np.arange(len(group)) != i
            weight = 1.0 / ARM_SPREAD**2 + precision[others].sum()
            mean = (1.0 / ARM_SPREAD**2 + (precision * told)[others].sum()) / weight
            spread = 1.0 / weight + JOINT_SPREAD**2
            posterior = 1.0 / (1.0 / spread + 1.0 / own[i] ** 2)
            value = posterior * (mean / spread + told[i] / own[i] ** 2)
            alone = own[i] ** 2 < spread
            helped = others.any() and 1.0 / (weight - 1.0 / ARM_SPREAD**2 + 1e-12) < ARM_SPREAD**2
            source = "current" if alone else "joints of the same size" if helped else "prior"
            out[j] = with_torque_constant(
                fits[j], float(value * nominal), float(np.sqrt(posterior) * nominal), source
            )
    return tuple(out)


def with_load_error(fits: Sequence[JointEstimate], error: Array) -> tuple[JointEstimate, ...]:
    """Fits whose loads are uncertain by a share [n], which is then left out of their constants."""
    return tuple(
        replace(fit, unexplained_over_load=float(np.hypot(fit.unexplained_over_load, share)))
        for fit, share in zip(fits, error, strict=True)
    )


def with_torque_constant(
    fit: JointEstimate, constant: float, std: float, source: str
) -> JointEstimate:
    """The fit with another torque constant; the friction moves along as least squares would.

    Args:
        fit: of one joint.
        constant: torque constant [N m/A].
        std: its standard deviation [N m/A].
        source: stage that told it.
    """
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
    fit: JointEstimate, believed: float, spread: float
) -> tuple[float, float] | None:
    """Reflected inertia and its deviation with what the currents tell, joint side [kg m^2].

    It goes with the torque constant as far as the regression left that open; what the model leaves
    out has no such direction, and gives what was believed more weight.

    Args:
        fit: of one joint.
        believed: inertia before the currents were seen [kg m^2].
        spread: its deviation [kg m^2].

    Returns:
        None where the currents were not asked.
    """
    if fit.inertia is None:
        return None
    inverse = 1.0 / fit.regressed_constant
    statistical = (fit.regressed_std * inverse**2) ** 2
    left_out = (model_error(fit) * inverse) ** 2
    change = (1.0 / fit.torque_constant - inverse) * statistical / (statistical + left_out)
    value, std = fit.inertia.inertia_at(
        inverse, change, min(float(fit.covariance[0, 0]), statistical)
    )
    data = max(1.0 / max(std, 1e-9) ** 2 - 1.0 / spread**2, 0.0)
    if data == 0.0:
        return value, std
    shown = (value / std**2 - believed / spread**2) / data
    weight = 1.0 / (1.0 / data + fit.inertia.left_out**2 + (MODEL_ERROR * value) ** 2)
    precision = weight + 1.0 / spread**2
    value = (shown * weight + believed / spread**2) / precision
    return max(value, 0.0), float(np.sqrt(1.0 / precision))


def _alone(fit: JointEstimate) -> JointEstimate:
    """The fit with the regression's torque constant, model error included."""
    deviation = _own_deviation(fit) * fit.regressed_constant
    return with_torque_constant(
        fit, fit.regressed_constant, deviation, fit.source["torque_constant"]
    )


def _own_deviation(fit: JointEstimate) -> float:
    """Relative deviation of the regression's torque constant, model error included."""
    return float(np.hypot(fit.regressed_std / fit.regressed_constant, model_error(fit)))
