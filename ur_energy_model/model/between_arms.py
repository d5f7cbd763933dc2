# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Expectation for an arm from the model of another, identified arm of its type.

A parameter of an arm is the parameter of its type plus a deviation of the arm; the generic
model has the parameter of the type with some error. An identified arm measures the type
with two errors: the deviation of the arm from the type, and the error of its identification. By
Bayes' rule the expectation for another arm lies between the generic model and the identified arm,

    expected = generic + W (identified - generic),   W = T (T + A + E)^-1,
    covariance = T + A - W T,

with the covariances of the type T, between arms A, and of the identification E.
Parameters that differ from arm to arm (torque constants, friction) stay close to the
generic model; parameters that a type has in common (copper losses, conversion) follow the
identified arm. An arm identified from little motion has a large E and little weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.drive_errors import (
    FRICTION_COEFFICIENTS,
    BusErrorLayout,
    LoadShare,
)
from ur_energy_model.model.drives import BusModel, JointModel, square_root
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import Friction, FrictionBank
from ur_energy_model.model.sessions import friction_slopes, scaled_parameters
from ur_energy_model.typing import Array

# Motion that a model was identified from.

MOTION = "motion"
"""Key in the provenance of a model: energy above standstill to which its power was fitted [J], and
the time of this energy [s]."""
_NOTHING = 1e6  # relative error where there is no energy of motion
LITTLE_MOTION = 0.1
"""Relative error of the energy of motion beyond which it shows little of the drives, as with 8 J in
4 s."""


def motion_error(model: EnergyModel) -> float:
    """Relative error of the energy of motion that a model was identified from.

    The error is the part that is new in every motion and that no parameter explains, see
    `BusModel.motion_variance`. It is 0 for models of earlier versions.
    """
    motion = model.provenance.get(MOTION)
    if not isinstance(motion, Mapping):
        return 0.0
    energy = motion.get("energy")
    seconds = motion.get("seconds")
    if not isinstance(energy, int | float) or not isinstance(seconds, int | float):
        return 0.0  # the file was edited
    error = np.sqrt(model.bus.motion_variance * max(seconds, 0.0))
    return float(error / abs(energy)) if energy else _NOTHING


# Drives: copper loss, conversion, driver loss and drag.

COPPER_APART = 0.2
"""Relative spread of the copper factor between arms of a type: 0.26 to 0.33 on three UR5e and 0.53
on a UR3e, uncertain by 0.07 to 0.13 each, where 0.5 is typical."""
CONVERSION_APART = 0.02
"""Relative spread between arms of a type of the converted power over speed, current and torque
constant, where the controller states the torque constants: 0.88 to 0.95 on three arms whose drag
was free, a spread of 0.035. With the robot file's constants it is 0.08."""
DRIVER_APART = 0.03  # spread of driver losses between arms of a type [W/A]
_LEAST_VARIANCE = 1e-12  # variances below this share of the largest one count as zero


class DriveLayout:
    """Places of the parameters of n drives in one vector [3 n + 1].

    Args:
        joints: number of joints n.

    Attributes:
        resistance: winding resistances [n], ohm.
        conversion: conversion factors [n], back-EMF constant over torque constant.
        driver: driver losses [n], W/A.
        drag: drag, N m.
        bus_errors: columns of `BusModel.errors` of these parameters, where the columns of
            the conversion factors are of back-EMF constants.
    """

    def __init__(self, joints: int) -> None:
        self.resistance = slice(0, joints)
        self.conversion = slice(joints, 2 * joints)
        self.driver = slice(2 * joints, 3 * joints)
        self.drag = 3 * joints
        errors = BusErrorLayout(joints)
        self.bus_errors = slice(errors.resistance.start, errors.size)


class DriveParameters(NamedTuple):
    """Parameters of n drives other than torque constants, and their errors.

    Attributes:
        values: parameters [3 n + 1], at the places of `DriveLayout`.
        covariance: covariance of `values` [3 n + 1, 3 n + 1].
    """

    values: Array
    covariance: Array


def drive_parameters(model: EnergyModel) -> DriveParameters:
    """Drive parameters of a model, with their errors apart from errors of torque constants."""
    layout = DriveLayout(model.dof)
    joints = model.joints
    constant = np.array([joint.torque_constant for joint in joints])
    back_emf = np.array([joint.back_emf_constant for joint in joints])
    resistance = np.array([joint.winding_resistance for joint in joints])
    conversion = back_emf / constant
    errors = model.bus.errors.reshape(-1, BusErrorLayout(model.dof).size)
    rows = errors[:, layout.bus_errors].copy()
    # conversion = back-EMF constant / torque constant
    of_back_emf = rows[:, layout.conversion] / constant
    rows[:, layout.conversion] = of_back_emf - conversion * model.torque_constant_errors
    covariance = rows.T @ rows
    if model.bus.source == "bus_power":
        # Bus power shows the product of conversion and torque constant.
        std = np.array([joint.std.get("torque_constant", 0.0) for joint in joints])
        of_constant = np.square(conversion * std / constant)
        covariance[layout.conversion, layout.conversion] += np.diag(of_constant)
    values = np.concatenate([resistance, conversion, model.bus.driver, [model.bus.drag]])
    return DriveParameters(values, covariance)


