# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Torque constants of the joints: what limits their accuracy, and what joints share.

The current regression shows torque constants relative to the torque of the links, whose
published masses are not exact. Joints of one motor size, other arms of a fleet and constants
that the controller states narrow them down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.controller_constants import CONTROLLER, ControllerConstants
from ur_energy_model.model.drive_errors import (
    FRICTION_COEFFICIENTS,
    LOAD_COEFFICIENT,
    LoadShare,
)
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.friction import Friction
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

MODEL_ERROR = 0.01
"""Relative error of a torque constant by nominal masses and link tensors."""
LINK_WEIGHT_ERROR = 0.03
"""Common relative error of the links' weight: cables, covers and screws are in no
published link. Torque constants from links and from known payloads differed by 1 to 3 %
on three arms (UR3e, UR5e, UR10e). It adds to the differences between torque constants of
one arm."""
JOINT_WEIGHT_ERROR = 0.02
"""Relative error of the links' weight at each joint, beyond the common one, as the joints
of one arm differed."""
ARM_SPREAD = 0.12
"""Spread of torque constants between arms of one type, relative; factory calibrations
differ by more than 10 %."""
JOINT_SPREAD = 0.04  # spread between motors of one size in one arm, relative

FLEET = "other arms of the fleet"
FLEET_POWER = "bus_power of other arms of the fleet"
"""Sources of a torque constant that the recordings of the arm hardly show: currents and bus power
of other arms."""
_UNSEEN = 1e6  # variance of a constant that no current shows
_FROM_LINKS = ("current", "joints of the same size", FLEET)
"""Sources of torque constants that have the error of the links' weight."""


class InertiaFromCurrent(NamedTuple):
    """Reflected inertia of one joint.

    Attributes:
        nominal: inertia that the load was computed with, joint side [kg m^2].
        excess: (inertia - nominal) / k_t [kg m^2 A/(N m)].
        slope: change of `excess` with 1/k_t along the regression [kg m^2].
        rest: variance of `excess` at a given 1/k_t.
        left_out: standard deviation of the inertia at a given 1/k_t beyond the
            statistical one [kg m^2]: the systematic part of the residual that
            acceleration could explain.
    """

    nominal: float
    excess: float
    slope: float
    rest: float
    left_out: float


