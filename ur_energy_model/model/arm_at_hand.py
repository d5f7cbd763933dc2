# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The arm at hand: a model for it, from a model of its type or of another arm.

Arms of one type have the same links, and motors, gears and supplies of one kind. Their
torque constants differ by more than 10 %, their friction by a third. The controller
states the torque constants of the arm at hand (`model.controller_constants`): with them
currents and powers follow from the model's torques. Friction transfers between arms as a
torque; the friction currents of an arm are these torques over the torque constants of this arm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.between_arms import (
    drives_of_another_arm,
    friction_of_another_arm,
    with_drives,
)
from ur_energy_model.model.controller_constants import CONTROLLER, ControllerConstants
from ur_energy_model.model.drive_errors import (
    FRICTION_COEFFICIENTS,
    LOAD_COEFFICIENT,
    BusErrorLayout,
    LoadShare,
)
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import (
    CalibrationLayout,
    EnergyModel,
    PayloadCalibration,
)
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session, SessionSpread
from ur_energy_model.typing import Array, Mask

# Torque constants of the arm at hand, as its controller states them.


def with_controller_constants(
    model: EnergyModel, constants: ControllerConstants
) -> EnergyModel:
    """A model with the torque constants that the controller of the arm at hand states.

    The constants of the model are the prior, which hardly counts if the model is of a type
    or of another arm; the stated constants are measurements with their deviations. Friction
    changes by its covariance with the torque constant, and back-EMF constants as far as they
    share the errors of torque constants. Constants that were not stated change by their
    covariance with the others.

    A joint whose stated constant was known when the model was identified is not changed. If
    the constants are of another arm than the model, they replace the constants of the model.

    Args:
        model: model of the arm, of its type, or of another arm (`on_another_arm`).
        constants: constants of the arm at hand.
    """
    known = constants.known
    held = model.controller_constants
    if held is not None and held.same_arm(constants) is False:
        model = _with_any_constants(model)
        held = None
    if held is not None:
        known = known & ~held.known
    if not known.any():
        return model
    before = _constant_errors(model)
    own = np.array([joint.torque_constant for joint in model.joints])
    stated = constants.torque_per_ampere / [joint.gear_ratio for joint in model.joints]
    measured = np.log(np.where(known, stated, own) / own)
    mean, root = _posterior(before.torque, measured, constants.relative_deviation, known)
    torque = root @ before.torque
    changes = mean @ before.torque
    deviations = np.linalg.norm(torque, axis=0)
    joints = tuple(
        _with_constant(joint, float(changes[j]), float(deviations[j]), bool(known[j]))
        for j, joint in enumerate(model.joints)
    )
    bus = model.bus
    if before.shared:
        joints, bus = _with_bus_errors(joints, bus, mean @ before.bus, root @ before.bus)
        bus = replace(bus, torque_errors=torque)
    return replace(
        model,
        joints=joints,
        bus=bus,
        payload_calibration=_with_gains(model.payload_calibration, np.exp(changes)),
        controller_constants=_joined(held, constants, known),
    )


class _ConstantErrors(NamedTuple):
    """Independent errors of a model of n joints, one standard deviation each.

    These are the errors of the bus model, and behind them an error of each torque constant
    for the part of its deviation that the bus model does not explain.

    Attributes:
        bus: changes of the parameters [k, 3 n + 2], see `BusModel.errors`.
        torque: relative changes of the torque constants [k, n].
        shared: whether errors of the bus model change torque constants.
    """

    bus: Array
    torque: Array
    shared: bool


def _constant_errors(model: EnergyModel) -> _ConstantErrors:
    """The errors of a model that change its torque constants, and others of its bus model."""
    joints = model.joints
    n = model.dof
    constant = np.array([joint.torque_constant for joint in joints])
    std = np.array([joint.std.get("torque_constant", 0.0) for joint in joints])
    load_variance = np.array([joint.load_variance for joint in joints])
    variance = np.maximum(np.square(std / constant), np.square(constant) * load_variance)
    torque = model.torque_constant_errors
    # Errors of the back-EMF constants may be larger than the errors of the torque constants.
    together = np.square(torque).sum(axis=0)
    excess = together > variance
    reduction = np.sqrt(variance / np.where(excess, together, 1.0))
    torque = torque * np.where(excess, reduction, 1.0)
    left = np.maximum(variance - np.square(torque).sum(axis=0), 0.0)
    single = np.diag(np.sqrt(left))
    size = BusErrorLayout(n).size
    bus = model.bus.errors.reshape(-1, size)
    return _ConstantErrors(
        bus=np.concatenate([bus, np.zeros((n, size))]),
        torque=np.concatenate([torque, single]),
        shared=bool(torque.any()),
    )


