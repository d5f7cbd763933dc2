"""Reader of a joint in a model file: motor constants and friction."""

from __future__ import annotations

from ur_energy_model.model.file.document import JOINT_UNITS
from ur_energy_model.model.file.estimates import Estimates, check_unit, covariance_of, with_unit
from ur_energy_model.model.friction.law import (
    LAWS,
    PARAMETER_UNITS,
    SHAPE_UNITS,
    Friction,
    FrictionLaw,
)
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.reading import ranges
from ur_energy_model.reading.readers import Quantity, choice
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_tree import YamlTree

_QUANTITIES: dict[str, Quantity] = {
    "gear_ratio": ranges.GEAR_RATIO,
    "reflected_inertia": ranges.REFLECTED_INERTIA,
    "torque_constant": ranges.TORQUE_CONSTANT,
    "winding_resistance": ranges.RESISTANCE,
    "back_emf_constant": ranges.BACK_EMF,
}
"""Unit and range of each key of JOINT_UNITS."""
_FREE = ("winding_resistance", "back_emf_constant")
_LARGEST_FRICTION = 1e5
"""Of any friction parameter, in its own unit."""
_SHAPES: dict[str, tuple[float, float, bool]] = {
    "smoothing": (0.0, 10.0, True),
    "stribeck_speed": (0.0, 10.0, True),
    "exponent": (0.0, 3.0, True),
    "reference_temperature": (ranges.TEMPERATURE.low, ranges.TEMPERATURE.high, False),
}
"""Lowest and highest value, and whether zero is impossible; for units see SHAPE_UNITS."""
_NOT_NEGATIVE = {"viscous", "coulomb", "coulomb_direct", "coulomb_reverse"}
"""Parameters that are not negative in laws without other parameters."""


def read_joint(name: str, node: YamlTree, *, free: bool) -> JointModel:
    """Constants of a joint.

    Args:
        name: of the joint.
        node: its node.
        free: whether the power model's coefficients may have any sign (EcBot).
    """
    found = Estimates()
    with Record(node) as keys:
        values = {
            key: found.read(keys[key], key, _QUANTITIES[key], free=free and key in _FREE)
            for key in JOINT_UNITS
        }
        for key in _FREE:
            # only a fit to bus power may be negative by chance
            if values[key] < 0 and not free and found.source[key] != "bus_power":
                raise keys[key].refuse(f"{values[key]:g} must not be negative")
        friction, reason = _friction(keys["friction"], found)
        return JointModel(
            name=name,
            **values,
            friction=friction,
            std=found.std,
            source=found.source,
            current_covariance=covariance_of(1 + len(friction.law.parameters), optional=True)(
                keys["current_covariance"]
            ),
            current_residual=with_unit(ranges.CURRENT)(keys["current_residual"]),
            friction_reason=reason,
        )


def _friction(node: YamlTree, found: Estimates) -> tuple[Friction, str]:
    with Record(node) as keys:
        law = LAWS[choice(LAWS)(keys["law"])]
        parameters = _parameters(keys["parameters"], law, found)
        shape = {}
        with Record(keys["shape"]) as part:
            part.expect(law.shape)
            for name in law.shape:
                low, high, positive = _SHAPES[name]
                quantity = Quantity(SHAPE_UNITS[name], low, high, positive)
                shape[name] = with_unit(quantity)(part[name])
        friction = Friction(
            law,
            parameters,
            shape,
            keys.read("temperature_model", _temperature_model, None),
            keys.read("temperature_range", _temperature_range, None),
            keys.read("presliding", with_unit(ranges.TRAVEL), 0.0),
        )
        return friction, keys["reason"].text()


def _parameters(node: YamlTree, law: FrictionLaw, found: Estimates) -> dict[str, float]:
    out: dict[str, float] = {}
    not_negative = set(law.parameters) <= _NOT_NEGATIVE
    with Record(node) as keys:
        keys.expect(law.parameters)
        for name in law.parameters:
            low = 0.0 if not_negative else -_LARGEST_FRICTION
            quantity = Quantity(PARAMETER_UNITS[name], low, _LARGEST_FRICTION)
            out[name] = found.read(keys[name], name, quantity)
    return out


def _temperature_range(node: YamlTree) -> tuple[float, float]:
    with Record(node) as keys:
        check_unit(keys["unit"], "degC")
        lowest, highest = ranges.TEMPERATURE(keys["lowest"]), ranges.TEMPERATURE(keys["highest"])
        if lowest > highest:
            raise node.refuse("lowest is above highest")
    return lowest, highest


def _temperature_model(node: YamlTree) -> tuple[float, float, float, float]:
    a, b, c, d = ranges.temperature_model(node).tolist()
    return a, b, c, d
