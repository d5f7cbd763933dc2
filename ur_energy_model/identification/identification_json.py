"""JSON of an identification, as `ur_energy identify --json` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.payload.payload_check import PayloadCheck
from ur_energy_model.identification.pipeline import Identification
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction.coulomb_viscous_fit import coulomb_viscous_fit
from ur_energy_model.model.friction.curve import friction_curve
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.motor_constant import motor_constant
from ur_energy_model.model.robots import RobotDescription

_CURVE_SPEEDS = np.array([0.1, 0.25, 0.5, 1.0])
"""Speeds at which friction is given, besides the highest [rad/s]."""


def identification_json(result: Identification) -> Mapping[str, Any]:
    """`ur_energy identify --json`."""
    model = result.model
    payload = model.setup.payload
    robot = result.robot
    spread = model.sessions.friction_of(model.dof)
    return {
        "robot": model.robot,
        "setup": {
            "gravity": model.setup.gravity,
            "payload_mass": payload.mass,
            "payload_center_of_mass": payload.center_of_mass,
        },
        "setup_source": model.setup_source,
        "joints": [
            {
                **_joint_json(joint, fit, _robot_file(robot, j), float(robot.max_velocity[j])),
                **_friction_json(joint, fit, float(spread[j]), float(robot.max_velocity[j])),
            }
            for j, (joint, fit) in enumerate(zip(model.joints, result.joints, strict=True))
        ],
        "sessions": {
            "count": model.sessions.count,
            "friction_std": spread,
            "standby_std": model.sessions.standby,
        },
        "link_tensors": _tensors_json(model),
        "bus_power": _bus_json(result) if model.bus.source == "bus_power" else None,
        "fit": model.fit[0] if model.fit else None,
        "fits": list(model.fit),
        "validation": list(model.validation),
        "payload_checks": [_payload_json(entry) for entry in result.payload_checks],
        "warnings": list(result.warnings),
        "notes": list(result.notes),
    }


def _payload_json(entry: PayloadCheck) -> dict[str, Any]:
    return {
        "bag": entry.source,
        "model_mass": entry.told_mass,
        "mass": entry.mass,
        "std": entry.std,
        "contradicts": entry.contradicts,
    }


def _tensors_json(model: EnergyModel) -> dict[str, Any] | None:
    """Identified tensors by link, None if the robot file's are used."""
    tensors = model.link_tensors
    if tensors is None:
        return None
    return {
        joint.name: {"value": value, "std": std}
        for joint, value, std in zip(model.joints, tensors.values, tensors.std, strict=True)
    }


def _robot_file(robot: RobotDescription, j: int) -> dict[str, float]:
    """Constants of a drive in the robot file."""
    return {
        "reflected_inertia": float(robot.reflected_inertia[j]),
        "torque_constant": float(robot.torque_constant[j]),
        "winding_resistance": float(robot.winding_resistance[j]),
        "motor_constant": motor_constant(robot.torque_constant[j], robot.winding_resistance[j]),
    }


def _joint_json(
    joint: JointModel, fit: JointEstimate, robot_file: dict[str, float], fastest: float
) -> dict[str, Any]:
    direct, reverse = joint.friction.coulomb
    return {
        "name": joint.name,
        "reflected_inertia": joint.reflected_inertia,
        "torque_constant": joint.torque_constant,
        "viscous": joint.friction.parameters.get("viscous"),
        "coulomb_direct": direct,
        "coulomb_reverse": reverse,
        "friction_law": joint.friction.law.name,
        "friction_parameters": dict(joint.friction.parameters),
        "straight_line": coulomb_viscous_fit(joint.friction, joint.gear_ratio, fastest),
        "friction_reason": joint.friction_reason,
        "friction_comparison": fit.comparison,
        "winding_resistance": joint.winding_resistance,
        "back_emf_constant": joint.back_emf_constant,
        "motor_constant": motor_constant(joint.torque_constant, joint.winding_resistance),
        "robot_file": robot_file,
        "std": dict(joint.std),
        "source": dict(joint.source),
    }


def _friction_json(
    joint: JointModel, fit: JointEstimate, spread: float, fastest: float
) -> dict[str, Any]:
    """Friction over speed, with deviations for the fitted sessions and for any session."""
    curve = friction_curve(joint, spread, np.append(_CURVE_SPEEDS, fastest))
    return {
        "friction_std_this_session": dict(fit.friction_std),
        "friction_session_std": spread,
        "friction_session_scales": fit.session_scales,
        "friction_curve": {
            "speed": curve.speed,
            "torque": curve.torque,
            "std_this_session": curve.std_this_session,
            "std": curve.std,
        },
    }


def _bus_json(result: Identification) -> dict[str, Any]:
    bus = result.model.bus
    return {
        "kind": bus.kind,
        "standby": bus.standby,
        "standby_std": bus.std.get("standby"),
        "driver": bus.driver,
        "residual": bus.residual,
        "mode_power": dict(bus.mode_power),
        "factors": {
            name: {"value": value, "std": std}
            for name, (value, std) in result.power.factors.items()
        },
        "comparison": result.power.comparison,
        "reason": bus.reason,
    }