def drives_of_another_arm(model: EnergyModel, kind: EnergyModel) -> DriveParameters:
    """Drive parameters expected of another arm.

    Args:
        model: model of an identified arm.
        kind: the generic model of its type.
    """
    of_type = drive_parameters(kind)
    if model.bus.kind != "physical" or model.bus.source != "bus_power":
        return of_type  # the arm's power was not measured, or not with these parameters
    own = drive_parameters(model)
    of_motion = motion_error(model) * own.values  # common to all losses
    own = own._replace(covariance=own.covariance + np.outer(of_motion, of_motion))
    layout = DriveLayout(model.dof)
    # All joints of an arm deviate by the same factor, or by the same driver loss.
    copper = COPPER_APART * of_type.values[layout.resistance]
    conversion = CONVERSION_APART * of_type.values[layout.conversion]
    driver = np.full(model.dof, DRIVER_APART)
    apart = np.zeros_like(of_type.covariance)
    apart[layout.resistance, layout.resistance] = np.outer(copper, copper)
    apart[layout.conversion, layout.conversion] = np.outer(conversion, conversion)
    apart[layout.driver, layout.driver] = np.outer(driver, driver)
    values, covariance = between(of_type, own, _positive_part(of_type.covariance - apart))
    return DriveParameters(np.maximum(values, _LEAST_SHARE * of_type.values), covariance)


_LEAST_SHARE = 0.1
"""Least value of a parameter over the type's: by chance a fit to bus power may be
negative."""


def between(
    of_type: DriveParameters, own: DriveParameters, type_covariance: Array
) -> tuple[Array, Array]:
    """Expectation for another arm [m] and its covariance [m, m], by the rule of this module.

    Args:
        of_type: values of the type, with the covariance of an arm around them, T + A.
        own: values identified on an arm, with the covariance E of the identification.
        type_covariance: T [m, m].
    """
    whole = of_type.covariance + own.covariance
    scale = np.sqrt(np.maximum(np.diag(whole), 1e-300))
    inverse = np.linalg.pinv(whole / np.outer(scale, scale), hermitian=True)
    weight = (type_covariance / scale) @ inverse / scale
    values = of_type.values + weight @ (own.values - of_type.values)
    covariance = of_type.covariance - weight @ type_covariance.T
    return values, _positive_part(covariance)


def _positive_part(covariance: Array) -> Array:
    """The covariance without what rounding makes negative."""
    root = square_root(0.5 * (covariance + covariance.T))
    return np.asarray(root @ root.T)


def with_drives(kind: EnergyModel, drives: DriveParameters) -> EnergyModel:
    """A generic model with other drive parameters; torque constants and their errors stay.

    Errors of torque constants, which back-EMF constants have as well, come first.
    """
    n = kind.dof
    constant = np.array([joint.torque_constant for joint in kind.joints])
    of_constants = kind.torque_constant_errors
    of_constants = of_constants[of_constants.any(axis=1)]
    layout = DriveLayout(n)
    columns = BusErrorLayout(n)
    resistance = drives.values[layout.resistance]
    conversion = drives.values[layout.conversion]
    scale = np.sqrt(np.maximum(np.diag(drives.covariance), 1e-300))
    root = square_root(drives.covariance / np.outer(scale, scale)).T * scale
    size = np.square(root / scale).sum(axis=1)
    root = root[size > _LEAST_VARIANCE * size.max()]
    first = len(of_constants)
    errors = np.zeros((first + len(root), columns.size))
    errors[:first, columns.back_emf] = of_constants * conversion * constant
    errors[first:, layout.bus_errors] = root
    errors[first:, columns.back_emf] *= constant
    torque_errors = np.concatenate([of_constants, np.zeros((len(root), n))])
    deviations = np.linalg.norm(errors, axis=0)
    resistance_std = deviations[columns.resistance]
    back_emf_std = deviations[columns.back_emf]
    joints = []
    for j, joint in enumerate(kind.joints):
        std = dict(joint.std)
        std["winding_resistance"] = float(resistance_std[j])
        std["back_emf_constant"] = float(back_emf_std[j])
        joints.append(
            replace(
                joint,
                winding_resistance=float(resistance[j]),
                back_emf_constant=float(conversion[j] * constant[j]),
                std=std,
            )
        )
    # `BusModel.std` has one deviation for the drivers of all joints: the first joint's.
    driver_std = float(deviations[columns.driver][0])
    bus: BusModel = replace(
        kind.bus,
        driver=drives.values[layout.driver],
        drag=float(drives.values[layout.drag]),
        errors=errors,
        torque_errors=torque_errors,
        std={**kind.bus.std, "driver": driver_std},
    )
    return replace(kind, joints=tuple(joints), bus=bus)


