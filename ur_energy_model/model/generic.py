# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generic models: the prior of an arm not yet identified.

config/models contains one per arm type, made by `python -m tools.generic_models`. Its standard
deviations are those between arms of the type; docs/generic_models.md states where they come from.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import ModelFileError
from ur_energy_model.files import config_file
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.sessions import Session, SessionSpread, scaled_parameters
from ur_energy_model.typing import Array

GENERIC = "generic"
"""`model` in JSON output if no file was given, and `origin` in the provenance of such a model."""

_TWO_ARMS = float(np.sqrt(2.0))
"""Difference between two arms over the deviation of one from its type."""


def generic_models() -> tuple[str, ...]:
    """Names of the robots that have a generic model."""
    return tuple(sorted(path.stem for path in config_file("models").glob("*.yaml")))


def generic_model(robot: str | RobotDescription) -> EnergyModel:
    """The generic model of an arm type: mounted upright, without payload.

    Args:
        robot: description of the arm, or its name ("ur5e").

    Raises:
        RobotFileError: no such robot.
        ModelFileError: the robot has no generic model, as robots of the user's files.
    """
    description = load_robot(robot) if isinstance(robot, str) else robot
    known = generic_models()
    # A file of the user may describe another arm under a known name.
    if description.source not in known:
        problem = f"this robot has no generic model, only {', '.join(known)} have one"
        remedy = "identify a model of it (ur_energy identify) and give that"
        raise ModelFileError(description.source or description.name, problem, remedy)
    return load_model(config_file("models", f"{description.source}.yaml"))


def on_another_arm(model: EnergyModel) -> EnergyModel:
    """A model with the uncertainty that it has for another arm of the same type.

    Two arms differ by sqrt(2) times what an arm deviates from its type, which the generic model
    states; the errors of the identification are added. What copper and driver losses of several
    motors have in common is their type's, and in the identified arm as uncertain as those errors
    state: it is not added. What was known of a session, and of the wall, is dropped.

    Args:
        model: identified on one arm.

    Raises:
        RobotFileError: no such robot.
        ModelFileError: the robot has no generic model.
    """
    kind = generic_model(load_robot(model.robot))
    model = model.in_session(Session.unanchored(model.bus.standby, model.sessions, model.dof))
    both = tuple(zip(model.joints, kind.joints, strict=True))
    level = float(np.mean([own.back_emf_constant / each.back_emf_constant for own, each in both]))
    joints = tuple(_joint_of_another_arm(own, each, level) for own, each in both)
    own = model.bus.errors if model.bus.errors.size else np.zeros((0, kind.bus.errors.shape[1]))
    # With the source "prior" the errors of torque and back-EMF constants are those of one motor.
    of_one = np.count_nonzero(kind.bus.errors[:, 1 : model.dof + 1], axis=1) < 2
    of_one[-1] = False  # of the drivers
    errors = np.concatenate([own, _TWO_ARMS * kind.bus.errors[of_one]])
    bus = replace(model.bus, errors=errors, source="prior")
    spread = SessionSpread(
        max(model.sessions.standby, _TWO_ARMS * kind.sessions.standby),
        np.maximum(
            model.sessions.friction_of(model.dof),
            _TWO_ARMS * kind.sessions.friction_of(model.dof),
        ),
    )
    return replace(model, joints=joints, bus=bus, sessions=spread, anchored=None, wall=None)


def _joint_of_another_arm(joint: JointModel, kind: JointModel, level: float) -> JointModel:
    """An identified joint with the errors of the same joint, of a type, of another arm.

    Constants that the robot file has are these times their `level` in the identified arm.
    """
    if kind.source["back_emf_constant"] == "robot file" and joint.back_emf_constant > 0:
        factor = level * kind.back_emf_constant / joint.back_emf_constant
        joint = replace(
            joint,
            torque_constant=factor * joint.torque_constant,
            back_emf_constant=factor * joint.back_emf_constant,
            current_covariance=joint.current_covariance / factor**2,
        )
    constant = kind.std["torque_constant"] / kind.torque_constant
    coefficients = np.append(1.0, joint.friction.values) / joint.torque_constant
    covariance = joint.current_covariance
    size = len(coefficients)
    covariance = covariance if covariance.size else np.zeros((size, size))
    form = np.append(0.0, _friction_form(joint, kind))
    errors = (constant * coefficients, form / joint.torque_constant)
    covariance = covariance + _TWO_ARMS**2 * (
        np.outer(errors[0], errors[0]) + np.diag(np.square(errors[1]))
    )
    std = {
        name: float(np.hypot(joint.std.get(name, 0.0), _TWO_ARMS * kind.std[name]))
        for name in ("reflected_inertia", "torque_constant", "winding_resistance")
    }
    std["back_emf_constant"] = std["torque_constant"]
    residual = max(joint.current_residual, kind.current_residual)
    return replace(
        joint, std={**joint.std, **std}, current_covariance=covariance, current_residual=residual
    )


def _friction_form(joint: JointModel, kind: JointModel) -> Array:
    """Errors of a joint's friction parameters beyond its level, between arms of a type [p].

    What varies with the session has the largest relative error of the generic law, since the laws
    may differ; the shares of the load have its errors.
    """
    names = kind.friction.law.parameters
    scale = kind.torque_constant**2
    level = kind.friction.values**2 * kind.current_covariance[0, 0] * scale
    form = np.sqrt(np.maximum(np.diag(kind.current_covariance)[1:] * scale - level, 0.0))
    of_kind = dict(zip(names, form.tolist(), strict=True))
    relative = max(
        error / abs(kind.friction.parameters[name])
        for name, error in of_kind.items()
        if name in ("coulomb", "power")
    )
    own = joint.friction.law.parameters
    return np.where(
        scaled_parameters(own),
        relative * np.abs(joint.friction.values),
        [of_kind.get(name, 0.0) for name in own],
    )


def is_generic(model: EnergyModel) -> bool:
    """Whether a model is a generic one of the package."""
    return model.provenance.get("origin") == GENERIC


def model_words(model: EnergyModel, path: str | Path | None) -> str:
    """The model in words: "generic ur5e, not identified", or the path of its file."""
    if path is None or is_generic(model):
        return f"generic {model.robot_name}, not identified"
    return str(path)


def model_entry(path: str | Path | None) -> str:
    """`model` in JSON output: the path of the model file, "generic" without one."""
    return GENERIC if path is None else str(path)