@dataclass(frozen=True)
class JointEstimate:
    """Result of the current regression for one joint.

    Attributes:
        torque_constant: torque constant, motor side [N m/A].
        torque_constant_std: standard deviation of the torque constant [N m/A].
        friction: friction parameters by name, motor side.
        friction_std: standard deviations of the friction parameters by name.
        covariance: covariance of (load factor / k_t, friction parameters / k_t)
            [1 + p, 1 + p], see `JointModel.current_covariance`.
        source: "current" or "prior", by quantity.
        residual: RMS error of the current while moving [A], NaN if the joint did not move.
        regressed_constant: torque constant from currents alone, motor side [N m/A].
        regressed_std: standard deviation of `regressed_constant` [N m/A].
        reason: reason for the choice of the law, in words.
        comparison: held-out RMS [A] by law name.
        unexplained_over_load: RMS of the residual's systematic part over the RMS of the
            current for the load; infinite if the joint did not move.
        load_error: relative uncertainty of the load from mounting and payload.
        session_scales: friction of each session in which the joint moved, over the fitted
            one.
        session_deviations: standard deviations of the scales.
        sessions: numbers of these sessions.
        inertia: reflected inertia fitted too; None if it was known or the joint did not
            move.
        load_factor: see `JointModel.load_factor`.
        shape_std: standard deviations of the fitted shape constants by name.
        friction_std_of_shape: the part of `friction_std` that comes from them. It is not
            in `covariance`: torques change little where constants and parameters change
            together.
    """

    torque_constant: float
    torque_constant_std: float
    friction: Friction
    friction_std: dict[str, float]
    covariance: Array
    source: dict[str, str]
    residual: float
    regressed_constant: float
    regressed_std: float
    reason: str = ""
    comparison: dict[str, float] = field(default_factory=dict)
    unexplained_over_load: float = float("inf")
    load_error: float = 0.0
    session_scales: Array = field(default_factory=lambda: np.ones(0))
    session_deviations: Array = field(default_factory=lambda: np.zeros(0))
    sessions: tuple[int, ...] = ()
    inertia: InertiaFromCurrent | None = None
    load_factor: float = 1.0
    shape_std: dict[str, float] = field(default_factory=dict)
    friction_std_of_shape: dict[str, float] = field(default_factory=dict)

    def with_friction_std(self, deviations: Mapping[str, float]) -> JointEstimate:
        """The estimate with standard deviations of the friction parameters.

        Args:
            deviations: deviations by name, as from `covariance`; those that come from the
                shape constants are added.
        """
        whole = {
            name: float(np.hypot(std, self.friction_std_of_shape.get(name, 0.0)))
            for name, std in deviations.items()
        }
        return replace(self, friction_std=whole)

    @property
    def load_per_ampere(self) -> float:
        """Load that a current holds, by the links' published masses, motor side [N m/A]."""
        return self.torque_constant / self.load_factor

    @property
    def load_scale_error(self) -> float:
        """Relative error of the load's scale: masses, mounting and payload."""
        return float(np.hypot(MODEL_ERROR, self.load_error))

    @property
    def statistical_deviation(self) -> float:
        """Relative deviation of the regression's torque constant without the load's error."""
        return float(
            np.hypot(
                self.regressed_std / self.regressed_constant, self.unexplained_over_load
            )
        )

    @property
    def own_deviation(self) -> float:
        """Relative deviation of the regression's torque constant, model error included."""
        return float(np.hypot(self.statistical_deviation, self.load_scale_error))

    @property
    def stated_deviation(self) -> float:
        """Standard deviation of the torque constant to report [N m/A].

        It includes the error of the links' weight where the constant comes from their
        torque.
        """
        links = LINK_WEIGHT_ERROR * (self.source["torque_constant"] in _FROM_LINKS)
        return float(np.hypot(self.torque_constant_std, links * self.torque_constant))

    def in_order(self, places: Sequence[int]) -> JointEstimate:
        """The estimate with its sessions in another order.

        Args:
            places: new numbers of all sessions.
        """
        if not self.sessions:
            return self
        numbers = np.array([places[number] for number in self.sessions])
        order = np.argsort(numbers)
        return replace(
            self,
            session_scales=self.session_scales[order],
            session_deviations=self.session_deviations[order],
            sessions=tuple(numbers[order].tolist()),
        )


def deviation_without_links(joint: JointModel) -> float:
    """Stated deviation of a torque constant without the error of the links' weight, relative."""
    links = LINK_WEIGHT_ERROR * (joint.source.get("torque_constant") in _FROM_LINKS)
    stated = joint.std.get("torque_constant", 0.0) / joint.torque_constant
    return float(np.sqrt(max(stated**2 - links**2, 0.0)))


class LoadErrors(NamedTuple):
    """Relative errors of the loads by links that n joints hold per ampere.

    Attributes:
        data: errors from the currents that the model was identified with [n].
        prior: covariance of the errors of the weight of links, as known before [n, n].
    """

    data: Array
    prior: Array


def load_errors(joints: Sequence[JointModel]) -> LoadErrors:
    """Relative errors of a model's currents for the load of its links.

    Where the controller states the torque constant, data and the weight of links weigh by
    their variances: the posterior variance r^2 over the variance of the weight, p^2, is
    the weight's share.

    Args:
        joints: joints of the model [n].
    """
    data = np.array([deviation_without_links(joint) for joint in joints])
    stated = [joint.source.get("torque_constant") == CONTROLLER for joint in joints]
    share = np.zeros(len(joints))
    for j in np.flatnonzero(stated).tolist():
        joint = joints[j]
        own = joint.std.get("torque_constant", 0.0) / joint.torque_constant
        before = LINK_WEIGHT_ERROR**2 + JOINT_WEIGHT_ERROR**2 + own**2
        load_per_ampere = joint.torque_constant / joint.load_factor
        variance = joint.load_variance * load_per_ampere**2
        share[j] = min(variance / before, 1.0)
        data[j] = np.sqrt((1.0 - share[j]) * variance)
    prior = np.outer(share, share) * LINK_WEIGHT_ERROR**2
    return LoadErrors(data, prior + np.diag(np.square(share * JOINT_WEIGHT_ERROR)))