# Friction: level and form.

FRICTION_OF_TYPE = 0.6
"""Share of the deviation of friction from the generic model that arms of a type have in
common, as standard deviation: three UR5e have 1.3, 0.8 and 0.6 times the generic
friction, a UR3e 1.4."""
_SPEEDS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0)
"""Joint speeds at which the friction of two laws is compared [rad/s]."""
_LOADS = (-0.2, 0.0, 0.2)
"""Loads at which the friction of two laws is compared, over the rated torque."""
_FORM_ERROR = 0.05  # relative error of friction by the form of an identified law
_LEAST_FRICTION = 0.3
"""Least value of a friction parameter over the type's: friction never drives a joint."""


def friction_of_another_arm(
    own: JointModel, kind: JointModel, level: float, spread: float, rated: float
) -> Friction:
    """Friction expected of the same joint of another arm, by the law of its type.

    Friction torque transfers, not the current it takes. The friction of the identified
    joint at some speeds and loads measures the parameters of the type's law.

    Args:
        own: the identified joint.
        kind: the joint of the generic model.
        level: relative deviation of an arm's friction from the generic model's.
        spread: relative deviation of the friction of a session from the identified one.
        rated: torque of the joint [N m].
    """
    names = kind.friction.law.parameters
    if own.current_covariance.size == 0 or own.source.get("coulomb", "") == "prior":
        return kind.friction
    temperature = None
    if own.friction.temperature_range is not None:
        low, high = own.friction.temperature_range
        temperature = np.array([0.5 * (low + high)])
    terms = _friction_terms(own, own.friction, rated, temperature)
    torque = terms @ own.friction.values
    noise = _friction_noise(own, terms, spread)
    columns = _friction_terms(own, kind.friction, rated, temperature)
    values = kind.friction.values
    scaled = scaled_parameters(kind.friction.law)
    of_level = level * np.where(scaled, values, 0.0)
    form = kind.torque_constant * np.sqrt(np.maximum(_form_variance(kind), 0.0))
    whole = np.outer(of_level, of_level) + np.diag(np.square(form))
    of_type = FRICTION_OF_TYPE**2 * whole
    gain = of_type @ columns.T @ np.linalg.inv(columns @ whole @ columns.T + noise)
    changed = values + gain @ (torque - columns @ values)
    limited = scaled & (values > 0.0)
    least = _LEAST_FRICTION * values
    changed = np.where(limited, np.maximum(changed, least), changed)
    parameters = dict(zip(names, changed.tolist(), strict=True))
    return replace(kind.friction, parameters=parameters)


def _friction_terms(
    joint: JointModel, friction: Friction, rated: float, temperature: Array | None
) -> Array:
    """Terms of a friction at the compared speeds and loads of a joint [points, p], motor side."""
    speeds = np.array([*_SPEEDS, *(-speed for speed in _SPEEDS)])
    speed, load = np.meshgrid(speeds, rated * np.array(_LOADS))
    bank = FrictionBank([friction], np.array([joint.gear_ratio]))
    return bank.regressors(speed.reshape(-1, 1), load.reshape(-1, 1), temperature)[0]


def _friction_noise(own: JointModel, terms: Array, spread: float) -> Array:
    """Covariance of the friction torques [points] that an identified joint shows, (N m)^2.

    It has the errors of the joint's parameters, the spread between its sessions and the
    error of the law's form.

    Args:
        own: the identified joint.
        terms: terms of its friction law at the compared points [points, p], motor side.
        spread: relative deviation of the friction of a session from the identified one.
    """
    values = own.friction.values
    torque = terms @ values
    slopes = friction_slopes(own, terms) @ own.current_root
    scaled = scaled_parameters(own.friction.law)
    varying = spread * (terms @ np.where(scaled, values, 0.0))
    noise = slopes @ slopes.T + np.outer(varying, varying)
    return np.asarray(noise + np.diag(np.square(_FORM_ERROR * torque) + 1e-12))


def _form_variance(joint: JointModel) -> Array:
    """Variances of friction over torque constant beyond the torque constant's error [p]."""
    rest = LoadShare.of(joint.current_covariance).rest
    return np.asarray(np.diag(rest)[FRICTION_COEFFICIENTS])
