"""ROS descriptors of the parameters in `parameters.NODES`."""

from __future__ import annotations

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from ur_energy_model.nodes.parameter import Parameter


def descriptor(entry: Parameter) -> ParameterDescriptor:
    """ROS descriptor of a parameter.

    ROS checks the ranges of numbers. The node itself refuses to change read_only parameters while
    it is configured; `read_only` of ROS would forbid changes in every state.
    """
    text = entry.description + (f" [{entry.unit}]" if entry.unit else "")
    out = ParameterDescriptor(name=entry.name, description=text, dynamic_typing=entry.dynamic)
    if entry.choices:
        out.additional_constraints = "one of " + ", ".join(entry.choices)
    if entry.address:
        out.additional_constraints = "the address of a host"
    if entry.minimum is not None and entry.maximum is not None:
        if isinstance(entry.default, float):
            out.floating_point_range = [
                FloatingPointRange(from_value=float(entry.minimum), to_value=float(entry.maximum))
            ]
        else:
            out.integer_range = [
                IntegerRange(from_value=int(entry.minimum), to_value=int(entry.maximum), step=1)
            ]
    return out