def friction_from_coefficients(
    coefficients: Array, covariance: Array
) -> tuple[Array, Array]:
    """Friction parameters and their standard deviations [p], [p], motor side.

    Args:
        coefficients: 1/k_t and the friction parameters over k_t [1 + p].
        covariance: covariance of the coefficients [1 + p, 1 + p].
    """
    inverse = coefficients[LOAD_COEFFICIENT]
    values = coefficients[FRICTION_COEFFICIENTS] / inverse
    # d(parameter) = d(coefficient)/inverse - parameter/inverse d(inverse)
    slopes = np.column_stack([-values / inverse, np.eye(len(values)) / inverse])
    return values, np.asarray(np.sqrt(np.diag(slopes @ covariance @ slopes.T)))


def with_torque_constant(
    fit: JointEstimate, constant: float, std: float, source: str
) -> JointEstimate:
    """The fit with another torque constant [N m/A], friction adjusted by its covariance with it.

    Args:
        fit: fit of the joint.
        constant: torque constant, motor side [N m/A].
        std: standard deviation of the constant [N m/A].
        source: the stage that it comes from.
    """
    coefficients = np.append(1.0, fit.friction.values) / fit.torque_constant
    load = LoadShare.of(fit.covariance)
    change = 1.0 / constant - coefficients[LOAD_COEFFICIENT]
    coefficients = coefficients + load.gain * change
    covariance = load.with_deviation(std / constant**2)
    values, deviations = friction_from_coefficients(coefficients, covariance)
    names = fit.friction.law.parameters
    parameters = dict(zip(names, values.tolist(), strict=True))
    changed = replace(
        fit,
        torque_constant=constant,
        torque_constant_std=std,
        friction=replace(fit.friction, parameters=parameters),
        covariance=covariance,
        source={**fit.source, "torque_constant": source},
    )
    return changed.with_friction_std(dict(zip(names, deviations.tolist(), strict=True)))


def with_stated_constant(
    fit: JointEstimate, constant: float, std: float, load_factor: float, load_error: float
) -> JointEstimate:
    """The fit with a torque constant that is known apart from the currents.

    Currents for the load follow from its factor and the constant, friction by its
    covariance with them.

    Args:
        fit: fit of the currents.
        constant: torque constant, motor side [N m/A].
        std: standard deviation of the constant [N m/A].
        load_factor: see `JointModel.load_factor`.
        load_error: standard deviation of the load over the constant, relative.
    """
    per_ampere = constant / load_factor
    fit = with_torque_constant(fit, per_ampere, load_error * per_ampere, CONTROLLER)
    names = fit.friction.law.parameters
    values = dict(zip(names, (load_factor * fit.friction.values).tolist(), strict=True))
    of_constant = np.abs(fit.friction.values) * load_factor * std / constant
    own = constant * np.sqrt(np.diag(fit.covariance)[FRICTION_COEFFICIENTS])
    deviations = np.hypot(own, of_constant).tolist()
    changed = replace(
        fit,
        torque_constant=constant,
        torque_constant_std=std,
        load_factor=load_factor,
        friction=replace(fit.friction, parameters=values),
    )
    return changed.with_friction_std(dict(zip(names, deviations, strict=True)))


@dataclass(frozen=True)
class TorqueConstantPrior:
    """Prior of the torque constants of n joints, relative to the robot file's constants.

    Attributes:
        mean: means of the torque constants [n].
        covariance: covariance of the joints [n, n].
        independent: part of each joint's variance that no other joint shares [n].
        source: source of the constants that come from the prior [n].
    """

    mean: Array
    covariance: Array
    independent: Array
    source: tuple[str, ...]

    @classmethod
    def of_type(cls, robot: RobotDescription) -> TorqueConstantPrior:
        """Of any arm of a type: ARM_SPREAD in common, JOINT_SPREAD of each joint."""
        same = robot.torque_constant[:, None] == robot.torque_constant[None, :]
        independent = np.full(robot.dof, JOINT_SPREAD**2)
        covariance = ARM_SPREAD**2 * same + np.diag(independent)
        return cls(np.ones(robot.dof), covariance, independent, ("prior",) * robot.dof)