def _posterior(
    errors: Array, measured: Array, noise: Array, known: Mask
) -> tuple[Array, Array]:
    """Means [k] of independent errors, and a square root [k, k] of their covariance.

    Args:
        errors: changes of the torque constants per error [k, n], relative.
        measured: deviations of the stated constants from the model's [n], natural
            logarithm.
        noise: standard deviations of these values [n].
        known: joints whose constant was stated [n].
    """
    of_known = errors[:, known]
    covariance = of_known.T @ of_known + np.diag(np.square(noise[known]))
    gain = np.linalg.solve(covariance, of_known.T).T
    left = np.eye(len(errors)) - gain @ of_known.T
    values, vectors = np.linalg.eigh(0.5 * (left + left.T))
    root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    return gain @ measured[known], root


def _with_constant(
    joint: JointModel, change: float, deviation: float, stated: bool
) -> JointModel:
    """A joint whose torque constant is larger by a factor.

    The coefficients of the current follow by their covariance with the coefficient of the
    load, load factor / k_t.

    Args:
        joint: joint with the torque constant before.
        change: natural logarithm of the factor.
        deviation: relative standard deviation of the new torque constant.
        stated: whether the controller has stated it.
    """
    constant = float(joint.torque_constant * np.exp(change))
    std = {**joint.std, "torque_constant": float(deviation * constant)}
    source = joint.source
    if stated:
        source = {**source, "torque_constant": CONTROLLER}
    joint = replace(joint, std=std, source=source)
    if not joint.load_variance > 0.0:
        return replace(joint, torque_constant=constant)
    ratio = joint.torque_constant / constant
    before = joint.current_coefficients
    load = LoadShare.of(joint.current_covariance)
    after = before + load.gain * (ratio - 1.0) * before[LOAD_COEFFICIENT]
    over_load = after[FRICTION_COEFFICIENTS] / after[LOAD_COEFFICIENT]
    values = (joint.load_factor * over_load).tolist()
    parameters = dict(zip(joint.friction.law.parameters, values, strict=True))
    # Beyond the error of the constant, currents scale with the ratio.
    scaled = load._replace(rest=ratio**2 * load.rest)
    return replace(
        joint,
        torque_constant=constant,
        friction=replace(joint.friction, parameters=parameters),
        current_covariance=scaled.with_deviation(deviation * after[LOAD_COEFFICIENT]),
    )


def _with_bus_errors(
    joints: tuple[JointModel, ...], bus: BusModel, change: Array, errors: Array
) -> tuple[tuple[JointModel, ...], BusModel]:
    """Joints and bus with a change [3 n + 2] of their parameters, and errors [k, 3 n + 2].

    Back-EMF constants change by a factor, with their errors.
    """
    layout = BusErrorLayout(len(joints))
    back_emf = np.array([joint.back_emf_constant for joint in joints])
    of_back_emf = change[layout.back_emf]
    factors = np.exp(of_back_emf / np.where(back_emf > 0.0, back_emf, np.inf))
    errors = errors.copy()
    errors[:, layout.back_emf] *= factors
    deviations = np.linalg.norm(errors, axis=0)
    resistance = np.array([joint.winding_resistance for joint in joints])
    resistance = resistance + change[layout.resistance]
    resistance_std = deviations[layout.resistance]
    back_emf_std = deviations[layout.back_emf]
    changed = []
    for j, joint in enumerate(joints):
        std = dict(joint.std)
        std["winding_resistance"] = float(resistance_std[j])
        std["back_emf_constant"] = float(back_emf_std[j])
        changed.append(
            replace(
                joint,
                winding_resistance=float(resistance[j]),
                back_emf_constant=float(joint.back_emf_constant * factors[j]),
                std=std,
            )
        )
    bus = replace(
        bus,
        standby=float(bus.standby + change[layout.standby]),
        driver=bus.driver + change[layout.driver],
        drag=float(bus.drag + change[layout.drag]),
        errors=errors,
    )
    return tuple(changed), bus


def _with_gains(
    calibration: PayloadCalibration | None, factors: Array
) -> PayloadCalibration | None:
    """The calibration for a model whose torque constants were multiplied by factors [n]."""
    if calibration is None:
        return None
    scale = np.ones(len(calibration.vector))
    scale[CalibrationLayout(calibration.dof).link_gain] = factors
    return PayloadCalibration.from_vector(
        scale * calibration.vector, scale[:, None] * calibration.covariance * scale
    )


def _joined(
    held: ControllerConstants | None, stated: ControllerConstants, new: Mask
) -> ControllerConstants:
    """Constants that a model has, replaced by stated ones where these are new [n]."""
    if held is None:
        return stated
    return ControllerConstants(
        np.where(new, stated.torque_per_ampere, held.torque_per_ampere),
        np.where(new, stated.std, held.std),
    )


ARMS_APART = 0.17
"""Relative deviation between the torque constants of two arms of a type: more than 10 %
between factory calibrations, 2 to 16 % between six arms and the robot files."""


