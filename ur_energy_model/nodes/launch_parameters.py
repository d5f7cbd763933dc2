"""Launch arguments as node parameters; imports neither ROS nor launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ur_energy_model.nodes.parameter import Value
from ur_energy_model.nodes.parameters import parameter


def changed_parameters(
    node: str, arguments: Mapping[str, str], names: Iterable[str]
) -> dict[str, Value]:
    """Values of launch arguments that differ from the default of the parameter of that name.

    The others are left out, so that a parameter file given by the user can set them.

    Args:
        node: name of the node.
        arguments: text of all launch arguments, by name.
        names: arguments that are parameters of the node.

    Raises:
        ValueError: an argument is not a number, or its value is not allowed.
    """
    values = {name: parameter(node, name).parse(arguments[name]) for name in names}
    return {name: value for name, value in values.items() if value != parameter(node, name).default}
