"""Nodes of the OPC UA server: arms as machines, their metering points, methods and values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from asyncua import Server, ua

from ur_energy_model.sinks import opcua_types as spec
from ur_energy_model.sinks.opcua_types import (
    BUS,
    CLASS_TEXTS,
    CLASSES,
    EMPTY_TEXT,
    IDS,
    JOULE,
    MAIN,
    RESOURCE_VALUES,
    SECOND,
    WATT,
    CompanionTypes,
    Measurement,
    Name,
    NodeMaker,
    Quantity,
    Unit,
    metering_points,
    unit_variant,
    variant,
)
from ur_energy_model.sinks.sink import ArmActions, ArmReading

# Values under the names of the ROS topics, for clients that want numbers and no model.

STATE, LOST = "state", "samples_lost"
CYCLE = "energy/cycle/"


@dataclass(frozen=True)
class PlainValue:
    """A value and its unit, None for numbers and texts without one."""

    value: float | int | str
    unit: Unit | None = None


def plain_values(reading: ArmReading) -> dict[str, PlainValue]:
    """Values by name; those of cycles only where one has ended."""
    out = {
        name: PlainValue(value, WATT if name.endswith("/power") else JOULE)
        for name, value in reading.numbers().items()
    }
    out[STATE] = PlainValue(reading.snapshot.state.name.lower())
    out[LOST] = PlainValue(reading.link.lost)
    for cycle in reading.cycles[-1:]:
        energy = float(cycle.reading.net[reading.snapshot.channels.arm["total"]])
        out[f"{CYCLE}number"] = PlainValue(cycle.number)
        out[f"{CYCLE}energy"] = PlainValue(energy, JOULE)
        out[f"{CYCLE}duration"] = PlainValue(cycle.duration, SECOND)
        out[f"{CYCLE}peak_power"] = PlainValue(cycle.peak_power, WATT)
        out[f"{CYCLE}program"] = PlainValue(cycle.program or "")
    return out


# ChangingValues: the variables that readings change.


class ChangingValues:
    """Makes variables under keys, and writes those whose value or status changed.

    Args:
        server: that has them.
        prefix: of their node identifiers, `prefix/key`.
        space: namespace of the identifiers.
    """

    def __init__(self, server: Server, prefix: str, space: int) -> None:
        self._server, self._make = server, NodeMaker(server)
        self._prefix, self._space = prefix, space
        self._nodes: dict[str, tuple[ua.NodeId, ua.VariantType]] = {}
        self._written: dict[str, object] = {}
        self._status = ua.StatusCodes.Good

    def id(self, key: str) -> ua.NodeId:
        """Identifier of a node of this arm."""
        return ua.NodeId(f"{self._prefix}/{key}", self._space)

    async def add(
        self,
        parent: ua.NodeId,
        key: str,
        text: str,
        space: int,
        value: ua.Variant,
        kind: ua.NodeId | int = IDS.PropertyType,
        *,
        by: ua.NodeId | int | None = None,
    ) -> ua.NodeId:
        """Make a variable.

        Args:
            parent: node above it.
            key: of its values.
            text: browse name.
            space: namespace of the browse name.
            value: first value, which also states the type.
            kind: type definition.
            by: reference from its parent.
        """
        name = Name(text, space, self.id(key))
        node = await self._make.variable(parent, name, value, kind, by=by)
        self._nodes[key] = (node, value.VariantType)
        return node

    async def write(self, values: Mapping[str, object], time: datetime) -> None:
        """Write values by key; those that stayed the same are left alone."""
        everything, self._status = self._status != ua.StatusCodes.Good, ua.StatusCodes.Good
        for key, value in values.items():
            if everything or self._written.get(key) != value:
                self._written[key] = value
                await self._write(key, value, time)

    async def lose(self, time: datetime) -> None:
        """Say of all values that they are the last ones before the arm was lost."""
        if self._status == ua.StatusCodes.Good:
            self._status = ua.StatusCodes.UncertainLastUsableValue
            for key, value in self._written.items():
                await self._write(key, value, time)

    async def _write(self, key: str, value: Any, time: datetime) -> None:
        node, kind = self._nodes[key]
        if kind == ua.VariantType.LocalizedText:
            value = ua.LocalizedText(value)
        data = ua.DataValue(
            ua.Variant(value, kind), ua.StatusCode(self._status), SourceTimestamp=time
        )
        await self._server.write_attribute_value(node, data)


# MeteringNodes: the metering points of one arm as objects of OPC 34100.

START = "StartTime"
"""Key of the time of the last reset."""
Points = dict[str, dict[Quantity, Measurement]]


class MeteringNodes:
    """Adds metering points below a folder, and gives the values of their variables.

    Args:
        server: that has them.
        types: of the companion specifications.
        values: of the arm.
        folder: above the metering points.
    """

    def __init__(
        self, server: Server, types: CompanionTypes, values: ChangingValues, folder: ua.NodeId
    ) -> None:
        self._make, self._types = NodeMaker(server), types
        self._values, self._folder = values, folder
        self._known: set[str] = set()

    async def add_missing(self, points: Points) -> None:
        """Add the metering points that are new, MAIN first."""
        for point, measurements in points.items():
            if point not in self._known:
                self._known.add(point)
                await self._add_point(point)
                for quantity in measurements:
                    await self._add_measurement(point, quantity)

    @staticmethod
    def values_of(points: Points) -> dict[str, object]:
        """Values by key."""
        out: dict[str, object] = {}
        for point, measurements in points.items():
            for quantity, measurement in measurements.items():
                key, number = f"{point}/{quantity.name}", measurement.accuracy_class
                out[key] = measurement.value
                out[f"{key}/Uncertainty"] = measurement.uncertainty
                out[f"{key}/AccuracyClass"] = number
                out[f"{key}/AccuracyClass/ValueAsText"] = CLASS_TEXTS[number]
                out[f"{key}/Resource"] = spec.ELECTRICITY
                out[f"{key}/Resource/ValueAsText"] = spec.RESOURCES[spec.ELECTRICITY]
        return out

    async def _add_point(self, point: str) -> None:
        types, spaces, values = self._types, self._types.spaces, self._values
        space = spaces[spec.MACHINERY_ENERGY] if point == MAIN else spaces[spec.OWN]
        kind = types.id(spec.ECM, spec.MEASUREMENT_TYPE)
        name = Name(point, space, values.id(point))
        node = await self._make.object(self._folder, name, kind, IDS.Organizes)
        tag = Name("ApplicationTag", spaces[spec.ECM], values.id(f"{point}/ApplicationTag"))
        await self._make.variable(node, tag, variant(""), writable=True)
        if point == MAIN:
            nothing = ua.Variant(None, ua.VariantType.DateTime)
            await values.add(node, START, "StartTime", spaces[spec.IA], nothing)
        elif point != BUS:  # which measures the energy of MAIN once more
            contains = types.id(spec.MACHINERY_ENERGY, spec.CONTAINS)
            await self._make.refer(values.id(MAIN), contains, node)

    async def _add_measurement(self, point: str, quantity: Quantity) -> None:
        types, values, key = self._types, self._values, f"{point}/{quantity.name}"
        ecm, own = types.spaces[spec.ECM], types.spaces[spec.OWN]
        kind = ua.VariantType.Double if quantity.is_double else ua.VariantType.Float
        statistic = types.id(spec.IA, spec.HAS_STATISTIC_COMPONENT)
        node = await values.add(
            values.id(point),
            key,
            quantity.name,
            ecm,
            ua.Variant(0.0, kind),
            types.id(spec.ECM, spec.VALUE_TYPE),
            by=statistic if quantity.is_statistic else IDS.HasComponent,
        )
        domain = types.id(spec.ECM, spec.PERCENT_OF_READING)
        for text, space, value, data_type in (
            ("AccuracyDomain", ecm, ua.Variant(domain, ua.VariantType.NodeId), None),
            ("MeasurementID", ecm, ua.Variant(quantity.number, ua.VariantType.UInt16), None),
            ("EngineeringUnits", 0, unit_variant(quantity.unit), IDS.EUInformation),
        ):
            name = Name(text, space, values.id(f"{key}/{text}"))
            await self._make.variable(node, name, value, data_type=data_type)
        await values.add(node, f"{key}/Uncertainty", "Uncertainty", own, variant(0.0))
        await self._add_states(node, f"{key}/AccuracyClass", CLASSES)
        await self._add_states(node, f"{key}/Resource", RESOURCE_VALUES)

    async def _add_states(self, parent: ua.NodeId, key: str, names: ua.Variant) -> None:
        """A variable of MultiStateValueDiscreteType."""
        text = key.rpartition("/")[2]
        number = ua.Variant(0, ua.VariantType.UInt32)
        states = IDS.MultiStateValueDiscreteType
        space = self._types.spaces[spec.ECM]
        node = await self._values.add(parent, key, text, space, number, states)
        name = Name("EnumValues", 0, self._values.id(f"{key}/EnumValues"))
        await self._make.variable(node, name, names, data_type=IDS.EnumValueType)
        await self._values.add(node, f"{key}/ValueAsText", "ValueAsText", 0, EMPTY_TEXT)


# Methods of a machine: reset of the counters, and energies since the last call.

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


FOLDERS = (
    ("Monitoring", spec.MACHINERY),
    ("Consumption", spec.MACHINERY),
    ("Electricity", spec.MACHINERY_ENERGY),
)
"""From the machine down to its metering points."""
PLAIN = "Energy"
"""Folder of the values under the names of the ROS topics."""


class MachineNodes:
    """The nodes of one arm.

    Args:
        server: with the types.
        types: of the companion specifications.
        arm: its name.
    """

    def __init__(self, server: Server, types: CompanionTypes, arm: str) -> None:
        self._server, self._types, self._arm = server, types, arm
        self._make = NodeMaker(server)
        self._own = types.spaces[spec.OWN]
        self._values = ChangingValues(server, arm, self._own)
        self._metering: MeteringNodes | None = None
        self._plain: set[str] = set()

    async def add(self, reading: ArmReading, actions: ArmActions | None) -> None:
        """Add all nodes.

        Args:
            reading: the first one.
            actions: what clients may ask of the estimator, None for nothing.
        """
        machines = self._types.id(spec.MACHINERY, spec.MACHINES)
        name = Name(self._arm, self._own, ua.NodeId(self._arm, self._own))
        base, folder = ua.NodeId(IDS.BaseObjectType), ua.NodeId(IDS.FolderType)
        machine = await self._make.object(machines, name, base, IDS.Organizes)
        await self._add_identification(machine, reading)
        parent = machine
        for text, uri in FOLDERS:
            name = Name(text, self._types.spaces[uri], self._values.id(text))
            by = IDS.HasComponent if parent is machine else IDS.Organizes
            parent = await self._make.object(parent, name, folder, by)
        self._metering = MeteringNodes(self._server, self._types, self._values, parent)
        await self._metering.add_missing(metering_points(reading))
        await self._make.object(machine, Name(PLAIN, self._own, self._values.id(PLAIN)), folder)
        if actions is not None:
            await add_methods(self._server, machine, self._values, self._types, actions)

    async def write(self, reading: ArmReading) -> None:
        """Write what changed."""
        assert self._metering is not None
        points, plain = metering_points(reading), plain_values(reading)
        await self._metering.add_missing(points)
        for name, entry in plain.items():
            if name not in self._plain:
                await self._add_plain(name, entry)
        values = self._metering.values_of(points)
        values |= {name: entry.value for name, entry in plain.items()}
        values[START] = datetime.fromisoformat(reading.snapshot.reset_time)
        await self._values.write(values, _time(reading))

    async def lose(self) -> None:
        """Say of all values that they are the last ones before the arm was lost."""
        await self._values.lose(datetime.now(timezone.utc))

    async def _add_identification(self, machine: ua.NodeId, reading: ArmReading) -> None:
        """The nameplate of OPC 40001-1."""
        di, serial = self._types.spaces[spec.DI], reading.snapshot.serial or "unknown"
        kind = self._types.id(spec.MACHINERY, spec.MACHINE_IDENTIFICATION_TYPE)
        name = Name("Identification", di, self._values.id("Identification"))
        parent = await self._make.object(machine, name, kind, IDS.HasAddIn)
        model = "" if reading.robot is None else reading.robot.name
        for text, value in {
            "Manufacturer": ua.Variant(ua.LocalizedText("Universal Robots")),
            "Model": ua.Variant(ua.LocalizedText(model)),
            "SerialNumber": variant(serial),
            "ProductInstanceUri": variant(f"urn:universal-robots:{serial}"),
        }.items():
            child = Name(text, di, self._values.id(f"Identification/{text}"))
            await self._make.variable(parent, child, value)

    async def _add_plain(self, name: str, entry: PlainValue) -> None:
        """A variable with the name of a ROS topic."""
        self._plain.add(name)
        is_number = isinstance(entry.value, int)
        kind = ua.VariantType.Int64 if is_number else variant(entry.value).VariantType
        first = ua.Variant("" if kind == ua.VariantType.String else 0, kind)
        if kind == ua.VariantType.Double:
            first = variant(0.0)
        folder = self._values.id(PLAIN)
        definition = IDS.BaseDataVariableType if entry.unit is None else IDS.AnalogUnitType
        node = await self._values.add(folder, name, name, self._own, first, definition)
        if entry.unit is not None:
            unit = Name("EngineeringUnits", 0, self._values.id(f"{name}/EngineeringUnits"))
            value = unit_variant(entry.unit)
            await self._make.variable(node, unit, value, data_type=IDS.EUInformation)


def _time(reading: ArmReading) -> datetime:
    return datetime.fromtimestamp(reading.stamp * 1e-9, timezone.utc)