def _with_any_constants(model: EnergyModel) -> EnergyModel:
    """A model whose torque constants are as uncertain as the constants of another arm.

    Its friction torques stay.
    """
    joints = []
    for joint in model.joints:
        before = joint.std.get("torque_constant", 0.0)
        between_arms = ARMS_APART * joint.torque_constant
        std = {**joint.std, "torque_constant": float(np.hypot(before, between_arms))}
        apart = ARMS_APART * joint.current_coefficients
        known = joint.current_root
        covariance = known @ known.T + np.outer(apart, apart)
        joints.append(replace(joint, std=std, current_covariance=covariance))
    return replace(model, joints=tuple(joints), controller_constants=None)


# Models of another arm.

STANDBY_OF_TYPE = 2.0
"""Deviation of a type's standby power from the generic model's [W]; arms of a type have
24.2, 29.3 and 36.0 W."""


def on_another_arm(model: EnergyModel) -> EnergyModel:
    """A model for another arm of the same type.

    It is a model between the generic one of the type and the identified one, see
    `model.between_arms`. Torque constants are the type's, until the controller of the arm
    states its own. The session, the wall and the calibration with a payload are dropped.

    Args:
        model: model that was identified on one arm.

    Raises:
        RobotFileError: no such robot.
        ModelFileError: the robot has no generic model.
    """
    robot = load_robot(model.robot)
    kind = generic_model(robot)
    own = model.in_session(
        Session.unanchored(model.bus.standby, model.sessions, model.dof)
    )
    found = with_drives(kind, drives_of_another_arm(own, kind))
    level = kind.sessions.friction_of(model.dof)
    spread = model.sessions.friction_of(model.dof)
    rated = robot.rated_torque
    joints = []
    for j, (of_arm, of_type) in enumerate(zip(own.joints, found.joints, strict=True)):
        joints.append(
            _joint_of_another_arm(
                of_arm, of_type, float(level[j]), float(spread[j]), float(rated[j])
            )
        )
    sessions, standby = _standby_of_another_arm(own, kind)
    bus = replace(
        found.bus,
        standby=standby,
        std={
            **found.bus.std,
            "standby": sessions.standby,
            "motion": max(found.bus.motion_std, own.bus.motion_std),
        },
        capacitor_energy=own.bus.capacitor_energy,
        mode_power=own.bus.mode_power,
        residual=own.bus.residual,
        reason="between the type and another arm of it",
    )
    return replace(
        model,
        joints=tuple(joints),
        bus=bus,
        sessions=sessions,
        anchored=None,
        wall=None,
        cable=None,
        payload_calibration=None,
        controller_constants=None,
    )


def _joint_of_another_arm(
    own: JointModel, kind: JointModel, level: float, spread: float, rated: float
) -> JointModel:
    """A joint of another arm, from an identified joint and from the joint of its type.

    The covariance of the coefficients of its current is the generic one, scaled to its
    friction. What links weigh beyond their published masses is not learnt: recordings of
    four arms have load factors of 0.97 to 1.08, two of one arm 0.99 and 1.08.

    Args:
        own: the identified joint.
        kind: the joint of the type, with the drives expected of another arm.
        level: relative deviation of an arm's friction from the generic model's.
        spread: relative deviation of the friction of a session from the identified one.
        rated: rated torque of the joint [N m].
    """
    friction = friction_of_another_arm(own, kind, level, spread, rated)
    before = np.append(1.0, kind.friction.values) / kind.torque_constant
    after = np.append(1.0, friction.values) / kind.torque_constant
    share = kind.load_variance / before[LOAD_COEFFICIENT] ** 2
    form = kind.current_covariance - share * np.outer(before, before)
    inertia = own.reflected_inertia
    inertia_std = own.std.get("reflected_inertia", np.inf)
    spread_of_type = kind.std["reflected_inertia"]
    if own.source.get("reflected_inertia") == "prior" or inertia_std > spread_of_type:
        inertia = kind.reflected_inertia
        inertia_std = spread_of_type
    between_arms = INERTIA_APART * inertia
    std = {**kind.std, "reflected_inertia": float(np.hypot(inertia_std, between_arms))}
    return replace(
        kind,
        reflected_inertia=inertia,
        friction=friction,
        std=std,
        current_covariance=share * np.outer(after, after) + form,
        current_residual=max(own.current_residual, kind.current_residual),
    )


INERTIA_APART = 0.01
"""Relative spread of rotor inertias between arms; target_moment shows the
controller's."""


def _standby_of_another_arm(
    own: EnergyModel, kind: EnergyModel
) -> tuple[SessionSpread, float]:
    """Spread between the sessions of any arm, and standby power [W]."""
    spread = kind.sessions.standby
    error = float(np.hypot(own.bus.std.get("standby", 0.0), own.sessions.standby))
    whole = np.square([STANDBY_OF_TYPE, spread, error]).sum()
    weight = STANDBY_OF_TYPE**2 / whole if own.bus.source == "bus_power" else 0.0
    standby = kind.bus.standby + weight * (own.bus.standby - kind.bus.standby)
    std = float(np.sqrt(spread**2 + STANDBY_OF_TYPE**2 * (1.0 - weight)))
    return SessionSpread(std, kind.sessions.friction), float(standby)
