"""Declares the parameters of a node, and refuses values of another type or outside their range."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.parameter import Parameter
from ur_energy_model.nodes.parameter_descriptor import descriptor


def declare_parameters(node: Node, entries: Iterable[Parameter]) -> dict[str, Any]:
    """Declare parameters.

    Args:
        node: that gets them.
        entries: to be declared.

    Returns:
        Their values at the start, by name.

    Raises:
        UrEnergyError: a value of another type, or one that is not allowed.
    """
    values: dict[str, Any] = {}
    for entry in entries:
        try:
            value = node.declare_parameter(entry.name, entry.default, descriptor(entry)).value
        except (InvalidParameterTypeException, InvalidParameterValueException):
            raise UrEnergyError(f"{node.get_name()}: {entry.name} must be {entry.wanted}") from None
        values[entry.name] = entry.normalized(value)
        problem = entry.problem(values[entry.name])
        if problem is not None:
            raise UrEnergyError(f"{node.get_name()}: {problem}")
        if values[entry.name] is not value:
            node.set_parameters([RosParameter(entry.name, value=values[entry.name])])
    return values
