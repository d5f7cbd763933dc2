"""Methods of a machine: reset of the counters, and energies since the last call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asyncua import Server, ua

from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.opcua import companion as spec
from ur_energy_model.sinks.opcua.changing_values import ChangingValues
from ur_energy_model.sinks.opcua.companion_types import CompanionTypes
from ur_energy_model.sinks.opcua.measurements import MAIN

LONGEST_REASON = 200
"""Most characters of a reason that are kept."""
_INTERVAL = {
    "accounted_s": "time of the interval that was measured [s]",
    "unaccounted_s": "time of the interval without samples [s]",
    "total_J": "energy of the whole arm [J]",
    "bus_J": "measured energy of the bus [J]",
}


def reset(actions: ArmActions) -> Callable[..., list[ua.Variant]]:
    """ResetEnergy(Reason): sets the counters since reset to zero; the lifetime ones continue."""

    def call(_parent: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        reason = str(arguments[0].Value or "") if arguments else ""
        actions.reset(reason[:LONGEST_REASON] or "OPC UA client")
        return []

    return call


def read_interval(actions: ArmActions) -> Callable[..., list[ua.Variant]]:
    """ReadInterval: energies since the last call of any client, sink or service."""

    def call(_parent: ua.NodeId, *_: ua.Variant) -> list[ua.Variant]:
        found = dict(actions.read_interval())
        numbers = [ua.Variant(_number(found.get(key)), ua.VariantType.Double) for key in _INTERVAL]
        return [*numbers, ua.Variant(json.dumps(found), ua.VariantType.String)]

    return call


async def add_methods(
    server: Server,
    machine: ua.NodeId,
    values: ChangingValues,
    types: CompanionTypes,
    actions: ArmActions,
) -> None:
    """Add the methods to a machine, and ResetStatistics to its main metering point."""
    own, node = types.spaces[spec.OWN], server.get_node(machine)
    text, double = ua.VariantType.String, ua.VariantType.Double
    reason = _argument("Reason", text, "kept with the counters")
    outputs = [_argument(name, double, words) for name, words in _INTERVAL.items()]
    outputs.append(_argument("json", text, "all of it, with the joints"))
    for name, call, arguments in (
        ("ResetEnergy", reset(actions), ([reason], [])),
        ("ReadInterval", read_interval(actions), ([], outputs)),
    ):
        browse_name = ua.QualifiedName(name, own)
        await node.add_method(values.id(name), browse_name, call, *arguments)
    statistics = ua.QualifiedName("ResetStatistics", types.spaces[spec.IA])
    main = server.get_node(values.id(MAIN))
    await main.add_method(values.id(f"{MAIN}/ResetStatistics"), statistics, reset(actions), [], [])


def _argument(name: str, kind: ua.VariantType, description: str) -> ua.Argument:
    return ua.Argument(
        Name=name,
        DataType=ua.NodeId(int(kind)),
        ValueRank=ua.ValueRank.Scalar,
        Description=ua.LocalizedText(description),
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
