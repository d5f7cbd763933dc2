"""The content of a model file as plain data: quantities with value, unit, deviation and source."""

from __future__ import annotations

from typing import Any

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel, LinkTensors, PayloadCalibration
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
    payload = model.setup.payload
    bus = model.bus
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "robot": model.robot,
        "setup": {
            "source": model.setup_source,
            "gravity": _numbers(model.setup.gravity),
            "payload_mass": _number(payload.mass),
            "payload_center_of_mass": _numbers(payload.center_of_mass),
            "payload_inertia": [_numbers(row) for row in payload.inertia],
        },
        "joints": {joint.name: _joint_document(joint) for joint in model.joints},
        "current_delay": {"value": _number(model.current_delay), "unit": "s"},
        **_link_tensors_document(model.link_tensors, names),
        **_calibration_document(model.payload_calibration, names),
        "bus": {
            "kind": bus.kind,
            "source": bus.source,
            "reason": bus.reason,
            "standby": _quantity(bus.standby, "W", bus.std.get("standby")),
            "driver_std": {"value": _number(bus.std.get("driver", 0.0)), "unit": "W/A"},
            "driver": {"unit": "W/A", **dict(zip(names, _numbers(bus.driver), strict=True))},
            "inductance": {"unit": "H", **dict(zip(names, _numbers(bus.inductance), strict=True))},
            "storage": {"value": _number(bus.capacitor_energy), "unit": "J"},
            "floor": {"value": _number(bus.floor), "unit": "W"},
            "residual": {
                "value": None if np.isnan(bus.residual) else _number(bus.residual),
                "unit": "W",
            },
            "errors": [_numbers(row) for row in bus.errors],
            "mode_power": {"unit": "W", **{k: _number(v) for k, v in bus.mode_power.items()}},
        },
        "sessions": {
            "standby_std": {"value": _number(model.sessions.standby), "unit": "W"},
            "friction_std": dict(
                zip(names, _numbers(model.sessions.friction_of(model.dof)), strict=True)
            ),
            "count": model.sessions.count,
        },
        "fit": [plain(entry, digits=_DIGITS) for entry in model.fit],
        "validation": [plain(entry, digits=_DIGITS) for entry in model.validation],
        "provenance": plain(model.provenance, digits=_DIGITS),
    }


def _joint_document(joint: JointModel) -> dict[str, Any]:
    friction = joint.friction
    out: dict[str, Any] = {
        name: _quantity(
            value, JOINT_UNITS[name], joint.std.get(name), joint.source.get(name, "given")
        )
        for name, value in joint.constants.items()
    }
    document: dict[str, Any] = {
        "law": friction.law.name,
        "reason": joint.friction_reason,
        "shape": {
            name: {"value": _number(value), "unit": SHAPE_UNITS[name]}
            for name, value in friction.all_shape.items()
        },
        "parameters": {
            name: _quantity(
                friction.parameters[name],
                PARAMETER_UNITS[name],
                joint.std.get(name),
                joint.source.get(name, "given"),
            )
            for name in friction.law.parameters
        },
    }
    if friction.presliding:
        document["presliding"] = {"value": _number(friction.presliding), "unit": "rad"}
    if friction.temperature_range is not None:
        low, high = friction.temperature_range
        document["temperature_range"] = {
            "lowest": _number(low),
            "highest": _number(high),
            "unit": "degC",
        }
    if friction.temperature_model is not None:
        document["temperature_model"] = _numbers(friction.temperature_model)
    out["friction"] = document
    out["current_residual"] = {"value": _number(joint.current_residual), "unit": "A"}
    out["current_covariance"] = [_numbers(row) for row in joint.current_covariance]
    return out


def _link_tensors_document(tensors: LinkTensors | None, names: list[str]) -> dict[str, Any]:
    """The section `link_tensors`; none if the robot file's are used."""
    if tensors is None:
        return {}
    links = {
        name: {"value": [_numbers(row) for row in value], "std": [_numbers(row) for row in std]}
        for name, value, std in zip(names, tensors.values, tensors.std, strict=True)
    }
    return {"link_tensors": {"unit": "kg m^2", "source": tensors.source, **links}}


def _calibration_document(
    calibration: PayloadCalibration | None, names: list[str]
) -> dict[str, Any]:
    """The section `payload_calibration`; none without a known payload."""
    if calibration is None:
        return {}
    joints = {
        name: {"link": _numbers(link), "link_gain": _number(gain), "payload_gain": _number(scale)}
        for name, link, gain, scale in zip(
            names, calibration.links, calibration.link_gain, calibration.payload_gain, strict=True
        )
    }
    covariance = [_numbers(row) for row in calibration.covariance]
    return {"payload_calibration": {"unit": "kg, kg m, 1", **joints, "covariance": covariance}}


def _quantity(
    value: float, unit: str, std: float | None, source: str | None = None
) -> dict[str, Any]:
    out: dict[str, Any] = {"value": _number(value), "unit": unit, "std": _number(std or 0.0)}
    return out if source is None else {**out, "source": source}


def _number(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")


def _numbers(values: Any) -> list[float]:
    return [_number(value) for value in values]
