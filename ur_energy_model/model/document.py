"""The content of a model file as plain data: quantities with value, unit, deviation and source."""

from __future__ import annotations

from typing import Any

from ur_energy_model.codec import plain
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import PARAMETER_UNITS, SHAPE_UNITS

SCHEMA = 1
KIND = "ur_energy_model"
JOINT_UNITS: dict[str, str] = {
    "gear_ratio": "1",
    "reflected_inertia": "kg m^2",
    "torque_constant": "N m/A",
    "winding_resistance": "ohm",
    "back_emf_constant": "V s/rad",
}
_DIGITS = 8
"""Significant digits: more than any measurement has, and still readable."""


def document(model: EnergyModel) -> dict[str, Any]:
    """The content of the model file as YAML data."""
    names = [joint.name for joint in model.joints]
    setup, payload, bus, sessions = model.setup, model.setup.payload, model.bus, model.sessions
    tensors, calibration = model.link_tensors, model.payload_calibration

    def of_joints(values: Any) -> dict[str, Any]:
        return dict(zip(names, values, strict=True))

    content: dict[str, Any] = {
        "kind": KIND,
        "schema": SCHEMA,
        "robot": model.robot,
        "setup": {
            "source": model.setup_source,
            "gravity": setup.gravity,
            "payload_mass": float(payload.mass),
            "payload_center_of_mass": payload.center_of_mass,
            "payload_inertia": payload.inertia,
        },
        "joints": {joint.name: _joint(joint) for joint in model.joints},
        "current_delay": _value(model.current_delay, "s"),
    }
    if tensors is not None:  # else those of the robot file are used
        links = [{"value": v, "std": s} for v, s in zip(tensors.values, tensors.std, strict=True)]
        unit = {"unit": "kg m^2", "source": tensors.source}
        content["link_tensors"] = {**unit, **of_joints(links)}
    if calibration is not None:
        gains = calibration.links, calibration.link_gain, calibration.payload_gain
        rows = [
            {"link": link, "link_gain": gain, "payload_gain": scale}
            for link, gain, scale in zip(*gains, strict=True)
        ]
        content["payload_calibration"] = {
            "unit": "kg, kg m, 1",
            **of_joints(rows),
            "covariance": calibration.covariance,
        }
    content |= {
        "bus": {
            "kind": bus.kind,
            "source": bus.source,
            "reason": bus.reason,
            "standby": _value(bus.standby, "W", std=bus.std.get("standby", 0.0)),
            "driver_std": _value(bus.std.get("driver", 0.0), "W/A"),
            "driver": {"unit": "W/A", **of_joints(bus.driver)},
            "inductance": {"unit": "H", **of_joints(bus.inductance)},
            "storage": _value(bus.capacitor_energy, "J"),
            "floor": _value(bus.floor, "W"),
            "residual": _value(bus.residual, "W"),
            "errors": bus.errors,
            "mode_power": {"unit": "W", **{k: float(v) for k, v in bus.mode_power.items()}},
        },
        "sessions": {
            "standby_std": _value(sessions.standby, "W"),
            "friction_std": of_joints(sessions.friction_of(model.dof)),
            "count": sessions.count,
        },
        "fit": model.fit,
        "validation": model.validation,
        "provenance": model.provenance,
    }
    return dict(plain(content, digits=_DIGITS))


def _value(value: float, unit: str, **more: Any) -> dict[str, Any]:
    return {"value": float(value), "unit": unit, **more}


def _joint(joint: JointModel) -> dict[str, Any]:
    friction = joint.friction

    def fitted(name: str, value: float, unit: str) -> dict[str, Any]:
        std, source = float(joint.std.get(name, 0.0)), joint.source.get(name, "given")
        return _value(value, unit, std=std, source=source)

    document: dict[str, Any] = {
        "law": friction.law.name,
        "reason": joint.friction_reason,
        "shape": {
            name: _value(value, SHAPE_UNITS[name]) for name, value in friction.all_shape.items()
        },
        "parameters": {
            name: fitted(name, friction.parameters[name], PARAMETER_UNITS[name])
            for name in friction.law.parameters
        },
    }
    if friction.presliding:
        document["presliding"] = _value(friction.presliding, "rad")
    if friction.temperature_range is not None:
        low, high = map(float, friction.temperature_range)
        document["temperature_range"] = {"lowest": low, "highest": high, "unit": "degC"}
    if friction.temperature_model is not None:
        document["temperature_model"] = friction.temperature_model
    return {
        **{name: fitted(name, value, JOINT_UNITS[name]) for name, value in joint.constants.items()},
        "friction": document,
        "current_residual": _value(joint.current_residual, "A"),
        "current_covariance": joint.current_covariance,
    }