def with_shared_sizes(
    fits: Sequence[JointEstimate],
    robot: RobotDescription,
    prior: TorqueConstantPrior | None = None,
    stated: ControllerConstants | None = None,
) -> tuple[JointEstimate, ...]:
    """Torque constants with the information of joints of the same motor size.

    A hierarchical normal model: the joints of a size have the prior's mean and covariance
    (of a fleet, or of the type), the regressions lie around the joints with their
    statistical and model errors. Joints without a constant in the robot file are left
    alone. Constants that the controller states take the place of what the currents show,
    which is five times less certain, because it depends on the weight of the links.

    Args:
        fits: fits of the n joints.
        robot: the arm; joints with equal torque constants in its file have one size.
        prior: prior of a fleet; None for the prior of the type.
        stated: constants that the controller states; None for none.
    """
    n = robot.dof
    stated = ControllerConstants.unknown(n) if stated is None else stated
    given = stated.torque_per_ampere / robot.gear_ratio
    out = list(fits)
    for j, fit in enumerate(fits):
        if np.isfinite(fit.unexplained_over_load):
            std = fit.own_deviation * fit.regressed_constant
            source = fit.source["torque_constant"]
            out[j] = with_torque_constant(fit, fit.regressed_constant, std, source)
    known = TorqueConstantPrior.of_type(robot) if prior is None else prior
    finite = np.isfinite(robot.torque_constant)
    for nominal in np.unique(robot.torque_constant[finite]):
        group = np.flatnonzero(robot.torque_constant == nominal).tolist()
        own = np.array([fits[j].own_deviation for j in group])
        shown = np.array([fits[j].regressed_constant / nominal for j in group])
        known_here = stated.known[group]
        own = np.where(known_here, stated.relative_deviation[group], own)
        shown = np.where(known_here, given[group] / nominal, shown)
        covariance = known.covariance[np.ix_(group, group)]
        # Posterior of the joints, given their regressions and the prior.
        information = 1.0 / own**2
        posterior = np.linalg.inv(np.linalg.inv(covariance) + np.diag(information))
        expected = known.mean[group]
        value = expected + posterior @ (information * np.nan_to_num(shown - expected))
        for i, j in enumerate(group):
            variance = float(posterior[i, i])
            free = float(known.independent[j])
            # Variance of the joint without its own regression, by prior and other joints.
            spread = 1.0 / max(1.0 / variance - information[i], 1e-12)
            source = known.source[j]
            if own[i] ** 2 < spread:
                source = "current"
            elif spread - free < 0.5 * (covariance[i, i] - free):
                source = "joints of the same size"
            std = float(np.sqrt(variance) * nominal)
            out[j] = with_torque_constant(fits[j], float(value[i] * nominal), std, source)
    return _with_stated_constants(tuple(fits), tuple(out), given, stated)


def _with_stated_constants(
    fits: tuple[JointEstimate, ...],
    shared: tuple[JointEstimate, ...],
    given: Array,
    stated: ControllerConstants,
) -> tuple[JointEstimate, ...]:
    """Joints with the torque constants that the controller states, where it does.

    Stated over regressed constants show what links weigh beyond their published masses:
    in common by LINK_WEIGHT_ERROR, and at each joint by the errors of the regression.
    Joints whose currents hardly show it have the common one.

    Args:
        fits: fits from the currents [n].
        shared: estimates that are final for joints without a stated constant [n].
        given: stated torque constants, motor side [n], N m/A.
        stated: torque constants that the controller states.
    """
    known = np.flatnonzero(stated.known).tolist()
    if not known:
        return shared
    deviation = stated.relative_deviation[known]
    own = np.array([fits[j].statistical_deviation for j in known])
    regressed = np.array([fits[j].regressed_constant for j in known])
    shown = np.isfinite(own) & (regressed > 0)
    measured = np.log(
        np.where(shown, given[known] / np.where(shown, regressed, 1.0), 1.0)
    )
    noise = np.where(shown, np.square(own), _UNSEEN)
    joint_error = [np.hypot(JOINT_WEIGHT_ERROR, fits[j].load_error) for j in known]
    weight = LINK_WEIGHT_ERROR**2 + np.diag(np.square(joint_error))
    per_current = weight + np.diag(np.square(deviation))
    inverse = np.linalg.inv(per_current + np.diag(noise))
    factors = np.exp(weight @ inverse @ measured)
    left = np.sqrt(np.diag(per_current - per_current @ inverse @ per_current))
    joints = list(shared)
    for k, j in enumerate(known):
        std = float(deviation[k] * given[j])
        factor = float(factors[k])
        joints[j] = with_stated_constant(
            fits[j], float(given[j]), std, factor, float(left[k])
        )
    return tuple(joints)
